/* See <vestige/states.h>: reads the switches of all threads, and the waits
 * among their records. One thread makes it, any may ask. */
#include <stdlib.h>
#include <string.h>

#include <vestige/states.h>
#include <vestige/waits.h>

#include "base/grow.h"
#include "replay/running.h"

typedef vst_state_stretch stretch;

typedef struct stretches {
    stretch *of; /* by thread, then time; those of a thread do not overlap */
    size_t count, capacity;
} stretches;

struct vst_states {
    stretches kinds[VST_STATES];
};

/* ---- reading ------------------------------------------------------------- */

typedef struct reading {
    vst_states *states;
    vst_trace *trace;
    int64_t first_ns, last_ns; /* of the window */
    uint32_t thread;
    vst_status status;
} reading;

static void add(reading *self, int kind, int64_t start_ns, int64_t end_ns)
{
    stretches *to = &self->states->kinds[kind];
    stretch *grown;

    if (start_ns < self->first_ns)
        start_ns = self->first_ns;
    if (end_ns > self->last_ns)
        end_ns = self->last_ns;
    if (start_ns >= end_ns || self->status != VST_OK)
        return;
    grown = vst__grow(to->of, &to->capacity, to->count + 1, sizeof *grown);
    if (grown == NULL) {
        self->status = VST_E_NOMEM;
        return;
    }
    to->of = grown;
    grown[to->count++] = (stretch){start_ns, end_ns, self->thread};
}

static void add_state(void *ctx, const vst__thread_stretch *found)
{
    if (found->what == VST_THREAD_WAITS)
        add(ctx, VST_STATE_WAITS, found->start_ns, found->end_ns);
    else if (found->what == VST_THREAD_PREEMPTED)
        add(ctx, VST_STATE_PREEMPTED, found->start_ns, found->end_ns);
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
           vst_wait_is_of_language((uint32_t)word[3]);
}

static vst_status read_waits(reading *self, const vst__segment *segment)
{
    vst__clockmap *clock = &self->trace->clock;
    const uint64_t *word;
    vst__stream stream;

    self->thread = segment->thread;
    vst__segment_open(segment, &self->trace->block, &stream);
    while (self->status == VST_OK && vst__stream_fill(&stream))
        while ((word = vst__stream_next(&stream)) != NULL)
            if (is_wait(word))
                add(self, VST_STATE_GIL, vst__clockmap_to_ns(clock, word[1]),
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
        status = read_waits(self, &trace->segments[window->segments + i]);
    return status == VST_OK ? self->status : status;
}

/* ---- keeping ------------------------------------------------------------- */

static int by_thread(const void *a, const void *b)
{
    const stretch *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* A damaged file may say anything; stretches follow each other after this. */
static void put_in_order(stretches *all)
{
    size_t count = 0;

    if (all->count != 0)
        qsort(all->of, all->count, sizeof *all->of, by_thread);
    for (size_t i = 0; i < all->count; i++) {
        stretch each = all->of[i];

        if (count != 0 && all->of[count - 1].thread == each.thread &&
            each.start_ns < all->of[count - 1].end_ns)
            each.start_ns = all->of[count - 1].end_ns;
        if (each.start_ns < each.end_ns)
            all->of[count++] = each;
    }
    all->count = count;
}

vst_status vst_states_create(vst_trace *trace, vst_states **result,
                             vst_error *error)
{
    vst_states *states = calloc(1, sizeof *states);
    reading self = {.states = states, .trace = trace, .status = VST_OK};
    vst_status status = states != NULL ? VST_OK : VST_E_NOMEM;

    *result = NULL;
    for (size_t i = 0; status == VST_OK && i < trace->window_count; i++)
        status = read_window(&self, &trace->windows[i]);
    vst_error_set(error, status,
                  status == VST_E_IO ? trace->source.sys_errno : 0, 0);
    if (status != VST_OK) {
        vst_states_destroy(states);
        return status;
    }
    for (int kind = 0; kind < VST_STATES; kind++)
        put_in_order(&states->kinds[kind]);
    *result = states;
    return VST_OK;
}

void vst_states_destroy(vst_states *states)
{
    if (states == NULL)
        return;
    for (int kind = 0; kind < VST_STATES; kind++)
        free(states->kinds[kind].of);
    free(states);
}

/* ---- asking -------------------------------------------------------------- */

const vst_state_stretch *vst_states_all(const vst_states *states,
                                        vst_state state, size_t *count)
{
    *count = states->kinds[state].count;
    return states->kinds[state].of;
}

/* The first stretch of the thread that ends after this time. */
static size_t find(const stretches *all, uint32_t thread, int64_t ns)
{
    size_t low = 0, high = all->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const stretch *at = &all->of[middle];

        if (at->thread < thread || (at->thread == thread && at->end_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct line_of_pixels {
    int64_t from_ns;
    double pixel_ns;
    uint32_t pixels;
    float *shares; /* of each pixel */
} line_of_pixels;

static void draw_stretch(const line_of_pixels *self, int64_t start_ns,
                         int64_t end_ns)
{
    double start = (double)(start_ns - self->from_ns) / self->pixel_ns;
    double end = (double)(end_ns - self->from_ns) / self->pixel_ns;
    uint32_t at = start > 0 ? (uint32_t)start : 0;

    for (; at < self->pixels && (double)at < end; at++) {
        double left = start > at ? start : at;
        double right = end < at + 1.0 ? end : at + 1.0;

        self->shares[at] += (float)(right - left);
    }
}

static void draw_kind(const vst_states *states, int kind, uint32_t thread,
                      int64_t to_ns, const line_of_pixels *line)
{
    const stretches *all = &states->kinds[kind];

    for (size_t i = find(all, thread, line->from_ns);
         i < all->count && all->of[i].thread == thread &&
         all->of[i].start_ns < to_ns;
         i++)
        draw_stretch(line, all->of[i].start_ns, all->of[i].end_ns);
}

static void put_shares(const line_of_pixels *line, uint8_t *to)
{
    for (uint32_t i = 0; i < line->pixels; i++) {
        float share = line->shares[i] * 255 + 0.5f;

        to[i] = share < 255 ? (uint8_t)share : 255;
        line->shares[i] = 0;
    }
}

void vst_states_draw(const vst_states *states, uint32_t thread, int64_t from_ns,
                     int64_t to_ns, uint32_t pixels, uint8_t *off, uint8_t *gil)
{
    line_of_pixels drawn = {.from_ns = from_ns, .pixels = pixels};

    memset(off, 0, pixels);
    memset(gil, 0, pixels);
    if (pixels == 0 || to_ns <= from_ns)
        return;
    drawn.pixel_ns = (double)(to_ns - from_ns) / pixels;
    drawn.shares = calloc(pixels, sizeof *drawn.shares);
    if (drawn.shares == NULL)
        return;
    draw_kind(states, VST_STATE_WAITS, thread, to_ns, &drawn);
    draw_kind(states, VST_STATE_PREEMPTED, thread, to_ns, &drawn);
    put_shares(&drawn, off);
    draw_kind(states, VST_STATE_GIL, thread, to_ns, &drawn);
    put_shares(&drawn, gil);
    free(drawn.shares);
}

static int64_t sum_of(const stretches *all, uint32_t thread, int64_t from_ns,
                      int64_t to_ns)
{
    int64_t sum = 0;

    for (size_t i = find(all, thread, from_ns);
         i < all->count && all->of[i].thread == thread &&
         all->of[i].start_ns < to_ns;
         i++) {
        const stretch *at = &all->of[i];

        sum += (at->end_ns < to_ns ? at->end_ns : to_ns) -
               (at->start_ns > from_ns ? at->start_ns : from_ns);
    }
    return sum;
}

void vst_states_add_up(const vst_states *states, uint32_t thread,
                       int64_t from_ns, int64_t to_ns, vst_states_sums *sums)
{
    *sums = (vst_states_sums){
        .waiting_ns =
            sum_of(&states->kinds[VST_STATE_WAITS], thread, from_ns, to_ns),
        .preempted_ns =
            sum_of(&states->kinds[VST_STATE_PREEMPTED], thread, from_ns, to_ns),
        .gil_ns = sum_of(&states->kinds[VST_STATE_GIL], thread, from_ns, to_ns),
    };
}
