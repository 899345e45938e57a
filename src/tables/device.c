/* The tables of devices and of their activities: first the calls of runtimes by
 * thread and time, then the others by device, stream and time. One thread at a
 * time. */
#include <string.h>

#include <vestige/device.h>

#include "tables/table.h"

/* ---- device -------------------------------------------------------------- */

enum {
    DEVICE_PROCESS,
    DEVICE_DEVICE,
    DEVICE_PLATFORM,
    DEVICE_ORDINAL,
    DEVICE_NAME,
    DEVICE_OWN_CLOCK,
    DEVICE_PAIRS,
    DEVICE_ERROR,
    DEVICE_ARGS
};

static const vst__column_spec device_columns[] = {
    [DEVICE_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [DEVICE_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [DEVICE_PLATFORM] = {"platform", VST_COLUMN_TEXT, false, 0},
    [DEVICE_ORDINAL] = {"ordinal", VST_COLUMN_I64, false, 0},
    [DEVICE_NAME] = {"name", VST_COLUMN_TEXT, false, 0},
    [DEVICE_OWN_CLOCK] = {"own_clock", VST_COLUMN_BOOL, false, 0},
    [DEVICE_PAIRS] = {"clock_pairs", VST_COLUMN_I64, false, 0},
    [DEVICE_ERROR] = {"clock_error_ns", VST_COLUMN_I64, true, 0},
    [DEVICE_ARGS] = {"args", VST_COLUMN_TEXT, true, 0},
};

static vst_status add_device(vst__filling *filling,
                             const vst_trace_device *device)
{
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, DEVICE_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, DEVICE_DEVICE, (int32_t)device->number);
    vst__batch_i64(batch, DEVICE_ORDINAL, device->ordinal);
    vst__batch_bool(batch, DEVICE_OWN_CLOCK, device->has_clock);
    vst__batch_i64(batch, DEVICE_PAIRS, (int64_t)device->pairs);
    vst__batch_i64_or_null(batch, DEVICE_ERROR, device->error_ns >= 0,
                           device->error_ns);
    status = vst__batch_text(batch, DEVICE_PLATFORM, device->platform,
                             strlen(device->platform));
    if (status == VST_OK)
        status =
            vst__batch_text(batch, DEVICE_NAME, device->name, device->name_len);
    if (status == VST_OK)
        status = vst__batch_members(
            batch, DEVICE_ARGS,
            device->attributes_len != 0 ? device->attributes : NULL,
            device->attributes_len);
    vst__batch_add(batch);
    return status;
}

static vst_status step_device(vst__filling *filling, bool *done)
{
    size_t count = vst_trace_device_count(filling->pass->trace);
    vst_status status = VST_OK;

    while (status == VST_OK && filling->at < count)
        status = add_device(
            filling, vst_trace_device_at(filling->pass->trace, filling->at++));
    *done = true;
    return status;
}

const vst__table vst__table_device = {
    .name = "device",
    VST_COLUMNS(device_columns),
    .step = step_device,
};

/* ---- activity ------------------------------------------------------------ */

enum {
    ACTIVITY_PROCESS,
    ACTIVITY_DEVICE,
    ACTIVITY_STREAM,
    ACTIVITY_KIND,
    ACTIVITY_FUNC,
    ACTIVITY_NAME,
    ACTIVITY_START,
    ACTIVITY_DURATION,
    ACTIVITY_CORRELATION,
    ACTIVITY_BYTES,
    ACTIVITY_CONTEXT,
    ACTIVITY_THREAD,
    ACTIVITY_LAUNCH,
    ACTIVITY_LAUNCH_NAME,
    ACTIVITY_OP,
    ACTIVITY_OP_NAME,
    ACTIVITY_ANNOTATION,
    ACTIVITY_ANNOTATION_NAME,
    ACTIVITY_ARGS
};

static const vst__column_spec activity_columns[] = {
    [ACTIVITY_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [ACTIVITY_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [ACTIVITY_STREAM] = {"stream", VST_COLUMN_I64, true, 0},
    [ACTIVITY_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [ACTIVITY_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [ACTIVITY_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [ACTIVITY_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [ACTIVITY_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [ACTIVITY_CORRELATION] = {"correlation", VST_COLUMN_I64, true, 0},
    [ACTIVITY_BYTES] = {"bytes", VST_COLUMN_I64, true, 0},
    [ACTIVITY_CONTEXT] = {"context", VST_COLUMN_I64, true, 0},
    [ACTIVITY_THREAD] = {"thread", VST_COLUMN_I32, true, 0},
    [ACTIVITY_LAUNCH] = {"launch_start_ns", VST_COLUMN_I64, true, 0},
    [ACTIVITY_LAUNCH_NAME] = {"launch_name", VST_COLUMN_NAME, true,
                              VST_NAMES_SHOWN},
    [ACTIVITY_OP] = {"op_span", VST_COLUMN_I64, true, 0},
    [ACTIVITY_OP_NAME] = {"op_name", VST_COLUMN_NAME, true, VST_NAMES_SHOWN},
    [ACTIVITY_ANNOTATION] = {"annotation_span", VST_COLUMN_I64, true, 0},
    [ACTIVITY_ANNOTATION_NAME] = {"annotation_name", VST_COLUMN_NAME, true,
                                  VST_NAMES_SHOWN},
    [ACTIVITY_ARGS] = {"args", VST_COLUMN_TEXT, true, 0},
};

static void put_optional(vst__batch *batch, unsigned column, uint64_t value)
{
    vst__batch_i64_or_null(batch, column, value != 0, (int64_t)value);
}

static void put_cause(vst__filling *filling, unsigned column,
                      const vst_device_cause *cause)
{
    put_optional(&filling->batch, column, cause->serial);
    vst__batch_i32_or_null(&filling->batch, column + 1, cause->serial != 0,
                           vst__names_of(filling, cause->id)->shown);
}

static void put_launch(vst__filling *filling, const vst_device_span *span)
{
    vst__batch *batch = &filling->batch;
    const vst_device_launch *launch = span->launch;
    uint32_t thread = launch != NULL ? launch->thread : span->thread;

    vst__batch_i32_or_null(batch, ACTIVITY_THREAD, thread != 0,
                           (int32_t)thread);
    vst__batch_i64_or_null(batch, ACTIVITY_LAUNCH, launch != NULL,
                           launch != NULL ? launch->start_ns : 0);
    vst__batch_i32_or_null(
        batch, ACTIVITY_LAUNCH_NAME, launch != NULL,
        launch != NULL ? vst__names_of(filling, launch->id)->shown : 0);
}

static vst_status add_activity(void *ctx, const vst_device_span *span)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, ACTIVITY_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, ACTIVITY_DEVICE, (int32_t)span->device);
    vst__batch_i64_or_null(batch, ACTIVITY_STREAM,
                           !vst_activity_is_on_thread(span->kind),
                           span->stream);
    vst__batch_i32(batch, ACTIVITY_KIND, (int32_t)span->kind);
    vst__batch_i32(batch, ACTIVITY_FUNC, (int32_t)span->id);
    vst__batch_i32(batch, ACTIVITY_NAME,
                   vst__names_of(filling, span->id)->shown);
    vst__batch_i64(batch, ACTIVITY_START, span->start_ns);
    vst__batch_i64(batch, ACTIVITY_DURATION, span->end_ns - span->start_ns);
    put_optional(batch, ACTIVITY_CORRELATION, span->correlation);
    put_optional(batch, ACTIVITY_BYTES, span->bytes);
    put_optional(batch, ACTIVITY_CONTEXT, span->context);
    put_launch(filling, span);
    put_cause(filling, ACTIVITY_OP, &span->op);
    put_cause(filling, ACTIVITY_ANNOTATION, &span->annotation);
    status =
        vst__batch_members(batch, ACTIVITY_ARGS, span->args, span->args_len);
    vst__batch_add(batch);
    return status;
}

/* Ignores spans. Replay looks for operators and annotations only if the sink
 * takes spans. */
static vst_status device_ignore(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static vst_status begin_activity(vst__filling *filling)
{
    const char *names[VST_ACTIVITY_LOST];
    const vst_sink sink = {
        .ctx = filling, .span = device_ignore, .device = add_activity};
    vst_status status;

    for (uint32_t i = 0; i < VST_ACTIVITY_LOST; i++)
        names[i] = vst_activity_kind_name(i);
    status = vst__names_add(filling, names, VST_ACTIVITY_LOST);
    return status == VST_OK
               ? vst__replayed_begin(filling, &sink, VST_DEF_ACTIVITY)
               : status;
}

const vst__table vst__table_activity = {
    .name = "activity",
    VST_COLUMNS(activity_columns),
    .has_names = true,
    .begin = begin_activity,
};
