/* Packed traces: unpacking gives the packed bytes, or, for a damaged file, the
 * bytes before the damage; and no file is ever lost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <vestige/vestige.h>

#include "check.h"
#include "os/os.h"
#include "span_tree.h"
#include "store/compress.h"
#include "store/source.h"
#include "trace_builder.h"
#include "whole_files.h"

static char folder[] = "/tmp/vestige-pack-XXXXXX";

static bool holds(const char *path, const void *bytes, size_t size)
{
    size_t got;
    unsigned char *found = read_whole(path, &got);
    bool same = got == size && memcmp(found, bytes, size) == 0;

    free(found);
    return same;
}

/* Checks that the folder has only files that the tests name: no temporary file
 * stayed. */
static void check_folder_is_empty(void)
{
    remove(path_in(folder, "plain.vst"));
    remove(path_in(folder, "packed.vst"));
    remove(path_in(folder, "again.vst"));
    CHECK_INT(rmdir(folder), 0);
    CHECK_INT(mkdir(folder, 0700), 0);
}

/* ---- traces -------------------------------------------------------------- */

static void begin(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_PYTHON, 1, "main", "/home/x/app.py", 3);
    builder_define(b, VST_DEF_NATIVE, 2, "len", "builtins", 0);
    builder_thread(b, 1, 4242, "MainThread");
    builder_metadata(b, "note", "\"first\"");
}

/* Adds a chunk full of calls, each a little different. */
static void add_calls(builder *b, unsigned thread, vst_ticks ticks,
                      unsigned pages)
{
    unsigned calls = (pages * VST_CHUNK_ALIGN - 64) / 16;

    builder_records(b, 0, thread, ticks, pages);
    for (unsigned i = 0; i < calls; i++) {
        builder_enter(b, 1 + i % 2, 10 + i * 7919 % 50);
        builder_exit(b, 1 + i % 2, 20 + i * 104729 % 90);
    }
    builder_seal(b, 1);
}

static void build_finished(builder *b)
{
    begin(b);
    builder_window(b, 0, 1000, 900000);
    add_calls(b, 1, 1000, 2);
    add_calls(b, 2, 1000, 1);
    builder_definitions(b, 1);
    builder_define(b, VST_DEF_ANNOTATION, 3, "step", "", 0);
    builder_records(b, 0, 1, 500000, 1);
    builder_enter(b, 3, 100);
    builder_escape_text(b, VST_ESCAPE_ARGS, 0, 6, "\"n\": 5");
    builder_exit(b, 3, 100);
    builder_seal(b, 1);
    b->size = b->chunk + sizeof(vst_chunk_header) + b->used;
    builder_finish(b);
}

static void build_torn(builder *b)
{
    begin(b);
    add_calls(b, 1, 1000, 4);
    builder_records(b, 0, 1, 900000, 16);
    builder_enter(b, 1, 100);
    builder_enter(b, 2, 100);
}

/* Returns the spans and the facts of a file as text; the caller frees it. */
static char *described(const char *path)
{
    span_tree tree = {.origin_ns = BUILDER_EPOCH_NS};
    vst_sink sink = tree_sink(&tree);
    vst_trace_info info;
    vst_trace *trace;
    const char *spans;
    char *text;
    size_t size;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        exit(2);
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_get_info(trace, &info);
    spans = tree_text(&tree);
    size = strlen(spans) + 256;
    text = malloc(size);
    if (text == NULL)
        exit(2);
    snprintf(text, size, "%d %u %llu %llu %llu %llu %lld %lld\n%s", info.clean,
             info.windows, (unsigned long long)info.words,
             (unsigned long long)info.bytes, (unsigned long long)info.lost,
             (unsigned long long)info.damaged_at, (long long)info.start_ns,
             (long long)info.end_ns, spans);
    tree_free(&tree);
    vst_trace_close(trace);
    return text;
}

/* ---- there and back ------------------------------------------------------ */

/* Packs and unpacks the bytes, compares them, and checks that the packed file
 * reads like the original. */
static void there_and_back(const void *bytes, size_t size)
{
    const char *plain = path_in(folder, "plain.vst"),
               *packed = path_in(folder, "packed.vst");
    const char *again = path_in(folder, "again.vst");
    char *before, *after;
    vst_trace_info info;
    vst_trace *trace;
    vst_error error;

    remove(packed);
    remove(again);
    write_whole(plain, bytes, size);
    if (!CHECK_INT(vst_trace_pack(plain, packed, NULL, &error), VST_OK))
        return;
    CHECK_INT(error.status, VST_OK);
    CHECK(holds(plain, bytes, size));
    CHECK_INT(vst_trace_unpack(packed, again, NULL, &error), VST_OK);
    CHECK(holds(again, bytes, size));

    before = described(plain);
    after = described(packed);
    CHECK_TEXT(after, before);
    free(before);
    free(after);
    if (!CHECK_INT(vst_trace_open(packed, &trace, NULL), VST_OK))
        return;
    vst_trace_get_info(trace, &info);
    CHECK(info.packed);
    CHECK(info.packed_bytes != 0 && info.packed_bytes < info.bytes);
    vst_trace_close(trace);
}

static void a_finished_file_comes_back_as_it_was(void)
{
    builder b;

    build_finished(&b);
    there_and_back(b.bytes, b.size);
    builder_free(&b);
}

static void a_torn_file_comes_back_wherever_it_is_torn(void)
{
    builder b;

    build_torn(&b);
    for (size_t size = VST_FILE_HEADER_SIZE + sizeof(vst_chunk_header);
         size <= b.size; size += 1001)
        there_and_back(b.bytes, size);
    builder_free(&b);
}

static void what_lies_behind_the_end_comes_back_too(void)
{
    builder b;

    build_torn(&b);
    builder_definitions(&b, 64);
    builder_chunk(&b)->magic = 0; /* room that the writer reserved ahead */
    there_and_back(b.bytes, b.size);
    builder_chunk(&b)->magic = 0x12345678; /* damage */
    builder_chunk(&b)->size = UINT32_MAX;
    there_and_back(b.bytes, b.size);
    builder_free(&b);
}

static void files_without_a_record_come_back(void)
{
    builder b;

    builder_init(&b);
    there_and_back(b.bytes, b.size);
    builder_definitions(&b, 1);
    builder_window(&b, 0, 1000, 2000);
    builder_window(&b, 1, 3000, 0);
    there_and_back(b.bytes, b.size);
    builder_free(&b);
}

static void chunks_larger_than_a_frame_come_back(void)
{
    char *text = malloc(3000001);
    builder b;

    begin(&b);
    builder_definitions(&b, 800);
    memset(text, 'x', 3000000);
    text[0] = text[2999999] = '"';
    text[3000000] = '\0';
    builder_metadata(&b, "long", text);
    add_calls(&b, 1, 1000, 600);
    add_calls(&b, 1, 300000000, 1);
    there_and_back(b.bytes, b.size);
    builder_free(&b);
    free(text);
}

/* Slots without a chunk are packed like slots that have one. */
static void a_bounded_file_comes_back(void)
{
    builder b;

    begin(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    for (unsigned i = 0; i < 300; i++) {
        add_calls(&b, 1 + i % 3, 1000 + i * 100000, 1);
        if (i % 7 == 5)
            builder_chunk(&b)->magic = 0;
    }
    there_and_back(b.bytes, b.size);
    builder_header(&b)->slot_size = 12345;
    there_and_back(b.bytes, b.size);
    builder_free(&b);
}

static void the_file_of_a_recording_that_runs_can_be_copied(void)
{
    vst_definition call = {.kind = VST_DEF_PYTHON,
                           .name = "call",
                           .name_len = 4,
                           .file = "x.py",
                           .file_len = 4};
    const char *live = path_in(folder, "plain.vst");
    vst_session_options options = {.path = live, .overwrite = true};
    unsigned char *bytes;
    vst_session *session;
    size_t size;
    vst_id id;

    if (!CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK))
        return;
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    CHECK_INT(
        vst_recording_define_id(vst_session_recording(session), &call, &id),
        VST_OK);
    for (int i = 0; i < 100000; i++) {
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
    }
    bytes = read_whole(live, &size);
    remove(path_in(folder, "packed.vst"));
    CHECK_INT(vst_trace_pack(live, path_in(folder, "packed.vst"), NULL, NULL),
              VST_OK);
    remove(path_in(folder, "again.vst"));
    CHECK_INT(vst_trace_unpack(path_in(folder, "packed.vst"),
                               path_in(folder, "again.vst"), NULL, NULL),
              VST_OK);
    CHECK(holds(path_in(folder, "again.vst"), bytes, size));
    CHECK_INT(vst_session_stop(session), VST_OK);
    vst_session_destroy(session);
    there_and_back(bytes, size);
    free(bytes);
}

static void every_level_gives_the_same_bytes(void)
{
    const char *plain = path_in(folder, "plain.vst"),
               *packed = path_in(folder, "packed.vst");
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    for (int level = 1; level <= VST_PACK_LEVEL_MAX; level++) {
        vst_pack_options options = {.level = level, .overwrite = true};

        CHECK_INT(vst_trace_pack(plain, packed, &options, NULL), VST_OK);
        CHECK_INT(vst_trace_unpack(packed, packed, &options, NULL), VST_OK);
        CHECK(holds(packed, b.bytes, b.size));
    }
    builder_free(&b);
}

/* Reads from more frames than the reader keeps, in random order. */
static void any_bytes_can_be_read_at_any_time(void)
{
    static unsigned char bytes[100000];
    const unsigned reads = 2000 / check_step(1, 5);
    vst__source source;
    uint32_t random = 1;
    builder b;
    int fd;

    begin(&b);
    for (unsigned i = 0; i < 20; i++)
        add_calls(&b, 1 + i % 3, 1000 + i * 30000000, 200);
    there_and_back(b.bytes, b.size);
    CHECK_INT(vst__os_file_open(path_in(folder, "packed.vst"), &fd), 0);
    CHECK_INT(vst__source_open(&source, fd, NULL), VST_OK);
    CHECK_INT(source.size, b.size);
    for (unsigned i = 0; i < reads; i++) {
        size_t offset, count, got;

        random = random * 1664525 + 1013904223;
        offset = random % (b.size + 1000);
        count = random >> 8 & (i % 10 == 0 ? 0xffff : 0xff);
        CHECK_INT(vst__source_read(&source, bytes, count, offset, &got),
                  VST_OK);
        if (offset + count > b.size)
            count = offset < b.size ? b.size - offset : 0;
        CHECK_INT(got, count);
        CHECK(memcmp(bytes, b.bytes + offset, got) == 0);
    }
    vst__source_close(&source);
    builder_free(&b);
}

/* ---- the files ----------------------------------------------------------- */

static void in_place_the_file_keeps_its_name_and_its_access(void)
{
    const char *plain = path_in(folder, "plain.vst");
    vst_pack_options options = {.overwrite = true};
    struct stat before, after;
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    chmod(plain, 0640);
    stat(plain, &before);
    CHECK_INT(vst_trace_pack(plain, plain, &options, NULL), VST_OK);
    stat(plain, &after);
    CHECK(after.st_size < before.st_size / 2);
    CHECK_INT(after.st_mode, before.st_mode);
    CHECK_INT(vst_trace_unpack(plain, plain, &options, NULL), VST_OK);
    stat(plain, &after);
    CHECK_INT(after.st_mode, before.st_mode);
    CHECK(holds(plain, b.bytes, b.size));
    check_folder_is_empty();
    builder_free(&b);
}

static void nothing_is_overwritten_unless_asked_for(void)
{
    const char *plain = path_in(folder, "plain.vst"),
               *other = path_in(folder, "again.vst");
    vst_pack_options options = {.overwrite = true};
    vst_error error;
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    write_whole(other, "precious", 8);
    CHECK_INT(vst_trace_pack(plain, other, NULL, &error), VST_E_EXISTS);
    CHECK_INT(error.sys_errno, EEXIST);
    CHECK_INT(vst_trace_pack(plain, plain, NULL, &error), VST_E_EXISTS);
    CHECK(holds(other, "precious", 8));
    CHECK(holds(plain, b.bytes, b.size));
    CHECK_INT(vst_trace_pack(plain, other, &options, &error), VST_OK);
    CHECK_INT(vst_trace_unpack(other, plain, NULL, &error), VST_E_EXISTS);
    CHECK_INT(vst_trace_unpack(other, plain, &options, &error), VST_OK);
    CHECK(holds(plain, b.bytes, b.size));
    check_folder_is_empty();
    builder_free(&b);
}

static void what_cannot_be_done_is_told_and_leaves_nothing(void)
{
    const char *plain = path_in(folder, "plain.vst"),
               *packed = path_in(folder, "packed.vst");
    vst_pack_options force = {.overwrite = true};
    vst_error error;
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    CHECK_INT(vst_trace_unpack(plain, packed, NULL, &error), VST_E_STATE);
    CHECK_INT(error.status, VST_E_STATE);
    CHECK_INT(vst_trace_pack(plain, packed, NULL, &error), VST_OK);
    CHECK_INT(vst_trace_pack(packed, packed, &force, &error), VST_E_STATE);
    CHECK_INT(vst_trace_pack(plain, "/dev/full/x", NULL, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, ENOTDIR);
    CHECK_INT(vst_trace_pack(plain, folder, &force, &error), VST_E_IO);
    CHECK_INT(error.sys_errno, EISDIR);
    CHECK_INT(vst_trace_pack(path_in(folder, "absent"), packed, &force, &error),
              VST_E_IO);
    CHECK_INT(error.sys_errno, ENOENT);
    force.level = VST_PACK_LEVEL_MAX + 1;
    CHECK_INT(vst_trace_pack(plain, packed, &force, &error), VST_E_ARGUMENT);
    force.level = -1;
    CHECK_INT(vst_trace_pack(plain, packed, &force, &error), VST_E_ARGUMENT);
    write_whole(packed, "once upon a time", 16);
    force.level = 0;
    CHECK_INT(vst_trace_pack(packed, plain, &force, &error), VST_E_NOT_A_TRACE);
    CHECK(holds(plain, b.bytes, b.size));
    check_folder_is_empty();
    builder_free(&b);
}

static int cancel(void *ctx, double done)
{
    CHECK(done > 0 && done <= 1);
    return ++*(int *)ctx;
}

static void a_cancelled_packing_leaves_the_file_as_it_was(void)
{
    const char *plain = path_in(folder, "plain.vst");
    int calls = 0;
    vst_pack_options options = {
        .overwrite = true, .progress = cancel, .progress_ctx = &calls};
    vst_error error;
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    CHECK_INT(vst_trace_pack(plain, plain, &options, &error), VST_E_CANCELLED);
    CHECK_INT(error.status, VST_E_CANCELLED);
    CHECK_INT(calls, 1);
    CHECK(holds(plain, b.bytes, b.size));
    check_folder_is_empty();
    builder_free(&b);
}

/* ---- without zstd -------------------------------------------------------- */

static bool has_zstd(void)
{
    vst__compressor *compressor;
    vst_status status = vst__compressor_create(1, &compressor);

    vst__compressor_destroy(compressor);
    CHECK(status == VST_OK || status == VST_E_NO_ZSTD);
    return status == VST_OK;
}

static void a_build_without_zstd_says_so(void)
{
    const char *plain = path_in(folder, "plain.vst"),
               *packed = path_in(folder, "packed.vst");
    vst_pack_options options = {.overwrite = true};
    vst_pack_header header = {
        .version = VST_PACK_VERSION,
        .byte_order = VST_FILE_BYTE_ORDER,
        .size = 5000,
    };
    vst_trace *trace;
    vst_error error;
    builder b;

    build_finished(&b);
    write_whole(plain, b.bytes, b.size);
    CHECK_INT(vst_trace_pack(plain, plain, &options, &error), VST_E_NO_ZSTD);
    CHECK_INT(error.status, VST_E_NO_ZSTD);
    CHECK_TEXT(vst_status_string(error.status),
               "packed traces need zstd, which this build lacks");
    CHECK(holds(plain, b.bytes, b.size));
    memcpy(header.magic, VST_PACK_MAGIC, sizeof header.magic);
    header.checksum = (uint32_t)crc32(0, (const unsigned char *)&header,
                                      offsetof(vst_pack_header, checksum));
    write_whole(packed, &header, sizeof header);
    CHECK_INT(vst_trace_open(packed, &trace, &error), VST_E_NO_ZSTD);
    CHECK_INT(vst_trace_unpack(packed, packed, &options, &error),
              VST_E_NO_ZSTD);
    CHECK_INT(vst_trace_recover(packed, packed, true, &error), VST_E_NO_ZSTD);
    CHECK(holds(packed, &header, sizeof header));
    check_folder_is_empty();
    builder_free(&b);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    if (!has_zstd()) {
        TEST(a_build_without_zstd_says_so);
        rmdir(folder);
        return checks_end();
    }
    TEST(a_finished_file_comes_back_as_it_was);
    TEST(a_torn_file_comes_back_wherever_it_is_torn);
    TEST(what_lies_behind_the_end_comes_back_too);
    TEST(files_without_a_record_come_back);
    TEST(chunks_larger_than_a_frame_come_back);
    TEST(a_bounded_file_comes_back);
    TEST(the_file_of_a_recording_that_runs_can_be_copied);
    TEST(every_level_gives_the_same_bytes);
    TEST(any_bytes_can_be_read_at_any_time);
    TEST(in_place_the_file_keeps_its_name_and_its_access);
    TEST(nothing_is_overwritten_unless_asked_for);
    TEST(what_cannot_be_done_is_told_and_leaves_nothing);
    TEST(a_cancelled_packing_leaves_the_file_as_it_was);
    check_folder_is_empty();
    rmdir(folder);
    return checks_end();
}
