/* Bounded recordings of several threads: each has its newest records, and any
 * number of threads can share the file. */
#include <pthread.h>

#include "bounded.h"

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
    vst_trace *trace;
    seen s;

    begin(2 * MIB, 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, record_in_turns, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= 2 * MIB);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.lost, 0);
    CHECK(s.leaves > MIB / 16);
    vst_trace_close(trace);
    end();
}

static void *record_a_page_and_wait(void *arg)
{
    (void)arg;
    record_leaves(0, 10);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* A waiting thread holds a page between the first records of the main thread.
 * So the oldest part cannot be dropped as a whole, although it must be dropped
 * first. */
static void the_oldest_goes_first_beside_what_a_thread_holds(void)
{
    pthread_t thread;
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    record_leaves(0, 10);
    pthread_create(&thread, NULL, record_a_page_and_wait, NULL);
    pthread_barrier_wait(&barrier);
    record_leaves(10, 300000);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(s.next[1], 1);
    CHECK_INT(info.lost, 0);
    CHECK(info.dropped > 0);
    CHECK(s.leaves > MIB / 16 * 9 / 10);
    vst_trace_close(trace);
    end();
}

/* The threads alternate, so that their pages are neighbours, and are sealed in
 * an order that differs from the order of their offsets. */
enum { TURNS = 24 };

static void *record_unevenly(void *arg)
{
    const unsigned rounds = 50 / check_step(1, 3);
    unsigned number = *(unsigned *)arg, recorded = 0;

    for (unsigned turn = 0; turn < rounds * TURNS; turn++) {
        pthread_barrier_wait(&barrier);
        if (turn % TURNS == number) {
            unsigned count = 1 + (number * 7919 + turn * 104729) % 400 * number;
            record_leaves(recorded, count);
            recorded += count;
        }
    }
    return NULL;
}

static void no_thread_lacks_what_is_newer_than_its_oldest(void)
{
    pthread_t threads[TURNS];
    unsigned numbers[TURNS];
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    pthread_barrier_init(&barrier, NULL, TURNS);
    for (unsigned i = 0; i < TURNS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, record_unevenly, &numbers[i]);
    }
    for (int i = 0; i < TURNS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.lost, 0);
    CHECK(info.dropped > 0);
    vst_trace_close(trace);
    end();
}

/* Starts threads with small stacks. Returns when each has recorded and waits at
 * the barrier. */
static void start_waiting(pthread_t *threads, unsigned count,
                          void *(*record_and_wait)(void *))
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, record_and_wait, NULL) !=
            0)
            abort();
    pthread_attr_destroy(&attributes);
    pthread_barrier_wait(&barrier);
}

/* Each waiting thread holds one of the 1024 pages. */
static void a_busy_thread_has_nearly_all_that_many_others_leave(void)
{
    enum { MANY = 200 };
    static pthread_t threads[MANY];
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(4 * MIB, 0);
    start_waiting(threads, MANY, record_a_page_and_wait);
    record_leaves(0, 1000000 / check_step(1, 2));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(info.lost, 0);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.threads, MANY + 1);
    CHECK(s.leaves > (4 * MIB - MANY * 4096) / 16 * 9 / 10);
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
        /* There is room again, and the threads ask for chunks again. */
        pthread_barrier_wait(&others_ended);
        record_leaves(2000, 20000);
    }
    return NULL;
}

/* Records in `count` threads at the same time; the last `staying` threads
 * continue when the others have ended. Returns how many records were lost until
 * then. */
static uint64_t record_in_threads(int count, int staying)
{
    static pthread_t threads[THREADS_MAX];
    pthread_attr_t attributes;
    uint64_t lost;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    pthread_barrier_init(&others_ended, NULL, (unsigned)staying + 1);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, record_and_wait,
                           i >= count - staying ? &barrier : NULL) != 0)
            abort();
    pthread_barrier_wait(&barrier);
    lost = vst_session_lost(session);
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

/* The file has 64 slots, and still has the newest records of 200 threads. */
static void more_threads_than_slots_share_them(void)
{
    vst_trace_info info;
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    CHECK_INT(record_in_threads(200, 0), 0);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(info.lost, 0);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.damaged_at, 0);
    CHECK(info.clean);
    CHECK_INT(info.threads, 200);
    vst_trace_close(trace);
    end();
}

/* No thread needs more than a page. */
static void threads_that_record_little_take_little(void)
{
    enum { MANY = 500 };
    static pthread_t threads[MANY];
    vst_trace_info info;
    vst_trace *trace;

    begin(4 * MIB, 0);
    start_waiting(threads, MANY, record_a_little_and_wait);
    CHECK_INT(vst_session_lost(session), 0);
    CHECK(file_size() < (MANY + 64) * 4096);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    vst_session_finish(session, NULL);
    trace = open_file(&info);
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
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    CHECK(record_in_threads(THREADS_MAX, 2) > 0);
    record_leaves(0, 1000);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(info.lost, vst_session_lost(session));
    CHECK(s.leaves > 20000);
    vst_trace_close(trace);
    end();
}

enum { NAMES = 5, NAME_SIZE = 160 };

/* A name that is new to the file needs room besides the pages that threads
 * hold. */
static void *record_a_name_and_wait(void *arg)
{
    static unsigned last;
    char name[NAME_SIZE];
    vst_id id;

    (void)arg;
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "name %0150u",
                 __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
        id = define(name);
        vst_record(VST_ENTER, id);
        vst_record(VST_EXIT, id);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Two generations: the first leaves sealed pages and spares to the second. The
 * file may exceed its bound only by the definitions of names and threads. */
static void crowd(uint64_t max_size, unsigned threads)
{
    static pthread_t all[1200];
    const uint64_t definitions = 2 * threads * (NAMES + 1) * 2 * NAME_SIZE;
    const vst_sink sink = {.span = NULL};
    vst_trace_info info;
    vst_trace *trace;

    begin(max_size, 0);
    for (int generation = 0; generation < 2; generation++) {
        start_waiting(all, threads, record_a_name_and_wait);
        pthread_barrier_wait(&barrier);
        for (unsigned i = 0; i < threads; i++)
            pthread_join(all[i], NULL);
        pthread_barrier_destroy(&barrier);
    }
    record_leaves(0, 1000);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= max_size + definitions);
    trace = open_file(&info);
    CHECK(info.clean);
    CHECK_INT(info.damaged_at, 0);
    CHECK_INT(info.lost, vst_session_lost(session));
    CHECK_INT(vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, NULL),
              VST_OK);
    vst_trace_close(trace);
    end();
}

/* The sanitizers try each number of threads and each size, but not all pairs:
 * starting thousands of threads takes them long. */
static void a_crowd_of_threads_fills_a_file_of_any_size(void)
{
    unsigned pair = 0;

    for (unsigned threads = 150; threads <= 1200; threads *= 2)
        for (uint64_t size = MIB; size <= 4 * MIB; size *= 2)
            if (pair++ % check_step(1, 4) == 0)
                crowd(size, threads);
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
    vst_trace *trace;
    seen s;

    begin(MIB, 0);
    for (int i = 0; i < 90; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, record_a_little, NULL);
        pthread_join(thread, NULL);
    }
    vst_session_finish(session, NULL);
    trace = open_file(&info);
    s = see(trace);
    CHECK_INT(s.leaves, 90 * 5);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK_INT(info.dropped, 0);
    CHECK(file_size() <= 4 * 16 * 1024);
    vst_trace_close(trace);
    end();
}

static void *record_freely_in_windows(void *arg)
{
    unsigned windows = *(unsigned *)arg;

    for (unsigned i = 0; i < windows; i++) {
        vst_thread_enter_free();
        record_leaves(0, 1000);
        pthread_barrier_wait(&barrier); /* the window ends meanwhile */
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* Each window ends while the threads hold chunks; the threads give these back
 * in the next window. */
static void free_running_threads_hold_one_chunk_however_many_windows(void)
{
    enum { FREE = 8 };
    unsigned windows = 200 / check_step(1, 4);
    pthread_t threads[FREE];
    vst_trace_info info;

    begin(MIB, 0);
    pthread_barrier_init(&barrier, NULL, FREE + 1);
    for (int i = 0; i < FREE; i++)
        pthread_create(&threads[i], NULL, record_freely_in_windows, &windows);
    for (unsigned i = 0; i < windows; i++) {
        pthread_barrier_wait(&barrier);
        vst_session_stop(session);
        if (i + 1 < windows)
            vst_session_start(session, NULL);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < FREE; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    CHECK_INT(vst_session_lost(session), 0);
    vst_session_finish(session, NULL);
    CHECK(file_size() <= MIB);
    vst_trace_close(open_file(&info));
    CHECK(info.dropped > 0);
    CHECK(info.clean);
    end();
}

/* Threads that were in a call when recording began, and never recorded
 * anything. */
static void wait_in_calls(unsigned threads)
{
    vst_id ids[OUTER];

    for (int i = 0; i < OUTER; i++)
        ids[i] = outer;
    for (unsigned thread = 1; thread <= threads; thread++)
        vst_recording_open_stack(vst_session_recording(session), thread, thread,
                                 ids, OUTER);
}

static void check_waiting(unsigned threads)
{
    vst_trace_info info;
    vst_trace *trace = open_file(&info);
    seen s = see(trace);

    CHECK_INT(s.outer, threads * OUTER);
    CHECK_INT(s.gaps + s.holes, 0);
    CHECK(info.complete_ns < info.end_ns);
    vst_trace_close(trace);
}

static void a_thread_that_waits_all_along_is_still_there(void)
{
    begin(MIB, 0);
    wait_in_calls(40);
    for (unsigned i = 0; i < 10; i += check_step(1, 4)) {
        record_leaves(0, 100000);
        check_waiting(40);
    }
    CHECK(file_size() <= MIB);
    end();
}

/* New names take the room of the waiting thread's records. */
static void a_thread_that_waits_is_still_there_after_many_definitions(void)
{
    char name[200];

    begin(MIB, 0);
    wait_in_calls(40);
    record_leaves(0, 55000);
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "leaf %0150d", i);
        define(name);
    }
    record_leaves(0, 2000);
    check_waiting(40);
    CHECK(file_size() <= MIB);
    end();
}

int main(void)
{
    TEST(each_thread_has_its_newest_records);
    TEST(the_oldest_goes_first_beside_what_a_thread_holds);
    TEST(no_thread_lacks_what_is_newer_than_its_oldest);
    TEST(a_busy_thread_has_nearly_all_that_many_others_leave);
    TEST(more_threads_than_slots_share_them);
    TEST(threads_that_record_little_take_little);
    TEST(more_threads_than_pages_lose_records_and_get_pages_later);
    TEST(a_crowd_of_threads_fills_a_file_of_any_size);
    TEST(short_threads_share_slots);
    TEST(free_running_threads_hold_one_chunk_however_many_windows);
    TEST(a_thread_that_waits_all_along_is_still_there);
    TEST(a_thread_that_waits_is_still_there_after_many_definitions);
    return checks_end();
}
