/* The table of instants: points in time that the program or the interpreter
 * marked. One thread at a time. */
#include "tables/table.h"

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
