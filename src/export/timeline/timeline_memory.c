/* Memory in a Chrome trace: a `[memory]` instant for each allocation and free,
 * in torch's form, and a counter of the bytes that are live.
 *
 * Clients pair the instants by Addr and take Bytes that are not positive for a
 * free; one without its allocation is shown as a block that began before all
 * else. So a free of what was not seen to be allocated has no instant, nor has
 * an allocation of no bytes. Neither changes what is live.
 *
 * Of a recording that samples, Bytes and totals are what the samples stand for.
 *
 * A framework's blocks lie in blocks of the system's, so they have a counter of
 * their own, and where there are any, only they are `[memory]`: clients would
 * count both, and pair them wrongly where their addresses are the same. The
 * others are then `[system memory]`. The counters are thinned as they are read;
 * see add_point(). One thread at a time. */
#include <math.h>

#include <vestige/memory.h>

#include "export/timeline/timeline.h"

#define PUT(at, literal)                                                       \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

enum {
    EVENT_MAX = 1024, /* of an instant without its place */
    TEXT_MAX = 1024,  /* bytes of a file's or function's name that are shown */
    GAP_NS = 10000,   /* points are at least so far apart */
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

static char *put_text(char *at, const char *text)
{
    size_t count = strlen(text);

    memcpy(at, text, count);
    return at + count;
}

/* ---- the counters ------------------------------------------------------- */

void vst__chrome_put_point(vst__timeline *timeline, const char *name,
                           int64_t time_ns, uint64_t bytes)
{
    char *at = vst__output_reserve(timeline->output, EVENT_MAX);

    at = PUT(at, ",\n{\"ph\": \"C\", \"cat\": \"counter\", "
                 "\"name\": \"");
    at = put_text(at, name);
    at = PUT(at, "\", \"pid\": ");
    at = vst__json_u64(at, timeline->process->pid);
    at = PUT(at, ", \"tid\": ");
    at = vst__json_u64(at, timeline->process->windows_tid);
    at = PUT(at, ", \"ts\": ");
    at = vst__json_us(at, vst__timeline_time(timeline, time_ns));
    at = PUT(at, ", \"args\": {\"bytes\": ");
    at = vst__json_u64(at, bytes);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
}

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

static char *put_cut(char *at, const char *bytes, size_t count)
{
    return vst__json_escape(at, at + (count + 1) * VST_JSON_ESCAPE_MAX, &bytes,
                            bytes + count);
}

/* `"At": "file:line function", `, of a long file name its end. */
static char *put_place(const vst_trace *trace, char *at, const vst_stack *stack)
{
    const vst_definition *d = vst_trace_definition(trace, stack->function);
    size_t skip, count;

    if (d == NULL)
        return at;
    skip = d->file_skip;
    count = d->file_len - skip;
    if (count > TEXT_MAX) {
        skip += count - TEXT_MAX;
        count = TEXT_MAX;
    }
    at = PUT(at, "\"At\": \"");
    at = put_cut(at, d->file + skip, count);
    *at++ = ':';
    at = vst__json_i64(at, stack->line);
    *at++ = ' ';
    at = put_cut(at, d->name, d->name_len < TEXT_MAX ? d->name_len : TEXT_MAX);
    return PUT(at, "\", ");
}

void vst__chrome_put_memory_instant(vst__timeline *timeline, const char *name,
                                    const vst_memory_event *event,
                                    uint64_t size)
{
    const vst_stack *stack =
        vst__timeline_find_place(timeline->trace, event->stack);
    bool frees = (event->flags & VST_MEMORY_FREES) != 0;
    char *at = vst__output_reserve(
        timeline->output, EVENT_MAX + (2 * TEXT_MAX + 2) * VST_JSON_ESCAPE_MAX);

    if (!timeline->has_thread || timeline->thread != event->thread)
        vst__chrome_set_thread(timeline, event->thread);
    at = PUT(at, ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", "
                 "\"s\": \"t\", \"name\": \"");
    at = put_text(at, name);
    at = PUT(at, "\", \"pid\": ");
    at = vst__json_u64(at, timeline->process->pid);
    at = PUT(at, ", \"tid\": ");
    memcpy(at, timeline->thread_text, sizeof timeline->thread_text);
    at = vst__json_us(at + timeline->thread_count,
                      vst__timeline_time(timeline, event->time_ns));
    at = PUT(at, ", \"args\": {\"Total Reserved\": 0, \"Total Allocated\": ");
    at = vst__json_u64(at, event->live_bytes);
    at = PUT(at, ", \"Bytes\": ");
    if (frees)
        *at++ = '-';
    at = vst__json_u64(at, event->size);
    at = PUT(at, ", \"Device Id\": -1, \"Device Type\": 0, \"Addr\": ");
    at = vst__json_u64(at, event->address);
    at = PUT(at, ", \"Kind\": \"");
    at = put_text(at, vst_memory_kind_name(event->kind));
    at = PUT(at, "\", ");
    if (stack != NULL)
        at = put_place(timeline->trace, at, stack);
    if (event->stack != 0) {
        at = PUT(at, "\"Stack id\": ");
        at = vst__json_u64(at, event->stack);
        at = PUT(at, ", ");
    }
    if (event->flags & VST_MEMORY_STALE_STACK)
        at = PUT(at, "\"stale stack\": 1, ");
    if (event->weight != 1) {
        at = PUT(at, "\"Size\": ");
        at = vst__json_u64(at, size);
        at = PUT(at, ", \"Weight\": ");
        at = vst__json_double(at, event->weight);
        at = PUT(at, ", ");
    }
    at = PUT(at, "\"Ev Idx\": ");
    at = vst__json_u64(at, ++timeline->serial_max);
    at = PUT(at, "}}");
    vst__output_commit(timeline->output, at);
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

/* Looks for the first of a framework's blocks. Only who records operators tells
 * of them, so no other trace is read for it. */
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
