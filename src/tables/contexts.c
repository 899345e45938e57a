/* The table of contexts: the spans summed by the place from which they were
 * called, and by the shapes of their inputs if asked for. Unlike `calls` it
 * ignores marks, and says which span was the first of each row. One thread at a
 * time. */
#include "replay/contexts.h"

#include "tables/framework.h"
#include "tables/pass.h"

enum {
    CONTEXT_PARENT,
    CONTEXT_FUNC,
    CONTEXT_SHAPES,
    CONTEXT_SPAN,
    CONTEXT_FIRST,
    CONTEXT_CALLS,
    CONTEXT_SELF,
    CONTEXT_TOTAL,
    CONTEXT_SELF_BYTES,
    CONTEXT_TOTAL_BYTES,
    CONTEXT_COMPENSATED
};

static const vst__column_spec columns[] = {
    [CONTEXT_PARENT] = {"parent", VST_COLUMN_I32, true,
                        0}, /* row of the caller */
    [CONTEXT_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [CONTEXT_SHAPES] = {"shapes", VST_COLUMN_NAME, true, VST_NAMES_OWN},
    [CONTEXT_SPAN] = {"span", VST_COLUMN_I64, false, 0},
    [CONTEXT_FIRST] = {"first_ns", VST_COLUMN_I64, false, 0},
    [CONTEXT_CALLS] = {"calls", VST_COLUMN_I64, false, 0},
    [CONTEXT_SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [CONTEXT_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [CONTEXT_SELF_BYTES] = {"self_bytes", VST_COLUMN_I64, false, 0},
    [CONTEXT_TOTAL_BYTES] = {"total_bytes", VST_COLUMN_I64, false, 0},
    [CONTEXT_COMPENSATED] = {"compensated_ns", VST_COLUMN_I64, true, 0},
};

static vst_status contexts_on_span(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    const vst__table_options *options = filling->pass->options;
    uint32_t shapes = 0;
    vst_span own = *span;
    vst_status status = VST_OK;

    if (options->shapes)
        status = vst__member_number(filling, span, "Input Dims", &shapes);
    own.self_bytes = (uint64_t)vst__self_bytes(span, options);
    own.total_bytes = (uint64_t)vst__total_bytes(span, options);
    return status == VST_OK ? vst__contexts_add(filling->own, &own, shapes)
                            : status;
}

static vst_status contexts_on_leave(void *ctx, uint32_t depth)
{
    return vst__contexts_leave(((vst__filling *)ctx)->own, depth);
}

static vst_status contexts_begin(vst__filling *filling)
{
    vst_contexts *tree = NULL;
    vst_status status = vst__contexts_create(&tree);

    filling->own = tree;
    filling->sink = (vst_sink){.ctx = filling,
                               .no_args = !filling->pass->options->shapes,
                               .no_imports = true,
                               .span = contexts_on_span,
                               .leave = contexts_on_leave};
    filling->is_read = true;
    return status;
}

static vst_status contexts_put(vst__batch *batch, const vst_context_row *row)
{
    const vst_context *n = &row->node;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32_or_null(batch, CONTEXT_PARENT, row->parent != 0,
                           (int32_t)row->parent - 1);
    vst__batch_i32(batch, CONTEXT_FUNC, (int32_t)n->id);
    vst__batch_i32_or_null(batch, CONTEXT_SHAPES, n->key != 0,
                           (int32_t)n->key - 1);
    vst__batch_i64(batch, CONTEXT_SPAN, (int64_t)n->serial);
    vst__batch_i64(batch, CONTEXT_FIRST, n->first_ns);
    vst__batch_i64(batch, CONTEXT_CALLS, (int64_t)n->count);
    vst__batch_i64(batch, CONTEXT_SELF, n->self_ns);
    vst__batch_i64(batch, CONTEXT_TOTAL, n->total_ns);
    vst__batch_i64(batch, CONTEXT_SELF_BYTES, n->self_bytes);
    vst__batch_i64(batch, CONTEXT_TOTAL_BYTES, n->total_bytes);
    vst__batch_i64_or_null(batch, CONTEXT_COMPENSATED,
                           n->compensated_ns != VST_RUNNING_UNKNOWN,
                           n->compensated_ns);
    vst__batch_add(batch);
    return VST_OK;
}

/* Puts parents before their children. */
static vst_status contexts_step(vst__filling *filling, bool *done)
{
    const vst_context_row *rows = NULL;
    vst_status status = VST_OK;
    size_t count = 0;

    *done = filling->pass->is_replayed;
    if (*done)
        status = vst__contexts_finish(filling->own, &rows, &count);
    for (size_t i = 0; status == VST_OK && i < count; i++)
        status = contexts_put(&filling->batch, &rows[i]);
    return status;
}

static void contexts_end(vst__filling *filling)
{
    vst__contexts_destroy(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_contexts = {
    .name = "contexts",
    VST_COLUMNS(columns),
    .begin = contexts_begin,
    .step = contexts_step,
    .end = contexts_end,
};
