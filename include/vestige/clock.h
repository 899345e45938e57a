/* The clock of the record path: a counter of the processor that one instruction
 * reads, where it can be trusted (x86-64's TSC, aarch64's CNTVCT_EL0), else
 * clock_gettime(CLOCK_MONOTONIC) in nanoseconds. Ticks mean nothing alone; the
 * clock samples kept with a trace turn them into nanoseconds. */
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

/* Set once when the library is loaded, constant after that. */
VST_API extern vst_clock_kind vst_clock_in_use;

/* Reads the clock by a call: vst_clock_ticks() does so where no instruction
 * reads it. Any thread, also inside of a signal handler. */
VST_API vst_ticks vst_clock_ticks_portable(void);
/* Reads the three clocks at one moment, as nearly as possible. Any thread. */
VST_API void vst_clock_sample_now(vst_clock_sample *sample);

/* Ticks per second: as the machine says where that agrees with what was
 * measured since the library was loaded, else as measured. */
VST_API double vst_clock_ticks_per_second(void);

/* The counter that one instruction reads on machines of this kind. Nothing
 * waits for instructions before or after it to be done: that would cost more
 * than the record, and no two moments are that near. */
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

/* False: reading the clock is a call on this machine, and on others of its kind
 * it is not. */
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
