/* Recovery: a file that is torn at any place becomes a finished file with the
 * same contents. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vestige/trace.h>

#include "check.h"
#include "os/os.h"
#include "span_tree.h"
#include "trace_builder.h"
#include "whole_files.h"

static char folder[] = "/tmp/vestige-recover-XXXXXX";

/* ---- what a trace says, as text ------------------------------------------ */

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s", more);
}

/* Prints times, threads, definitions and metadata. */
static void describe_facts(const vst_trace *trace, char *text, size_t size)
{
    vst_trace_info info;
    const char *key, *json;
    char line[256];

    vst_trace_get_info(trace, &info);
    snprintf(text, size, "pid %u, %u windows, %llu words, %lld..%lld\n",
             info.pid, info.windows, (unsigned long long)info.words,
             (long long)(info.start_ns - BUILDER_EPOCH_NS),
             (long long)(info.end_ns - BUILDER_EPOCH_NS));
    for (size_t i = 0; i < vst_trace_thread_count(trace); i++) {
        const vst_trace_thread *t = vst_trace_thread_at(trace, i);
        snprintf(line, sizeof line, "thread %u %llu %s: %llu words\n",
                 t->number, (unsigned long long)t->system_tid, t->name,
                 (unsigned long long)t->words);
        append(text, size, line);
    }
    for (vst_id id = 1; id <= vst_trace_definition_max(trace); id++) {
        const vst_definition *d = vst_trace_definition(trace, id);
        snprintf(line, sizeof line, "%u %s %s\n", id, d != NULL ? d->name : "?",
                 d != NULL ? d->file : "?");
        append(text, size, line);
    }
    for (size_t i = 0; (json = vst_trace_metadata_at(trace, i, &key)) != NULL;
         i++) {
        snprintf(line, sizeof line, "%s = %s\n", key, json);
        append(text, size, line);
    }
}

/* Returns a text that is equal for files with equal contents; the caller frees
 * it. */
static char *described(const char *path, bool *clean)
{
    const size_t size = 16384;
    char *text = malloc(size);
    span_tree tree = {.origin_ns = BUILDER_EPOCH_NS};
    vst_sink sink = tree_sink(&tree);
    vst_trace_info info;
    vst_trace *trace;

    if (text == NULL)
        exit(2);
    if (vst_trace_open(path, &trace, NULL) != VST_OK) {
        snprintf(text, size, "cannot be opened\n");
        return text;
    }
    vst_trace_get_info(trace, &info);
    *clean = info.clean;
    CHECK(!info.clean || info.damaged_at == 0);
    describe_facts(trace, text, size);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    append(text, size, tree_text(&tree));
    append(text, size, tree.points);
    tree_free(&tree);
    vst_trace_close(trace);
    return text;
}

/* ---- the files ----------------------------------------------------------- */

/* A file whose process died in its second window: one thread's chunk is sealed,
 * another's was handed on and is not sealed, a third thread has just begun its
 * chunk. */
static void build_torn(builder *b)
{
    builder_init(b);
    builder_header(b)->windows = 2;
    builder_header(b)->lost = 3;
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "len", "builtins", 0);
    builder_thread(b, 1, 4242, "MainThread");
    builder_metadata(b, "note", "\"first\"");
    builder_window(b, 0, 1000, 1500);
    builder_window(b, 1, 1900, 0);
    builder_thread(b, 2, 4243, "worker");
    builder_records(b, 0, 1, 1000, 1);
    builder_enter(b, 1, 100);
    builder_exit(b, 1, 100);
    builder_seal(b, 1);
    builder_records(b, 1, 1, 2000, 2);
    for (int i = 0; i < 400; i++) {
        builder_enter(b, 2, 1);
        builder_exit(b, 2, 1);
    }
    builder_enter(b, 1, 10);
    builder_seal(b, 1);
    builder_records(b, 1, 2, 4000, 1);
    builder_enter(b, 1, 10);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 6, "\"n\": 5");
    builder_exit(b, 1, 10);
    builder_escape(b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){3, 4500}, 2);
    builder_enter(b, 2, 10);
    builder_exit(b, 2, 10);
    builder_escape(b, VST_ESCAPE_SEGMENT, 0, (uint64_t[]){4, 5000}, 2);
    builder_escape(b, VST_ESCAPE_TIME, 0, &(uint64_t){9000}, 1);
    builder_enter(b, 2, 10);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_ANNOTATION, 3, "step", "", 0);
    builder_records(b, 1, 1, 9500, 1);
    builder_exit(b, 1, 100);
    builder_escape(b, VST_ESCAPE_COUNTER, 5, (uint64_t[]){3, 0}, 2);
}

/* Recovers the bytes; checks that the result is clean and has the same
 * contents. */
static void recover_and_compare(const void *bytes, size_t size)
{
    const char *torn = path_in(folder, "torn.vst"),
               *whole = path_in(folder, "whole.vst");
    bool torn_clean = false, clean = false;
    char *before, *after;
    vst_error error;
    vst_status status;

    write_whole(torn, bytes, size);
    remove(whole);
    before = described(torn, &torn_clean);
    status = vst_trace_recover(torn, whole, false, &error);
    if (strcmp(before, "cannot be opened\n") == 0) {
        CHECK(status < 0);
        CHECK_INT(error.status, status);
        CHECK(access(whole, F_OK) != 0);
    } else if (CHECK_INT(status, VST_OK)) {
        after = described(whole, &clean);
        CHECK(clean);
        CHECK_TEXT(after, before);
        free(after);
    }
    free(before);
}

static void a_torn_file_becomes_a_finished_one(void)
{
    bool clean = false;
    char *text;
    builder b;

    build_torn(&b);
    recover_and_compare(b.bytes, b.size);
    text = described(path_in(folder, "whole.vst"), &clean);
    CHECK(clean);
    CHECK(strstr(text, "pid 4242, 2 windows, 817 words, 1000..9605\n") != NULL);
    CHECK(strstr(text, "a 1100..1200\n") != NULL);
    CHECK(strstr(text, "a 2810..9600\n") != NULL);
    CHECK(strstr(text, "a 4010..4020 {\"n\": 5}\n") != NULL);
    CHECK(strstr(text, "b 9010..9605 open-at-end\n") != NULL);
    CHECK(strstr(text, "3 step \n") != NULL);
    free(text);
    builder_free(&b);
}

static void it_does_not_matter_where_it_is_torn(void)
{
    builder b;

    build_torn(&b);
    for (size_t size = 0; size <= b.size; size += VST_CHUNK_ALIGN)
        recover_and_compare(b.bytes, size);
    for (size_t size = 1; size < b.size; size += 108) /* also cuts inside
                                                       * words */
        recover_and_compare(b.bytes, size);
    builder_free(&b);
}

/* Pages that the file reserved ahead are zeros. */
static void chunks_that_were_never_begun_are_left_out(void)
{
    builder b;

    build_torn(&b);
    while (b.size > VST_FILE_HEADER_SIZE) {
        unsigned char *bytes = calloc(1, b.size + 64 * 1024);

        memcpy(bytes, b.bytes, b.size);
        recover_and_compare(bytes, b.size + 64 * 1024);
        free(bytes);
        b.size -= VST_CHUNK_ALIGN;
    }
    builder_free(&b);
}

static void what_follows_damage_is_left_out(void)
{
    builder b;

    build_torn(&b);
    b.bytes[b.chunk + 8] ^= 1;
    recover_and_compare(b.bytes, b.size);
    builder_chunk(&b)->magic = 0;
    recover_and_compare(b.bytes, b.size);
    builder_free(&b);
}

/* Stopped but not finished: recovery adds nothing and only cuts the file. */
static void a_stopped_file_is_cut_to_what_it_uses(void)
{
    size_t size;
    builder b;

    builder_init(&b);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 2000);
    builder_records(&b, 0, 1, 1000, 4);
    builder_enter(&b, 1, 100);
    builder_exit(&b, 1, 100);
    builder_header(&b)->state = VST_FILE_STOPPED;
    recover_and_compare(b.bytes, b.size);
    free(read_whole(path_in(folder, "whole.vst"), &size));
    CHECK_INT(size, b.chunk + sizeof(vst_chunk_header) + b.used);
    builder_free(&b);
}

static void a_recovered_file_is_recovered_to_itself(void)
{
    const char *whole = path_in(folder, "whole.vst");
    size_t first_size, second_size;
    unsigned char *first, *second;
    builder b;

    build_torn(&b);
    recover_and_compare(b.bytes, b.size);
    first = read_whole(whole, &first_size);
    recover_and_compare(first, first_size);
    second = read_whole(whole, &second_size);
    CHECK_INT(second_size, first_size);
    CHECK(memcmp(first, second, first_size) == 0);
    free(first);
    free(second);
    builder_free(&b);
}

/* ---- the paths ----------------------------------------------------------- */

static void nothing_is_overwritten_unless_asked_for(void)
{
    const char *torn = path_in(folder, "torn.vst"),
               *other = path_in(folder, "other.vst");
    bool clean = false;
    vst_error error;
    size_t size;
    builder b;
    unsigned char *text;

    build_torn(&b);
    write_whole(torn, b.bytes, b.size);
    write_whole(other, "precious", 8);
    CHECK_INT(vst_trace_recover(torn, other, false, &error), VST_E_EXISTS);
    CHECK_INT(error.sys_errno, EEXIST);
    CHECK_INT(vst_trace_recover(torn, torn, false, &error), VST_E_EXISTS);
    text = read_whole(other, &size);
    CHECK(size == 8 && memcmp(text, "precious", 8) == 0);
    free(text);
    CHECK_INT(vst_trace_recover(torn, other, true, &error), VST_OK);
    free(described(other, &clean));
    CHECK(clean);
    clean = false;
    CHECK_INT(vst_trace_recover(torn, torn, true, &error), VST_OK);
    free(described(torn, &clean));
    CHECK(clean);
    remove(other);
    builder_free(&b);
}

static void what_cannot_be_done_is_told_and_leaves_nothing(void)
{
    const char *torn = path_in(folder, "torn.vst"),
               *text = path_in(folder, "text.vst");
    const char *whole = path_in(folder, "whole.vst");
    vst_error error;
    builder b;

    build_torn(&b);
    write_whole(torn, b.bytes, b.size);
    write_whole(text, "once upon a time", 16);
    remove(whole);
    CHECK_INT(vst_trace_recover(text, whole, false, &error), VST_E_NOT_A_TRACE);
    CHECK_INT(vst_trace_recover(path_in(folder, "absent"), whole, true, &error),
              VST_E_IO);
    CHECK_INT(error.sys_errno, ENOENT);
    CHECK(access(whole, F_OK) != 0);
    CHECK_INT(vst_trace_recover(torn, "/dev/full/x", false, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, ENOTDIR);
    CHECK_INT(vst_trace_recover(torn, folder, true, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, EISDIR);
    remove(text);
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(a_torn_file_becomes_a_finished_one);
    TEST(it_does_not_matter_where_it_is_torn);
    TEST(chunks_that_were_never_begun_are_left_out);
    TEST(what_follows_damage_is_left_out);
    TEST(a_stopped_file_is_cut_to_what_it_uses);
    TEST(a_recovered_file_is_recovered_to_itself);
    TEST(nothing_is_overwritten_unless_asked_for);
    TEST(what_cannot_be_done_is_told_and_leaves_nothing);
    remove(path_in(folder, "torn.vst"));
    remove(path_in(folder, "whole.vst"));
    CHECK_INT(rmdir(folder), 0);
    return checks_end();
}
