/* The instants of a trace as lanes: one lane for each thread that has any, with
 * three rows: instants that the program marked, exceptions that were caught or
 * whose end is unknown, and exceptions that nobody caught. One thread makes
 * them. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/lanes_kind.h"

enum {
    MARKS_MAX = 4000000, /* further marks are not kept */
    TEXT_MAX = 16 << 20, /* bytes of all arguments; further marks get none */
    INSTANTS = 0,
    EXCEPTIONS = 1,
    NOT_CAUGHT = 2,
    ROWS = 3
};

typedef struct mark {
    int64_t time_ns;
    vst_id id;
    uint32_t thread;
    vst_id raised_in, caught_in;
    uint32_t args; /* number of a text */
    uint8_t end;   /* vst_exception_end */
} mark;

typedef struct marks {
    vst__lanes *lanes;
    mark *all; /* by thread, row and time */
    size_t count, capacity;
} marks;

static const vst__lane_fact facts[] = {{"end", VST_LANE_NUMBER},
                                       {"raised_in", VST_LANE_NUMBER},
                                       {"caught_in", VST_LANE_NUMBER},
                                       {"args", VST_LANE_TEXT}};

/* ---- reading ------------------------------------------------------------- */

static vst_status marks_add(void *ctx, const vst_instant *instant)
{
    marks *self = ctx;
    mark *grown;

    if (self->count == MARKS_MAX) {
        self->lanes->left_out++;
        return VST_OK;
    }
    if (!VST_RESERVE(self->all, self->count + 1, self->capacity))
        return VST_E_NOMEM;
    grown = &self->all[self->count++];
    *grown = (mark){.time_ns = instant->time_ns,
                    .id = instant->id,
                    .thread = instant->thread,
                    .end = (uint8_t)instant->end,
                    .raised_in = instant->raised_in,
                    .caught_in = instant->caught_in};
    /* The mark itself already holds the facts of an exception. */
    return instant->end == VST_NO_EXCEPTION
               ? vst__lanes_keep_text(self->lanes, instant->args,
                                      instant->args_len, TEXT_MAX, &grown->args)
               : VST_OK;
}

static uint32_t row_of(const mark *one)
{
    return one->end == VST_NO_EXCEPTION           ? INSTANTS
           : one->end == VST_EXCEPTION_NOT_CAUGHT ? NOT_CAUGHT
                                                  : EXCEPTIONS;
}

static int by_row(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    uint32_t row = row_of(x), other = row_of(y);

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (row != other)
        return row < other ? -1 : 1;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static vst_status marks_make_lanes(marks *self)
{
    vst_status status = VST_OK;

    if (self->count != 0)
        qsort(self->all, self->count, sizeof *self->all, by_row);
    for (size_t i = 0; status == VST_OK && i < self->count;) {
        uint32_t items[ROWS] = {0}, thread = self->all[i].thread;

        for (; i < self->count && self->all[i].thread == thread; i++)
            items[row_of(&self->all[i])]++;
        status = vst__lanes_add(self->lanes, items, ROWS);
    }
    return status;
}

static vst_status read_marks(vst__lanes *lanes, vst_trace *trace,
                             const vst__lanes_options *options,
                             vst_error *error)
{
    marks *self = calloc(1, sizeof *self);
    const vst_sink sink = {.ctx = self, .no_args = true, .instant = marks_add};
    vst_status status;

    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    lanes->own = self;
    self->lanes = lanes;
    status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    return status == VST_OK ? vst_error_set(error, marks_make_lanes(self), 0, 0)
                            : status;
}

static void free_marks(vst__lanes *lanes)
{
    marks *self = lanes->own;

    free(self->all);
    free(self);
}

/* ---- lanes and items ----------------------------------------------------- */

static void marks_lane_of(const vst__lanes *lanes, uint32_t lane,
                          vst__lane *got)
{
    const marks *self = lanes->own;

    got->thread = self->all[lanes->rows[lanes->first_row[lane]].first].thread;
}

static void marks_item_of(const vst__lanes *lanes, uint32_t number,
                          vst__lane_item *item)
{
    const marks *self = lanes->own;
    const mark *one = &self->all[number];

    *item = (vst__lane_item){.start_ns = one->time_ns,
                             .end_ns = one->time_ns,
                             .id = one->id,
                             .count = 1};
}

static void marks_facts_of(const vst__lanes *lanes, uint32_t number,
                           uint64_t *values)
{
    const marks *self = lanes->own;
    const mark *one = &self->all[number];

    values[0] = one->end;
    values[1] = one->raised_in;
    values[2] = one->caught_in;
    values[3] = one->args;
}

const vst__lanes_kind vst__lanes_marks = {
    .name = "marks",
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = read_marks,
    .free = free_marks,
    .lane = marks_lane_of,
    .item = marks_item_of,
    .facts_of = marks_facts_of,
};
