/* Bounded recordings that are read before they are finished: while the
 * recording runs, or after the process died. */
#include <pthread.h>

#include "bounded.h"
#include "store/format.h"
#include "trace_builder.h"
#include "whole_files.h"

/* ---- while it is recorded ----------------------------------------------- */

static int stopping; /* atomic */

static void *record_until_told(void *arg)
{
    unsigned i = 0;

    (void)arg;
    record_outer(VST_ENTER);
    while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
        record_leaves(i, 1000);
        i += 1000;
    }
    return NULL;
}

static void a_reader_meanwhile_sees_records_that_fit_together(void)
{
    pthread_t thread;
    vst_trace_info info;
    uint64_t leaves_seen = 0;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    stopping = 0;
    pthread_create(&thread, NULL, record_until_told, NULL);
    while (file_size() < MIB - 64 * 1024)
        sched_yield();
    for (unsigned i = 60 / check_step(1, 3); i > 0 && checks_bad == 0; i--) {
        trace = open_file(&info);
        s = see(trace);
        CHECK_INT(s.gaps, 0);
        CHECK_INT(info.damaged_at, 0);
        leaves_seen += s.leaves;
        vst_trace_close(trace);
    }
    CHECK(leaves_seen > 0);
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK(s.leaves > MIB / 16 * 9 / 10);
    vst_trace_close(trace);
    end();
}

static void *record_freely_until_told(void *arg)
{
    while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED))
        if (vst_thread_enter_free())
            record_leaves(0, 10);
    return arg;
}

/* Threads give back chunks of one window while the next window begins. */
static void free_running_threads_outlive_the_windows_of_a_bounded_file(void)
{
    enum { FREE = 4, WINDOWS = 300 };
    pthread_t threads[FREE];
    vst_trace_info info;

    begin(MIB, 0);
    stopping = 0;
    for (int i = 0; i < FREE; i++)
        pthread_create(&threads[i], NULL, record_freely_until_told, NULL);
    for (int i = 1; i < WINDOWS; i++) {
        record_leaves(0, 1000);
        vst_session_stop(session);
        CHECK_INT(vst_session_start(session, NULL), VST_OK);
    }
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < FREE; i++)
        pthread_join(threads[i], NULL);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    vst_trace_close(open_file(&info));
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(info.lost, 0);
    end();
}

/* ---- death while a slot is emptied -------------------------------------- */

static builder read_file(void)
{
    builder b = {0};

    b.bytes = read_whole(path, &b.size);
    return b;
}

/* Returns the slot that the writer would reuse next. */
static size_t oldest_slot(const builder *b, uint32_t size)
{
    size_t oldest = 0;
    uint32_t sequence = UINT32_MAX;

    for (size_t at = VST_FILE_HEADER_SIZE; at + size <= b->size; at += size) {
        const vst_chunk_header *chunk = (const void *)(b->bytes + at);
        if (chunk->magic == VST_CHUNK_MAGIC &&
            chunk->kind == VST_CHUNK_RECORDS && chunk->sequence < sequence) {
            oldest = at;
            sequence = chunk->sequence;
        }
    }
    return oldest;
}

static void check_torn(const builder *b, uint64_t leaves_before)
{
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    if (!CHECK_INT(builder_open(b, &trace, NULL), VST_OK))
        return;
    vst_trace_get_info(trace, &info);
    s = see(trace);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 1);
    CHECK_INT(s.outer, OUTER);
    CHECK(s.leaves <= leaves_before && s.leaves + 1100 > leaves_before);
    vst_trace_close(trace);
}

/* Leaves the file like a killed process: nothing is finished, and one slot is
 * between its old records and new ones. */
static void killed_at_any_store_it_lacks_at_most_one_slot(void)
{
    const uint32_t slot = 16 * 1024;
    vst_trace_info info;
    vst_trace *trace;
    uint64_t before;
    builder b;
    size_t at;
    vst_chunk_header *chunk, old;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    record_leaves(0, 200000);
    trace = open_file(&info);
    before = see(trace).leaves;
    vst_trace_close(trace);
    b = read_file();
    at = oldest_slot(&b, slot);
    chunk = (void *)(b.bytes + at);
    old = *chunk;

    check_torn(&b, before);
    chunk->magic = 0;
    check_torn(&b, before);
    for (uint32_t done = 0; done < slot; done += 1500) {
        memset(b.bytes + at, 0, done);
        check_torn(&b, before);
    }
    memset(b.bytes + at, 0, slot);
    /* Writes the new header word by word, the magic last. Old bytes may still
     * lie behind the header: no reader looks at them. */
    memset(b.bytes + at + sizeof old + 8, 0x5a, slot - sizeof old - 8);
    old.sequence += 1000;
    old.used = 0;
    old.last = 0;
    old.magic = 0;
    for (size_t word = 0; word < sizeof old; word += 8) {
        memcpy(b.bytes + at + word, (unsigned char *)&old + word, 8);
        check_torn(&b, before);
    }
    chunk->magic = VST_CHUNK_MAGIC;
    builder_fix_chunk(&b, at);
    check_torn(&b, before);
    memset(b.bytes + at + sizeof old, 0, slot - sizeof old);
    check_torn(&b, before);
    builder_free(&b);
    end();
}

int main(void)
{
    TEST(free_running_threads_outlive_the_windows_of_a_bounded_file);
    TEST(a_reader_meanwhile_sees_records_that_fit_together);
    TEST(killed_at_any_store_it_lacks_at_most_one_slot);
    return checks_end();
}
