/* The calls of a trace as lanes, for a page without a server: one lane per
 * thread, whose rows are the depths of its stack and, below these, rows of
 * spans that overlap their neighbours. One thread makes them. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/lanes_kind.h"
#include "view/view.h"

/* bytes of all arguments; further calls get none */
enum { TEXT_MAX = 8 << 20 };

typedef struct call {
    int64_t start_ns, end_ns;
    uint64_t serial, self_bytes, total_bytes;
    vst_id id;
    uint32_t thread; /* UINT32_MAX: hidden */
    uint32_t depth, row, flags;
    uint32_t args; /* number of a text */
} call;

/* A call that is open where the next one begins, or the visible call around it;
 * calls inside it begin in the row below. */
typedef struct open_call {
    call *visible;
    uint32_t depth, below;
    int64_t end_ns;
} open_call;

typedef struct calls {
    vst__lanes *lanes;
    vst_id max;
    bool folds;
    call *all; /* by thread, row and time; hidden calls come last */
    size_t count, capacity;
    /* While a thread is placed: when the last call of each row ends, and how
     * many calls each row has; the stack of open calls. */
    int64_t *ends_ns;
    uint32_t *items, rows;
    size_t ends_capacity, items_capacity;
    open_call *stack;
    size_t top, stack_capacity;
} calls;

static const vst__lane_fact facts[] = {{"args", VST_LANE_TEXT},
                                       {"self_bytes", VST_LANE_NUMBER},
                                       {"total_bytes", VST_LANE_NUMBER}};

/* ---- reading ------------------------------------------------------------- */

/* In a damaged trace, numbers may have any value. */
static uint64_t at_least_0(uint64_t bytes)
{
    return bytes <= INT64_MAX ? bytes : 0;
}

static vst_status calls_add(void *ctx, const vst_span *span)
{
    calls *self = ctx;
    bool imports = self->folds && span->flags & VST_SPAN_IMPORT;
    call *grown;

    if (!VST_RESERVE(self->all, self->count + 1, self->capacity))
        return VST_E_NOMEM;
    grown = &self->all[self->count++];
    *grown = (call){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns > span->start_ns ? span->end_ns : span->start_ns,
        .serial = span->serial,
        .self_bytes = at_least_0(span->self_bytes),
        .total_bytes = at_least_0(span->total_bytes),
        .id = imports
                  ? vst_view_import_id(self->max, span->import, span->module)
                  : span->id,
        .thread = span->thread,
        .depth = span->depth,
        .flags = span->flags,
    };
    return vst__lanes_keep_text(self->lanes, span->args, span->args_len,
                                TEXT_MAX, &grown->args);
}

/* Sorts by row, and puts callers before the calls inside them. */
static int calls_compare(const void *a, const void *b)
{
    const call *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Puts a call into this row, or into the next row below that has room. */
static vst_status calls_put(calls *self, call *one, uint32_t row)
{
    while (row < self->rows && self->ends_ns[row] > one->start_ns)
        row++;
    if (row == self->rows) {
        if (!VST_RESERVE(self->ends_ns, (size_t)row + 1, self->ends_capacity) ||
            !VST_RESERVE(self->items, (size_t)row + 1, self->items_capacity))
            return VST_E_NOMEM;
        self->items[self->rows++] = 0;
    }
    self->ends_ns[row] = one->end_ns;
    self->items[row]++;
    one->row = row;
    return VST_OK;
}

/* Places a call on the stack. If imports are folded, a frame of the import
 * system is hidden: calls inside it move up, and its own allocations are added
 * to its caller's. */
static vst_status put_on_stack(calls *self, call *one)
{
    bool hidden = self->folds && one->flags & VST_SPAN_MACHINERY;
    open_call around = {.visible = NULL}, *stack;
    vst_status status = VST_OK;

    while (self->top != 0 &&
           (self->stack[self->top - 1].depth >= one->depth ||
            self->stack[self->top - 1].end_ns < one->start_ns))
        self->top--;
    stack = vst__grow(self->stack, &self->stack_capacity, self->top + 1,
                      sizeof *stack);
    if (stack == NULL)
        return VST_E_NOMEM;
    self->stack = stack;
    if (self->top != 0)
        around = stack[self->top - 1];
    if (!hidden) {
        status = calls_put(self, one, around.below);
        around = (open_call){.visible = one, .below = one->row + 1};
    } else {
        one->thread = UINT32_MAX;
        if (around.visible != NULL)
            around.visible->self_bytes += one->self_bytes;
    }
    around.depth = one->depth;
    around.end_ns = one->end_ns;
    stack[self->top++] = around;
    return status;
}

/* Gives the calls of a thread their rows, and makes its lane. Rows of spans off
 * the stack lie below it. */
static vst_status place_thread(calls *self, size_t first, size_t end)
{
    vst_status status = VST_OK;
    uint32_t levels;

    self->rows = 0;
    self->top = 0;
    for (size_t i = first; status == VST_OK && i < end; i++)
        if (!(self->all[i].flags & VST_SPAN_ASYNC))
            status = put_on_stack(self, &self->all[i]);
    levels = self->rows;
    for (size_t i = first; status == VST_OK && i < end; i++)
        if (self->all[i].flags & VST_SPAN_ASYNC)
            status = calls_put(self, &self->all[i], levels);
    return status == VST_OK && self->rows != 0
               ? vst__lanes_add(self->lanes, self->items, self->rows)
               : status;
}

static vst_status calls_make_lanes(calls *self)
{
    vst_status status = VST_OK;
    size_t end;

    if (self->count != 0)
        qsort(self->all, self->count, sizeof *self->all, calls_compare);
    for (size_t i = 0; status == VST_OK && i < self->count; i = end) {
        uint32_t thread = self->all[i].thread;

        for (end = i; end < self->count && self->all[end].thread == thread;)
            end++;
        status = place_thread(self, i, end);
    }
    if (self->count != 0)
        qsort(self->all, self->count, sizeof *self->all, calls_compare);
    return status;
}

static vst_status read_calls(vst__lanes *lanes, vst_trace *trace,
                             const vst__lanes_options *options,
                             vst_error *error)
{
    calls *self = calloc(1, sizeof *self);
    const vst_sink sink = {
        .ctx = self, .no_imports = !options->fold_imports, .span = calls_add};
    vst_status status;

    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    lanes->own = self;
    self->lanes = lanes;
    self->max = vst_trace_definition_max(trace);
    self->folds = options->fold_imports;
    status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    return status == VST_OK ? vst_error_set(error, calls_make_lanes(self), 0, 0)
                            : status;
}

static void free_calls(vst__lanes *lanes)
{
    calls *self = lanes->own;

    free(self->all);
    free(self->ends_ns);
    free(self->items);
    free(self->stack);
    free(self);
}

/* ---- lanes and items ----------------------------------------------------- */

static void calls_lane_of(const vst__lanes *lanes, uint32_t lane,
                          vst__lane *got)
{
    const calls *self = lanes->own;

    got->thread = self->all[lanes->rows[lanes->first_row[lane]].first].thread;
}

static void calls_item_of(const vst__lanes *lanes, uint32_t number,
                          vst__lane_item *item)
{
    const calls *self = lanes->own;
    const call *one = &self->all[number];

    *item = (vst__lane_item){.start_ns = one->start_ns,
                             .end_ns = one->end_ns,
                             .id = one->id,
                             .flags = one->flags,
                             .count = 1};
}

static void calls_facts_of(const vst__lanes *lanes, uint32_t number,
                           uint64_t *values)
{
    const calls *self = lanes->own;
    const call *one = &self->all[number];

    values[0] = one->args;
    values[1] = one->self_bytes;
    values[2] = one->total_bytes;
}

const vst__lanes_kind vst__lanes_calls = {
    .name = "calls",
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = read_calls,
    .free = free_calls,
    .lane = calls_lane_of,
    .item = calls_item_of,
    .facts_of = calls_facts_of,
};
