/* The table of instants: points in time that the program or the interpreter
 * marked. One thread at a time. */
#include "tables/table.h"

#define INSTANT_COLUMNS(COLUMN)                                                \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, instant->thread)                                       \
    COLUMN(I32, func, instant->id)                                             \
    COLUMN(SHOWN, name, vst__names_of(filling, instant->id)->shown)            \
    COLUMN(I64, time_ns, instant->time_ns)                                     \
    COLUMN(MEMBERS_OR_NULL, args, instant->args, instant->args_len)

static vst_status add_instant(void *ctx, const vst_instant *instant)
{
    vst__filling *filling = ctx;

    VST_PUT_ROW(&filling->batch, INSTANT_COLUMNS);
    return filling->batch.status;
}

static vst_status begin_instant(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .instant = add_instant};

    return vst__replayed_begin(filling, &sink, VST_DEF_INSTANT);
}

const vst__table vst__table_instant = {
    .name = "instant",
    VST_COLUMNS(INSTANT_COLUMNS),
    .has_names = true,
    .begin = begin_instant,
};
