/* Memory on a timeline: an instant for each allocation and free, and a counter
 * of the bytes that are live. Clients show a free without its allocation as a
 * block that began before everything else. So a free of a block that was not
 * seen to be allocated has no instant, nor has an allocation of no bytes.
 * Neither changes what is live.
 *
 * Where the recording sampled, sizes and totals are what the samples stand for.
 *
 * A framework's blocks lie in blocks of the system's, so they have a counter of
 * their own, and where there are any, only they are `[memory]`: clients would
 * count both, and pair them wrongly where their addresses are the same. The
 * others are then `[system memory]`. The counters are thinned as they are read;
 * see add_point(). One thread at a time. */
#include <math.h>

#include <vestige/memory.h>

#include "export/timeline/timeline.h"

enum {
    GAP_NS = 10000,     /* points are at least so far apart */
    POINTS_MAX = 50000, /* or so that there are not more such gaps */
    STEP_SHARE = 1000   /* of the peak so far: less is no change */
};

typedef struct point {
    int64_t time_ns;
    uint64_t bytes, number;
} point;

/* A counter: what was written last, and what came since. */
typedef struct curve {
    const char *name;
    uint64_t estimate; /* of the bytes that are live */
    int64_t gap_ns;
    uint64_t peak, count;
    bool begun, pending;
    point written, low, high, last;
} curve;

typedef struct memory {
    vst__timeline *timeline;
    bool instants;
    bool sampled; /* an event so far stood for more than itself */
    bool has_framework;
    curve live, framework;
} memory;

/* ---- the counters ------------------------------------------------------- */

static void write_point(vst__timeline *timeline, curve *live, const point *p)
{
    timeline->drawing->point(timeline, live->name, p->time_ns, p->bytes);
    live->written = *p;
    live->begun = true;
}

static void write_pending(vst__timeline *timeline, curve *live)
{
    bool low_first = live->low.number < live->high.number;
    point points[3] = {low_first ? live->low : live->high,
                       low_first ? live->high : live->low, live->last};

    if (!live->pending)
        return;
    live->pending = false;
    for (size_t i = 0; i < 3; i++)
        if (i == 0 || points[i].number != points[i - 1].number)
            write_point(timeline, live, &points[i]);
}

/* What lies between two points is within a thousandth of the peak so far of
 * one of them, or less than a gap away; the highest and the lowest value since
 * the last point are always points, so no peak is lost. */
static void add_point(vst__timeline *timeline, curve *live, int64_t time_ns,
                      uint64_t bytes)
{
    point p = {time_ns, bytes, ++live->count};
    uint64_t step;

    if (bytes > live->peak)
        live->peak = bytes;
    if (!live->begun) {
        write_point(timeline, live, &p);
        return;
    }
    if (!live->pending || bytes < live->low.bytes)
        live->low = p;
    if (!live->pending || bytes > live->high.bytes)
        live->high = p;
    live->last = p;
    live->pending = true;
    step = live->peak / STEP_SHARE;
    if (time_ns - live->written.time_ns >= live->gap_ns &&
        (live->high.bytes > live->written.bytes + step ||
         live->low.bytes + step < live->written.bytes))
        write_pending(timeline, live);
}

/* ---- instants ----------------------------------------------------------- */

const vst_stack *vst__timeline_find_place(const vst_trace *trace,
                                          vst_stack_id id)
{
    const vst_stack *stack = vst_trace_stack(trace, id);

    if (stack != NULL && stack->kind == VST_STACK_BOTH)
        stack = vst_trace_stack(trace, stack->parent);
    return stack != NULL && stack->kind == VST_STACK_LANGUAGE ? stack : NULL;
}

/* What a sampled event stands for, in place of what it is. An allocation and
 * its free stand for the same, so nothing adds up to less than nothing. */
static void estimate(memory *self, curve *live, vst_memory_event *event)
{
    uint64_t bytes = (uint64_t)llround((double)event->size * event->weight);
    bool frees = (event->flags & VST_MEMORY_FREES) != 0;

    self->sampled |= event->weight != 1;
    if (frees)
        live->estimate -= bytes < live->estimate ? bytes : live->estimate;
    else if (event->live_count == 1) /* of this window */
        live->estimate = bytes;
    else
        live->estimate += bytes;
    if (event->live_count == 0)
        live->estimate = 0;
    if (!self->sampled)
        return;
    event->size = bytes;
    event->live_bytes = live->estimate;
}

static bool is_framework(const vst_memory_event *event)
{
    return event->kind == VST_MEMORY_FRAMEWORK ||
           event->kind == VST_MEMORY_FRAMEWORK_FREE;
}

static vst_status add_event(void *ctx, const vst_memory_event *event)
{
    memory *self = ctx;
    vst_memory_event told = *event;
    bool framework = is_framework(event);
    curve *live = framework ? &self->framework : &self->live;

    if (event->size == 0 || event->flags & VST_MEMORY_UNKNOWN)
        return VST_OK;
    estimate(self, live, &told);
    add_point(self->timeline, live, told.time_ns, told.live_bytes);
    if (self->instants)
        self->timeline->drawing->memory(
            self->timeline,
            self->has_framework && !framework ? "[system memory]" : "[memory]",
            &told, event->size);
    return self->timeline->output->status;
}

static vst_status stop_at_framework(void *ctx, const vst_memory_event *event)
{
    bool *found = ctx;

    *found = is_framework(event);
    return *found ? VST_E_CANCELLED : VST_OK;
}

/* Looks for the first of a framework's blocks. Only recordings of operators
 * have any, so no other trace is read for it. */
static bool find_framework(vst_trace *trace)
{
    bool found = false;
    vst_memory_sink sink = {.ctx = &found, .event = stop_at_framework};

    for (size_t i = 0; i < trace->definition_count; i++)
        if (trace->definitions[i].kind == VST_DEF_OPERATOR) {
            vst_trace_replay_memory(trace, VST_WINDOW_ALL, &sink, NULL);
            break;
        }
    return found;
}

/* ---- a process ---------------------------------------------------------- */

vst_status vst__timeline_put_memory(vst__timeline *timeline,
                                    const vst_export_options *options,
                                    vst_error *error)
{
    vst_trace_info info;
    memory self = {.timeline = timeline,
                   .instants = !options->no_memory_events,
                   .has_framework = find_framework(timeline->trace),
                   .live = {.name = "live memory"},
                   .framework = {.name = "live framework memory"}};
    vst_memory_sink sink = {.ctx = &self, .event = add_event};
    vst_status status;

    vst_trace_get_info(timeline->trace, &info);
    self.live.gap_ns = (info.end_ns - info.start_ns) / POINTS_MAX;
    if (self.live.gap_ns < GAP_NS)
        self.live.gap_ns = GAP_NS;
    self.framework.gap_ns = self.live.gap_ns;
    status =
        vst_trace_replay_memory(timeline->trace, options->window, &sink, error);
    write_pending(timeline, &self.live);
    write_pending(timeline, &self.framework);
    return status;
}
