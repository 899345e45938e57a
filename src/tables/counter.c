/* The table of values of counters. One thread at a time. */
#include "tables/table.h"

#define COUNTER_COLUMNS(COLUMN)                                                \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, counter->thread)                                       \
    COLUMN(I32, func, counter->id)                                             \
    COLUMN(SHOWN, name, vst__names_of(filling, counter->id)->shown)            \
    COLUMN(I64, time_ns, counter->time_ns)                                     \
    COLUMN(F64, value, counter->value)

static vst_status add_counter(void *ctx, const vst_counter *counter)
{
    vst__filling *filling = ctx;

    VST_PUT_ROW(&filling->batch, COUNTER_COLUMNS);
    return filling->batch.status;
}

static vst_status begin_counter(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .counter = add_counter};

    return vst__replayed_begin(filling, &sink, VST_DEF_COUNTER);
}

const vst__table vst__table_counter = {
    .name = "counter",
    VST_COLUMNS(COUNTER_COLUMNS),
    .has_names = true,
    .begin = begin_counter,
};
