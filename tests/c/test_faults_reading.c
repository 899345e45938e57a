/* Opens, replays, exports and recovers a torn file, again and again, each time
 * with another failing call: the core's first call, its second, and so on until
 * no call fails. Each failure is reported, leaves the original unchanged, and
 * leaves no half-written file. Leaks are found by the sanitizer. */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <vestige/vestige.h>

#include "check.h"
#include "export/output/json.h"
#include "record/language.h"
#include "tables/pass.h"

enum {
    PAYLOAD = 3000, /* bytes: a few fill a chunk */
    ROUNDS = 12,
    FAULTS_MAX = 1000,
    BYTES_MAX = 1 << 20,
};

static char folder[] = "/tmp/vestige-reading-XXXXXX";
static char torn_path[64], other_path[64];

/* The torn file, and how many words a reader finds in it. */
static unsigned char torn[BYTES_MAX];
static size_t torn_size;
static uint64_t torn_words;

static size_t read_bytes(const char *path, unsigned char *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t count = file != NULL ? fread(bytes, 1, BYTES_MAX, file) : 0;

    if (file != NULL)
        fclose(file);
    return count;
}

static void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    if (!CHECK(file != NULL && fwrite(bytes, 1, count, file) == count))
        exit(2);
    fclose(file);
}

static bool holds(const char *path, const void *bytes, size_t count)
{
    static unsigned char found[BYTES_MAX];

    return read_bytes(path, found) == count && memcmp(found, bytes, count) == 0;
}

/* ---- the torn file ------------------------------------------------------ */

static void *record(void *ctx)
{
    static char payload[PAYLOAD + 1];
    const vst_id *id = ctx;

    snprintf(payload, sizeof payload, "\"text\": \"%0*d\"", PAYLOAD - 10, 1);
    for (int i = 0; i < ROUNDS; i++) {
        vst_record(VST_ENTER, *id);
        vst_record_args(payload, strlen(payload));
        vst_record_begin(*id, 1);
        vst__record_switch(1);
        vst__record_switch(0);
        vst_record_alloc(VST_MEMORY_MALLOC, 0x1000, 64, 1, 0,
                         vst_clock_ticks());
        vst_record_free(VST_MEMORY_FREE, 0x1000, 0, vst_clock_ticks());
        vst_record(VST_EXIT, *id);
    }
    return NULL;
}

/* Makes a file of a running recording: two windows, a thread that ended and a
 * thread that continues. */
static void make_torn(void)
{
    vst_definition definition = {
        .kind = VST_DEF_PYTHON, .name = "call", .name_len = 4, .file = ""};
    vst_session_options options = {.path = torn_path};
    vst_session *session;
    pthread_t thread;
    vst_id id;

    if (!CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK))
        exit(2);
    for (int window = 0; window < 2; window++) {
        CHECK_INT(vst_session_start(session, NULL), VST_OK);
        CHECK_INT(vst_recording_define_id(vst_session_recording(session),
                                          &definition, &id),
                  VST_OK);
        vst_recording_set_metadata(vst_session_recording(session), "key", "1");
        record(&id);
        if (CHECK_INT(faults_thread(&thread, record, &id), 0))
            pthread_join(thread, NULL);
        if (window == 0)
            CHECK_INT(vst_session_stop(session), VST_OK);
    }
    torn_size = read_bytes(torn_path, torn);
    CHECK(torn_size > 0 && torn_size < BYTES_MAX);
    vst_session_destroy(session);
    vst_thread_release();
}

/* Opens the file without faults, and checks that it has the contents of the
 * torn file. */
static void check_trace(const char *path, bool clean)
{
    vst_sink sink = {0};
    vst_trace_info info;
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        return;
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.clean, clean);
    CHECK_INT(info.windows, 2);
    CHECK_INT(info.threads, 3);
    CHECK_INT(info.words, torn_words);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
}

static void a_file_copied_while_it_is_recorded_is_torn(void)
{
    vst_trace_info info;
    vst_trace *trace;

    make_torn();
    write_bytes(torn_path, torn, torn_size);
    if (!CHECK_INT(vst_trace_open(torn_path, &trace, NULL), VST_OK))
        exit(2);
    vst_trace_get_info(trace, &info);
    CHECK(!info.clean);
    torn_words = info.words;
    CHECK(torn_words > 4 * ROUNDS * PAYLOAD / 8);
    vst_trace_close(trace);
    check_trace(torn_path, false);
}

/* Checks that the folder has only these files. */
static void check_folder(bool with_other)
{
    const char *own = strrchr(torn_path, '/') + 1;
    const char *other = strrchr(other_path, '/') + 1;
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int others = 0;

    while ((entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        others += strcmp(name, other) == 0;
        if (!CHECK(name[0] == '.' || strcmp(name, own) == 0 ||
                   strcmp(name, other) == 0))
            printf("# %s was left behind\n", name);
    }
    closedir(entries);
    CHECK_INT(others, with_other);
}

/* ---- one fault after the other ------------------------------------------ */

/* The operation that runs under faults. */
typedef vst_status (*try_fn)(vst_error *error);
/* The check that runs afterwards. */
typedef void (*check_fn)(bool worked);

static bool try_fault(fault_kind kind, unsigned n, bool lasting, try_fn try,
                      check_fn check)
{
    vst_error error = {VST_OK, 0, 0};
    int bad = checks_bad;
    vst_status status;
    bool failed;

    write_bytes(torn_path, torn, torn_size);
    faults_begin(kind, n, lasting, faults_told[kind].sys_errno);
    status = try(&error);
    failed = faults_end();
    if (status != VST_OK) {
        CHECK(failed);
        CHECK_INT(status, faults_told[kind].status);
        CHECK_INT(error.status, status);
        if (kind != FAULT_MEMORY)
            CHECK_INT(error.sys_errno, faults_told[kind].sys_errno);
    }
    check(status == VST_OK);
    unlink(other_path);
    if (bad != checks_bad)
        printf("# with fault %u of kind %d%s\n", n, (int)kind,
               lasting ? ", lasting" : "");
    return failed;
}

static unsigned one(fault_kind kind)
{
    return 1u << kind;
}

/* Checks that calls of all the expected kinds failed. */
static void try_all(try_fn try, check_fn check, unsigned expected)
{
    unsigned kinds = 0;

    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (int lasting = 0; lasting < 2; lasting++) {
            unsigned n = 1;

            while (n < FAULTS_MAX &&
                   try_fault((fault_kind)kind, n, lasting, try, check))
                n += check_step(1, 5);
            CHECK(n < FAULTS_MAX);
            if (n > 1)
                kinds |= one((fault_kind)kind);
        }
    CHECK_INT(kinds & expected, expected);
}

/* ---- reading ------------------------------------------------------------ */

static vst_status open_and_replay(vst_error *error)
{
    vst_sink sink = {.recursion = true};
    vst_trace *trace;
    vst_status status = vst_trace_open(torn_path, &trace, error);

    if (status != VST_OK)
        return status;
    status = vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, error);
    vst_trace_close(trace);
    return status;
}

static vst_status open_and_export(vst_error *error)
{
    vst_export_options options = {.window = VST_WINDOW_ALL};
    vst_trace *trace;
    vst_status status = vst_trace_open(torn_path, &trace, error);

    if (status != VST_OK)
        return status;
    status = vst_trace_export(trace, other_path, &options, error);
    vst_trace_close(trace);
    return status;
}

/* gzread reads plain files, too. */
static bool is_whole_json(const char *path)
{
    static char text[BYTES_MAX];
    gzFile file = gzopen(path, "rb");
    int count = file != NULL ? gzread(file, text, BYTES_MAX) : -1;
    bool whole = file != NULL && gzclose(file) == Z_OK && count > 0;

    return whole && vst__json_is_value(text, (size_t)count);
}

static void check_reading(bool worked)
{
    (void)worked;
    CHECK(holds(torn_path, torn, torn_size));
    check_folder(false);
}

static void check_export(bool worked)
{
    CHECK(holds(torn_path, torn, torn_size));
    check_folder(worked);
    if (worked)
        CHECK(is_whole_json(other_path));
}

static void name_other(const char *name)
{
    snprintf(other_path, sizeof other_path, "%s/%s", folder, name);
}

static unsigned reading(void)
{
    return one(FAULT_MEMORY) | one(FAULT_PREAD) | one(FAULT_OPEN);
}

static void any_call_of_opening_and_replaying_may_fail(void)
{
    name_other("t.json");
    try_all(open_and_replay, check_reading, reading());
}

static void any_call_of_an_export_may_fail(void)
{
    unsigned expected = reading() | one(FAULT_FWRITE) | one(FAULT_RENAME);

    name_other("t.json");
    try_all(open_and_export, check_export, expected);
    name_other("t.json.gz");
    try_all(open_and_export, check_export, expected);
}

static void check_other_export(bool worked)
{
    CHECK(holds(torn_path, torn, torn_size));
    check_folder(worked);
}

static void any_call_of_an_export_for_another_tool_may_fail(void)
{
    static const char *const names[] = {
        "t.pftrace", "t.speedscope.json", "t.folded",   "t.svg",
        "t.pb",      "t.pstats",          "t.callgrind"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        name_other(names[i]);
        try_all(open_and_export, check_other_export,
                reading() | one(FAULT_FWRITE) | one(FAULT_RENAME));
    }
}

/* ---- tables ------------------------------------------------------------- */

/* A stream returns an errno and a message. */
static vst_status told_by(vst_arrow_stream *stream, int failed,
                          vst_error *error)
{
    const char *text = stream->get_last_error(stream);

    error->status = failed == ENOMEM ? VST_E_NOMEM : VST_E_IO;
    for (int i = 0; i < FAULT_KINDS; i++)
        if (faults_told[i].sys_errno != 0 &&
            strstr(text, strerror(faults_told[i].sys_errno)) != NULL)
            error->sys_errno = faults_told[i].sys_errno;
    return error->status;
}

static const char *streamed; /* table */

static vst_status read_stream(vst_error *error)
{
    vst_table_source source = {.path = torn_path};
    vst_arrow_stream stream;
    vst_arrow_schema schema;
    vst_arrow_array batch;
    vst_status status = vst__table_stream(streamed, &source, 1, &stream);
    int failed;

    if (status != VST_OK) {
        error->status = status;
        return status;
    }
    failed = stream.get_schema(&stream, &schema);
    if (failed == 0)
        schema.release(&schema);
    while (failed == 0) {
        failed = stream.get_next(&stream, &batch);
        if (batch.release == NULL)
            break;
        batch.release(&batch);
    }
    status = failed != 0 ? told_by(&stream, failed, error) : VST_OK;
    stream.release(&stream);
    return status;
}

static void any_call_of_a_stream_may_fail(void)
{
    static const char *const tables[] = {"span", "func", "alloc"};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        streamed = tables[i];
        try_all(read_stream, check_reading, reading());
    }
}

static vst_status read_pass(vst_error *error)
{
    static const char *const names[] = {
        "functions", "calls", "threads",    "collections", "repeats",
        "span",      "task",  "task_steps", "duration"};
    enum { COUNT = sizeof names / sizeof names[0] };
    const vst__table_options options = {.spread = true, .awaits = true};
    const vst__table *tables[COUNT];
    vst__table_pass pass;
    vst_trace *trace;
    vst_status status = vst_trace_open(torn_path, &trace, error);

    if (status != VST_OK)
        return status;
    for (size_t i = 0; i < COUNT; i++)
        tables[i] = vst__table_of_any_kind(names[i]);
    status = vst__table_pass_create(&pass, tables, COUNT, &options);
    if (status == VST_OK)
        status = vst__table_pass_read(&pass, trace, error);
    else
        vst_error_set(error, status, 0, 0);
    vst__table_pass_free(&pass);
    vst_trace_close(trace);
    return status;
}

static void any_call_of_a_pass_may_fail(void)
{
    try_all(read_pass, check_reading, reading());
}

/* ---- recovering --------------------------------------------------------- */

static const char precious[] = "precious";

static vst_status recover_to_other(vst_error *error)
{
    return vst_trace_recover(torn_path, other_path, false, error);
}

static vst_status recover_over_other(vst_error *error)
{
    faults_pause(true);
    write_bytes(other_path, precious, sizeof precious);
    faults_pause(false);
    return vst_trace_recover(torn_path, other_path, true, error);
}

static vst_status recover_in_place(vst_error *error)
{
    return vst_trace_recover(torn_path, torn_path, true, error);
}

static void check_other(bool worked)
{
    CHECK(holds(torn_path, torn, torn_size));
    check_folder(worked);
    if (worked)
        check_trace(other_path, true);
}

static void check_other_replaced(bool worked)
{
    CHECK(holds(torn_path, torn, torn_size));
    check_folder(true);
    if (worked)
        check_trace(other_path, true);
    else
        CHECK(holds(other_path, precious, sizeof precious));
}

static void check_itself_replaced(bool worked)
{
    check_folder(false);
    if (worked)
        check_trace(torn_path, true);
    else
        CHECK(holds(torn_path, torn, torn_size));
}

static void any_call_of_a_recovery_may_fail(void)
{
    unsigned expected = reading() | one(FAULT_PWRITE) | one(FAULT_FTRUNCATE);

    name_other("whole.vst");
    try_all(recover_to_other, check_other, expected);
    expected |= one(FAULT_RENAME);
    try_all(recover_over_other, check_other_replaced, expected);
    try_all(recover_in_place, check_itself_replaced, expected);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(torn_path, sizeof torn_path, "%s/torn.vst", folder);
    TEST(a_file_copied_while_it_is_recorded_is_torn);
    TEST(any_call_of_opening_and_replaying_may_fail);
    TEST(any_call_of_an_export_may_fail);
    TEST(any_call_of_an_export_for_another_tool_may_fail);
    TEST(any_call_of_a_stream_may_fail);
    TEST(any_call_of_a_pass_may_fail);
    TEST(any_call_of_a_recovery_may_fail);
    unlink(torn_path);
    CHECK_INT(rmdir(folder), 0);
    return checks_end();
}
