/* The table of values of counters. One thread at a time. */
#include "tables/table.h"

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
