/* The table of the functions that a budget left out, and when: one row for each
 * function of a stretch, in order of time. One thread at a time. */
#include "replay/budget.h"
#include "tables/table.h"

#define LEFT_COLUMNS(COLUMN)                                                   \
    COLUMN(I64, start_ns, stretch->start_ns)                                   \
    COLUMN(I64, end_ns, stretch->end_ns < end_ns ? stretch->end_ns : end_ns)   \
    COLUMN(I32_OR_NULL, func, id != NULL, *id)                                 \
    /* null: all functions */

static vst_status left_out_begin(vst__filling *filling)
{
    vst_budget *budget = NULL;
    vst_status status = vst__budget_read(filling->pass->trace, &budget, NULL);

    filling->own = budget;
    return status;
}

static void left_out_put_row(vst__batch *batch,
                             const vst_budget_stretch *stretch, int64_t end_ns,
                             const vst_id *id)
{
    VST_PUT_ROW(batch, LEFT_COLUMNS);
}

static void left_out_put(vst__filling *filling)
{
    const vst_budget *budget = filling->own;
    vst_budget_info budgeted = {.changes = 0};
    vst__batch *batch = &filling->batch;
    vst_trace_info info;

    vst_trace_get_info(filling->pass->trace, &info);
    if (budget != NULL)
        vst__budget_get_info(budget, &budgeted);
    for (size_t i = 0; i < budgeted.changes; i++) {
        vst_budget_stretch stretch;

        vst__budget_get_stretch(budget, i, &stretch);
        if (stretch.start_ns >= info.end_ns)
            continue;
        if (stretch.flags & VST_LEFT_OUT_PYTHON)
            left_out_put_row(batch, &stretch, info.end_ns, NULL);
        else
            for (size_t at = 0; at < stretch.count; at++)
                left_out_put_row(batch, &stretch, info.end_ns,
                                 &stretch.ids[at]);
    }
}

static void left_out_end(vst__filling *filling)
{
    vst__budget_free(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_left_out = {
    .name = "left_out",
    VST_COLUMNS(LEFT_COLUMNS),
    .begin = left_out_begin,
    .put = left_out_put,
    .end = left_out_end,
};
