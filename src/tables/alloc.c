/* The table of allocations: each with its free, in the order of the frees, then
 * those that were never freed. Live blocks are kept until their end. A mapping
 * that is given back in parts has a row for each part. Also the table of single
 * allocations and frees. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "base/map64.h"
#include "memory/history.h"
#include "tables/table.h"

enum { ROWS_A_STEP = 4096, KINDS = VST_MEMORY_FRAMEWORK_FREE + 1 };

#define ALLOC_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, b->thread)                                             \
    COLUMN(I64, alloc, b->serial)                                              \
    COLUMN(OWN, kind, b->kind < KINDS ? b->kind : 0)                           \
    COLUMN(BOOL, framework, b->kind == VST_MEMORY_FRAMEWORK)                   \
    COLUMN(I64, address, freed != NULL ? freed->address : b->address)          \
    COLUMN(I64, size, size)                                                    \
    COLUMN(F64, weight, b->weight)                                             \
    COLUMN(I64, time_ns, b->time_ns)                                           \
    COLUMN(I64_OR_NULL, freed_ns, freed != NULL, freed->time_ns)               \
    COLUMN(I32_OR_NULL, freed_thread, freed != NULL, freed->thread)            \
    COLUMN(I32_OR_NULL, stack, b->stack != 0, -(int32_t)b->stack)              \
    COLUMN(I32_OR_NULL, func, stack != NULL, stack->function)                  \
    COLUMN(SHOWN_OR_NULL, name, stack != NULL,                                 \
           vst__names_of(filling, stack->function)->shown)                     \
    COLUMN(I32_OR_NULL, line, stack != NULL && stack->line > 0, stack->line)

/* A live block. */
typedef struct block {
    uint64_t serial; /* 0: unused */
    uint64_t address, size;
    double weight;
    int64_t time_ns;
    vst_stack_id stack;
    uint32_t thread;
    uint32_t kind;
    uint32_t next_free; /* 1 + index of the next unused block */
} block;

typedef struct blocks {
    vst__history *history;
    block *items;
    size_t count, capacity;
    uint32_t free;
    vst__map64 by_serial; /* serial -> index */
    bool read;     /* all is read: the remaining blocks were never freed … */
    size_t row_at; /* … and have rows up to this index */
} blocks;

/* ---- rows ---------------------------------------------------------------- */

/* Returns the innermost frame of the language, or NULL if it is unknown. */
static const vst_stack *language_of(const vst_trace *trace, vst_stack_id id)
{
    const vst_stack *stack = id != 0 ? vst_trace_stack(trace, id) : NULL;

    if (stack != NULL && stack->kind == VST_STACK_BOTH)
        stack = vst_trace_stack(trace, stack->parent);
    return stack != NULL && stack->kind == VST_STACK_LANGUAGE ? stack : NULL;
}

/* Adds a row. freed is NULL if the block was never freed. */
static vst_status alloc_add_row(vst__filling *filling, const block *b,
                                uint64_t size, const vst_memory_event *freed)
{
    const vst_stack *stack = language_of(filling->pass->trace, b->stack);

    VST_PUT_ROW(&filling->batch, ALLOC_COLUMNS);
    return filling->batch.status;
}

/* ---- live blocks --------------------------------------------------------- */

static vst_status alloc_keep(blocks *self, const vst_memory_event *event)
{
    uint32_t index = self->free;
    uint64_t *place;

    if (index == 0) {
        if (!VST_RESERVE(self->items, self->count + 1, self->capacity) ||
            self->count >= UINT32_MAX - 1)
            return VST_E_NOMEM;
        self->items[self->count] = (block){0};
        index = (uint32_t)++self->count;
    }
    place = vst__map64_put(&self->by_serial, event->serial);
    if (place == NULL)
        return VST_E_NOMEM;
    *place = index - 1;
    self->free = self->items[index - 1].next_free;
    self->items[index - 1] = (block){
        .serial = event->serial,
        .address = event->address,
        .size = event->size,
        .weight = event->weight,
        .time_ns = event->time_ns,
        .stack = event->stack,
        .thread = event->thread,
        .kind = (uint32_t)event->kind,
    };
    return VST_OK;
}

static void alloc_forget(blocks *self, uint32_t index)
{
    block *b = &self->items[index];

    vst__map64_remove(&self->by_serial, b->serial);
    *b = (block){.next_free = self->free};
    self->free = index + 1;
}

static vst_status take_event(void *ctx, const vst_memory_event *event)
{
    vst__filling *filling = ctx;
    blocks *self = filling->own;
    const uint64_t *place;
    vst_status status;
    block *b;

    if (!(event->flags & VST_MEMORY_FREES))
        return alloc_keep(self, event);
    place = vst__map64_find(&self->by_serial, event->serial);
    if (event->flags & VST_MEMORY_UNKNOWN || place == NULL)
        return VST_OK;
    b = &self->items[*place];
    status = alloc_add_row(filling, b, event->size, event);
    if (event->size >= b->size)
        alloc_forget(self, (uint32_t)*place);
    else
        b->size -= event->size;
    return status;
}

/* ---- the table ----------------------------------------------------------- */

static vst_status alloc_begin_history(
    vst__filling *filling,
    vst_status (*event)(void *ctx, const vst_memory_event *event))
{
    vst_memory_sink sink = {.ctx = filling, .event = event};
    const char *kinds[KINDS];
    vst_status status;
    blocks *self;

    kinds[0] = "unknown";
    for (unsigned i = 1; i < KINDS; i++)
        kinds[i] = vst_memory_kind_name((vst_memory_kind)i);
    status = vst__names_add(filling, kinds, KINDS);
    self = filling->own = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    if (status != VST_OK || !vst_trace_has_memory(filling->pass->trace))
        return status;
    return vst__history_begin(filling->pass->trace, VST_WINDOW_ALL, &sink,
                              &self->history);
}

static vst_status begin_alloc(vst__filling *filling)
{
    return alloc_begin_history(filling, take_event);
}

static bool step_alloc(vst__filling *filling)
{
    blocks *self = filling->own;
    vst_status status;
    size_t rows = 0;

    if (self->history == NULL)
        return true;
    if (!self->read) {
        status = vst__history_step(self->history, &self->read);
        if (status != VST_OK)
            filling->batch.status = status;
        return false;
    }
    for (; rows < ROWS_A_STEP && self->row_at < self->count; self->row_at++)
        if (self->items[self->row_at].serial != 0) {
            const block *b = &self->items[self->row_at];
            alloc_add_row(filling, b, b->size, NULL);
            rows++;
        }
    return self->row_at == self->count;
}

static void end_alloc(vst__filling *filling)
{
    blocks *self = filling->own;

    filling->own = NULL;
    if (self == NULL)
        return;
    vst__history_end(self->history);
    vst__map64_free(&self->by_serial);
    free(self->items);
    free(self);
}

const vst__table vst__table_alloc = {
    .name = "alloc",
    VST_COLUMNS(ALLOC_COLUMNS),
    .has_names = true,
    .begin = begin_alloc,
    .step = step_alloc,
    .end = end_alloc,
};

/* ---- events -------------------------------------------------------------- */

#define EVENTS_COLUMNS(COLUMN)                                                 \
    COLUMN(OWN, kind, (unsigned)event->kind < KINDS ? event->kind : 0)         \
    COLUMN(I64, address, event->address)                                       \
    COLUMN(I64, size, event->size)                                             \
    COLUMN(I64, time_ns, event->time_ns)                                       \
    COLUMN(I32, thread, event->thread)                                         \
    COLUMN(I32, flags, event->flags) /* VST_MEMORY_ flags */                   \
    COLUMN(I32, stack, event->stack)                                           \
    COLUMN(I64, serial, event->serial)                                         \
    COLUMN(I64, live_bytes, event->live_bytes)                                 \
    COLUMN(F64, weight, event->weight)

static vst_status put_event(void *ctx, const vst_memory_event *event)
{
    vst__filling *filling = ctx;

    VST_PUT_ROW(&filling->batch, EVENTS_COLUMNS);
    return filling->batch.status;
}

static vst_status begin_events(vst__filling *filling)
{
    return alloc_begin_history(filling, put_event);
}

const vst__table vst__table_memory_events = {
    .name = "memory_events",
    VST_COLUMNS(EVENTS_COLUMNS),
    .begin = begin_events,
    .step = step_alloc,
    .end = end_alloc,
};
