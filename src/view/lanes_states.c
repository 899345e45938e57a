/* Times when threads did not run, as lanes: one lane for each thread that has
 * any, with three rows: it waited off the processor; it was preempted; it
 * waited for the language's lock, or for the locks that a language has instead
 * (vst__wait_is_of_language). Read from the switches of all threads, and from
 * the waits among their records. One thread makes them. */
#include <stdlib.h>

#include "base/grow.h"
#include "base/wait_reasons.h"
#include "replay/running.h"
#include "view/lanes_kind.h"

enum { WAITS, PREEMPTED, GIL, ROWS };

typedef struct stretch {
    int64_t start_ns, end_ns;
    uint32_t thread, row;
} stretch;

typedef struct states {
    stretch *all; /* by thread, row and time; no overlaps within a row */
    size_t count, capacity;
} states;

/* ---- reading ------------------------------------------------------------- */

typedef struct reading {
    states *states;
    vst_trace *trace;
    int64_t first_ns, last_ns; /* begin and end of the window */
    uint32_t thread;
    vst_status status;
} reading;

static void states_add(reading *self, uint32_t row, int64_t start_ns,
                       int64_t end_ns)
{
    states *to = self->states;

    if (start_ns < self->first_ns)
        start_ns = self->first_ns;
    if (end_ns > self->last_ns)
        end_ns = self->last_ns;
    if (start_ns >= end_ns || self->status != VST_OK)
        return;
    if (!VST_RESERVE(to->all, to->count + 1, to->capacity)) {
        self->status = VST_E_NOMEM;
        return;
    }
    to->all[to->count++] = (stretch){start_ns, end_ns, self->thread, row};
}

static void add_state(void *ctx, const vst__thread_stretch *found)
{
    if (found->what == VST_THREAD_WAITS)
        states_add(ctx, WAITS, found->start_ns, found->end_ns);
    else if (found->what == VST_THREAD_PREEMPTED)
        states_add(ctx, PREEMPTED, found->start_ns, found->end_ns);
}

static vst_status read_switches(reading *self, const vst__window *window)
{
    const vst_trace *trace = self->trace;
    vst_running running = {.count = 0};
    vst_status status =
        vst__trace_has_switches(trace)
            ? vst__running_collect(&running, self->trace, window)
            : VST_OK;

    for (size_t i = 0;
         status == VST_OK && running.count != 0 && i < trace->thread_count;
         i++) {
        self->thread = trace->threads[i].number;
        status = vst__running_each(&running, self->thread, add_state, self);
    }
    vst__running_free(&running);
    return status;
}

static bool is_wait(const uint64_t *word)
{
    return vst_word_kind(*word) == VST_ESCAPE &&
           vst_word_escape_type(*word) == VST_ESCAPE_WAIT &&
           vst_word_escape_words(*word) >= 3 &&
           vst__wait_is_of_language((uint32_t)word[3]);
}

static vst_status states_read_waits(reading *self, const vst__segment *segment)
{
    vst__clockmap *clock = &self->trace->clock;
    const uint64_t *word;
    vst__stream stream;

    self->thread = segment->thread;
    vst__segment_open(segment, &self->trace->block, &stream);
    while (self->status == VST_OK && vst__stream_fill(&stream))
        while ((word = vst__stream_next(&stream)) != NULL)
            if (is_wait(word))
                states_add(self, GIL, vst__clockmap_to_ns(clock, word[1]),
                           vst__clockmap_to_ns(clock, word[2]));
    return stream.status;
}

static vst_status read_window(reading *self, const vst__window *window)
{
    const vst_trace *trace = self->trace;
    bool has_waits =
        vst__trace_has_gil_waits(trace) || vst__trace_has_object_waits(trace);
    vst_status status;

    if (vst__window_is_gone(trace, window) || window->segment_count == 0)
        return VST_OK;
    self->first_ns = vst__clockmap_to_ns(&self->trace->clock, window->first);
    self->last_ns = vst__clockmap_to_ns(&self->trace->clock, window->last);
    status = read_switches(self, window);
    for (size_t i = 0;
         status == VST_OK && has_waits && i < window->segment_count; i++)
        status =
            states_read_waits(self, &trace->segments[window->segments + i]);
    return status == VST_OK ? self->status : status;
}

/* ---- keeping ------------------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const stretch *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Sorts the stretches, and cuts overlaps, which a damaged file may have. */
static void states_sort(states *self)
{
    size_t count = 0;

    if (self->count != 0)
        qsort(self->all, self->count, sizeof *self->all, by_row);
    for (size_t i = 0; i < self->count; i++) {
        stretch each = self->all[i], *last = &self->all[count - (count != 0)];

        if (count != 0 && last->thread == each.thread &&
            last->row == each.row && each.start_ns < last->end_ns)
            each.start_ns = last->end_ns;
        if (each.start_ns < each.end_ns)
            self->all[count++] = each;
    }
    self->count = count;
}

static vst_status states_make_lanes(vst__lanes *lanes, const states *self)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < self->count;) {
        uint32_t items[ROWS] = {0}, thread = self->all[i].thread;

        for (; i < self->count && self->all[i].thread == thread; i++)
            items[self->all[i].row]++;
        status = vst__lanes_add(lanes, items, ROWS);
    }
    return status;
}

static vst_status read_states(vst__lanes *lanes, vst_trace *trace,
                              const vst__lanes_options *options,
                              vst_error *error)
{
    states *made = calloc(1, sizeof *made);
    reading self = {.states = made, .trace = trace, .status = VST_OK};
    vst_status status = made != NULL ? VST_OK : VST_E_NOMEM;

    (void)options;
    lanes->own = made;
    for (size_t i = 0; status == VST_OK && i < trace->window_count; i++)
        status = read_window(&self, &trace->windows[i]);
    if (status == VST_OK) {
        states_sort(made);
        status = states_make_lanes(lanes, made);
    }
    return vst_error_set(error, status,
                         status == VST_E_IO ? trace->source.sys_errno : 0, 0);
}

static void free_states(vst__lanes *lanes)
{
    states *self = lanes->own;

    free(self->all);
    free(self);
}

/* ---- lanes and items ----------------------------------------------------- */

static void states_lane_of(const vst__lanes *lanes, uint32_t lane,
                           vst__lane *got)
{
    const states *self = lanes->own;

    got->thread = self->all[lanes->rows[lanes->first_row[lane]].first].thread;
}

static void states_item_of(const vst__lanes *lanes, uint32_t number,
                           vst__lane_item *item)
{
    const states *self = lanes->own;
    const stretch *one = &self->all[number];

    *item = (vst__lane_item){
        .start_ns = one->start_ns, .end_ns = one->end_ns, .count = 1};
}

const vst__lanes_kind vst__lanes_states = {
    .name = "states",
    .read = read_states,
    .free = free_states,
    .lane = states_lane_of,
    .item = states_item_of,
};
