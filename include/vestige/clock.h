/* The clock of the record path: the TSC where the machine's is invariant, else
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
    VST_CLOCK_TSC = 1
} vst_clock_kind;

/* One moment on three clocks. */
typedef struct vst_clock_sample {
    vst_ticks ticks;
    int64_t monotonic_ns;
    int64_t realtime_ns;
} vst_clock_sample;

/* Set once when the library is loaded, constant after that. */
VST_API extern vst_clock_kind vst_clock_in_use;

VST_API vst_ticks vst_clock_ticks_portable(void);
VST_API void vst_clock_sample_now(vst_clock_sample *sample);

/* Ticks per second, measured since the library was loaded. */
VST_API double vst_clock_ticks_per_second(void);

static inline vst_ticks vst_clock_ticks(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_expect(vst_clock_in_use == VST_CLOCK_TSC, 1))
        return __builtin_ia32_rdtsc();
#endif
    return vst_clock_ticks_portable();
}

/* False: reading the clock is a call on this machine, and on others of its kind
 * it is not. */
static inline bool vst_clock_is_at_hand(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_expect(vst_clock_in_use == VST_CLOCK_TSC, 1);
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
