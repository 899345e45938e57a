/* Incremental replay, for callers that pull spans in batches: vst_trace_replay
 * is a loop over it. Nothing else may read the trace meanwhile. One thread at a
 * time. */
#ifndef VST_REPLAY_REPLAY_H
#define VST_REPLAY_REPLAY_H

#include <vestige/trace.h>

typedef struct vst__replay vst__replay;

/* As vst_trace_replay; the sink is copied. *replay is NULL if it fails. */
vst_status vst__replay_begin(vst_trace *trace, int window, vst_tracer *tracer,
                             const vst_sink *sink, vst__replay **replay);
/* Delivers what ended in some thousand records; *done: there are no more. */
vst_status vst__replay_step(vst__replay *replay, bool *done);
void vst__replay_end(vst__replay *replay); /* at any time; NULL is nothing */

#endif
