/* The helper thread of switches.h: when it starts and ends. Take its lock after
 * the recorder's lock, never before. */
#include "record/switches.h"

#include "base/at_fork.h"

enum {
    /* After a fork the helper stays away this long, because the interpreter
     * counts threads right after a fork. */
    AWAY_NS = 50 * 1000000,
};

static VST_AT_FORK pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock: */
static pthread_t helper;
static VST_AT_FORK bool is_there;    /* the helper may look at the recording */
static VST_AT_FORK bool is_joinable; /* the helper has not been joined yet */
static uint32_t helper_pid;
static VST_AT_FORK uint64_t
    away_ns; /* the helper does not start before this time */
/* Number of the current helper; written with the lock held, atomic. A helper
 * with another number ends; it reads this number while it waits. */
static uint32_t current;
/* Atomic, relaxed: a hint; the lock has the truth. */
static bool is_needed;

void vst__switches_need_help(bool needed)
{
    __atomic_store_n(&is_needed, needed, __ATOMIC_RELAXED);
}

static bool is_current_helper(uint32_t mine)
{
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE) == mine;
}

/* Returns the interval until the next call, or 0 if helper `mine` must end. */
static uint64_t helper_work(uint32_t mine)
{
    uint64_t interval_ns = 0;

    vst__recorder_take();
    if (vst__recording_now != NULL && is_current_helper(mine))
        interval_ns = vst__switches_write(vst__recording_now);
    if (interval_ns == 0) {
        pthread_mutex_lock(&helper_lock);
        if (is_current_helper(mine))
            is_there = false;
        pthread_mutex_unlock(&helper_lock);
    }
    vst__recorder_give();
    return interval_ns;
}

static void *helper_help(void *number)
{
    uint32_t mine = (uint32_t)(uintptr_t)number;
    uint64_t interval_ns = 1;

    vst_memory_enter(); /* the helper's allocations are not the program's */
    while (interval_ns != 0 && is_current_helper(mine)) {
        interval_ns = helper_work(mine);
        if (interval_ns != 0)
            vst__os_wait(&current, mine, interval_ns);
    }
    vst_memory_leave();
    return NULL;
}

static uint32_t next_helper(void)
{
    return __atomic_add_fetch(&current, 1, __ATOMIC_RELEASE);
}

static void helper_start(void)
{
    uintptr_t mine = next_helper();

    is_there = is_joinable =
        vst__os_helper_start(&helper, "vestige-sched", helper_help,
                             (void *)mine) == 0;
    helper_pid = vst__os_process_id();
}

/* If no helper can be started, the switches that are read at the stop are all
 * there is. */
void vst__switches_help(void)
{
    if (!__atomic_load_n(&is_needed, __ATOMIC_RELAXED))
        return;
    vst_memory_enter();
    pthread_mutex_lock(&helper_lock);
    if (vst_clock_ticks_portable() >= away_ns) {
        vst__switches_need_help(false);
        if (!is_there) {
            if (is_joinable) /* the last helper ended by itself */
                pthread_join(helper, NULL);
            helper_start();
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
    /* A child that was forked by a plain system call has no helper to wait
     * for. */
    waits = is_joinable && helper_pid == vst__os_process_id();
    was_there = is_there && waits;
    is_joinable = is_there = false;
    if (waits) {
        next_helper();
        vst__os_wake(&current);
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
