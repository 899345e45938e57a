/* What replay adds to a sink for its matcher. The public sink has a pointer to
 * this, because a tracer's get_events may stand between the two. */
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

/* What is NULL or false is not known, or not wanted. */
typedef struct vst_sink_inside {
    const struct vst_trace *trace; /* for the texts of exceptions, and kinds */
    const struct vst_far_ends *far_ends;
    struct vst_running *running; /* switches of the thread that is fed */
    const struct vst_costs *costs;
    const struct vst_imports *imports;
    struct vst_devices *devices;
    struct vst_places *places; /* numbers places in the tree of calls */
    bool knows_gil;            /* waits for the language's lock were recorded */
    bool knows_pauses;         /* or those for locks of objects */
    bool by_running;           /* see vst_trace_set_by_running */
    bool compensated;          /* see vst_trace_set_compensated */
    /* The next two get the ctx of the sink. At time_ns the frame that began at
     * start_ns was moved from the stack to beside it: it is no span of its
     * depth. Frames that are on the stack at the same time differ in their
     * starts. */
    vst_status (*moved)(void *ctx, int64_t start_ns, int64_t time_ns);
    /* A VST_ESCAPE_IMPORT inside of so many frames. A sink that folds imports
     * by itself has this; else the matcher names them. */
    vst_status (*named)(void *ctx, uint64_t id, uint32_t depth);
} vst_sink_inside;

extern const vst_sink_inside vst__sink_without;

static inline const vst_sink_inside *vst__sink_inside(const vst_sink *sink)
{
    return sink->inside != NULL ? sink->inside : &vst__sink_without;
}

#endif
