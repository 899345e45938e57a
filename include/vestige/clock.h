/* The clock of the record path. Where the processor has a reliable counter that
 * one instruction reads (x86-64's TSC, aarch64's CNTVCT_EL0), the clock is this
 * counter; elsewhere it is clock_gettime(CLOCK_MONOTONIC) in nanoseconds. Ticks
 * mean nothing alone; the clock samples kept with a trace turn ticks into
 * nanoseconds. */
#ifndef VESTIGE_CLOCK_H
#define VESTIGE_CLOCK_H

#include <stdbool.h>

#include "status.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vst_clock_kind {
    VST_CLOCK_MONOTONIC = 0, /* a tick is a nanosecond */
    VST_CLOCK_TSC = 1,       /* x86-64: time stamp counter */
    VST_CLOCK_CNTVCT = 2     /* aarch64: virtual counter of the generic timer */
} vst_clock_kind;

/* One moment on three clocks. */
typedef struct vst_clock_sample {
    vst_ticks ticks;
    int64_t monotonic_ns;
    int64_t realtime_ns;
} vst_clock_sample;

/* Set once when the library is loaded; constant after that. */
VST_API extern vst_clock_kind vst_clock_in_use;

/* Reads the clock through a function call; vst_clock_ticks() calls this
 * function on machines without a counter instruction. Any thread, also inside a
 * signal handler. */
VST_API vst_ticks vst_clock_ticks_portable(void);
/* Reads the three clocks as nearly at the same moment as possible. Any thread.
 */
VST_API void vst_clock_sample_now(vst_clock_sample *sample);

/* Returns ticks per second: the frequency that the machine reports if it agrees
 * with measurements since the library was loaded, else the measured one. */
VST_API double vst_clock_ticks_per_second(void);

/* The counter that one instruction reads on machines of this kind. The read
 * does not wait for earlier or later instructions to finish: such a barrier
 * would cost more than the record, and no two recorded moments are that close.
 */
#if defined(__x86_64__) && defined(__GNUC__)
#define VST_CLOCK_AT_HAND VST_CLOCK_TSC
static inline vst_ticks vst_clock_read_counter(void)
{
    return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__) && defined(__GNUC__)
#define VST_CLOCK_AT_HAND VST_CLOCK_CNTVCT
static inline vst_ticks vst_clock_read_counter(void)
{
    vst_ticks ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#endif

static inline vst_ticks vst_clock_ticks(void)
{
#ifdef VST_CLOCK_AT_HAND
    if (__builtin_expect(vst_clock_in_use == VST_CLOCK_AT_HAND, 1))
        return vst_clock_read_counter();
#endif
    return vst_clock_ticks_portable();
}

/* Returns false if reading the clock needs a function call on this machine
 * although the processor's kind has a counter instruction. */
static inline bool vst_clock_is_at_hand(void)
{
#ifdef VST_CLOCK_AT_HAND
    return __builtin_expect(vst_clock_in_use == VST_CLOCK_AT_HAND, 1);
#else
    return true;
#endif
}

/* Turns raw ticks into nanoseconds of the wall clock. */
typedef struct vst_time_converter {
    int64_t (*to_ns)(void *ctx, vst_ticks ticks);
    void *ctx;
} vst_time_converter;

#ifdef __cplusplus
}
#endif
#endif
