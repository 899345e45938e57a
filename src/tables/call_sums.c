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

/* The wait's time is no call's: the thread did something else meanwhile. */
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

enum {
    CALLS_PARENT,
    CALLS_FUNC,
    CALLS_CALLS,
    CALLS_SELF,
    CALLS_TOTAL,
    CALLS_SELF_BYTES,
    CALLS_TOTAL_BYTES,
    CALLS_ALLOCATIONS,
    CALLS_RUNNING,
    CALLS_IMPORTED,
    CALLS_MODULE,
    CALLS_AWAITS
};

static const vst__column_spec calls_columns[] = {
    /* row of the caller */
    [CALLS_PARENT] = {"parent", VST_COLUMN_I32, true, 0},
    [CALLS_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [CALLS_CALLS] = {"calls", VST_COLUMN_I64, false, 0},
    [CALLS_SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [CALLS_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [CALLS_SELF_BYTES] = {"self_bytes", VST_COLUMN_I64, false, 0},
    [CALLS_TOTAL_BYTES] = {"total_bytes", VST_COLUMN_I64, false, 0},
    [CALLS_ALLOCATIONS] = {"allocations", VST_COLUMN_I64, false, 0},
    [CALLS_RUNNING] = {"running_ns", VST_COLUMN_I64, true, 0},
    [CALLS_IMPORTED] = {"imported", VST_COLUMN_I32, true, 0}, /* vst_import */
    /* id of the module's code */
    [CALLS_MODULE] = {"module", VST_COLUMN_I32, true, 0},
    [CALLS_AWAITS] = {"awaits", VST_COLUMN_I32, true, 0}, /* vst_task_awaits */
};

/* Marks the rows whose calls took long enough, and the rows around a long wait,
 * whose time does not include the wait. */
static void keep_long(const vst__call_sums *own, int64_t min_ns, bool *kept)
{
    const vst_context_row *rows = own->rows;

    for (size_t i = own->count; i-- != 0;) {
        kept[i] |= rows[i].node.total_ns >= min_ns;
        if (kept[i] && rows[i].parent != 0 && is_wait(&rows[i].node))
            for (uint32_t at = rows[i].parent; at != 0 && !kept[at - 1];
                 at = rows[at - 1].parent)
                kept[at - 1] = true;
    }
}

static vst_status call_sums_put_call(vst__batch *batch, const vst_context *node,
                                     uint32_t parent)
{
    bool waits = is_wait(node), imports = !waits && node->key != 0;
    int32_t above = (int32_t)(node->key >> KEY_BITS);
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32_or_null(batch, CALLS_PARENT, parent != 0,
                           (int32_t)parent - 1);
    vst__batch_i32(batch, CALLS_FUNC, (int32_t)node->id);
    vst__batch_i64(batch, CALLS_CALLS, (int64_t)node->count);
    vst__batch_i64(batch, CALLS_SELF, node->self_ns);
    vst__batch_i64(batch, CALLS_TOTAL, node->total_ns);
    vst__batch_i64(batch, CALLS_SELF_BYTES, node->self_bytes);
    vst__batch_i64(batch, CALLS_TOTAL_BYTES, node->total_bytes);
    vst__batch_i64(batch, CALLS_ALLOCATIONS, (int64_t)node->self_allocations);
    vst__batch_i64_or_null(batch, CALLS_RUNNING, node->unknown == 0,
                           node->running_ns);
    vst__batch_i32_or_null(batch, CALLS_IMPORTED, imports,
                           (int32_t)(node->key & KEY_MASK));
    vst__batch_i32_or_null(batch, CALLS_MODULE, imports && above != 0, above);
    vst__batch_i32_or_null(batch, CALLS_AWAITS, waits, above);
    vst__batch_add(batch);
    return VST_OK;
}

/* Puts the rows of calls, parents first. A call that is too short is left out
 * with everything inside, so every parent has a row. */
static vst_status put_calls(const vst__sums *sums, vst__batch *batch)
{
    const vst__call_sums *own = &sums->calls;
    uint32_t *places = calloc(own->count + 1, sizeof *places); /* 1 + row */
    bool *kept = calloc(own->count + 1, sizeof *kept);
    vst_status status = places != NULL && kept != NULL ? VST_OK : VST_E_NOMEM;

    if (status == VST_OK)
        keep_long(own, sums->options->min_ns, kept);
    for (size_t i = 0; i < own->count && status == VST_OK; i++) {
        uint32_t parent = own->rows[i].parent;

        if (!kept[i] || (parent != 0 && places[parent] == 0))
            continue;
        status = call_sums_put_call(batch, &own->rows[i].node, places[parent]);
        places[i + 1] = (uint32_t)batch->rows;
    }
    free(places);
    free(kept);
    return status;
}

const vst__table vst__table_calls = {
    .name = "calls",
    VST_COLUMNS(calls_columns),
    .sums = VST_SUMS_CALLS,
    .put = put_calls,
};

/* ---- functions in which collections began -------------------------------- */

enum { CALLERS_FUNC, CALLERS_COLLECTIONS, CALLERS_TOTAL };

static const vst__column_spec callers_columns[] = {
    [CALLERS_FUNC] = {"func", VST_COLUMN_I32, true, 0},
    [CALLERS_COLLECTIONS] = {"collections", VST_COLUMN_I64, false, 0},
    [CALLERS_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
};

/* Returns the function of a row; for an import, the code of the module. */
static vst_id function_of(const vst_context *node)
{
    vst_id module = is_wait(node) ? 0 : node->key >> KEY_BITS;

    return module != 0 ? module : node->id;
}

static vst_status put_callers(const vst__sums *sums, vst__batch *batch)
{
    const vst_context_row *rows = sums->calls.rows;
    vst_status status = VST_OK;

    for (size_t i = 0; i < sums->calls.count && status == VST_OK; i++) {
        uint32_t parent = rows[i].parent;
        vst_id in = parent != 0 ? function_of(&rows[parent - 1].node) : 0;

        if (!(vst__sums_mark(sums, rows[i].node.id) & VST_MARK_GC))
            continue;
        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            continue;
        vst__batch_i32_or_null(batch, CALLERS_FUNC, in != 0, (int32_t)in);
        vst__batch_i64(batch, CALLERS_COLLECTIONS, (int64_t)rows[i].node.count);
        vst__batch_i64(batch, CALLERS_TOTAL, rows[i].node.total_ns);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_collection_callers = {
    .name = "collection_callers",
    VST_COLUMNS(callers_columns),
    .sums = VST_SUMS_CALLS,
    .put = put_callers,
};
