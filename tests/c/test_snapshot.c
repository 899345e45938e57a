/* Snapshots of a running recording: a snapshot has all committed records, every
 * name resolves, and no recording thread waits. The linker sends the core's
 * pread and pwrite here first (see meson.build), so that a test can act in the
 * middle of a snapshot. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <vestige/vestige.h>

#include "check.h"
#include "store/copy.h"
#include "trace_builder.h"
#include "whole_files.h"

enum { THREADS = 4 };
#define CALLS (20000 / check_step(1, 4))

static char folder[] = "/tmp/vestige-snapshot-XXXXXX";

static int files_in_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int count = 0;

    while ((entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
        if (entry->d_name[0] != '.')
            remove(path_in(folder, entry->d_name));
    }
    closedir(dir);
    return count;
}

/* ---- in the middle ------------------------------------------------------- */

static void (*before_read)(int fd, off_t offset);
static void (*before_write)(void);

ssize_t __real_pread64(int fd, void *bytes, size_t count, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t offset);

ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t offset)
{
    if (before_read != NULL)
        before_read(fd, offset);
    return __real_pread64(fd, bytes, count, offset);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t offset)
{
    if (before_write != NULL)
        before_write();
    return __real_pwrite64(fd, bytes, count, offset);
}

/* ---- files made by hand -------------------------------------------------- */

static uint64_t checkpoint_payload[3] = {0, 0, 0};

/* Adds a sealed chunk of one page that ends at `last`; its records enter and
 * leave `id`. */
static void add_chunk(builder *b, vst_id id, vst_ticks start, vst_ticks last,
                      bool checkpoint)
{
    builder_records(b, 0, 1, start, 1);
    if (checkpoint)
        builder_escape(b, VST_ESCAPE_CHECKPOINT, 0, checkpoint_payload, 3);
    builder_enter(b, id, 10);
    builder_exit(b, id, 10);
    if (last != 0) {
        builder_seal(b, 1);
        builder_chunk(b)->last = last;
    }
}

static void begin_file(builder *b)
{
    builder_init(b);
    builder_definitions(b, 1);
    builder_window(b, 0, 1000, 0);
    builder_define(b, VST_DEF_NATIVE, 1, "first", "", 0);
    builder_define(b, VST_DEF_NATIVE, 2, "second", "", 0);
    builder_define(b, VST_DEF_NATIVE, 3, "third", "", 0);
    builder_thread(b, 1, 77, "main");
}

static uint64_t words_of(const char *path)
{
    vst_trace_info info = {0};
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        return 0;
    vst_trace_get_info(trace, &info);
    CHECK(info.clean);
    vst_trace_close(trace);
    return info.words;
}

static vst_file_header header_of(const char *path)
{
    vst_file_header header;
    FILE *file = fopen(path, "rb");

    CHECK_INT(fread(&header, sizeof header, 1, file), 1);
    fclose(file);
    return header;
}

/* Returns the sequence numbers of a file's chunks, in file order. */
static const char *order_of(const char *path)
{
    static char text[256];
    uint64_t offset = VST_FILE_HEADER_SIZE;
    vst_chunk_header chunk;
    FILE *file = fopen(path, "rb");

    text[0] = 0;
    while (fseek(file, (long)offset, SEEK_SET) == 0 &&
           fread(&chunk, sizeof chunk, 1, file) == 1) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%u ",
                 chunk.kind == VST_CHUNK_RECORDS ? "r" : "d", chunk.sequence);
        offset += chunk.size;
    }
    fclose(file);
    return text;
}

static vst_status snapshot_of(const builder *b, const char *path,
                              uint64_t window_ns)
{
    int fd = builder_file(b);
    vst_status status = vst__snapshot(fd, path, true, window_ns, NULL, NULL);

    close(fd);
    return status;
}

static void a_window_leaves_out_chunks_that_ended_before_it(void)
{
    const char *path = path_in(folder, "window.vst");
    builder b;

    begin_file(&b);
    add_chunk(&b, 1, 1000, 1500, true);
    add_chunk(&b, 2, 2000, 2500, true);
    add_chunk(&b, 3, 9000, 0, true);
    CHECK_INT(snapshot_of(&b, path, 0), VST_OK);
    CHECK_TEXT(order_of(path), "r3 r2 r1 d0 d4 ");
    CHECK_INT(header_of(path).keep_ns, 0);
    /* The newest chunk begins at 9000, so the last 6500 include a chunk that
     * ended at 2500. */
    CHECK_INT(snapshot_of(&b, path, 6500), VST_OK);
    CHECK_TEXT(order_of(path), "r3 r2 d0 d4 ");
    CHECK_INT(snapshot_of(&b, path, 6499), VST_OK);
    CHECK_TEXT(order_of(path), "r3 d0 d4 ");
    CHECK_INT(header_of(path).keep_ns, 6499);
    CHECK_INT(header_of(path).dropped, 2 * 6);
    CHECK_INT(snapshot_of(&b, path, UINT64_MAX), VST_OK);
    CHECK_TEXT(order_of(path), "r3 r2 r1 d0 d4 ");
    files_in_folder();
    builder_free(&b);
}

static void without_checkpoints_everything_is_copied(void)
{
    const char *path = path_in(folder, "all.vst");
    builder b;

    begin_file(&b);
    add_chunk(&b, 1, 1000, 1500, false);
    add_chunk(&b, 2, 9000, 9500, false);
    CHECK_INT(snapshot_of(&b, path, 1), VST_OK);
    CHECK_TEXT(order_of(path), "r2 r1 d0 d3 ");
    CHECK_INT(words_of(path), 4);
    files_in_folder();
    builder_free(&b);
}

static void a_slot_size_that_cannot_be_is_not_believed(void)
{
    const char *path = path_in(folder, "slots.vst");
    builder b;

    begin_file(&b);
    add_chunk(&b, 1, 1000, 1500, false);
    builder_records(&b, 0, 1, 2000, 1);
    builder_chunk(&b)->magic = 0;
    builder_header(&b)->slot_size = 1;
    CHECK_INT(snapshot_of(&b, path, 0), VST_OK);
    CHECK_TEXT(order_of(path), "r1 d0 d2 ");
    files_in_folder();
    builder_free(&b);
}

static void swap_pages(builder *b, size_t x, size_t y)
{
    unsigned char page[VST_CHUNK_ALIGN];

    memcpy(page, b->bytes + x, sizeof page);
    memcpy(b->bytes + x, b->bytes + y, sizeof page);
    memcpy(b->bytes + y, page, sizeof page);
}

/* In a bounded file, chunks lie wherever there was room, with holes between
 * them. A snapshot begins with the chunk that is being written, then follow the
 * others, newest first. */
static void chunks_of_a_bounded_file_are_found_and_ordered(void)
{
    const char *path = path_in(folder, "order.vst");
    const size_t page = VST_CHUNK_ALIGN;
    builder b;
    vst_trace *trace;

    begin_file(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    builder_header(&b)->keep_ns = 5000;
    builder_header(&b)->dropped = 40;
    add_chunk(&b, 1, 1000, 1500, true);
    add_chunk(&b, 2, 2000, 2500, true);
    add_chunk(&b, 3, 9000, 0, true);
    builder_definitions(&b, 1);
    builder_define(&b, VST_DEF_NATIVE, 1, "first, replaced", "", 0);
    swap_pages(&b, 2 * page, 4 * page); /* exchange the first and the third
                                         * records */
    swap_pages(&b, page, 5 * page);     /* exchange the two chunks of
                                         * definitions */
    ((vst_chunk_header *)(void *)(b.bytes + 3 * page))->magic = 0;
    CHECK_INT(snapshot_of(&b, path, 0), VST_OK);
    CHECK_TEXT(order_of(path), "r3 r1 d0 d4 d5 ");
    CHECK_INT(header_of(path).slot_size, 0);
    CHECK_INT(header_of(path).keep_ns, 5000);
    CHECK_INT(header_of(path).dropped, 40);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    CHECK_TEXT(vst_trace_definition(trace, 1)->name, "first, replaced");
    vst_trace_close(trace);
    files_in_folder();
    builder_free(&b);
}

/* ---- a chunk that is reused while it is copied --------------------------- */

static int reused_fd;
static off_t reused_at;
static uint32_t new_magic;

/* Gives the slot to another chunk at the moment when the copier is about to
 * read the payload. */
static void reuse_chunk(int fd, off_t offset)
{
    vst_chunk_header header;

    if (fd != reused_fd || offset != reused_at + (off_t)sizeof header)
        return;
    __real_pread64(fd, &header, sizeof header, reused_at);
    header.magic = VST_CHUNK_MAGIC;
    header.sequence = 99;
    header.checksum = (uint32_t)crc32(0, (const unsigned char *)&header,
                                      offsetof(vst_chunk_header, checksum));
    header.magic = new_magic;
    __real_pwrite64(fd, &header, sizeof header, reused_at);
}

static bool is_zero_behind(const char *path, long offset, size_t count)
{
    FILE *file = fopen(path, "rb");
    size_t zeros = 0;

    fseek(file, offset, SEEK_SET);
    while (zeros < count && fgetc(file) == 0)
        zeros++;
    fclose(file);
    return zeros == count;
}

/* No byte of the reused chunk stays in the copy, not even where the next chunk
 * has no bytes. */
static void a_chunk_that_is_reused_meanwhile_is_forgotten(void)
{
    const char *path = path_in(folder, "reused.vst");
    builder b;

    begin_file(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    builder_records(&b, 0, 1, 1000, 130);
    for (int i = 0; i < 60000; i++)
        builder_enter(&b, 1, 1);
    builder_seal(&b, 1);
    builder_records(&b, 0, 1, 2000, 130); /* the chunk ends at its first zero */
    builder_enter(&b, 2, 10);
    builder_seal(&b, 1);
    builder_chunk(&b)->sequence = 0; /* older, so the copier reads this chunk
                                      * last */
    builder_fix_chunk(&b, b.chunk);
    reused_at = (off_t)(b.chunk - 130 * VST_CHUNK_ALIGN);
    reused_fd = builder_file(&b);
    new_magic = 0;
    before_read = reuse_chunk;
    CHECK_INT(vst__snapshot(reused_fd, path, true, 0, NULL, NULL), VST_OK);
    before_read = NULL;
    CHECK_TEXT(order_of(path), "r0 d0 d1 ");
    CHECK_INT(words_of(path), 1);
    CHECK_INT(header_of(path).dropped, 60000);
    CHECK(is_zero_behind(path, VST_FILE_HEADER_SIZE + 72, 500000));
    close(reused_fd);
    files_in_folder();
    builder_free(&b);
}

/* The new chunk is newer than all chunks in the list, so the copier reads the
 * list again. */
static void what_took_its_place_is_copied(void)
{
    const char *path = path_in(folder, "instead.vst");
    builder b;

    begin_file(&b);
    builder_header(&b)->slot_size = VST_CHUNK_ALIGN;
    add_chunk(&b, 1, 1000, 1500, true);
    reused_at = (off_t)b.chunk;
    add_chunk(&b, 2, 2000, 0, true);
    reused_fd = builder_file(&b);
    new_magic = VST_CHUNK_MAGIC;
    before_read = reuse_chunk;
    CHECK_INT(vst__snapshot(reused_fd, path, true, 0, NULL, NULL), VST_OK);
    before_read = NULL;
    CHECK_TEXT(order_of(path), "r2 r99 d0 d100 ");
    close(reused_fd);
    files_in_folder();
    builder_free(&b);
}

/* ---- of a recording ------------------------------------------------------ */

static vst_id define(vst_recording *recording, const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name)};
    vst_id id;

    CHECK_INT(vst_recording_define_id(recording, &definition, &id), VST_OK);
    return id;
}

static vst_session *begin_recording(const char *path)
{
    vst_session_options options = {.path = path, .overwrite = true};
    vst_session *session = NULL;

    CHECK_INT(vst_session_create(&options, &session, NULL), VST_OK);
    CHECK_INT(vst_session_start(session, NULL), VST_OK);
    return session;
}

typedef struct reading {
    vst_trace *trace;
    unsigned long long spans[THREADS + 8]; /* by number of the thread */
    unsigned long long unnamed;
    int64_t last_end_ns;
} reading;

static vst_status count_span(void *ctx, const vst_span *span)
{
    reading *self = ctx;

    if (CHECK(span->thread < THREADS + 8))
        self->spans[span->thread]++;
    self->unnamed += vst_trace_definition(self->trace, span->id) == NULL;
    if (span->end_ns > self->last_end_ns)
        self->last_end_ns = span->end_ns;
    return VST_OK;
}

static reading read_trace(const char *path)
{
    reading self = {0};
    vst_sink sink = {.ctx = &self, .span = count_span};
    vst_error error = {VST_OK, 0, 0};
    vst_trace_info info;

    if (!CHECK_INT(vst_trace_open(path, &self.trace, &error), VST_OK))
        return self;
    CHECK_INT(error.status, VST_OK);
    vst_trace_get_info(self.trace, &info);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(vst_trace_replay(self.trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(self.trace);
    return self;
}

typedef struct worker {
    pthread_t thread;
    vst_recording *recording;
    uint64_t tid;
    atomic_ullong calls; /* committed */
    bool defines;        /* the worker defines a new name at each call */
} worker;

static worker workers[THREADS];
static atomic_bool stopping;
static atomic_ullong allowed; /* calls that each worker may make; keeps files
                               * small */

static void *work(void *argument)
{
    worker *self = argument;
    vst_id id = define(self->recording, "work");
    char name[64];

    for (unsigned i = 0; !atomic_load(&stopping); i++) {
        if (atomic_load(&self->calls) >= atomic_load(&allowed)) {
            usleep(100);
            continue;
        }
        if (self->defines) {
            snprintf(name, sizeof name, "%p %u", (void *)self, i);
            id = define(self->recording, name);
        }
        if (vst_thread_enter_free()) {
            vst_record(VST_ENTER, id);
            vst_record(VST_EXIT, id);
            atomic_fetch_add(&self->calls, 1);
        }
    }
    return NULL;
}

static void begin_work(vst_session *session, bool defines)
{
    atomic_store(&stopping, false);
    atomic_store(&allowed, CALLS);
    for (size_t i = 0; i < THREADS; i++) {
        atomic_store(&workers[i].calls, 0);
        workers[i].recording = vst_session_recording(session);
        workers[i].defines = defines;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        /* Start one after the other, so that the i-th has the number i + 1. */
        while (atomic_load(&workers[i].calls) == 0)
            usleep(100);
    }
}

static void end_work(void)
{
    atomic_store(&stopping, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void take_while_four_threads_record(bool define_all_the_time)
{
    const char *own = path_in(folder, "own.vst"),
               *copy = path_in(folder, "copy.vst");
    unsigned long long before[THREADS], after[THREADS];
    vst_session *session = begin_recording(own);
    reading whole;

    begin_work(session, define_all_the_time);
    for (int round = 0; round < 5; round++) {
        reading got;

        atomic_fetch_add(&allowed, CALLS);
        while (atomic_load(&workers[0].calls) <
               atomic_load(&allowed) - CALLS / 2)
            usleep(10);
        for (size_t i = 0; i < THREADS; i++)
            before[i] = atomic_load(&workers[i].calls);
        CHECK_INT(vst_session_snapshot(session, copy, round > 0, 0,
                                       "{\"number\": 1}", NULL),
                  VST_OK);
        for (size_t i = 0; i < THREADS; i++)
            after[i] = atomic_load(&workers[i].calls);
        got = read_trace(copy);
        CHECK_INT(got.unnamed, 0);
        for (size_t i = 0; i < THREADS; i++) {
            CHECK(got.spans[i + 1] >= before[i]);
            /* A call whose exit was not copied is in the file, too, as an open
             * call. The last call may be recorded but not counted yet. */
            CHECK(got.spans[i + 1] <= after[i] + 2);
        }
    }
    end_work();
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    whole = read_trace(own);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_INT(whole.spans[i + 1], atomic_load(&workers[i].calls));
    vst_session_destroy(session);
    CHECK_INT(files_in_folder(), 2);
}

static void a_snapshot_holds_what_four_threads_had_committed(void)
{
    take_while_four_threads_record(false);
}

static void every_name_resolves_although_new_ones_come(void)
{
    take_while_four_threads_record(true);
}

static void a_snapshot_says_why_it_was_taken(void)
{
    const char *path = path_in(folder, "why.vst");
    const char *note = "{\"reason\": \"a \\\"b\\\"\", \"number\": 3}";
    vst_session *session = begin_recording(NULL);
    vst_trace *trace;

    CHECK_INT(vst_session_snapshot(session, path, false, 0, note, NULL),
              VST_OK);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.snapshot"), note);
    vst_trace_close(trace);
    CHECK_INT(vst_session_finish(session, NULL), VST_OK);
    /* A finished recording can be copied, too. */
    CHECK_INT(vst_session_snapshot(session, path, true, 0, "7", NULL), VST_OK);
    CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK);
    CHECK_TEXT(vst_trace_metadata(trace, "vestige.snapshot"), "7");
    vst_trace_close(trace);
    vst_session_destroy(session);
    files_in_folder();
}

/* A program that hangs: its last record is old, and its call is still open. */
static void a_call_that_is_open_lasts_until_the_snapshot(void)
{
    const char *path = path_in(folder, "open.vst");
    vst_session *session = begin_recording(NULL);
    vst_id id = define(vst_session_recording(session), "hangs");
    vst_clock_sample entered, asked;

    vst_record(VST_ENTER, id);
    vst_clock_sample_now(&entered);
    usleep(3000);
    vst_clock_sample_now(&asked);
    CHECK_INT(vst_session_snapshot(session, path, false, 0, NULL, NULL),
              VST_OK);
    vst_record(VST_EXIT, id);
    CHECK(read_trace(path).last_end_ns - entered.realtime_ns > 2500000);
    CHECK(read_trace(path).last_end_ns - asked.realtime_ns < 1000000000);
    vst_session_destroy(session);
    files_in_folder();
}

/* ---- two snapshots at the same time, without waiting --------------------- */

typedef struct taker {
    pthread_t thread;
    vst_session *session;
    const char *path;
    vst_status status;
} taker;

static void *take(void *argument)
{
    taker *self = argument;

    self->status =
        vst_session_snapshot(self->session, self->path, false, 0, NULL, NULL);
    return NULL;
}

static void two_snapshots_at_once_do_not_meet(void)
{
    vst_session *session = begin_recording(NULL);
    char first[320], second[320];
    taker takers[3] = {{.session = session, .path = first},
                       {.session = session, .path = second},
                       {.session = session, .path = second}};

    snprintf(first, sizeof first, "%s", path_in(folder, "first.vst"));
    snprintf(second, sizeof second, "%s", path_in(folder, "second.vst"));
    begin_work(session, false);
    for (size_t i = 0; i < 3; i++)
        pthread_create(&takers[i].thread, NULL, take, &takers[i]);
    for (size_t i = 0; i < 3; i++)
        pthread_join(takers[i].thread, NULL);
    end_work();
    CHECK_INT(takers[0].status, VST_OK);
    /* Exactly one of the two snapshots with the same name succeeds. */
    CHECK((takers[1].status == VST_OK && takers[2].status == VST_E_EXISTS) ||
          (takers[2].status == VST_OK && takers[1].status == VST_E_EXISTS));
    CHECK(read_trace(first).spans[1] > 0);
    CHECK(read_trace(second).spans[1] > 0);
    vst_session_destroy(session);
    CHECK_INT(files_in_folder(), 2);
}

static _Thread_local bool is_slow;
static atomic_bool writing, may_write;

static void *take_slowly(void *argument)
{
    is_slow = true;
    return take(argument);
}

static void wait_in_write(void)
{
    if (!is_slow)
        return;
    atomic_store(&writing, true);
    while (!atomic_load(&may_write))
        usleep(100);
}

/* The copier hangs in a write. Meanwhile threads record, new threads begin,
 * chunks are changed and names are defined: everything that needs the
 * recorder's lock. */
static void threads_record_on_while_a_snapshot_hangs_in_a_write(void)
{
    vst_session *session = begin_recording(NULL);
    char path[320];
    taker slow = {.session = session, .path = path};

    snprintf(path, sizeof path, "%s", path_in(folder, "slow.vst"));
    begin_work(session, false);
    atomic_store(&writing, false);
    atomic_store(&may_write, false);
    before_write = wait_in_write;
    pthread_create(&slow.thread, NULL, take_slowly, &slow);
    while (!atomic_load(&writing))
        usleep(100);
    atomic_fetch_add(&allowed, 5 * CALLS);
    while (atomic_load(&workers[0].calls) < atomic_load(&allowed))
        usleep(100);
    end_work();
    begin_work(session, true);
    while (atomic_load(&workers[1].calls) < atomic_load(&allowed))
        usleep(100);
    end_work();
    CHECK_INT(vst_session_stop(session), VST_OK);
    atomic_store(&may_write, true);
    pthread_join(slow.thread, NULL);
    before_write = NULL;
    CHECK_INT(slow.status, VST_OK);
    CHECK_INT(read_trace(path).unnamed, 0);
    vst_session_destroy(session);
    files_in_folder();
}

/* ---- what cannot be done ------------------------------------------------- */

static void nothing_is_overwritten_unless_asked_for(void)
{
    const char *path = path_in(folder, "there.vst");
    vst_session *session = begin_recording(NULL);
    vst_error error;
    FILE *file = fopen(path, "wb");

    fputs("precious", file);
    fclose(file);
    CHECK_INT(vst_session_snapshot(session, path, false, 0, NULL, &error),
              VST_E_EXISTS);
    CHECK_INT(error.sys_errno, EEXIST);
    CHECK_INT(access(path, F_OK), 0);
    CHECK_INT(vst_session_snapshot(session, path, true, 0, NULL, &error),
              VST_OK);
    CHECK_INT(error.status, VST_OK);
    read_trace(path);
    vst_session_destroy(session);
    CHECK_INT(files_in_folder(), 1);
}

static void a_bad_path_is_told_and_the_recording_goes_on(void)
{
    const char *path = path_in(folder, "good.vst");
    vst_session *session = begin_recording(NULL);
    vst_error error;

    CHECK_INT(vst_session_snapshot(session, "/dev/null/x.vst", false, 0, NULL,
                                   &error),
              VST_E_IO);
    CHECK_INT(error.sys_errno, ENOTDIR);
    CHECK_INT(vst_session_snapshot(session, path_in(folder, "absent/x.vst"),
                                   false, 0, NULL, &error),
              VST_E_IO);
    CHECK_INT(error.sys_errno, ENOENT);
    CHECK_INT(vst_session_snapshot(session, folder, true, 0, NULL, &error),
              VST_E_IO);
    CHECK_INT(error.sys_errno, EISDIR);
    CHECK_INT(vst_session_snapshot(session, path, false, 0, NULL, &error),
              VST_OK);
    vst_session_destroy(session);
    CHECK_INT(files_in_folder(), 1);
}

/* Without a handler, growing a file past the process's limit raises a
 * signal. */
static void no_room_for_it_is_told_and_leaves_nothing(void)
{
    const char *path = path_in(folder, "full.vst");
    vst_session *session = begin_recording(NULL);
    vst_id id = define(vst_session_recording(session), "f");
    struct rlimit limit, small;
    vst_error error;

    for (int i = 0; i < 20000; i++) {
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
    }
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 64 * 1024;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_INT(vst_session_snapshot(session, path, false, 0, NULL, &error),
              VST_E_NOSPACE);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_INT(error.sys_errno, EFBIG);
    CHECK_INT(files_in_folder(), 0);
    CHECK_INT(vst_session_snapshot(session, path, false, 0, NULL, &error),
              VST_OK);
    CHECK_INT(read_trace(path).spans[1], 20000);
    vst_session_destroy(session);
    files_in_folder();
}

/* ---- other processes ----------------------------------------------------- */

static void die(void)
{
    static int writes;

    if (++writes == 3)
        kill(getpid(), SIGKILL);
}

static void a_process_that_dies_in_it_leaves_no_half_file(void)
{
    const char *path = path_in(folder, "killed.vst");
    vst_session *session = begin_recording(NULL);
    int ended = 0;
    pid_t child = fork();

    if (child == 0) {
        vst_session *own = begin_recording(NULL);
        define(vst_session_recording(own), "f");
        vst_record(VST_ENTER, 1);
        before_write = die;
        vst_session_snapshot(own, path, false, 0, NULL, NULL);
        _exit(0);
    }
    CHECK_INT(waitpid(child, &ended, 0), child);
    CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    CHECK(access(path, F_OK) != 0);
    CHECK_INT(files_in_folder(), 1); /* the file whose name the test chose */
    vst_session_destroy(session);
}

static void a_forked_child_cannot_take_one_of_its_parents(void)
{
    const char *path = path_in(folder, "child.vst");
    vst_session *session = begin_recording(NULL);
    int ended = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(vst_session_snapshot(session, path, false, 0, NULL, NULL) ==
                      VST_E_STATE
                  ? 0
                  : 1);
    CHECK_INT(waitpid(child, &ended, 0), child);
    CHECK_INT(ended, 0);
    CHECK(access(path, F_OK) != 0);
    vst_session_destroy(session);
}

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 2;
    TEST(a_window_leaves_out_chunks_that_ended_before_it);
    TEST(without_checkpoints_everything_is_copied);
    TEST(a_slot_size_that_cannot_be_is_not_believed);
    TEST(chunks_of_a_bounded_file_are_found_and_ordered);
    TEST(a_chunk_that_is_reused_meanwhile_is_forgotten);
    TEST(what_took_its_place_is_copied);
    TEST(a_snapshot_holds_what_four_threads_had_committed);
    TEST(every_name_resolves_although_new_ones_come);
    TEST(a_snapshot_says_why_it_was_taken);
    TEST(a_call_that_is_open_lasts_until_the_snapshot);
    TEST(two_snapshots_at_once_do_not_meet);
    TEST(threads_record_on_while_a_snapshot_hangs_in_a_write);
    TEST(nothing_is_overwritten_unless_asked_for);
    TEST(a_bad_path_is_told_and_the_recording_goes_on);
    TEST(no_room_for_it_is_told_and_leaves_nothing);
    TEST(a_process_that_dies_in_it_leaves_no_half_file);
    TEST(a_forked_child_cannot_take_one_of_its_parents);
    CHECK_INT(rmdir(folder), 0);
    return checks_end();
}
