/* An incremental history of memory, for callers that pull events in batches:
 * vst_trace_replay_memory is a loop over it. Nothing else may read the trace
 * meanwhile. One thread at a time.
 * */
#ifndef VST_MEMORY_HISTORY_H
#define VST_MEMORY_HISTORY_H

#include <vestige/memory.h>

typedef struct vst__history vst__history;

/* Like vst_trace_replay_memory; the sink is copied. *history is NULL on
 * failure. */
vst_status vst__history_begin(vst_trace *trace, int window,
                              const vst_memory_sink *sink,
                              vst__history **history);
/* Delivers some thousand records; *done is true after the last. */
vst_status vst__history_step(vst__history *history, bool *done);
/* may be called at any time; NULL is allowed */
void vst__history_end(vst__history *history);

#endif
