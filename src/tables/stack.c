/* The table of stacks: recorded stacks of allocations, under numbers below 0,
 * and the places in the tree of calls that a replay finds, under numbers above
 * 0. One thread at a time. */
#include "tables/table.h"

enum { ROWS_A_STEP = 4096 };

enum {
    STACK_PROCESS,
    STACK_STACK,
    STACK_PARENT,
    STACK_FUNC,
    STACK_NAME,
    STACK_LINE,
    STACK_ADDRESS,
    STACK_NATIVE,
    STACK_DEPTH,
    STACK_RECURSIVE
};

static const vst__column_spec stack_columns[] = {
    [STACK_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [STACK_STACK] = {"stack", VST_COLUMN_I32, false, 0},
    [STACK_PARENT] = {"parent", VST_COLUMN_I32, true, 0},
    [STACK_FUNC] = {"func", VST_COLUMN_I32, true, 0},
    [STACK_NAME] = {"name", VST_COLUMN_NAME, true, VST_NAMES_SHOWN},
    [STACK_LINE] = {"line", VST_COLUMN_I32, true, 0},
    [STACK_ADDRESS] = {"address", VST_COLUMN_I64, true, 0},
    [STACK_NATIVE] = {"native", VST_COLUMN_I32, true, 0},
    [STACK_DEPTH] = {"depth", VST_COLUMN_I32, true, 0},
    [STACK_RECURSIVE] = {"recursive", VST_COLUMN_BOOL, false, 0},
};

static vst_status stack_add_place(vst__filling *filling, uint32_t number)
{
    const vst__place_item *place = &filling->pass->places.items[number];
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, STACK_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, STACK_STACK, (int32_t)number);
    vst__batch_i32_or_null(batch, STACK_PARENT, place->parent != 0,
                           (int32_t)place->parent);
    vst__batch_i32_or_null(batch, STACK_FUNC, true, (int32_t)place->id);
    vst__batch_i32_or_null(batch, STACK_NAME, true,
                           vst__names_of(filling, place->id)->shown);
    vst__batch_i32_or_null(batch, STACK_LINE, false, 0);
    vst__batch_i64_or_null(batch, STACK_ADDRESS, false, 0);
    vst__batch_i32_or_null(batch, STACK_NATIVE, false, 0);
    vst__batch_i32_or_null(batch, STACK_DEPTH, true, (int32_t)place->depth);
    vst__batch_bool(batch, STACK_RECURSIVE, place->recursive);
    vst__batch_add(batch);
    return VST_OK;
}

/* Adds a frame of a recorded stack. Its depth, and whether a function is in it
 * twice, would need a walk. */
static vst_status add_recorded(vst__filling *filling, vst_stack_id id)
{
    const vst_stack *stack = vst_trace_stack(filling->pass->trace, id);
    vst__batch *batch = &filling->batch;
    vst_status status = stack != NULL ? vst__batch_reserve(batch) : VST_OK;
    bool language, native, both;

    if (status != VST_OK || stack == NULL)
        return status;
    language = stack->kind == VST_STACK_LANGUAGE;
    native = stack->kind == VST_STACK_NATIVE;
    both = stack->kind == VST_STACK_BOTH;
    vst__batch_i32(batch, STACK_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, STACK_STACK, -(int32_t)id);
    vst__batch_i32_or_null(batch, STACK_PARENT,
                           stack->parent != 0 && stack->parent < id,
                           -(int32_t)stack->parent);
    vst__batch_i32_or_null(batch, STACK_FUNC, language,
                           (int32_t)stack->function);
    vst__batch_i32_or_null(batch, STACK_NAME, language,
                           vst__names_of(filling, stack->function)->shown);
    vst__batch_i32_or_null(batch, STACK_LINE, language && stack->line > 0,
                           stack->line);
    vst__batch_i64_or_null(batch, STACK_ADDRESS, native,
                           (int64_t)stack->address);
    vst__batch_i32_or_null(batch, STACK_NATIVE,
                           both && stack->address != 0 && stack->address < id,
                           -(int32_t)stack->address);
    vst__batch_i32_or_null(batch, STACK_DEPTH, false, 0);
    vst__batch_bool(batch, STACK_RECURSIVE, false);
    vst__batch_add(batch);
    return VST_OK;
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
static vst_status step_stack(vst__filling *filling, bool *done)
{
    size_t recorded = vst_trace_stack_max(filling->pass->trace);
    size_t places = filling->pass->places.count;
    size_t count = recorded + (places != 0 ? places - 1 : 0);
    vst_status status = VST_OK;

    for (size_t i = 0;
         i < ROWS_A_STEP && filling->at < count && status == VST_OK; i++) {
        size_t number = ++filling->at;

        status = number <= recorded
                     ? add_recorded(filling, (vst_stack_id)number)
                     : stack_add_place(filling, (uint32_t)(number - recorded));
    }
    *done = filling->pass->is_replayed && filling->at >= count;
    return status;
}

const vst__table vst__table_stack = {
    .name = "stack",
    VST_COLUMNS(stack_columns),
    .has_names = true,
    .begin = begin_stack,
    .step = step_stack,
};
