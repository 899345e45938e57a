/* The table of the functions that a budget left out, and when: one row for each
 * function of a stretch, in order of time. One thread at a time. */
#include "replay/budget.h"
#include "tables/table.h"

enum { LEFT_START, LEFT_END, LEFT_FUNC };

static const vst__column_spec columns[] = {
    [LEFT_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [LEFT_END] = {"end_ns", VST_COLUMN_I64, false, 0},
    [LEFT_FUNC] = {"func", VST_COLUMN_I32, true, 0}, /* null: all functions */
};

static vst_status left_out_begin(vst__filling *filling)
{
    vst_budget *budget = NULL;
    vst_status status = vst__budget_read(filling->pass->trace, &budget, NULL);

    filling->own = budget;
    return status;
}

static vst_status left_out_put(vst__batch *batch,
                               const vst_budget_stretch *stretch,
                               int64_t end_ns, const vst_id *id)
{
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i64(batch, LEFT_START, stretch->start_ns);
    vst__batch_i64(batch, LEFT_END,
                   stretch->end_ns < end_ns ? stretch->end_ns : end_ns);
    vst__batch_i32_or_null(batch, LEFT_FUNC, id != NULL,
                           id != NULL ? (int32_t)*id : 0);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status left_out_step(vst__filling *filling, bool *done)
{
    const vst_budget *budget = filling->own;
    vst_budget_info budgeted = {.changes = 0};
    vst_status status = VST_OK;
    vst_trace_info info;

    *done = true;
    vst_trace_get_info(filling->pass->trace, &info);
    if (budget != NULL)
        vst__budget_get_info(budget, &budgeted);
    for (size_t i = 0; status == VST_OK && i < budgeted.changes; i++) {
        vst_budget_stretch stretch;

        vst__budget_get_stretch(budget, i, &stretch);
        if (stretch.start_ns >= info.end_ns)
            continue;
        if (stretch.flags & VST_LEFT_OUT_PYTHON)
            status = left_out_put(&filling->batch, &stretch, info.end_ns, NULL);
        else
            for (size_t at = 0; status == VST_OK && at < stretch.count; at++)
                status = left_out_put(&filling->batch, &stretch, info.end_ns,
                                      &stretch.ids[at]);
    }
    return status;
}

static void left_out_end(vst__filling *filling)
{
    vst__budget_free(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_left_out = {
    .name = "left_out",
    VST_COLUMNS(columns),
    .begin = left_out_begin,
    .step = left_out_step,
    .end = left_out_end,
};
