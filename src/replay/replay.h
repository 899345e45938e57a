/* Incremental replay, for callers that pull spans in batches: vst_trace_replay
 * is a loop over it. Nothing else may read the trace meanwhile. One thread at a
 * time. */
#ifndef VST_REPLAY_REPLAY_H
#define VST_REPLAY_REPLAY_H

#include <vestige/trace.h>

typedef struct vst__replay vst__replay;
struct vst__window;

/* Like vst_trace_replay without a tracer; the sink is copied. *replay is NULL
 * on failure. */
vst_status vst__replay_begin(vst_trace *trace, int window, const vst_sink *sink,
                             vst__replay **replay);
/* Delivers the spans that ended in some thousand records; *done is true at the
 * end. */
vst_status vst__replay_step(vst__replay *replay, bool *done);
/* Returns the window that is being read; the last one at the end. */
const struct vst__window *vst__replay_window(const vst__replay *replay);
/* may be called at any time; NULL is allowed */
void vst__replay_end(vst__replay *replay);

/* Takes the events of a trace, thread after thread, batch by batch. Replay's
 * matcher, a tracer's get_events, and readers that want no spans implement it.
 * The last batch of a thread has an end time. A reading begins with `events`
 * NULL and no end time: forget everything kept from an earlier reading then. */
typedef struct vst_event_sink {
    void *ctx;
    vst_status (*events)(void *ctx, const vst_time_converter *converter,
                         const vst_compressed_event *events, size_t count,
                         int64_t end_time_ns);
} vst_event_sink;

/* Replays a window into a sink of events, for readers that make no spans. */
vst_status vst__trace_replay_events(vst_trace *trace, int window,
                                    const vst_event_sink *sink,
                                    vst_error *error);

#endif
