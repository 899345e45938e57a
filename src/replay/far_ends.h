/* Ends of spans that other threads began (VST_ESCAPE_FAR_END), collected for a
 * window before its threads are replayed one by one. Only traces with such ends
 * are read twice. One thread at a time. */
#ifndef VST_REPLAY_FAR_ENDS_H
#define VST_REPLAY_FAR_ENDS_H

#include <vestige/span.h>

#include "base/map64.h"
#include "replay/decode.h"

/* All zero: no far ends. */
typedef struct vst_far_ends {
    /* id | instance << 32 -> ns; the first of several counts */
    vst__map64 ends;
} vst_far_ends;

bool vst__trace_has_far_ends(const vst_trace *trace);
/* Replaces the collected ends by the ends of a window. */
vst_status vst__far_ends_collect(vst_far_ends *self, vst_trace *trace,
                                 const vst__window *window,
                                 vst__decoder *decoder,
                                 const vst_time_converter *converter);
bool vst__far_ends_find(const vst_far_ends *self, uint64_t pair,
                        int64_t *end_ns);
void vst__far_ends_free(vst_far_ends *self);

#endif
