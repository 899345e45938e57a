/* The table of activities: what devices did and the calls of their runtimes, in
 * the order of `activity`, with their numbers. Frameworks' lists of events are
 * made of it, so no column is null: 0 means none. One thread at a time. */
#include <stdlib.h>

#include <vestige/device.h>

#include "tables/table.h"

#define ACTIVITIES_COLUMNS(COLUMN)                                             \
    COLUMN(I64, start_ns, span->start_ns)                                      \
    COLUMN(I64, end_ns, span->end_ns)                                          \
    COLUMN(I64, correlation, span->correlation)                                \
    COLUMN(I64, external, span->external)                                      \
    COLUMN(I64, bytes, span->bytes)                                            \
    COLUMN(I64, op_span, span->op.serial)                                      \
    COLUMN(I64, annotation_span, span->annotation.serial)                      \
    COLUMN(I64, stream, on_thread ? 0 : span->stream)                          \
    COLUMN(I64, context, span->context)                                        \
    COLUMN(PIECE, args, span->args, span->args_len)                            \
    /* vst_activity_kind */                                                    \
    COLUMN(I32, kind, span->kind)                                              \
    COLUMN(I32, func, span->id)                                                \
    COLUMN(I32, device, span->device)                                          \
    COLUMN(I32, thread, on_thread ? (int32_t)span->thread : 0)                 \
    /* 1 + the row of the launching call; 0: none */                           \
    COLUMN(I32, launch, launch)                                                \
    COLUMN(I32, op, span->op.id)                                               \
    COLUMN(I32, annotation, span->annotation.id)

enum { ACTIVITIES_COLUMNS(VST_COLUMN_NUMBER) };

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
    return activities_narrow(batch, COLUMN_func)[row] == (int32_t)launch->id &&
           activities_narrow(batch, COLUMN_kind)[row] ==
               (int32_t)launch->kind &&
           activities_wide(batch, COLUMN_end_ns)[row] == launch->end_ns;
}

/* Returns 1 + the row of the launching call; 0: none. */
static int32_t activities_find_call(const activities *own,
                                    const vst__batch *batch,
                                    const vst_device_launch *launch)
{
    const int32_t *threads = activities_narrow(batch, COLUMN_thread);
    const int64_t *starts = activities_wide(batch, COLUMN_start_ns);
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

static vst_status activities_on_device(void *ctx, const vst_device_span *span)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    activities *own = filling->own;
    bool on_thread = vst_activity_is_on_thread(span->kind);
    int32_t launch = 0;

    if (on_thread && own->end != batch->rows) /* another window begins */
        own->first = batch->rows;
    if (span->launch != NULL)
        launch = activities_find_call(own, batch, span->launch);
    VST_PUT_ROW(batch, ACTIVITIES_COLUMNS);
    if (on_thread)
        own->end = batch->rows;
    return batch->status;
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
    VST_COLUMNS(ACTIVITIES_COLUMNS),
    .begin = activities_begin,
    .end = activities_end,
};
