/* Recordings that are bounded: the file stays within its bound, the newest
 * records are in it, contiguous, what was dropped is counted, and names
 * resolve. Each thread records numbered calls, so that a reader sees where some
 * are missing. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vestige/vestige.h>

#include "check.h"
#include "store/format.h"
#include "trace_builder.h"

enum {
    IDS = 10, /* the leaves of a thread take turns */
    MIB = 1 << 20,
    THREADS_MAX = 400,
    OUTER = 7 /* calls around the leaves */
};

static vst_session *session;
static vst_id leaves[IDS], outer;
static char path[64];

/* ---- recording ---------------------------------------------------------- */

static vst_id define(const char *name)
{
    vst_definition definition = {.kind = VST_DEF_NATIVE,
                                 .name = name,
                                 .name_len = (uint32_t)strlen(name)};
    vst_id id = 0;

    CHECK_INT(vst_recording_define_id(vst_session_recording(session),
                                      &definition, &id),
              VST_OK);
    return id;
}

static void begin(uint64_t max_size, uint64_t keep_ns)
{
    vst_session_options options = {.path = path,
                                   .overwrite = true,
                                   .max_size = max_size,
                                   .keep_ns = keep_ns};
    char name[] = "leaf 0";

    snprintf(path, sizeof path, "/tmp/vestige-bounded-%d.vst", (int)getpid());
    if (vst_session_create(&options, &session, NULL) != VST_OK ||
        vst_session_start(session, NULL) != VST_OK)
        abort();
    outer = define("outer");
    for (int i = 0; i < IDS; i++, name[5]++)
        leaves[i] = define(name);
}

static void end(void)
{
    vst_session_destroy(session);
    unlink(path);
}

static void record_leaves(unsigned from, unsigned count)
{
    for (unsigned i = from; i < from + count; i++) {
        vst_record(VST_ENTER, leaves[i % IDS]);
        vst_record(VST_EXIT, leaves[i % IDS]);
    }
}

static void record_outer(vst_kind kind)
{
    for (int i = 0; i < OUTER; i++)
        vst_record(kind, outer);
}

static uint64_t file_size(void)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- reading ------------------------------------------------------------ */

typedef struct seen {
    vst_trace *trace;
    unsigned next[THREADS_MAX + 2]; /* the leaf expected, 0: any */
    uint64_t leaves, open_leaves, outer, gaps, dropped, losses;
    int64_t first_ns, last_ns, last_leaf_ns;
} seen;

static vst_status see_span(void *ctx, const vst_span *span)
{
    seen *s = ctx;
    const vst_definition *d = vst_trace_definition(s->trace, span->id);

    if (!CHECK(d != NULL) || !CHECK(span->thread < THREADS_MAX + 2))
        return VST_E_CANCELLED;
    CHECK(span->children_ns >= 0 &&
          span->children_ns <= span->end_ns - span->start_ns);
    if (s->first_ns == 0 || span->start_ns < s->first_ns)
        s->first_ns = span->start_ns;
    if (span->end_ns > s->last_ns)
        s->last_ns = span->end_ns;
    if (d->name[0] == 'o') {
        s->outer++;
        return VST_OK;
    }
    s->last_leaf_ns = span->end_ns;
    unsigned leaf = (unsigned)(d->name[5] - '0');
    unsigned *next = &s->next[span->thread];
    s->gaps += *next != 0 && *next != leaf + 1;
    *next = (leaf + 1) % IDS + 1;
    s->leaves++;
    s->open_leaves += (span->flags & VST_SPAN_OPEN_AT_START) != 0;
    return VST_OK;
}

static vst_status see_loss(void *ctx, const vst_loss *loss)
{
    seen *s = ctx;

    CHECK(loss->end_ns >= loss->start_ns);
    s->losses++;
    if (loss->kind == VST_LOSS_DROPPED) {
        s->dropped += loss->records;
        s->next[loss->thread] = 0;
    }
    return VST_OK;
}

static seen see(vst_trace *trace)
{
    seen s = {.trace = trace};
    vst_sink sink = {.ctx = &s, .span = see_span, .loss = see_loss};

    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    return s;
}

static vst_trace *open_file(vst_trace_info *info)
{
    vst_trace *trace;

    if (!CHECK_INT(vst_trace_open(path, &trace, NULL), VST_OK))
        abort();
    vst_trace_get_info(trace, info);
    return trace;
}

/* ---- by size ------------------------------------------------------------ */

static void the_newest_records_stay_and_the_others_are_counted(void)
{
    const unsigned count = 400000;
    vst_trace_info info;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    record_leaves(0, count);
    CHECK(file_size() <= MIB);
    vst_session_stop(session);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB && file_size() > MIB / 2);
    CHECK_INT(vst_session_lost(session), 0);

    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    /* A word of time may go before the first record of each of its chunks. */
    CHECK(info.words + info.dropped >= 2 * count + OUTER);
    CHECK(info.words + info.dropped < 2 * count + OUTER + 2000);
    CHECK(s.leaves > MIB / 16 * 9 / 10);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.next[1], 1); /* the last leaf is there */
    CHECK_INT(s.outer, OUTER);
    CHECK_INT(s.dropped, info.dropped);
    CHECK_INT(s.losses, 1);
    CHECK_INT(info.complete_ns, info.start_ns);
    vst_trace_close(trace);
    end();
}

static void nothing_is_dropped_while_there_is_room(void)
{
    vst_trace_info info;

    begin(16 * MIB, 0);
    record_leaves(0, 100000);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(info.dropped, 0);
    CHECK_INT(s.leaves, 100000);
    CHECK_INT(s.losses, 0);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(info.complete_ns, info.start_ns);
    vst_trace_close(trace);
    end();
}

static void definitions_are_never_dropped(void)
{
    vst_trace_info info;
    char name[64];

    begin(MIB, 0);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "outer with a rather long name %d", i);
        vst_id id = define(name);
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
        record_leaves((unsigned)i * 10, 10);
    }
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(vst_trace_definition_max(trace), 20000 + IDS + 1);
    for (vst_id id = 1; id <= vst_trace_definition_max(trace); id++)
        CHECK(vst_trace_definition(trace, id) != NULL);
    CHECK_INT(s.gaps, 0);
    CHECK(s.leaves > 1000);
    /* They are 1.7 MiB by themselves; records keep half of what may be. */
    CHECK(file_size() < 3 * MIB);
    vst_trace_close(trace);
    end();
}

static void a_bound_that_is_too_small_is_refused(void)
{
    vst_session_options options = {.path = "/tmp/vestige-bounded-none.vst",
                                   .max_size = MIB - 1};
    vst_error error = {VST_OK, 0, 0};

    CHECK_INT(vst_session_create(&options, &session, &error), VST_E_ARGUMENT);
    CHECK_INT(error.status, VST_E_ARGUMENT);
    CHECK(access(options.path, F_OK) != 0);
}

/* More than fits a checkpoint: the outermost are known, and nothing breaks. */
static void a_stack_too_deep_for_a_checkpoint_is_cut(void)
{
    vst_trace_info info;

    begin(MIB, 0);
    for (int i = 0; i < 5000; i++)
        vst_record(VST_ENTER, outer);
    record_leaves(0, 300000);
    for (int i = 0; i < 4990; i++)
        vst_record(VST_EXIT, outer);
    record_leaves(300000, 1000);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.next[1], 1);
    CHECK(s.outer > 900 && s.outer < 1024);
    vst_trace_close(trace);
    end();
}

static void a_full_disk_makes_it_do_with_what_it_has(void)
{
    struct rlimit old, limit;
    vst_trace_info info;

    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 256 * 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    begin(MIB, 0);
    record_leaves(0, 100000);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_finish(session, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(file_size() <= 256 * 1024);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.next[1], 1);
    CHECK(info.dropped > 0);
    vst_trace_close(trace);
    end();
}

static void a_window_that_was_dropped_is_gone_and_the_next_one_there(void)
{
    vst_clock_sample between;
    vst_trace_info info;

    begin(MIB, 0);
    record_leaves(0, 5000);
    vst_session_stop(session);
    vst_clock_sample_now(&between);
    vst_session_start(session, NULL);
    record_leaves(3, 200000);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(info.windows, 2);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.next[1], 4);
    CHECK(info.start_ns > between.realtime_ns &&
          s.first_ns > between.realtime_ns);
    vst_trace_close(trace);
    end();
}

/* ---- by time ------------------------------------------------------------ */

static int64_t now_ns(void)
{
    vst_clock_sample now;

    vst_clock_sample_now(&now);
    return now.monotonic_ns;
}

/* However slow the machine is: it records until the file holds less than half
 * of it, and gives up only where that never comes. */
static void only_what_was_recorded_lately_is_shown(void)
{
    const int64_t keep = 20000000;
    const unsigned most = 20000000;
    vst_trace_info info;
    unsigned i = 0;

    begin(0, (uint64_t)keep);
    record_outer(VST_ENTER);
    int64_t until = now_ns() + 10 * keep;
    for (; now_ns() < until || (file_size() >= (uint64_t)i * 8 && i < most);
         i += 1000)
        record_leaves(i, 1000);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.outer, OUTER);
    CHECK_INT(s.next[1], 1);
    CHECK(s.last_leaf_ns - s.first_ns <= keep + 1000);
    CHECK(info.end_ns - info.start_ns >= keep);
    CHECK(info.dropped > 0);
    CHECK(s.dropped >= info.dropped);
    CHECK(s.leaves < i / 2);
    /* It holds about what the window needs: it does not grow with time. */
    CHECK(info.bytes < (uint64_t)i * 8);
    vst_trace_close(trace);
    end();
}

/* ---- threads ------------------------------------------------------------ */

static pthread_barrier_t barrier;
static pthread_barrier_t others_ended;

static void *record_in_turns(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        record_leaves(i * 5000, 5000);
        sched_yield();
    }
    return NULL;
}

static void each_thread_has_its_newest_records(void)
{
    pthread_t threads[8];
    vst_trace_info info;

    begin(2 * MIB, 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, record_in_turns, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= 2 * MIB);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(info.lost, 0);
    CHECK(s.leaves > MIB / 16);
    vst_trace_close(trace);
    end();
}

static void *record_a_little_and_wait(void *arg)
{
    (void)arg;
    record_leaves(0, 50);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *record_and_wait(void *arg)
{
    bool stays = arg != NULL;

    record_leaves(0, 2000);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    if (stays) {
        /* There is room, and they ask again. */
        pthread_barrier_wait(&others_ended);
        record_leaves(2000, 20000);
    }
    return NULL;
}

/* So many at once; the last `staying` go on when the others have ended. What
 * was lost until then. */
static uint64_t record_in_threads(int count, int staying)
{
    static pthread_t threads[THREADS_MAX];
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    pthread_barrier_init(&others_ended, NULL, (unsigned)staying + 1);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, record_and_wait,
                           i >= count - staying ? &barrier : NULL) != 0)
            abort();
    pthread_barrier_wait(&barrier);
    uint64_t lost = vst_session_lost(session);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < count; i++) {
        if (i == count - staying)
            pthread_barrier_wait(&others_ended);
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&others_ended);
    pthread_barrier_destroy(&barrier);
    pthread_attr_destroy(&attributes);
    return lost;
}

/* There are 64 slots, and 200 threads have their newest records all the same.
 */
static void more_threads_than_slots_share_them(void)
{
    vst_trace_info info;

    begin(MIB, 0);
    CHECK_INT(record_in_threads(200, 0), 0);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(info.lost, 0);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(info.damaged_at, 0);
    CHECK(info.clean);
    CHECK_INT(info.threads, 200);
    vst_trace_close(trace);
    end();
}

/* None of them needs more than a page. */
static void threads_that_record_little_take_little(void)
{
    enum { MANY = 500 };
    static pthread_t threads[MANY];
    pthread_attr_t attributes;
    vst_trace_info info;

    begin(4 * MIB, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, MANY + 1);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], &attributes, record_a_little_and_wait,
                           NULL) != 0)
            abort();
    pthread_barrier_wait(&barrier);
    CHECK_INT(vst_session_lost(session), 0);
    CHECK(file_size() < (MANY + 64) * 4096);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    pthread_attr_destroy(&attributes);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    CHECK_INT(info.lost, 0);
    CHECK_INT(info.dropped, 0);
    CHECK_INT(info.threads, MANY);
    CHECK(info.clean);
    vst_trace_close(trace);
    end();
}

static void more_threads_than_pages_lose_records_and_get_pages_later(void)
{
    vst_trace_info info;

    begin(MIB, 0);
    CHECK(record_in_threads(THREADS_MAX, 2) > 0);
    record_leaves(0, 1000);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(info.lost, vst_session_lost(session));
    CHECK(s.leaves > 20000);
    vst_trace_close(trace);
    end();
}

static void *record_a_little(void *arg)
{
    (void)arg;
    record_leaves(0, 5);
    return NULL;
}

static void short_threads_share_slots(void)
{
    vst_trace_info info;

    begin(MIB, 0);
    for (int i = 0; i < 90; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, record_a_little, NULL);
        pthread_join(thread, NULL);
    }
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.leaves, 90 * 5);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(info.dropped, 0);
    CHECK(file_size() <= 4 * 16 * 1024);
    vst_trace_close(trace);
    end();
}

/* It was in calls when recording began, and never recorded anything. */
static void a_thread_that_waits_all_along_is_still_there(void)
{
    vst_trace_info info;

    begin(MIB, 0);
    vst_id ids[OUTER];
    for (int i = 0; i < OUTER; i++)
        ids[i] = outer;
    for (unsigned thread = 1; thread <= 40; thread++)
        vst_recording_open_stack(vst_session_recording(session), thread, thread,
                                 ids, OUTER);
    for (int i = 0; i < 10; i++) {
        record_leaves(0, 100000);
        vst_trace *trace = open_file(&info);
        seen s = see(trace);
        CHECK_INT(s.outer, 40 * OUTER);
        CHECK_INT(s.gaps, 0);
        CHECK(info.complete_ns < info.end_ns);
        vst_trace_close(trace);
    }
    CHECK(file_size() <= MIB);
    end();
}

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

    begin(MIB, 0);
    stopping = 0;
    pthread_create(&thread, NULL, record_until_told, NULL);
    while (file_size() < MIB - 64 * 1024)
        sched_yield();
    for (int i = 0; i < 60 && checks_bad == 0; i++) {
        vst_trace *trace = open_file(&info);
        seen s = see(trace);
        CHECK_INT(s.gaps, 0);
        CHECK_INT(info.damaged_at, 0);
        leaves_seen += s.leaves;
        vst_trace_close(trace);
    }
    CHECK(leaves_seen > 0);
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    vst_session_finish(session, NULL);
    vst_trace *trace = open_file(&info);
    seen s = see(trace);
    CHECK_INT(s.gaps, 0);
    CHECK(s.leaves > MIB / 16 * 9 / 10);
    vst_trace_close(trace);
    end();
}

/* ---- death while a slot is emptied -------------------------------------- */

static builder read_file(void)
{
    builder b = {0};
    FILE *file = fopen(path, "rb");

    b.size = (size_t)file_size();
    b.bytes = malloc(b.size);
    if (file == NULL || b.bytes == NULL ||
        fread(b.bytes, 1, b.size, file) != b.size)
        abort();
    fclose(file);
    return b;
}

/* The slot that would be the next to be reused. */
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

    if (!CHECK_INT(builder_open(b, &trace, NULL), VST_OK))
        return;
    vst_trace_get_info(trace, &info);
    seen s = see(trace);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(s.gaps, 0);
    CHECK_INT(s.next[1], 1);
    CHECK_INT(s.outer, OUTER);
    CHECK(s.leaves <= leaves_before && s.leaves + 1100 > leaves_before);
    vst_trace_close(trace);
}

/* As a process that is killed leaves the file: nothing is finished, and one
 * slot is somewhere between its old records and new ones. */
static void killed_at_any_store_it_lacks_at_most_one_slot(void)
{
    const uint32_t slot = 16 * 1024;
    vst_trace_info info;

    begin(MIB, 0);
    record_outer(VST_ENTER);
    record_leaves(0, 200000);
    vst_trace *trace = open_file(&info);
    uint64_t before = see(trace).leaves;
    vst_trace_close(trace);
    builder b = read_file();
    size_t at = oldest_slot(&b, slot);
    vst_chunk_header *chunk = (void *)(b.bytes + at), old = *chunk;

    check_torn(&b, before);
    chunk->magic = 0;
    check_torn(&b, before);
    for (uint32_t done = 0; done < slot; done += 1500) {
        memset(b.bytes + at, 0, done);
        check_torn(&b, before);
    }
    memset(b.bytes + at, 0, slot);
    /* The new header, word by word, its magic last. What lies behind it may
     * still be what was there: no reader looks at it. */
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
    TEST(the_newest_records_stay_and_the_others_are_counted);
    TEST(nothing_is_dropped_while_there_is_room);
    TEST(definitions_are_never_dropped);
    TEST(a_bound_that_is_too_small_is_refused);
    TEST(a_stack_too_deep_for_a_checkpoint_is_cut);
    TEST(a_full_disk_makes_it_do_with_what_it_has);
    TEST(a_window_that_was_dropped_is_gone_and_the_next_one_there);
    TEST(only_what_was_recorded_lately_is_shown);
    TEST(each_thread_has_its_newest_records);
    TEST(more_threads_than_slots_share_them);
    TEST(threads_that_record_little_take_little);
    TEST(more_threads_than_pages_lose_records_and_get_pages_later);
    TEST(short_threads_share_slots);
    TEST(a_thread_that_waits_all_along_is_still_there);
    TEST(a_reader_meanwhile_sees_records_that_fit_together);
    TEST(killed_at_any_store_it_lacks_at_most_one_slot);
    return checks_end();
}
