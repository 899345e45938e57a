/* What exporters need of replay beyond trace.h. */
#ifndef VST_REPLAY_REPLAY_H
#define VST_REPLAY_REPLAY_H

#include "store/reader.h"

/* The windows that a window number or VST_WINDOW_* names: `count` of
 * trace->windows from `first`. */
vst_status vst__trace_select_windows(const vst_trace *trace, int window,
                                     size_t *first, size_t *count);

#endif
