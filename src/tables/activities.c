/* The table of activities: what devices did and the calls of their runtimes, in
 * the order of `activity`, with their numbers. Frameworks' lists of events are
 * made of it, so no column is null: 0 means none. One thread at a time. */
#include <stdlib.h>

#include <vestige/device.h>

#include "tables/table.h"

enum {
    ACT_START,
    ACT_END,
    ACT_CORRELATION,
    ACT_EXTERNAL,
    ACT_BYTES,
    ACT_OP_SPAN,
    ACT_ANNOTATION_SPAN,
    ACT_STREAM,
    ACT_CONTEXT,
    ACT_ARGS,
    ACT_KIND,
    ACT_FUNC,
    ACT_DEVICE,
    ACT_THREAD,
    ACT_LAUNCH,
    ACT_OP,
    ACT_ANNOTATION
};

static const vst__column_spec columns[] = {
    [ACT_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [ACT_END] = {"end_ns", VST_COLUMN_I64, false, 0},
    [ACT_CORRELATION] = {"correlation", VST_COLUMN_I64, false, 0},
    [ACT_EXTERNAL] = {"external", VST_COLUMN_I64, false, 0},
    [ACT_BYTES] = {"bytes", VST_COLUMN_I64, false, 0},
    [ACT_OP_SPAN] = {"op_span", VST_COLUMN_I64, false, 0},
    [ACT_ANNOTATION_SPAN] = {"annotation_span", VST_COLUMN_I64, false, 0},
    [ACT_STREAM] = {"stream", VST_COLUMN_I64, false, 0},
    [ACT_CONTEXT] = {"context", VST_COLUMN_I64, false, 0},
    [ACT_ARGS] = {"args", VST_COLUMN_PIECE, false, 0},
    [ACT_KIND] = {"kind", VST_COLUMN_I32, false, 0}, /* vst_activity_kind */
    [ACT_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [ACT_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [ACT_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    /* 1 + the row of the launching call; 0: none */
    [ACT_LAUNCH] = {"launch", VST_COLUMN_I32, false, 0},
    [ACT_OP] = {"op", VST_COLUMN_I32, false, 0},
    [ACT_ANNOTATION] = {"annotation", VST_COLUMN_I32, false, 0},
};

/* `first` to `end` are the calls of the window that is being read: they come
 * before the activities of devices, by thread and time. */
typedef struct activities {
    size_t first, end;
} activities;

static const int32_t *activities_narrow(const vst__batch *batch,
                                        unsigned column)
{
    return batch->columns[column].values;
}

static const int64_t *activities_wide(const vst__batch *batch, unsigned column)
{
    return batch->columns[column].values;
}

static bool is_call(const vst__batch *batch, size_t row,
                    const vst_device_launch *launch)
{
    return activities_narrow(batch, ACT_FUNC)[row] == (int32_t)launch->id &&
           activities_narrow(batch, ACT_KIND)[row] == (int32_t)launch->kind &&
           activities_wide(batch, ACT_END)[row] == launch->end_ns;
}

/* Returns 1 + the row of the launching call; 0: none. */
static int32_t activities_find_call(const activities *own,
                                    const vst__batch *batch,
                                    const vst_device_launch *launch)
{
    const int32_t *threads = activities_narrow(batch, ACT_THREAD);
    const int64_t *starts = activities_wide(batch, ACT_START);
    int32_t thread = (int32_t)launch->thread;
    size_t low = own->first, high = own->end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (threads[middle] < thread ||
            (threads[middle] == thread && starts[middle] < launch->start_ns))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < own->end && threads[low] == thread &&
           starts[low] == launch->start_ns;
         low++)
        if (is_call(batch, low, launch))
            return (int32_t)low + 1;
    return 0;
}

static void activities_put(vst__batch *batch, const vst_device_span *span,
                           int32_t launch)
{
    bool on_thread = vst_activity_is_on_thread(span->kind);

    vst__batch_i64(batch, ACT_START, span->start_ns);
    vst__batch_i64(batch, ACT_END, span->end_ns);
    vst__batch_i64(batch, ACT_CORRELATION, (int64_t)span->correlation);
    vst__batch_i64(batch, ACT_EXTERNAL, (int64_t)span->external);
    vst__batch_i64(batch, ACT_BYTES, (int64_t)span->bytes);
    vst__batch_i64(batch, ACT_OP_SPAN, (int64_t)span->op.serial);
    vst__batch_i64(batch, ACT_ANNOTATION_SPAN,
                   (int64_t)span->annotation.serial);
    vst__batch_i64(batch, ACT_STREAM, on_thread ? 0 : span->stream);
    vst__batch_i64(batch, ACT_CONTEXT, span->context);
    vst__batch_i32(batch, ACT_KIND, (int32_t)span->kind);
    vst__batch_i32(batch, ACT_FUNC, (int32_t)span->id);
    vst__batch_i32(batch, ACT_DEVICE, (int32_t)span->device);
    vst__batch_i32(batch, ACT_THREAD, on_thread ? (int32_t)span->thread : 0);
    vst__batch_i32(batch, ACT_LAUNCH, launch);
    vst__batch_i32(batch, ACT_OP, (int32_t)span->op.id);
    vst__batch_i32(batch, ACT_ANNOTATION, (int32_t)span->annotation.id);
}

static vst_status activities_on_device(void *ctx, const vst_device_span *span)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    activities *own = filling->own;
    bool on_thread = vst_activity_is_on_thread(span->kind);
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    if (on_thread && own->end != batch->rows) /* another window begins */
        own->first = batch->rows;
    activities_put(batch, span,
                   span->launch != NULL
                       ? activities_find_call(own, batch, span->launch)
                       : 0);
    status = vst__batch_piece(batch, ACT_ARGS, span->args, span->args_len);
    vst__batch_add(batch);
    if (on_thread)
        own->end = batch->rows;
    return status;
}

/* Ignores spans. Replay looks for operators and annotations only if the sink
 * takes spans. */
static vst_status activities_on_span(void *ctx, const vst_span *span)
{
    (void)ctx, (void)span;
    return VST_OK;
}

static vst_status activities_begin(vst__filling *filling)
{
    filling->sink = (vst_sink){.ctx = filling,
                               .no_imports = true,
                               .span = activities_on_span,
                               .device = activities_on_device};
    filling->is_read = vst_trace_device_count(filling->pass->trace) != 0;
    filling->own = calloc(1, sizeof(activities));
    return filling->own != NULL ? VST_OK : VST_E_NOMEM;
}

static void activities_end(vst__filling *filling)
{
    free(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_activities = {
    .name = "activities",
    VST_COLUMNS(columns),
    .begin = activities_begin,
    .end = activities_end,
};
