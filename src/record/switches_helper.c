/* The helper of switches.h: when it is there. Its lock is taken after the
 * recorder's, never before it. */
#include "record/switches.h"

enum {
    /* After a fork it stays away for so long: the interpreter looks for threads
     * right after it. */
    AWAY_NS = 50 * 1000000,
};

static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by it: */
static pthread_t helper;
static bool is_there;    /* it may look at the recording */
static bool is_joinable; /* it was not joined yet */
static uint32_t helper_pid;
static uint64_t away_ns; /* it does not come back before this time */
/* Written with the lock held; atomic. Each helper has a turn, and ends when it
 * is not its turn any more; it waits for that. */
static uint32_t turn;
/* Atomic, relaxed: a hint, whose truth the lock tells. */
static bool is_needed;

void vst__switches_need_help(bool needed)
{
    __atomic_store_n(&is_needed, needed, __ATOMIC_RELAXED);
}

static bool is_turn(uint32_t mine)
{
    return __atomic_load_n(&turn, __ATOMIC_ACQUIRE) == mine;
}

/* The interval until the next time, 0: it ends. */
static uint64_t tell(uint32_t mine)
{
    uint64_t interval_ns = 0;

    vst__recorder_take();
    if (vst__recording_now != NULL && is_turn(mine))
        interval_ns = vst__switches_tell(vst__recording_now);
    if (interval_ns == 0) {
        pthread_mutex_lock(&helper_lock);
        if (is_turn(mine))
            is_there = false;
        pthread_mutex_unlock(&helper_lock);
    }
    vst__recorder_give();
    return interval_ns;
}

static void *help(void *number)
{
    uint32_t mine = (uint32_t)(uintptr_t)number;
    uint64_t interval_ns = 1;

    vst_memory_enter(); /* nothing that it allocates is the program's */
    while (interval_ns != 0 && is_turn(mine)) {
        interval_ns = tell(mine);
        if (interval_ns != 0)
            vst__os_wait(&turn, mine, interval_ns);
    }
    vst_memory_leave();
    return NULL;
}

static uint32_t next_turn(void)
{
    return __atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
}

static void start(void)
{
    uintptr_t mine = next_turn();

    is_there = is_joinable =
        vst__os_helper_start(&helper, "vestige-sched", help, (void *)mine) == 0;
    helper_pid = vst__os_process_id();
}

/* Without a helper, what is told at the stop is all there is. */
void vst__switches_help(void)
{
    if (!__atomic_load_n(&is_needed, __ATOMIC_RELAXED))
        return;
    vst_memory_enter();
    pthread_mutex_lock(&helper_lock);
    if (vst_clock_ticks_portable() >= away_ns) {
        vst__switches_need_help(false);
        if (!is_there) {
            if (is_joinable) /* it ended by itself */
                pthread_join(helper, NULL);
            start();
        }
    }
    pthread_mutex_unlock(&helper_lock);
    vst_memory_leave();
}

void vst__switches_rest(void)
{
    pthread_t ends;
    bool was_there, waits;

    pthread_mutex_lock(&helper_lock);
    ends = helper;
    /* A child that the system alone knows of has no helper to wait for. */
    waits = is_joinable && helper_pid == vst__os_process_id();
    was_there = is_there && waits;
    is_joinable = is_there = false;
    if (waits) {
        next_turn();
        vst__os_wake(&turn);
    }
    pthread_mutex_unlock(&helper_lock);
    if (waits)
        pthread_join(ends, NULL);
    if (was_there)
        vst__switches_need_help(true);
}

void vst__switches_before_fork(void)
{
    pthread_mutex_lock(&helper_lock);
}

void vst__switches_after_fork(bool in_child)
{
    if (in_child) {
        is_there = is_joinable = false;
        vst__switches_need_help(false);
    } else {
        away_ns = vst_clock_ticks_portable() + AWAY_NS;
    }
    pthread_mutex_unlock(&helper_lock);
}
