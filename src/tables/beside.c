/* The tables of what a replay tells beside spans: counter, instant, lost. One
 * thread at a time. */
#include "tables/table.h"

/* ---- counter ------------------------------------------------------------ */

enum {
    COUNTER_PROCESS,
    COUNTER_THREAD,
    COUNTER_FUNC,
    COUNTER_NAME,
    COUNTER_TIME,
    COUNTER_VALUE
};

static const vst__column_spec counter_columns[] = {
    [COUNTER_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [COUNTER_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [COUNTER_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [COUNTER_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [COUNTER_TIME] = {"time_ns", VST_COLUMN_I64, false, 0},
    [COUNTER_VALUE] = {"value", VST_COLUMN_F64, false, 0},
};

static vst_status add_counter(void *ctx, const vst_counter *counter)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, COUNTER_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, COUNTER_THREAD, (int32_t)counter->thread);
    vst__batch_i32(batch, COUNTER_FUNC, (int32_t)counter->id);
    vst__batch_i32(batch, COUNTER_NAME,
                   vst__names_of(filling, counter->id)->shown);
    vst__batch_i64(batch, COUNTER_TIME, counter->time_ns);
    vst__batch_f64(batch, COUNTER_VALUE, counter->value);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status begin_counter(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .counter = add_counter};

    return vst__replayed_begin(filling, &sink, VST_DEF_COUNTER);
}

const vst__table vst__table_counter = {
    .name = "counter",
    VST_COLUMNS(counter_columns),
    .has_names = true,
    .begin = begin_counter,
};

/* ---- instant ------------------------------------------------------------ */

enum {
    INSTANT_PROCESS,
    INSTANT_THREAD,
    INSTANT_FUNC,
    INSTANT_NAME,
    INSTANT_TIME,
    INSTANT_ARGS
};

static const vst__column_spec instant_columns[] = {
    [INSTANT_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [INSTANT_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [INSTANT_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [INSTANT_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [INSTANT_TIME] = {"time_ns", VST_COLUMN_I64, false, 0},
    [INSTANT_ARGS] = {"args", VST_COLUMN_TEXT, true, 0},
};

static vst_status add_instant(void *ctx, const vst_instant *instant)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, INSTANT_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, INSTANT_THREAD, (int32_t)instant->thread);
    vst__batch_i32(batch, INSTANT_FUNC, (int32_t)instant->id);
    vst__batch_i32(batch, INSTANT_NAME,
                   vst__names_of(filling, instant->id)->shown);
    vst__batch_i64(batch, INSTANT_TIME, instant->time_ns);
    status = vst__batch_members(batch, INSTANT_ARGS, instant->args,
                                instant->args_len);
    vst__batch_add(batch);
    return status;
}

static vst_status begin_instant(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .instant = add_instant};

    return vst__replayed_begin(filling, &sink, VST_DEF_INSTANT);
}

const vst__table vst__table_instant = {
    .name = "instant",
    VST_COLUMNS(instant_columns),
    .has_names = true,
    .begin = begin_instant,
};

/* ---- lost --------------------------------------------------------------- */

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
