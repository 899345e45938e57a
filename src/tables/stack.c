/* The table of stacks: recorded stacks of allocations, under numbers below 0,
 * and the places in the tree of calls that a replay finds, under numbers above
 * 0. One thread at a time. */
#include "tables/table.h"

enum { ROWS_A_STEP = 4096 };

#define STACK_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, stack, number)                                                 \
    COLUMN(I32_UNLESS_0, parent, parent)                                       \
    COLUMN(I32_OR_NULL, func, language, stack->function)                       \
    COLUMN(SHOWN_OR_NULL, name, language,                                      \
           vst__names_of(filling, stack->function)->shown)                     \
    COLUMN(I32_OR_NULL, line, language && stack->line > 0, stack->line)        \
    COLUMN(I64_OR_NULL, address, native, stack->address)                       \
    COLUMN(I32_OR_NULL, native, both && stack->address < (uint64_t)-number,    \
           -(int32_t)stack->address)                                           \
    COLUMN(I32_OR_NULL, depth, place != NULL, place->depth)                    \
    COLUMN(BOOL, recursive, place != NULL && place->recursive)

/* Puts a frame; its place is NULL if it is recorded: the depth, and whether a
 * function is in it twice, would need a walk. */
static void stack_put(vst__filling *filling, int32_t number, int32_t parent,
                      const vst_stack *stack, const vst__place_item *place)
{
    bool language = stack->kind == VST_STACK_LANGUAGE;
    bool native = stack->kind == VST_STACK_NATIVE;
    bool both = stack->kind == VST_STACK_BOTH && stack->address != 0;

    VST_PUT_ROW(&filling->batch, STACK_COLUMNS);
}

static void stack_put_place(vst__filling *filling, uint32_t number)
{
    const vst__place_item *place = &filling->pass->places.items[number];
    const vst_stack stack = {.kind = VST_STACK_LANGUAGE, .function = place->id};

    stack_put(filling, (int32_t)number, (int32_t)place->parent, &stack, place);
}

static void stack_put_recorded(vst__filling *filling, vst_stack_id id)
{
    const vst_stack *stack = vst_trace_stack(filling->pass->trace, id);

    if (stack != NULL)
        stack_put(filling, -(int32_t)id,
                  stack->parent < id ? -(int32_t)stack->parent : 0, stack,
                  NULL);
}

static vst_status stack_ignore(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static vst_status begin_stack(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling,
                     .no_args = true,
                     .span = stack_ignore,
                     .inside = &filling->pass->inside};

    return vst__replayed_begin(filling, &sink, 0);
}

/* Recorded stacks come first, then the places found so far. filling->at counts
 * the rows. */
static bool step_stack(vst__filling *filling)
{
    size_t recorded = vst_trace_stack_max(filling->pass->trace);
    size_t places = filling->pass->places.count;
    size_t count = recorded + (places != 0 ? places - 1 : 0);

    for (size_t i = 0; i < ROWS_A_STEP && filling->at < count; i++) {
        size_t number = ++filling->at;

        if (number <= recorded)
            stack_put_recorded(filling, (vst_stack_id)number);
        else
            stack_put_place(filling, (uint32_t)(number - recorded));
    }
    return filling->pass->is_replayed && filling->at >= count;
}

const vst__table vst__table_stack = {
    .name = "stack",
    VST_COLUMNS(STACK_COLUMNS),
    .has_names = true,
    .begin = begin_stack,
    .step = step_stack,
};

/* ---- stacks as they are recorded ----------------------------------------- */

#define RECORDED_COLUMNS(COLUMN)                                               \
    COLUMN(I32, stack, id)                                                     \
    COLUMN(I32, kind, stack->kind) /* vst_stack_kind */                        \
    COLUMN(I32, flags, stack->flags)                                           \
    COLUMN(I32, parent, stack->parent)                                         \
    COLUMN(TEXT_OR_NULL, function, d != NULL ? d->name : NULL,                 \
           d != NULL ? d->name_len : 0)                                        \
    COLUMN(TEXT_OR_NULL, file, d != NULL ? d->file : NULL,                     \
           d != NULL ? d->file_len : 0)                                        \
    COLUMN(I32, line, stack->line)                                             \
    COLUMN(I64, address, stack->address)

static void put_recorded(vst__filling *filling)
{
    const vst_trace *trace = filling->pass->trace;

    for (vst_stack_id id = 1; id <= vst_trace_stack_max(trace); id++) {
        const vst_stack *stack = vst_trace_stack(trace, id);
        const vst_definition *d =
            stack != NULL && stack->kind == VST_STACK_LANGUAGE
                ? vst_trace_definition(trace, stack->function)
                : NULL;

        if (stack != NULL)
            VST_PUT_ROW(&filling->batch, RECORDED_COLUMNS);
    }
}

const vst__table vst__table_recorded_stacks = {
    .name = "recorded_stacks",
    VST_COLUMNS(RECORDED_COLUMNS),
    .put = put_recorded,
};
