/* The tables of devices and of their activities: first the calls of runtimes by
 * thread and time, then the others by device, stream and time. One thread at a
 * time. */
#include <string.h>

#include <vestige/device.h>

#include "tables/table.h"

/* ---- device -------------------------------------------------------------- */

#define DEVICE_COLUMNS(COLUMN)                                                 \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, device, device->number)                                        \
    COLUMN(TEXT, platform, device->platform, strlen(device->platform))         \
    COLUMN(I64, ordinal, device->ordinal)                                      \
    COLUMN(TEXT, name, device->name, device->name_len)                         \
    COLUMN(BOOL, own_clock, device->has_clock)                                 \
    COLUMN(I64, clock_pairs, device->pairs)                                    \
    COLUMN(I64_OR_NULL, clock_error_ns, device->error_ns >= 0,                 \
           device->error_ns)                                                   \
    COLUMN(MEMBERS_OR_NULL, args, device->attributes, device->attributes_len)

static void put_devices(vst__filling *filling)
{
    const vst_trace *trace = filling->pass->trace;

    for (size_t i = 0; i < vst_trace_device_count(trace); i++) {
        const vst_trace_device *device = vst_trace_device_at(trace, i);

        VST_PUT_ROW(&filling->batch, DEVICE_COLUMNS);
    }
}

const vst__table vst__table_device = {
    .name = "device",
    VST_COLUMNS(DEVICE_COLUMNS),
    .put = put_devices,
};

/* ---- activity ------------------------------------------------------------ */

#define ACTIVITY_COLUMNS(COLUMN)                                               \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, device, span->device)                                          \
    COLUMN(I64_OR_NULL, stream, !vst_activity_is_on_thread(span->kind),        \
           span->stream)                                                       \
    COLUMN(OWN, kind, span->kind)                                              \
    COLUMN(I32, func, span->id)                                                \
    COLUMN(SHOWN, name, vst__names_of(filling, span->id)->shown)               \
    COLUMN(I64, start_ns, span->start_ns)                                      \
    COLUMN(I64, duration_ns, span->end_ns - span->start_ns)                    \
    COLUMN(I64_UNLESS_0, correlation, span->correlation)                       \
    COLUMN(I64_UNLESS_0, bytes, span->bytes)                                   \
    COLUMN(I64_UNLESS_0, context, span->context)                               \
    COLUMN(I32_UNLESS_0, thread,                                               \
           launch != NULL ? launch->thread : span->thread)                     \
    COLUMN(I64_OR_NULL, launch_start_ns, launch != NULL, launch->start_ns)     \
    COLUMN(SHOWN_OR_NULL, launch_name, launch != NULL,                         \
           vst__names_of(filling, launch->id)->shown)                          \
    COLUMN(I64_UNLESS_0, op_span, span->op.serial)                             \
    COLUMN(SHOWN_OR_NULL, op_name, span->op.serial != 0,                       \
           vst__names_of(filling, span->op.id)->shown)                         \
    COLUMN(I64_UNLESS_0, annotation_span, span->annotation.serial)             \
    COLUMN(SHOWN_OR_NULL, annotation_name, span->annotation.serial != 0,       \
           vst__names_of(filling, span->annotation.id)->shown)                 \
    COLUMN(MEMBERS_OR_NULL, args, span->args, span->args_len)

static vst_status add_activity(void *ctx, const vst_device_span *span)
{
    vst__filling *filling = ctx;
    const vst_device_launch *launch = span->launch;

    VST_PUT_ROW(&filling->batch, ACTIVITY_COLUMNS);
    return filling->batch.status;
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
    VST_COLUMNS(ACTIVITY_COLUMNS),
    .has_names = true,
    .begin = begin_activity,
};
