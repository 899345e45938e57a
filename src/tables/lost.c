/* The table of losses: stretches about which the trace knows nothing. One
 * thread at a time. */
#include "tables/table.h"

enum {
    LOST_PROCESS,
    LOST_THREAD,
    LOST_KIND,
    LOST_START,
    LOST_DURATION,
    LOST_RECORDS
};

static const vst__column_spec lost_columns[] = {
    [LOST_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [LOST_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [LOST_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [LOST_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [LOST_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [LOST_RECORDS] = {"records", VST_COLUMN_I64, false, 0},
};

/* By vst_loss_kind. */
static const char *const losses[] = {"unknown", "records", "gap", "dropped"};

enum { LOSSES = sizeof losses / sizeof losses[0] };

static vst_status add_loss(void *ctx, const vst_loss *loss)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, LOST_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, LOST_THREAD, (int32_t)loss->thread);
    vst__batch_i32(batch, LOST_KIND,
                   (size_t)loss->kind < LOSSES ? (int32_t)loss->kind : 0);
    vst__batch_i64(batch, LOST_START, loss->start_ns);
    vst__batch_i64(batch, LOST_DURATION, loss->end_ns - loss->start_ns);
    vst__batch_i64(batch, LOST_RECORDS, (int64_t)loss->records);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status begin_lost(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .loss = add_loss};
    vst_status status = vst__names_add(filling, losses, LOSSES);

    return status == VST_OK ? vst__replayed_begin(filling, &sink, 0) : status;
}

const vst__table vst__table_lost = {
    .name = "lost",
    VST_COLUMNS(lost_columns),
    .begin = begin_lost,
};
