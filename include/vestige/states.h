/* When threads did not run, for pictures and sums: the stretches of a trace in
 * which each thread waited or was preempted, read once and kept in memory (24
 * bytes each). Several threads may ask at once. */
#ifndef VESTIGE_STATES_H
#define VESTIGE_STATES_H

#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vst_states vst_states;

/* The trace may be closed afterwards. */
VST_API vst_status vst_states_create(vst_trace *trace, vst_states **states,
                                     vst_error *error);
VST_API void vst_states_destroy(vst_states *states);

/* For each pixel of a range, what part of it a thread was off the processor,
 * and what part it waited for the language's lock; 255 is all of it. */
VST_API void vst_states_draw(const vst_states *states, uint32_t thread,
                             int64_t from_ns, int64_t to_ns, uint32_t pixels,
                             uint8_t *off, uint8_t *gil);

typedef enum vst_state {
    VST_STATE_WAITS,     /* off the processor */
    VST_STATE_PREEMPTED, /* the same, although it could have run */
    VST_STATE_GIL        /* waits for the language's lock, or those it has
                          * instead of it (vst_wait_is_of_language) */
} vst_state;

enum { VST_STATES = VST_STATE_GIL + 1 };

typedef struct vst_state_stretch {
    int64_t start_ns, end_ns;
    uint32_t thread;
} vst_state_stretch;

/* All stretches of a kind, by thread, then time; those of a thread do not
 * overlap. */
VST_API const vst_state_stretch *vst_states_all(const vst_states *states,
                                                vst_state state, size_t *count);

/* How long a thread did what in a range. */
typedef struct vst_states_sums {
    int64_t waiting_ns, preempted_ns; /* off the processor */
    int64_t gil_ns;                   /* most of it is waiting */
} vst_states_sums;

VST_API void vst_states_add_up(const vst_states *states, uint32_t thread,
                               int64_t from_ns, int64_t to_ns,
                               vst_states_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
