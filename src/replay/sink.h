/* Members that the core adds to a sink for the matcher. The public sink has a
 * pointer to this, because a tracer's get_events may stand between the two. */
#ifndef VST_REPLAY_SINK_H
#define VST_REPLAY_SINK_H

#include <vestige/span.h>

struct vst_costs;
struct vst_devices;
struct vst_far_ends;
struct vst_imports;
struct vst_places;
struct vst_running;
struct vst_trace;

/* NULL or false: unknown, or not wanted. */
typedef struct vst_sink_inside {
    const struct vst_trace *trace; /* for the texts of exceptions, and kinds */
    const struct vst_far_ends *far_ends;
    struct vst_running *running; /* switches of the thread that is fed */
    const struct vst_costs *costs;
    const struct vst_imports *imports;
    struct vst_devices *devices;
    struct vst_places *places; /* numbers places in the tree of calls */
    bool knows_gil;            /* waits for the language's lock were recorded */
    bool knows_pauses;         /* waits for locks of objects were recorded */
    bool by_running;           /* see vst_trace_set_by_running */
    bool compensated;          /* see vst_trace_set_compensated */
    /* The next two functions get the ctx of the sink. moved: at time_ns the
     * frame that began at start_ns left the stack and continues off it, so it
     * is not a span of its depth. Frames that are on the stack together have
     * different starts. */
    vst_status (*moved)(void *ctx, int64_t start_ns, int64_t time_ns);
    /* A VST_ESCAPE_IMPORT inside `depth` frames. A sink that folds imports
     * itself has this function; otherwise the matcher names imports. */
    vst_status (*named)(void *ctx, uint64_t id, uint32_t depth);
} vst_sink_inside;

extern const vst_sink_inside vst__sink_without;

static inline const vst_sink_inside *vst__sink_inside(const vst_sink *sink)
{
    return sink->inside != NULL ? sink->inside : &vst__sink_without;
}

#endif
