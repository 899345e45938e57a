/* Samples of how much of the process is in RAM, in addition to the records of
 * its allocations. Taken by threads inside the funnel, at most some tens of
 * times a second; funnel.h says where. */
#ifndef VST_MEMORY_RESIDENT_H
#define VST_MEMORY_RESIDENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <vestige/memory.h>

/* When the next sample is due; never while nothing is traced. Relaxed: a thread
 * that reads an old value samples one record too early or too late. */
extern _Atomic vst_ticks vst__resident_due;

static inline bool vst__resident_is_due(vst_ticks now)
{
    return now >=
           atomic_load_explicit(&vst__resident_due, memory_order_relaxed);
}

/* Call before tracing, and after it. */
void vst__resident_begin(vst_recording *recording);
void vst__resident_end(vst_recording *recording);
void vst__resident_after_fork(void);

/* Takes a sample if one is due; call inside the funnel. May change errno. */
void vst__resident_sample(void);

/* Reports which pages of a reservation are in use, before they are given
 * back. */
void vst__resident_look(uintptr_t start, size_t size);

#endif
