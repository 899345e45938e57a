/* Memory on a timeline: an instant for each allocation and free, and a counter
 * of the live bytes. Clients show a free without its allocation as a block that
 * began before everything else. So a free of an unknown block gets no instant,
 * nor does an allocation of no bytes. Neither changes the live bytes.
 *
 * In a sampled recording, sizes and totals are estimates from the samples.
 *
 * A framework's blocks lie inside the system's, so they have a counter of their
 * own. If there are any, only they are called `[memory]`, and the others
 * `[system memory]`: clients would otherwise count both, and pair them wrongly
 * at equal addresses. The counters are thinned while they are read; see
 * add_point(). One thread at a time. */
#include <math.h>

#include <vestige/memory.h>

#include "export/timeline/timeline.h"

enum {
    GAP_NS = 10000, /* least time between points */
    /* if there would be more points than this, they lie further apart */
    POINTS_MAX = 50000,
    /* smaller changes than this part of the peak are ignored */
    STEP_SHARE = 1000,
    TEXT_MAX = 1024, /* most bytes of a file's or function's name */
    PLACE_MAX = 2 * TEXT_MAX + VST_JSON_NUMBER_MAX + 2
};

typedef struct point {
    int64_t time_ns;
    uint64_t bytes, number;
} point;

/* A counter: the last written point, and the points since. */
typedef struct curve {
    vst__label label;
    uint64_t estimate; /* estimated live bytes */
    int64_t gap_ns;
    uint64_t peak, count;
    bool begun, pending;
    point written, low, high, last;
} curve;

typedef struct memory {
    vst__timeline *timeline;
    bool instants;
    bool sampled; /* a sampled event stood for several allocations */
    bool has_framework;
    curve live, framework;
    vst__label usual, system; /* labels of instants */
    vst__arg_list args;       /* arguments of instants */
    /* The values of the last instant; 0: none. */
    uint32_t kind;
    vst_stack_id place_of;
    size_t place_len;
    char place[PLACE_MAX];
} memory;

/* ---- the counters -------------------------------------------------------- */

static void write_point(vst__timeline *timeline, curve *live, const point *p)
{
    static const vst__key key = VST_KEY("bytes");

    timeline->drawing->ops->counter(
        timeline->drawing, &live->label, timeline->process->drawn->windows_tid,
        p->time_ns, &(vst__arg){&key, VST_ARG_U64, .u64 = p->bytes});
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

/* Adds a point to a counter, thinned: any value between two written points is
 * within a thousandth of the peak so far of one of them, or less than a gap
 * away from it in time. The highest and the lowest value since the last point
 * are always written, so no peak is lost. */
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

/* ---- instants ------------------------------------------------------------ */

/* Returns the innermost frame of the language, or NULL. */
static const vst_stack *memory_find_frame(const vst_trace *trace,
                                          vst_stack_id id)
{
    const vst_stack *stack = vst_trace_stack(trace, id);

    if (stack != NULL && stack->kind == VST_STACK_BOTH)
        stack = vst_trace_stack(trace, stack->parent);
    return stack != NULL && stack->kind == VST_STACK_LANGUAGE ? stack : NULL;
}

/* Writes `file:line function`; of a long file name only the end. */
static size_t make_place(const vst_trace *trace, vst_stack_id id, char *text)
{
    const vst_stack *stack = memory_find_frame(trace, id);
    const vst_definition *d =
        stack != NULL ? vst_trace_definition(trace, stack->function) : NULL;
    size_t skip, count;
    char *at = text;

    if (d == NULL)
        return 0;
    skip = d->file_skip;
    count = d->file_len - skip;
    if (count > TEXT_MAX) {
        skip += count - TEXT_MAX;
        count = TEXT_MAX;
    }
    memcpy(at, d->file + skip, count);
    at += count;
    *at++ = ':';
    at = vst__json_i64(at, stack->line);
    *at++ = ' ';
    count = d->name_len < TEXT_MAX ? d->name_len : TEXT_MAX;
    memcpy(at, d->name, count);
    return (size_t)(at + count - text);
}

/* The arguments of every instant, in this order. */
enum { RESERVED, ALLOCATED, BYTES, DEVICE, TYPE, ADDRESS, KIND, FIXED };

static void make_args(vst__arg_list *args)
{
    static const vst__key keys[FIXED] = {
        [RESERVED] = VST_KEY("Total Reserved"),
        [ALLOCATED] = VST_KEY("Total Allocated"),
        [BYTES] = VST_KEY("Bytes"),
        [DEVICE] = VST_KEY("Device Id"),
        [TYPE] = VST_KEY("Device Type"),
        [ADDRESS] = VST_KEY("Addr"),
        [KIND] = VST_KEY("Kind"),
    };

    for (size_t i = 0; i < FIXED; i++)
        vst__args_add(args, &keys[i], VST_ARG_U64)->u64 = 0;
    args->items[BYTES].type = args->items[DEVICE].type = VST_ARG_I64;
    args->items[DEVICE].i64 = -1;
    args->items[KIND].type = VST_ARG_WORD;
}

/* Draws an instant. size: size of the block; event->size may be an estimate, as
 * event->live_bytes is. */
static void draw_instant(memory *self, const vst_memory_event *event,
                         uint64_t size, vst__label *label)
{
    static const vst__key at = VST_KEY("At"), stack = VST_KEY("Stack id"),
                          stale = VST_KEY("stale stack"),
                          whole = VST_KEY("Size"), weight = VST_KEY("Weight"),
                          index = VST_KEY("Ev Idx");
    vst__timeline *timeline = self->timeline;
    int64_t change = (int64_t)event->size;
    vst__arg_list *args = &self->args;

    if (self->place_of != event->stack) {
        self->place_of = event->stack;
        self->place_len =
            make_place(timeline->trace, event->stack, self->place);
    }
    if (self->kind != event->kind) {
        const char *name = vst_memory_kind_name(event->kind);

        self->kind = event->kind;
        args->items[KIND].text.at = name;
        args->items[KIND].text.count = strlen(name);
    }
    args->items[ALLOCATED].u64 = event->live_bytes;
    args->items[BYTES].i64 = event->flags & VST_MEMORY_FREES ? -change : change;
    args->items[ADDRESS].u64 = event->address;
    args->count = FIXED;
    if (self->place_len != 0)
        vst__args_text(args, &at, self->place, self->place_len);
    if (event->stack != 0)
        vst__args_u64(args, &stack, event->stack);
    if (event->flags & VST_MEMORY_STALE_STACK)
        vst__args_u64(args, &stale, 1);
    if (event->weight != 1) {
        vst__args_u64(args, &whole, size);
        vst__args_add(args, &weight, VST_ARG_DOUBLE)->number = event->weight;
    }
    vst__args_u64(args, &index, ++timeline->serial_max);
    timeline->drawing->ops->instant(
        timeline->drawing,
        &(vst__drawn_instant){label,
                              vst__timeline_thread(timeline, event->thread),
                              event->time_ns, args});
}

/* Replaces the event's sizes by estimates, if the recording is sampled. An
 * allocation and its free get equal estimates, so sums do not become negative.
 */
static void memory_estimate(memory *self, curve *live, vst_memory_event *event)
{
    uint64_t bytes =
        event->weight == 1
            ? event->size
            : (uint64_t)llround((double)event->size * event->weight);
    bool frees = (event->flags & VST_MEMORY_FREES) != 0;

    self->sampled |= event->weight != 1;
    if (frees)
        live->estimate -= bytes < live->estimate ? bytes : live->estimate;
    else if (event->live_count == 1) /* the block is the first of this window */
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

static vst_status add_event(void *ctx, const vst_memory_event *event)
{
    memory *self = ctx;
    vst_memory_event told = *event;
    bool framework = vst_memory_is_framework(event->kind);
    curve *live = framework ? &self->framework : &self->live;

    if (event->size == 0 || event->flags & VST_MEMORY_UNKNOWN)
        return VST_OK;
    memory_estimate(self, live, &told);
    add_point(self->timeline, live, told.time_ns, told.live_bytes);
    if (self->instants)
        draw_instant(self, &told, event->size,
                     self->has_framework && !framework ? &self->system
                                                       : &self->usual);
    return vst__timeline_status(self->timeline);
}

static vst_status stop_at_framework(void *ctx, const vst_memory_event *event)
{
    bool *found = ctx;

    *found = vst_memory_is_framework(event->kind);
    return *found ? VST_E_CANCELLED : VST_OK;
}

/* Returns whether the trace has a framework's block. Only recordings of
 * operators can have any, so other traces are not read for this. */
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

/* ---- drawing a process --------------------------------------------------- */

static vst__label memory_lasting(const char *text, vst__category category)
{
    vst__label label = vst__label_of(text, strlen(text), category);

    label.lasts = true;
    label.in_bytes = category == VST_CATEGORY_COUNTER;
    return label;
}

vst_status vst__timeline_draw_memory(vst__timeline *timeline, vst_error *error)
{
    const vst_export_options *options = timeline->options;
    vst_trace_info info;
    memory self = {
        .timeline = timeline,
        .instants = !options->no_memory_events,
        .has_framework = find_framework(timeline->trace),
        .live.label = memory_lasting("live memory", VST_CATEGORY_COUNTER),
        .framework.label =
            memory_lasting("live framework memory", VST_CATEGORY_COUNTER),
        .usual = memory_lasting("[memory]", VST_CATEGORY_MEMORY),
        .system = memory_lasting("[system memory]", VST_CATEGORY_MEMORY),
    };
    vst_memory_sink sink = {.ctx = &self, .event = add_event};
    vst_status status;

    make_args(&self.args);
    vst_trace_get_info(timeline->trace, &info);
    self.live.gap_ns = (info.end_ns - info.start_ns) / POINTS_MAX;
    if (self.live.gap_ns < GAP_NS)
        self.live.gap_ns = GAP_NS;
    self.framework.gap_ns = self.live.gap_ns;
    status =
        vst_trace_replay_memory(timeline->trace, options->window, &sink, error);
    write_pending(timeline, &self.live);
    write_pending(timeline, &self.framework);
    vst__label_free(&self.live.label);
    vst__label_free(&self.framework.label);
    vst__label_free(&self.usual);
    vst__label_free(&self.system);
    return status;
}
