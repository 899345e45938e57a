/* The tables of events: every span in order of time, with the row numbers of
 * its parent and children. Frameworks' lists of events are made of them. So
 * calls may be left out, with their own time added to the events around them,
 * and a framework's blocks outside of all spans have rows. In the table
 * `tree_events` every block has a row. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "replay/own_times.h"
#include "tables/framework.h"

#define EVENT_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, start_ns, span->start_ns)                                      \
    COLUMN(I64, end_ns, span->end_ns)                                          \
    COLUMN(I64, self_ns, self_ns)                                              \
    COLUMN(I64, self_bytes, vst__self_bytes(span, e->options))                 \
    COLUMN(I64, total_bytes, vst__total_bytes(span, e->options))               \
    COLUMN(I64_OR_NULL, compensated_ns, span->compensated_ns >= 0,             \
           span->compensated_ns)                                               \
    COLUMN(PIECE, args, span->args, span->args_len)                            \
    COLUMN(I32, span, span->serial)                                            \
    COLUMN(I32, func, span->id)                                                \
    /* rows of the parent, the first child and the next sibling; -1: none */   \
    COLUMN(I32, parent, -1)                                                    \
    COLUMN(I32, first, -1)                                                     \
    COLUMN(I32, next, -1)                                                      \
    COLUMN(I32, thread, span->thread)                                          \
    /* for an operator, its scope lies above the flags of its span */          \
    COLUMN(I32, flags,                                                         \
           span->flags | (span->op != NULL ? span->op->scope << 24 : 0))

#define TREE_COLUMNS(COLUMN)                                                   \
    EVENT_COLUMNS(COLUMN)                                                      \
    COLUMN(I64, address, address) /* of a block */

enum { EVENT_COLUMNS(VST_COLUMN_NUMBER) };

/* Rows whose parent is still open, linked by `next`. In the chain of all rows,
 * each waiting row is followed by the rows below it; `tail` ends the chain of
 * the last one. */
typedef struct waiting {
    int32_t first, last, tail;
} waiting;

static const waiting nobody = {-1, -1, -1};

/* Rows arrive in the order of their ends. So that hardly any sorting is left,
 * `first` chains them in the order of their starts (each row, then the rows
 * below it) until it gets its own values. */
typedef struct events {
    const vst__table_options *options;
    bool is_tree;
    vst__batch *batch;
    waiting *waiting; /* by depth, up to `top` */
    size_t top, depths;
    int32_t head, tail;     /* the chain of all rows that do not wait */
    uint32_t thread;        /* the thread of the waiting rows */
    unsigned char *is_call; /* by definition id */
    vst_id max;
    vst__own_times pending;
} events;

static int32_t *events_links(const events *e, unsigned column)
{
    return e->batch->columns[column].values;
}

/* ---- children that wait for their parents -------------------------------- */

static bool reserve_depth(events *e, size_t depth)
{
    size_t depths = e->depths ? e->depths : 64;
    waiting *grown;

    if (depth < e->depths)
        return true;
    while (depths <= depth)
        depths *= 2;
    grown = realloc(e->waiting, depths * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + e->depths, 0xff, (depths - e->depths) * sizeof *grown);
    e->waiting = grown;
    e->depths = depths;
    return true;
}

/* Makes the rows that wait deeper than `depth` children of this row, whose
 * chain they follow. Returns the new tail of this chain. */
static int32_t events_adopt(events *e, size_t depth, int32_t parent)
{
    int32_t *parents = events_links(e, COLUMN_parent),
            *nexts = events_links(e, COLUMN_next),
            *chain = events_links(e, COLUMN_first), tail = parent;

    while (e->top > depth + 1) {
        waiting *deeper = &e->waiting[--e->top];

        if (deeper->first < 0)
            continue;
        for (int32_t i = deeper->first; i >= 0; i = nexts[i])
            parents[i] = parent;
        chain[tail] = deeper->first;
        tail = deeper->tail;
        *deeper = nobody;
    }
    return tail;
}

static void events_append(events *e, size_t depth, waiting more)
{
    waiting *list = &e->waiting[depth];

    if (depth >= e->top)
        e->top = depth + 1;
    if (list->first < 0) {
        *list = more;
        return;
    }
    events_links(e, COLUMN_next)[list->last] = more.first;
    events_links(e, COLUMN_first)[list->tail] = more.first;
    list->last = more.last;
    list->tail = more.tail;
}

/* Appends a chain to the chain of rows that do not wait. */
static void events_chain(events *e, int32_t first, int32_t tail)
{
    if (e->head < 0)
        e->head = first;
    else
        events_links(e, COLUMN_first)[e->tail] = first;
    e->tail = tail;
}

/* Ends the waiting of all rows, because no parent will come. */
static void events_release(events *e)
{
    for (size_t depth = 0; depth < e->top; depth++) {
        waiting *list = &e->waiting[depth];

        if (list->first >= 0)
            events_chain(e, list->first, list->tail);
        *list = nobody;
    }
    e->top = 0;
}

static vst_status events_on_leave(void *ctx, uint32_t depth)
{
    events *e = ((vst__filling *)ctx)->own;

    vst__own_times_leave(&e->pending, depth);
    while (e->top > (size_t)depth + 1) {
        waiting list = e->waiting[--e->top];

        e->waiting[e->top] = nobody;
        if (list.first >= 0)
            events_append(e, depth, list);
    }
    return VST_OK;
}

/* Makes room for waiting rows at this depth of the thread's stack. */
static bool events_reach(events *e, uint32_t thread, uint32_t depth)
{
    if (!reserve_depth(e, depth))
        return false;
    if (e->thread != thread) {
        e->thread = thread;
        events_release(e);
    }
    return true;
}

/* ---- rows ---------------------------------------------------------------- */

/* Puts a row that is not linked to any row yet. */
static vst_status events_put(const events *e, const vst_span *span,
                             int64_t self_ns, uint64_t address)
{
    if (e->is_tree)
        VST_PUT_ROW(e->batch, TREE_COLUMNS);
    else
        VST_PUT_ROW(e->batch, EVENT_COLUMNS);
    return e->batch->status;
}

static vst_status events_on_span(void *ctx, const vst_span *span)
{
    events *e = ((vst__filling *)ctx)->own;
    bool shown =
        !e->options->no_calls || span->id > e->max || !e->is_call[span->id];
    bool is_async = (span->flags & VST_SPAN_ASYNC) != 0;
    int32_t at = (int32_t)e->batch->rows, tail;
    vst_status status;
    int64_t self_ns;

    if (span->serial > UINT32_MAX ||
        !vst__own_times_end(&e->pending, span, shown, &self_ns))
        return VST_E_NOMEM;
    status = events_put(e, span, is_async ? 0 : self_ns, 0);
    if (status != VST_OK)
        return status;
    if (is_async) { /* off the stack: no parent */
        events_chain(e, at, at);
        return VST_OK;
    }
    if (!events_reach(e, span->thread, span->depth))
        return VST_E_NOMEM;
    tail = events_adopt(e, span->depth, at);
    events_append(e, span->depth, (waiting){at, at, tail});
    return VST_OK;
}

/* A block is an event without length and function. */
static vst_status on_loose(void *ctx, const vst_loose_bytes *loose)
{
    events *e = ((vst__filling *)ctx)->own;
    int32_t at = (int32_t)e->batch->rows;
    const vst_span block = {.start_ns = loose->time_ns,
                            .end_ns = loose->time_ns,
                            .thread = loose->thread,
                            .self_framework_bytes = loose->bytes,
                            .total_framework_bytes = loose->bytes,
                            .compensated_ns = VST_RUNNING_UNKNOWN};

    if (!e->options->framework || (loose->depth != 0 && !e->is_tree))
        return VST_OK;
    if (events_put(e, &block, 0, loose->address) != VST_OK)
        return VST_E_NOMEM;
    if (loose->depth == 0) {
        events_chain(e, at, at);
        return VST_OK;
    }
    if (!events_reach(e, loose->thread, loose->depth))
        return VST_E_NOMEM;
    events_append(e, loose->depth, (waiting){at, at, at});
    return VST_OK;
}

/* ---- order --------------------------------------------------------------- */

typedef struct keys {
    const int64_t *starts, *ends;
    const int32_t *serials;
} keys;

/* Returns whether row a comes before row b in time; equal rows stay in their
 * order. */
static bool is_before(const keys *k, uint32_t a, uint32_t b)
{
    if (k->starts[a] != k->starts[b])
        return k->starts[a] < k->starts[b];
    if (k->ends[a] != k->ends[b])
        return k->ends[a] > k->ends[b];
    if (k->serials[a] != k->serials[b])
        return (uint32_t)k->serials[a] < (uint32_t)k->serials[b];
    return a < b;
}

/* Merges two sorted runs, which begin at `from` and at `middle`. */
static void events_merge(const keys *k, const uint32_t *rows, size_t from,
                         size_t middle, size_t end, uint32_t *to)
{
    size_t low = from, high = middle;

    if (middle >= end || is_before(k, rows[middle - 1], rows[middle])) {
        memcpy(to + from, rows + from, (end - from) * sizeof *to);
        return;
    }
    for (size_t at = from; at < end; at++)
        to[at] = high == end ||
                         (low < middle && !is_before(k, rows[high], rows[low]))
                     ? rows[low++]
                     : rows[high++];
}

/* Finds where sorted runs of rows begin: one per thread, and few others. */
static size_t events_find_runs(const keys *k, const uint32_t *rows,
                               size_t count, uint32_t *runs)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        if (i == 0 || !is_before(k, rows[i - 1], rows[i]))
            runs[found++] = (uint32_t)i;
    return found;
}

/* Sorts the row numbers by time. Returns the array, of the first two, that has
 * the result. */
static uint32_t *events_sort(const keys *k, uint32_t *rows, uint32_t *spare,
                             uint32_t *runs, size_t count)
{
    size_t left = events_find_runs(k, rows, count, runs);

    for (; left > 1; left = (left + 1) / 2) {
        uint32_t *sorted = spare;

        for (size_t i = 0; i < left; i += 2) {
            size_t middle = i + 1 < left ? runs[i + 1] : count;
            size_t end = i + 2 < left ? runs[i + 2] : count;

            events_merge(k, rows, runs[i], middle, end, sorted);
            runs[i / 2] = runs[i];
        }
        spare = rows;
        rows = sorted;
    }
    return rows;
}

/* Renumbers parents after sorting (moved[i] is the new number of row i), and
 * links children in order of time. */
static void link_rows(const events *e, const uint32_t *moved)
{
    int32_t *parents = events_links(e, COLUMN_parent),
            *firsts = events_links(e, COLUMN_first);
    int32_t *nexts = events_links(e, COLUMN_next);

    for (size_t i = 0; i < e->batch->rows; i++)
        nexts[i] = firsts[i] = -1;
    for (size_t i = e->batch->rows; i-- > 0;) {
        if (parents[i] < 0)
            continue;
        parents[i] = (int32_t)moved[parents[i]];
        nexts[i] = firsts[parents[i]];
        firsts[parents[i]] = (int32_t)i;
    }
}

static vst_status events_sort_rows(events *e)
{
    const keys k = {e->batch->columns[COLUMN_start_ns].values,
                    e->batch->columns[COLUMN_end_ns].values,
                    e->batch->columns[COLUMN_span].values};
    const int32_t *chain = e->batch->columns[COLUMN_first].values;
    size_t count = e->batch->rows;
    uint32_t *room = malloc((3 * count + 1) * sizeof *room), *order, *moved;
    vst_status status;

    if (room == NULL)
        return VST_E_NOMEM;
    events_release(e);
    for (size_t i = 0, at = (size_t)e->head; i < count; i++) {
        room[i] = (uint32_t)at;
        at = (size_t)chain[at];
    }
    order = events_sort(&k, room, room + count, room + 2 * count, count);
    moved = order == room ? room + count : room;
    status = vst__batch_permute(e->batch, order);
    for (size_t i = 0; i < count; i++)
        moved[order[i]] = (uint32_t)i;
    if (status == VST_OK)
        link_rows(e, moved);
    free(room);
    return status;
}

/* ---- the tables ---------------------------------------------------------- */

static bool mark_calls(events *e, const vst_trace *trace)
{
    e->max = vst_trace_definition_max(trace);
    e->is_call = calloc((size_t)e->max + 1, 1);
    for (vst_id id = 1; e->is_call != NULL && id <= e->max; id++) {
        const vst_definition *d = vst_trace_definition(trace, id);

        e->is_call[id] = d != NULL && vst__is_call(d->kind);
    }
    return e->is_call != NULL;
}

static vst_status begin_any(vst__filling *filling, bool is_tree)
{
    events *e = calloc(1, sizeof *e);

    filling->own = e;
    if (e == NULL)
        return VST_E_NOMEM;
    e->options = filling->pass->options;
    e->is_tree = is_tree;
    e->batch = &filling->batch;
    e->head = -1;
    filling->sink = (vst_sink){.ctx = filling,
                               .no_imports = true,
                               .span = events_on_span,
                               .leave = events_on_leave,
                               .loose = on_loose,
                               .every_block = is_tree,
                               .tensors = is_tree,
                               .keywords = true};
    filling->is_read = true;
    return mark_calls(e, filling->pass->trace) ? VST_OK : VST_E_NOMEM;
}

static vst_status events_begin(vst__filling *filling)
{
    return begin_any(filling, false);
}

static vst_status begin_tree(vst__filling *filling)
{
    return begin_any(filling, true);
}

static void events_finish(vst__filling *filling)
{
    filling->batch.status = events_sort_rows(filling->own);
}

static void events_end(vst__filling *filling)
{
    events *e = filling->own;

    filling->own = NULL;
    if (e == NULL)
        return;
    free(e->waiting);
    free(e->is_call);
    free(e->pending.levels);
    free(e);
}

const vst__table vst__table_events = {
    .name = "events",
    VST_COLUMNS(EVENT_COLUMNS),
    .begin = events_begin,
    .put = events_finish,
    .end = events_end,
};

const vst__table vst__table_tree_events = {
    .name = "tree_events",
    VST_COLUMNS(TREE_COLUMNS),
    .begin = begin_tree,
    .put = events_finish,
    .end = events_end,
};
