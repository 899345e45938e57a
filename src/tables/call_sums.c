/* The table of calls: the tree, in which a row is a function called from one
 * place; rows for waits of tasks may lie below it. Also the table of the
 * functions in which garbage collections began, which the tree knows. One
 * thread at a time. */
#include <stdlib.h>

#include "tables/sums.h"

/* The key of a context: what kind of module was imported, or KEY_AWAITS; in the
 * higher bits the id of the module's code, if known, or the kind of the awaited
 * object. */
enum { KEY_BITS = 3, KEY_MASK = (1 << KEY_BITS) - 1, KEY_AWAITS = 7 };

static bool is_wait(const vst_context *node)
{
    return (node->key & KEY_MASK) == KEY_AWAITS;
}

/* ---- adding up ----------------------------------------------------------- */

/* Imports of different modules get different contexts. */
vst_status vst__call_sums_add(vst__sums *sums, vst_span *span, int64_t self_ns)
{
    uint32_t key = span->flags & VST_SPAN_IMPORT
                       ? span->module << KEY_BITS | (uint32_t)span->import
                       : 0;

    if (sums->options->fold_imports && span->flags & VST_SPAN_MACHINERY)
        return vst__contexts_leave(sums->calls.tree, span->depth);
    span->children_ns = span->end_ns - span->start_ns - self_ns;
    return vst__contexts_add(sums->calls.tree, span, key);
}

/* Adds a wait as a row of its own, because the thread did something else
 * meanwhile. */
vst_status vst__call_sums_add_wait(vst__sums *sums, const vst_span *span,
                                   uint32_t depth, const vst__task_wait *wait)
{
    vst_span leaf = {.id = wait->awaiting != 0 && wait->awaiting <= sums->max
                               ? wait->awaiting
                               : span->id,
                     .thread = span->thread,
                     .depth = depth,
                     .start_ns = span->start_ns,
                     .end_ns = span->start_ns + wait->ns,
                     .children_ns = wait->ns};

    return vst__contexts_add(sums->calls.tree, &leaf,
                             (uint32_t)wait->awaits << KEY_BITS | KEY_AWAITS);
}

void vst__call_sums_free(vst__sums *sums)
{
    vst__contexts_destroy(sums->calls.tree);
    vst__awaits_free(&sums->calls.awaits);
    free(sums->calls.folded.levels);
}

/* ---- calls --------------------------------------------------------------- */

#define CALLS_COLUMNS(COLUMN)                                                  \
    /* row of the caller */                                                    \
    COLUMN(I32_OR_NULL, parent, parent != 0, parent - 1)                       \
    COLUMN(I32, func, node->id)                                                \
    COLUMN(I64, calls, node->count)                                            \
    /* calls that an exception left; a generator's once for each exception */  \
    COLUMN(I64, raised, node->raised)                                          \
    COLUMN(I64, self_ns, node->self_ns)                                        \
    COLUMN(I64, total_ns, node->total_ns)                                      \
    COLUMN(I64, self_bytes, node->self_bytes)                                  \
    COLUMN(I64, total_bytes, node->total_bytes)                                \
    COLUMN(I64, allocations, node->self_allocations)                           \
    COLUMN(I64_OR_NULL, running_ns, node->unknown == 0, node->running_ns)      \
    /* vst_import */                                                           \
    COLUMN(I32_OR_NULL, imported, imports, key)                                \
    /* id of the module's code */                                              \
    COLUMN(I32_UNLESS_0, module, imports ? above : 0)                          \
    COLUMN(I32_OR_NULL, awaits, waits, above) /* vst_task_awaits */            \
    /* the thread of the tree, if trees are by thread; null: several threads   \
     */                                                                        \
    COLUMN(I32_UNLESS_0, thread, row->thread)

/* A function whose calls raise this often is shown even if its calls are short.
 */
enum { RAISED_OFTEN = 2 };

/* Marks the rows to show: those whose calls took long enough or often raised or
 * have VST_MARK_CHOSEN, and those around them. Also marks the rows around a
 * long wait, because their time does not include the wait. */
static void keep_long(const vst__sums *sums, int64_t min_ns, bool *kept)
{
    const vst__call_sums *own = &sums->calls;
    const vst_context_row *rows = own->rows;

    for (size_t i = own->count; i-- != 0;) {
        bool shown = rows[i].node.raised >= RAISED_OFTEN ||
                     (rows[i].node.id <= sums->max &&
                      vst__sums_mark(sums, rows[i].node.id) & VST_MARK_CHOSEN);

        kept[i] |= shown || rows[i].node.total_ns >= min_ns;
        if (kept[i] && rows[i].parent != 0 && (shown || is_wait(&rows[i].node)))
            for (uint32_t at = rows[i].parent; at != 0 && !kept[at - 1];
                 at = rows[at - 1].parent)
                kept[at - 1] = true;
    }
}

static void call_sums_put_call(vst__batch *batch, const vst_context_row *row,
                               uint32_t parent)
{
    const vst_context *node = &row->node;
    bool waits = is_wait(node), imports = !waits && node->key != 0;
    uint32_t key = node->key & KEY_MASK, above = node->key >> KEY_BITS;

    VST_PUT_ROW(batch, CALLS_COLUMNS);
}

/* Puts the rows of calls, parents first. A call that is too short is left out
 * with everything inside, so every parent has a row. */
static void put_calls(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;
    const vst__call_sums *own = &sums->calls;
    vst__batch *batch = &filling->batch;
    uint32_t *places = calloc(own->count + 1, sizeof *places); /* 1 + row */
    bool *kept = calloc(own->count + 1, sizeof *kept);

    if (places != NULL && kept != NULL)
        keep_long(sums, sums->options->min_ns, kept);
    else
        batch->status = VST_E_NOMEM;
    for (size_t i = 0; i < own->count && batch->status == VST_OK; i++) {
        uint32_t parent = own->rows[i].parent;

        if (!kept[i] || (parent != 0 && places[parent] == 0))
            continue;
        call_sums_put_call(batch, &own->rows[i], places[parent]);
        places[i + 1] = (uint32_t)batch->rows;
    }
    free(places);
    free(kept);
}

const vst__table vst__table_calls = {
    .name = "calls",
    VST_COLUMNS(CALLS_COLUMNS),
    .sums = VST_SUMS_CALLS,
    .put = put_calls,
};

/* ---- functions in which collections began -------------------------------- */

#define CALLERS_COLUMNS(COLUMN)                                                \
    COLUMN(I32_UNLESS_0, func, in)                                             \
    COLUMN(I64, collections, rows[i].node.count)                               \
    COLUMN(I64, total_ns, rows[i].node.total_ns)

/* Returns the function of a row; for an import, the code of the module. */
static vst_id function_of(const vst_context *node)
{
    vst_id module = is_wait(node) ? 0 : node->key >> KEY_BITS;

    return module != 0 ? module : node->id;
}

static void put_callers(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;
    const vst_context_row *rows = sums->calls.rows;

    for (size_t i = 0; i < sums->calls.count; i++) {
        uint32_t parent = rows[i].parent;
        vst_id in = parent != 0 ? function_of(&rows[parent - 1].node) : 0;

        if (vst__sums_mark(sums, rows[i].node.id) & VST_MARK_GC)
            VST_PUT_ROW(&filling->batch, CALLERS_COLUMNS);
    }
}

const vst__table vst__table_collection_callers = {
    .name = "collection_callers",
    VST_COLUMNS(CALLERS_COLUMNS),
    .sums = VST_SUMS_CALLS,
    .put = put_callers,
};
