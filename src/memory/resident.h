/* Samples of what of the process is in RAM, beside the records of what it
 * allocates. Taken by threads inside the funnel, some tens of times a second at
 * most; see funnel.h for where. */
#ifndef VST_MEMORY_RESIDENT_H
#define VST_MEMORY_RESIDENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <vestige/memory.h>

/* When the next sample is due: never while nothing is traced. Relaxed: a thread
 * that reads an old value samples a record too early or too late. */
extern _Atomic vst_ticks vst__resident_due;

static inline bool vst__resident_is_due(vst_ticks now)
{
    return now >=
           atomic_load_explicit(&vst__resident_due, memory_order_relaxed);
}

/* Before anything is traced, and after. */
void vst__resident_begin(vst_recording *recording);
void vst__resident_end(vst_recording *recording);
void vst__resident_after_fork(void);

/* Inside the funnel, if one is due. errno may change. */
void vst__resident_sample(void);

/* Tells which pages of a reservation are in use, before they are given back. */
void vst__resident_look(uintptr_t start, size_t size);

#endif
