/* A million random operations on eight threads, which hand blocks to each
 * other: after each operation, the history has the live blocks of the model.
 * The model is guarded by a lock and follows the order of the recorded times;
 * recording happens outside the lock. Also built for the thread sanitizer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "memory_model.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 80000 };
#else
enum { OPERATIONS = 1000000 };
#endif
enum { THREADS = 8, BLOCKS = 3000 };

typedef struct operation {
    uint32_t block;
    uint32_t size; /* size of the block that is allocated or freed */
    uint32_t stack;
    bool frees;
    uint64_t serial;
    uint64_t live_bytes, live_count;
} operation;

static pthread_mutex_t model = PTHREAD_MUTEX_INITIALIZER;
static operation *operations;
static size_t operation_count, wanted;
static struct {
    uint32_t size, stack;
    uint64_t serial;
    bool live;
} blocks[BLOCKS];
static uint64_t live_bytes, live_count, serials;
static vst_ticks last_time;

static uint32_t pick(uint64_t *seed, uint32_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 32) % n;
}

/* Applies a random operation to the model; returns false when there were enough
 * operations. */
static bool operate(uint64_t *seed, operation *done, vst_ticks *now)
{
    operation next = {.block = pick(seed, BLOCKS)};
    bool any;

    pthread_mutex_lock(&model);
    any = operation_count < wanted;
    *now = vst_clock_ticks();
    if (*now <= last_time)
        *now = last_time + 1;
    if (any) {
        last_time = *now;
        next.frees = blocks[next.block].live;
        if (next.frees) {
            next.size = blocks[next.block].size;
            next.stack = blocks[next.block].stack;
            live_bytes -= next.size;
            live_count--;
        } else {
            next.size = pick(seed, 20) == 0 ? pick(seed, 1u << 30)
                                            : pick(seed, 1u << 15);
            next.stack = pick(seed, 50) == 0 ? pick(seed, 1u << 30)
                                             : pick(seed, 1u << 10);
            blocks[next.block].size = next.size;
            blocks[next.block].stack = next.stack;
            blocks[next.block].serial = ++serials;
            live_bytes += next.size;
            live_count++;
        }
        next.serial = blocks[next.block].serial;
        blocks[next.block].live = !next.frees;
        next.live_bytes = live_bytes;
        next.live_count = live_count;
        operations[operation_count++] = next;
    }
    pthread_mutex_unlock(&model);
    *done = next;
    return any;
}

static void *work(void *seed)
{
    uint64_t own = *(uint64_t *)seed;
    operation done;
    vst_ticks now;

    while (operate(&own, &done, &now)) {
        if (done.frees)
            vst_record_free(VST_MEMORY_FREE, fake_address(done.block), 0, now);
        else
            vst_record_alloc(VST_MEMORY_MALLOC, fake_address(done.block),
                             done.size, done.stack, 0, now);
        if (pick(&own, 10000) == 0)
            vst_thread_release(); /* as if the thread had ended and another had
                                   * begun */
    }
    return NULL;
}

static void run_threads(size_t count)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];

    memset(blocks, 0, sizeof blocks);
    live_bytes = live_count = serials = operation_count = 0;
    wanted = count;
    operations = calloc(count, sizeof *operations);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
        pthread_create(&threads[i], NULL, work, &seeds[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Compares each event with the model's state at that time. */
typedef struct comparison {
    size_t at, wrong;
} comparison;

static vst_status compare(void *ctx, const vst_memory_event *event)
{
    comparison *c = ctx;
    const operation *o = &operations[c->at++];

    if (c->at > operation_count)
        return VST_E_CANCELLED;
    c->wrong += event->address != fake_address(o->block);
    c->wrong += event->size != o->size;
    c->wrong += event->stack != o->stack;
    c->wrong += event->serial != o->serial;
    c->wrong += event->flags != (o->frees ? VST_MEMORY_FREES : 0);
    c->wrong += event->live_bytes != o->live_bytes;
    c->wrong += event->live_count != o->live_count;
    return VST_OK;
}

static void compare_trace(vst_trace *trace)
{
    comparison c = {0};
    vst_memory_sink sink = {.ctx = &c, .event = compare};
    vst_error error;

    CHECK_INT(vst_trace_replay_memory(trace, VST_WINDOW_LAST, &sink, &error),
              VST_OK);
    CHECK_INT(c.at, operation_count);
    CHECK_INT(c.wrong, 0);
}

static void the_live_set_is_the_models_at_every_step(void)
{
    vst_session *session = session_begin(NULL);
    vst_trace *trace;
    vst_error error;

    run_threads(OPERATIONS);
    vst_session_stop(session);
    CHECK_INT(vst_session_lost(session), 0);
    CHECK_INT(vst_session_open_trace(session, &trace, &error), VST_OK);
    compare_trace(trace);
    vst_trace_close(trace);
    vst_session_destroy(session);
    free(operations);
}

/* The test above with checkpoints, in a packed copy. */
static void so_it_is_in_a_packed_file(void)
{
    char path[] = "/tmp/vestige-memory-XXXXXX", packed[64];
    vst_session_options options = {
        .path = path, .overwrite = true, .checkpoints = true};
    vst_session *session;
    vst_trace *trace;
    vst_error error;
    vst_status status;

    close(mkstemp(path));
    snprintf(packed, sizeof packed, "%s.packed", path);
    session = session_begin(&options);
    run_threads(OPERATIONS / 4);
    CHECK_INT(vst_session_finish(session, &error), VST_OK);
    vst_session_destroy(session);
    status = vst_trace_pack(path, packed, NULL, &error);
    CHECK(status == VST_OK || status == VST_E_NO_ZSTD);
    CHECK_INT(vst_trace_open(status == VST_OK ? packed : path, &trace, &error),
              VST_OK);
    compare_trace(trace);
    vst_trace_close(trace);
    unlink(path);
    unlink(packed);
    free(operations);
}

/* ---- while recordings start and stop ------------------------------------ */

static atomic_int stopping, pausing;
static atomic_ullong made;

static void *allocate_freely(void *first)
{
    unsigned number = *(unsigned *)first;

    while (!atomic_load(&stopping)) {
        while (atomic_load(&pausing) && !atomic_load(&stopping))
            sched_yield();
        for (unsigned i = 0; i < 20; i++)
            allocate(number + i, 16, 1);
        for (unsigned i = 0; i < 20; i++)
            release(number + i);
        atomic_fetch_add(&made, 40);
    }
    return NULL;
}

static void allocating_threads_survive_every_start_and_stop(void)
{
    const unsigned windows = 30 / check_step(1, 3);
    pthread_t threads[4];
    unsigned firsts[4];
    heard all;

    atomic_store(&stopping, 0);
    for (unsigned i = 0; i < 4; i++) {
        firsts[i] = i * 1000;
        pthread_create(&threads[i], NULL, allocate_freely, &firsts[i]);
    }
    for (unsigned i = 0; i < windows; i++) {
        vst_session *session = session_begin(NULL);
        unsigned long long before = atomic_load(&made);
        while (atomic_load(&made) < before + 400)
            sched_yield();
        vst_session_stop(session);
        atomic_store(&pausing, 1); /* pauses the threads, because reading takes
                                    * longer than recording */
        hear_session(session, &all);
        CHECK(all.count != 0);
        for (size_t j = 0; j < all.count; j++)
            CHECK(!(all.events[j].flags & VST_MEMORY_LOST_FREE));
        heard_free(&all);
        vst_session_destroy(session);
        atomic_store(&pausing, 0);
    }
    atomic_store(&stopping, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Stacks from all threads: equal stacks get the same number. */
static vst_recording *shared;

static void *define_stacks(void *ids)
{
    for (unsigned i = 0; i < 5000; i++) {
        vst_stack stack = {.kind = VST_STACK_NATIVE, .address = i % 1000};
        vst_recording_define_stack(shared, &stack,
                                   &((vst_stack_id *)ids)[i % 1000]);
    }
    return NULL;
}

static void threads_that_define_the_same_stacks_get_the_same_numbers(void)
{
    static vst_stack_id ids[THREADS][1000];
    vst_session *session = session_begin(NULL);
    pthread_t threads[THREADS];

    shared = vst_session_recording(session);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, define_stacks, ids[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        CHECK(memcmp(ids[0], ids[i], sizeof ids[0]) == 0);
    vst_session_destroy(session);
}

int main(void)
{
    TEST(the_live_set_is_the_models_at_every_step);
    TEST(so_it_is_in_a_packed_file);
    TEST(allocating_threads_survive_every_start_and_stop);
    TEST(threads_that_define_the_same_stacks_get_the_same_numbers);
    return checks_end();
}
