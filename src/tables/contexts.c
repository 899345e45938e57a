/* The table of contexts: the spans summed by the place from which they were
 * called, and by the shapes of their inputs if asked for. Unlike `calls` it
 * ignores marks, and says which span was the first of each row. One thread at a
 * time. */
#include "replay/contexts.h"

#include "tables/framework.h"
#include "tables/pass.h"

#define CONTEXTS_COLUMNS(COLUMN)                                               \
    /* row of the caller */                                                    \
    COLUMN(I32_OR_NULL, parent, row->parent != 0, row->parent - 1)             \
    COLUMN(I32, func, n->id)                                                   \
    COLUMN(OWN_OR_NULL, shapes, n->key != 0, n->key - 1)                       \
    COLUMN(I64, span, n->serial)                                               \
    COLUMN(I64, first_ns, n->first_ns)                                         \
    COLUMN(I64, calls, n->count)                                               \
    COLUMN(I64, self_ns, n->self_ns)                                           \
    COLUMN(I64, total_ns, n->total_ns)                                         \
    COLUMN(I64, self_bytes, n->self_bytes)                                     \
    COLUMN(I64, total_bytes, n->total_bytes)                                   \
    COLUMN(I64_OR_NULL, compensated_ns,                                        \
           n->compensated_ns != VST_RUNNING_UNKNOWN, n->compensated_ns)

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

/* Puts parents before their children. */
static void contexts_put(vst__filling *filling)
{
    const vst_context_row *rows = NULL;
    size_t count = 0;

    filling->batch.status = vst__contexts_finish(filling->own, &rows, &count);
    for (size_t i = 0; i < count; i++) {
        const vst_context_row *row = &rows[i];
        const vst_context *n = &row->node;

        VST_PUT_ROW(&filling->batch, CONTEXTS_COLUMNS);
    }
}

static void contexts_end(vst__filling *filling)
{
    vst__contexts_destroy(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_contexts = {
    .name = "contexts",
    VST_COLUMNS(CONTEXTS_COLUMNS),
    .begin = contexts_begin,
    .put = contexts_put,
    .end = contexts_end,
};
