/* Makes a recording from its file to its exports, again and again, and each
 * time with another failing call: the core's first call, its second, and so on
 * until no call fails. Whatever fails, the program continues, reports are true,
 * and the next recording works. Leaks are found by the sanitizer. */
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

enum {
    PAYLOAD = 3000, /* bytes: a few records fill a chunk */
    ROUNDS = 8,
    BOUNDED_ROUNDS = 45, /* more records than the smallest bound holds */
    /* Enough definitions that their table grows; definitions need not fail. */
    DEFINITIONS = 195,
    DEFINITIONS_BEFORE = 185,
    FAULTS_MAX = 1000,
    TEXT_MAX = 4 << 20
};

#define STEP check_step(2, 29)

static char folder[] = "/tmp/vestige-faults-XXXXXX";
static char vst_path[64], json_path[64], gzip_path[64];

/* One recording under faults, and its results. Threads run one after the
 * other. */
typedef struct attempt {
    fault_kind kind;
    bool to_path; /* NULL: to a temporary file */
    bool bounded; /* the bound is so small that records are dropped */
    vst_session *session;
    vst_id call, inner, counter;
    uint64_t records; /* attempts to record, and definitions that failed */
    bool started, exported_json, exported_gzip;
} attempt;

/* Returns whether the call worked. A failure must be reported like faults of
 * this kind. */
static bool worked(const attempt *a, vst_status status, const vst_error *error)
{
    if (status == VST_OK)
        return true;
    CHECK_INT(status, faults_told[a->kind].status);
    if (error != NULL) {
        CHECK_INT(error->status, status);
        if (a->kind != FAULT_MEMORY)
            CHECK_INT(error->sys_errno, faults_told[a->kind].sys_errno);
    }
    return false;
}

/* ---- recording ---------------------------------------------------------- */

static vst_id define(attempt *a, vst_definition_kind kind, const char *name)
{
    vst_definition definition = {.kind = kind,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name),
                                 .file = "faults.c",
                                 .file_len = 8};
    vst_id id;
    vst_status status = vst_recording_define_id(
        vst_session_recording(a->session), &definition, &id);

    if (!worked(a, status, NULL)) {
        CHECK_INT(id, 0);
        a->records++;
    }
    return id;
}

/* Defines a stack that is new each time. */
static vst_stack_id define_stack(attempt *a)
{
    vst_stack stack = {.kind = VST_STACK_NATIVE, .address = a->records};
    vst_stack_id id;
    vst_status status = vst_recording_define_stack(
        vst_session_recording(a->session), &stack, &id);

    if (!worked(a, status, NULL)) {
        CHECK_INT(id, 0);
        a->records++;
    }
    return id;
}

static void record_memory(attempt *a)
{
    vst_stack_id stack = define_stack(a);

    vst_record_alloc(VST_MEMORY_MALLOC, 0x1000, 64, stack, 0,
                     vst_clock_ticks());
    vst_record_alloc(VST_MEMORY_MMAP, 0x100000, 1 << 20, stack, 0,
                     vst_clock_ticks());
    vst_record_free(VST_MEMORY_FREE, 0x1000, 0, vst_clock_ticks());
    vst_record_free(VST_MEMORY_MUNMAP, 0x100000, 1 << 20, vst_clock_ticks());
    a->records += 4;
}

/* Like a tracer, records no call whose function could not be defined. */
static void *record(void *ctx)
{
    static char payload[PAYLOAD + 1];
    attempt *a = ctx;

    snprintf(payload, sizeof payload, "\"text\": \"%0*d\"", PAYLOAD - 10, 1);
    for (int i = 0; i < ROUNDS; i++) {
        if (a->call != 0) {
            vst_record(VST_ENTER, a->call);
            vst_record_args(payload, strlen(payload));
            a->records += 2;
        }
        if (a->inner != 0) {
            vst_record_begin(a->inner, 1);
            vst_record_end(a->inner, 1);
            a->records += 2;
        }
        if (a->counter != 0) {
            vst_record_counter(a->counter, i);
            a->records++;
        }
        vst__record_switch(1);
        vst__record_switch(0);
        a->records += 2;
        if (i == 0)
            record_memory(a);
        if (a->call != 0) {
            vst_record(VST_EXIT, a->call);
            a->records++;
        }
    }
    return NULL;
}

static void record_in_a_thread(attempt *a)
{
    pthread_t thread;

    if (CHECK_INT(faults_thread(&thread, record, a), 0))
        pthread_join(thread, NULL);
}

/* Records on this thread, on two threads that end, and on a thread that is
 * known only by its open calls. */
static void record_all(attempt *a)
{
    vst_recording *recording = vst_session_recording(a->session);
    char name[16];

    a->call = define(a, VST_DEF_PYTHON, "call");
    a->inner = define(a, VST_DEF_ANNOTATION, "inner");
    a->counter = define(a, VST_DEF_COUNTER, "counter");
    for (int i = 0; i < DEFINITIONS; i++) {
        faults_pause(i < DEFINITIONS_BEFORE);
        snprintf(name, sizeof name, "more %d", i);
        define(a, VST_DEF_NATIVE, name);
    }
    worked(a, vst_recording_set_metadata(recording, "key", "\"value\""), NULL);
    if (a->call != 0) {
        vst_recording_open_stack(recording, 1, 1, &a->call, 1);
        a->records++;
    }
    record(a);
    vst_recording_name_thread(recording, vst_thread_handle(), 0, "first", 5);
    record_in_a_thread(a);
    record_in_a_thread(a);
    record(a);
    for (int i = 0; a->bounded && i < BOUNDED_ROUNDS; i++)
        record(a);
}

/* ---- reading ------------------------------------------------------------ */

/* A tracer that counts its records, but not the gap that the recorder adds when
 * it runs out of room. */
typedef struct counting_tracer {
    vst_tracer base;
    uint64_t records;
} counting_tracer;

static vst_status count_events(vst_tracer *tracer,
                               const vst_time_converter *converter,
                               const vst_compressed_event *events, size_t count,
                               int64_t end_time_ns, const vst_sink *sink)
{
    uint32_t gap = vst_trace_key_kind_of_escape(VST_ESCAPE_GAP);

    (void)converter, (void)end_time_ns, (void)sink;
    for (size_t i = 0; i < count; i++)
        ((counting_tracer *)tracer)->records +=
            vst_trace_key_kind(events[i].key) != gap;
    return VST_OK;
}

static const vst_tracer_ops counting_ops = {.get_events = count_events};

static void read_back(attempt *a)
{
    vst_sink sink = {.recursion = true};
    vst_memory_sink memory = {0};
    vst_trace *trace, *again;
    vst_error error;

    if (!worked(a, vst_session_open_trace(a->session, &trace, &error), &error))
        return;
    worked(a, vst_trace_replay(trace, 0, NULL, &sink, &error), &error);
    worked(a, vst_trace_replay_memory(trace, 0, &memory, &error), &error);
    a->exported_json =
        worked(a, vst_trace_export(trace, json_path, NULL, &error), &error);
    /* Export the trace twice, as if two processes had made the same
     * recording. */
    if (worked(a, vst_session_open_trace(a->session, &again, &error), &error)) {
        a->exported_gzip =
            worked(a,
                   vst_traces_export((vst_trace *[]){trace, again}, 2,
                                     gzip_path, NULL, &error),
                   &error);
        vst_trace_close(again);
    }
    vst_trace_close(trace);
}

/* The records in the file and the counted losses add up to the recorded
 * calls. */
static void check_sums(const attempt *a)
{
    counting_tracer tracer = {{&counting_ops}, 0};
    vst_sink sink = {0};
    vst_trace_info info;
    vst_trace *trace;

    if (!CHECK_INT(vst_session_open_trace(a->session, &trace, NULL), VST_OK))
        return;
    CHECK_INT(
        vst_trace_replay(trace, VST_WINDOW_ALL, &tracer.base, &sink, NULL),
        VST_OK);
    vst_trace_get_info(trace, &info);
    CHECK_INT(info.lost, vst_session_lost(a->session));
    CHECK_INT(tracer.records + info.lost, a->records);
    vst_trace_close(trace);
}

/* ---- what is left behind ------------------------------------------------ */

/* gzread reads plain files, too. */
static bool is_whole_json(const char *path)
{
    static char text[TEXT_MAX];
    gzFile file = gzopen(path, "rb");
    int count = file != NULL ? gzread(file, text, TEXT_MAX) : -1;
    bool whole = file != NULL && gzclose(file) == Z_OK && count > 0;

    return whole && vst__json_is_value(text, (size_t)count);
}

static void check_file(const char *path, bool expected)
{
    CHECK_INT(access(path, F_OK) == 0, expected);
    if (expected)
        CHECK(is_whole_json(path));
    unlink(path);
}

static void check_files(const attempt *a)
{
    DIR *entries;
    struct dirent *entry;

    check_file(json_path, a->exported_json);
    check_file(gzip_path, a->exported_gzip);
    CHECK_INT(access(vst_path, F_OK) == 0, a->to_path && a->session != NULL);
    unlink(vst_path);
    entries = opendir(folder);
    while ((entry = readdir(entries)) != NULL)
        if (!CHECK(entry->d_name[0] == '.'))
            printf("# %s was left behind\n", entry->d_name);
    closedir(entries);
}

/* ---- one fault after the other ------------------------------------------ */

static void run(attempt *a)
{
    vst_session_options options = {.path = a->to_path ? vst_path : NULL,
                                   .max_size = a->bounded ? 1 << 20 : 0};
    vst_error error = {VST_OK, 0, 0};

    if (!worked(a, vst_session_create(&options, &a->session, &error), &error)) {
        a->session = NULL;
        return;
    }
    a->started = worked(a, vst_session_start(a->session, &error), &error);
    if (!a->started)
        return;
    record_all(a);
    CHECK_INT(vst_session_stop(a->session), VST_OK);
    worked(a, vst_session_finish(a->session, &error), &error);
    read_back(a);
}

/* A failure has no effect on later recordings. */
static void record_undisturbed(void)
{
    vst_session_options options = {.path = NULL};
    attempt a = {.kind = FAULT_THREAD};

    if (!CHECK_INT(vst_session_create(&options, &a.session, NULL), VST_OK))
        return;
    CHECK_INT(vst_session_start(a.session, NULL), VST_OK);
    a.call = define(&a, VST_DEF_PYTHON, "call");
    record(&a);
    CHECK_INT(vst_session_stop(a.session), VST_OK);
    CHECK_INT(vst_session_lost(a.session), 0);
    check_sums(&a);
    vst_session_destroy(a.session);
}

/* Returns whether a call failed. */
static bool try_fault(fault_kind kind, unsigned n, bool lasting, bool to_path,
                      bool bounded)
{
    attempt a = {.kind = kind, .to_path = to_path, .bounded = bounded};
    int bad = checks_bad;
    bool failed;

    faults_begin(kind, n, lasting, faults_told[kind].sys_errno);
    run(&a);
    vst_thread_release();
    failed = faults_end();
    if (a.started && !bounded)
        check_sums(&a);
    check_files(&a);
    vst_session_destroy(a.session);

    record_undisturbed();
    if (bad != checks_bad)
        printf("# with fault %u of kind %d%s%s\n", n, (int)kind,
               lasting ? ", lasting" : "", to_path ? ", to a path" : "");
    return failed;
}

static void try_all(fault_kind kind)
{
    for (int way = 0; way < 4; way++) {
        unsigned n = 1;

        while (n < FAULTS_MAX && try_fault(kind, n, way & 1, way & 2, false))
            n += STEP;
        CHECK(n > 1 || (way & 2) == 0);
        CHECK(n < FAULTS_MAX);
    }
}

static void memory_may_run_out_anywhere(void)
{
    try_all(FAULT_MEMORY);
}

static void any_chunk_may_fail_to_be_mapped(void)
{
    try_all(FAULT_MMAP);
    try_all(FAULT_MADVISE);
}

static void the_disk_may_be_full_at_any_chunk(void)
{
    try_all(FAULT_PWRITE);
}

static void a_file_may_keep_its_slack(void)
{
    try_all(FAULT_FTRUNCATE);
}

static void any_read_may_fail(void)
{
    try_all(FAULT_PREAD);
}

static void any_file_may_fail_to_open(void)
{
    try_all(FAULT_OPEN);
}

static void an_export_may_fail_to_be_written(void)
{
    try_all(FAULT_FWRITE);
    try_all(FAULT_RENAME);
}

static void an_export_needs_no_thread(void)
{
    try_all(FAULT_THREAD);
}

/* Records may be dropped here, so the sums are not compared. The recording must
 * go on and be readable. */
static void so_may_all_of_it_in_a_bounded_recording(void)
{
    const fault_kind kinds[] = {FAULT_MEMORY, FAULT_MMAP, FAULT_MADVISE,
                                FAULT_PWRITE, FAULT_PREAD};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int lasting = 0; lasting < 2; lasting++) {
            unsigned n = 1;

            while (n < FAULTS_MAX &&
                   try_fault(kinds[i], n, lasting, true, true))
                n += kinds[i] == FAULT_MEMORY ? check_step(2, 67)
                                              : check_step(7, 67);
            CHECK(n > 1 && n < FAULTS_MAX);
        }
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    snprintf(vst_path, sizeof vst_path, "%s/t.vst", folder);
    snprintf(json_path, sizeof json_path, "%s/t.json", folder);
    snprintf(gzip_path, sizeof gzip_path, "%s/t.json.gz", folder);
    TEST(memory_may_run_out_anywhere);
    TEST(any_chunk_may_fail_to_be_mapped);
    TEST(the_disk_may_be_full_at_any_chunk);
    TEST(a_file_may_keep_its_slack);
    TEST(any_read_may_fail);
    TEST(any_file_may_fail_to_open);
    TEST(an_export_may_fail_to_be_written);
    TEST(an_export_needs_no_thread);
    TEST(so_may_all_of_it_in_a_bounded_recording);
    rmdir(folder);
    return checks_end();
}
