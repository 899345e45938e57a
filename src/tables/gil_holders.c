/* The table of threads that held the GIL while others waited for it, and of the
 * function that each holder was in for longest meanwhile. The waits must be
 * known before the calls of the holder are read, so reading begins with an
 * extra pass for the waits. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "replay/own_times.h"
#include "tables/pass.h"
#include "tables/table.h"

/* A period in which at least one thread waited for the holder. */
typedef struct stretch {
    uint32_t holder;
    int64_t start_ns, end_ns;
    int64_t before_ns; /* sum of the holder's earlier stretches */
} stretch;

typedef struct holding {
    uint32_t thread;
    vst_id id;
    int64_t ns;
} holding;

typedef struct holders {
    stretch *stretches;
    size_t count, capacity;
    /* For the thread that is being read. */
    uint32_t thread;
    const stretch *first, *end;
    vst__own_times pending;
    int64_t *held; /* by definition id, of that thread */
    vst_id max;
    holding *found; /* one per thread: the function that held longest */
    size_t found_count;
} holders;

static vst_status note_wait(void *ctx, const vst_wait *wait)
{
    holders *self = ((vst__filling *)ctx)->own;

    if (wait->reason != VST_WAIT_GIL || wait->holder == 0)
        return VST_OK;
    if (self->count == self->capacity) {
        size_t capacity = self->capacity != 0 ? self->capacity * 2 : 256;
        stretch *grown = realloc(self->stretches, capacity * sizeof *grown);

        if (grown == NULL)
            return VST_E_NOMEM;
        self->stretches = grown;
        self->capacity = capacity;
    }
    self->stretches[self->count++] =
        (stretch){wait->holder, wait->start_ns, wait->end_ns, 0};
    return VST_OK;
}

static int by_holder(const void *a, const void *b)
{
    const stretch *x = a, *y = b;

    if (x->holder != y->holder)
        return x->holder < y->holder ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Joins overlapping stretches: several threads may wait for one holder. */
static void holders_join(holders *self)
{
    stretch *last = NULL;
    size_t count = 0;

    if (self->count != 0)
        qsort(self->stretches, self->count, sizeof *self->stretches, by_holder);
    for (size_t i = 0; i < self->count; i++) {
        const stretch *each = &self->stretches[i];

        if (last != NULL && last->holder == each->holder &&
            each->start_ns <= last->end_ns) {
            if (each->end_ns > last->end_ns)
                last->end_ns = each->end_ns;
            continue;
        }
        self->stretches[count] = *each;
        self->stretches[count].before_ns =
            last != NULL && last->holder == each->holder
                ? last->before_ns + last->end_ns - last->start_ns
                : 0;
        last = &self->stretches[count++];
    }
    self->count = count;
}

/* Returns how long others waited for the thread up to a time. */
static int64_t waited_by(const holders *self, int64_t ns)
{
    const stretch *low = self->first, *high = self->end;

    while (low < high) {
        const stretch *middle = low + (high - low) / 2;

        if (middle->start_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == self->first)
        return 0;
    low--;
    return low->before_ns + (ns < low->end_ns ? ns : low->end_ns) -
           low->start_ns;
}

static void holders_end_thread(holders *self)
{
    holding most = {.thread = self->thread};

    for (vst_id id = 1; self->first != self->end && id <= self->max; id++) {
        if (self->held[id] > most.ns) {
            most.id = id;
            most.ns = self->held[id];
        }
    }
    if (self->first != self->end)
        memset(self->held, 0, ((size_t)self->max + 1) * sizeof *self->held);
    if (most.id != 0 && self->found_count < self->count)
        self->found[self->found_count++] = most;
    self->first = self->end = NULL;
}

static void begin_thread(holders *self, uint32_t thread)
{
    holders_end_thread(self);
    self->thread = thread;
    for (size_t i = 0; i < self->count; i++)
        if (self->stretches[i].holder == thread) {
            if (self->first == NULL)
                self->first = &self->stretches[i];
            self->end = &self->stretches[i + 1];
        }
}

static vst_status add_call(void *ctx, const vst_span *span)
{
    holders *self = ((vst__filling *)ctx)->own;
    vst_span held = *span;
    int64_t self_ns;

    if (span->thread != self->thread)
        begin_thread(self, span->thread);
    if (self->first == self->end || span->flags & VST_SPAN_ASYNC ||
        span->id > self->max)
        return VST_OK;
    held.start_ns = waited_by(self, span->start_ns);
    held.end_ns = waited_by(self, span->end_ns);
    if (!vst__own_times_end(&self->pending, &held, true, &self_ns))
        return VST_E_NOMEM;
    self->held[span->id] += self_ns;
    return VST_OK;
}

static vst_status holders_leave(void *ctx, uint32_t depth)
{
    vst__own_times_leave(&((holders *)((vst__filling *)ctx)->own)->pending,
                         depth);
    return VST_OK;
}

/* ---- the table ----------------------------------------------------------- */

#define HOLDERS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, thread, held->thread)                                          \
    COLUMN(I32, func, held->id)                                                \
    COLUMN(I64, held_ns, held->ns)

static vst_status holders_read_waits(vst__filling *filling)
{
    const vst_sink waits = {
        .ctx = filling, .no_args = true, .no_imports = true, .wait = note_wait};

    return vst_trace_replay(filling->pass->trace,
                            vst__pass_window(filling->pass), NULL, &waits,
                            NULL);
}

static vst_status holders_begin(vst__filling *filling)
{
    holders *self = calloc(1, sizeof *self);
    vst_status status;

    filling->own = self;
    if (self == NULL)
        return VST_E_NOMEM;
    status = holders_read_waits(filling);
    if (status != VST_OK || self->count == 0)
        return status;
    holders_join(self);
    self->max = vst_trace_definition_max(filling->pass->trace);
    self->held = calloc((size_t)self->max + 1, sizeof *self->held);
    /* A thread is found once in each window in which it has a stretch. */
    self->found = calloc(self->count, sizeof *self->found);
    filling->sink = (vst_sink){.ctx = filling,
                               .no_args = true,
                               .span = add_call,
                               .leave = holders_leave};
    filling->is_read = true;
    return self->held != NULL && self->found != NULL ? VST_OK : VST_E_NOMEM;
}

static void holders_put(vst__filling *filling)
{
    holders *self = filling->own;

    holders_end_thread(self);
    for (size_t i = 0; i < self->found_count; i++) {
        const holding *held = &self->found[i];

        VST_PUT_ROW(&filling->batch, HOLDERS_COLUMNS);
    }
}

static void holders_end(vst__filling *filling)
{
    holders *self = filling->own;

    filling->own = NULL;
    if (self == NULL)
        return;
    free(self->stretches);
    free(self->pending.levels);
    free(self->held);
    free(self->found);
    free(self);
}

const vst__table vst__table_gil_holders = {
    .name = "gil_holders",
    VST_COLUMNS(HOLDERS_COLUMNS),
    .begin = holders_begin,
    .put = holders_put,
    .end = holders_end,
};
