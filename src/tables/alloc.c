/* The table of allocations: each with its free, in the order of the frees, then
 * those that were never freed. Live blocks are kept until their end. A mapping
 * that is given back in parts has a row for each part. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "base/map64.h"
#include "memory/history.h"
#include "tables/table.h"

enum { ROWS_A_STEP = 4096, KINDS = VST_MEMORY_FRAMEWORK_FREE + 1 };

enum {
    ALLOC_PROCESS,
    ALLOC_THREAD,
    ALLOC_ALLOC,
    ALLOC_KIND,
    ALLOC_FRAMEWORK,
    ALLOC_ADDRESS,
    ALLOC_SIZE,
    ALLOC_WEIGHT,
    ALLOC_TIME,
    ALLOC_FREED,
    ALLOC_FREED_THREAD,
    ALLOC_STACK,
    ALLOC_FUNC,
    ALLOC_NAME,
    ALLOC_LINE
};

static const vst__column_spec alloc_columns[] = {
    [ALLOC_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [ALLOC_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [ALLOC_ALLOC] = {"alloc", VST_COLUMN_I64, false, 0},
    [ALLOC_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [ALLOC_FRAMEWORK] = {"framework", VST_COLUMN_BOOL, false, 0},
    [ALLOC_ADDRESS] = {"address", VST_COLUMN_I64, false, 0},
    [ALLOC_SIZE] = {"size", VST_COLUMN_I64, false, 0},
    [ALLOC_WEIGHT] = {"weight", VST_COLUMN_F64, false, 0},
    [ALLOC_TIME] = {"time_ns", VST_COLUMN_I64, false, 0},
    [ALLOC_FREED] = {"freed_ns", VST_COLUMN_I64, true, 0},
    [ALLOC_FREED_THREAD] = {"freed_thread", VST_COLUMN_I32, true, 0},
    [ALLOC_STACK] = {"stack", VST_COLUMN_I32, true, 0},
    [ALLOC_FUNC] = {"func", VST_COLUMN_I32, true, 0},
    [ALLOC_NAME] = {"name", VST_COLUMN_NAME, true, VST_NAMES_SHOWN},
    [ALLOC_LINE] = {"line", VST_COLUMN_I32, true, 0},
};

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

static void put_stack(vst__filling *filling, vst_stack_id id)
{
    const vst_stack *stack = language_of(filling->pass->trace, id);
    vst__batch *batch = &filling->batch;
    bool known = stack != NULL;

    vst__batch_i32_or_null(batch, ALLOC_STACK, id != 0, -(int32_t)id);
    vst__batch_i32_or_null(batch, ALLOC_FUNC, known,
                           known ? (int32_t)stack->function : 0);
    vst__batch_i32_or_null(
        batch, ALLOC_NAME, known,
        known ? vst__names_of(filling, stack->function)->shown : 0);
    vst__batch_i32_or_null(batch, ALLOC_LINE, known && stack->line > 0,
                           known ? stack->line : 0);
}

/* Adds a row. freed is NULL if the block was never freed. */
static vst_status alloc_add_row(vst__filling *filling, const block *b,
                                uint64_t size, const vst_memory_event *freed)
{
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, ALLOC_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, ALLOC_THREAD, (int32_t)b->thread);
    vst__batch_i64(batch, ALLOC_ALLOC, (int64_t)b->serial);
    vst__batch_i32(batch, ALLOC_KIND, b->kind < KINDS ? (int32_t)b->kind : 0);
    vst__batch_bool(batch, ALLOC_FRAMEWORK, b->kind == VST_MEMORY_FRAMEWORK);
    vst__batch_i64(batch, ALLOC_ADDRESS,
                   (int64_t)(freed != NULL ? freed->address : b->address));
    vst__batch_i64(batch, ALLOC_SIZE, (int64_t)size);
    vst__batch_f64(batch, ALLOC_WEIGHT, b->weight);
    vst__batch_i64(batch, ALLOC_TIME, b->time_ns);
    vst__batch_i64_or_null(batch, ALLOC_FREED, freed != NULL,
                           freed != NULL ? freed->time_ns : 0);
    vst__batch_i32_or_null(batch, ALLOC_FREED_THREAD, freed != NULL,
                           freed != NULL ? (int32_t)freed->thread : 0);
    put_stack(filling, b->stack);
    vst__batch_add(batch);
    return VST_OK;
}

/* ---- live blocks --------------------------------------------------------- */

static vst_status alloc_keep(blocks *self, const vst_memory_event *event)
{
    uint32_t index = self->free;
    uint64_t *place;
    block *items;

    if (index == 0) {
        items = vst__grow(self->items, &self->capacity, self->count + 1,
                          sizeof *items);
        if (items == NULL || self->count >= UINT32_MAX - 1)
            return VST_E_NOMEM;
        self->items = items;
        items[self->count] = (block){0};
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

static vst_status begin_alloc(vst__filling *filling)
{
    vst_memory_sink sink = {.ctx = filling, .event = take_event};
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

static vst_status step_alloc(vst__filling *filling, bool *done)
{
    blocks *self = filling->own;
    vst_status status = VST_OK;
    size_t rows = 0;

    *done = self->history == NULL;
    if (*done)
        return VST_OK;
    if (!self->read)
        return vst__history_step(self->history, &self->read);
    for (; rows < ROWS_A_STEP && self->row_at < self->count && status == VST_OK;
         self->row_at++)
        if (self->items[self->row_at].serial != 0) {
            const block *b = &self->items[self->row_at];
            status = alloc_add_row(filling, b, b->size, NULL);
            rows++;
        }
    *done = self->row_at == self->count;
    return status;
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
    VST_COLUMNS(alloc_columns),
    .has_names = true,
    .begin = begin_alloc,
    .step = step_alloc,
    .end = end_alloc,
};
