/* A clock that moves only when a test moves it, for programs linked with
 * --wrap=clock_gettime (meson.build): a tick is a nanosecond. Any thread reads
 * the clock, one thread moves it. */
#ifndef VST_TESTS_FAKE_CLOCK_H
#define VST_TESTS_FAKE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include <vestige/clock.h>

#define FAKE_EPOCH_NS INT64_C(1700000000000000000)

static _Atomic int64_t fake_ns = 1000000;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns = atomic_load_explicit(&fake_ns, memory_order_relaxed);

    if (clock == CLOCK_REALTIME)
        ns += FAKE_EPOCH_NS;
    now->tv_sec = ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

static inline int64_t fake_now(void)
{
    return atomic_load_explicit(&fake_ns, memory_order_relaxed);
}

static inline void fake_advance(int64_t ns)
{
    atomic_store_explicit(&fake_ns, fake_now() + ns, memory_order_relaxed);
}

/* Call before the first recording. */
static inline void fake_clock_begin(void)
{
    vst_clock_in_use = VST_CLOCK_MONOTONIC;
}

#endif
