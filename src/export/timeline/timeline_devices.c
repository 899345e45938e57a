/* What devices did on a timeline, whatever format draws it: what activities are
 * called and by which arguments clients know them, and what an annotation's
 * kernels took on a stream. Categories and arguments have the names that
 * torch.profiler gives them.
 *
 * Replay delivers activities stream by stream. So what an annotation took on a
 * stream is known when the stream ends. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/timeline.h"

/* ---- names --------------------------------------------------------------- */

const char *vst__device_category_name(vst__device_category category)
{
    static const char *const names[VST_DEVICE_CATEGORIES] = {
        [VST_DEVICE_KERNEL] = "kernel",
        [VST_DEVICE_MEMCPY] = "gpu_memcpy",
        [VST_DEVICE_MEMSET] = "gpu_memset",
        [VST_DEVICE_SYNC] = "cuda_sync",
        [VST_DEVICE_OVERHEAD] = "overhead",
        [VST_DEVICE_CUDA_RUNTIME] = "cuda_runtime",
        [VST_DEVICE_CUDA_DRIVER] = "cuda_driver",
        [VST_DEVICE_XPU_RUNTIME] = "xpu_runtime",
        [VST_DEVICE_XPU_DRIVER] = "xpu_driver",
        [VST_DEVICE_ANNOTATION] = "gpu_user_annotation",
    };

    return names[category];
}

vst__device_category
vst__timeline_activity_category(const vst__timeline *timeline,
                                const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    bool is_xpu = device != NULL && strcmp(device->platform, "xpu") == 0;

    switch (span->kind) {
    case VST_ACTIVITY_COPY:
        return VST_DEVICE_MEMCPY;
    case VST_ACTIVITY_SET:
        return VST_DEVICE_MEMSET;
    case VST_ACTIVITY_SYNC:
        return VST_DEVICE_SYNC;
    case VST_ACTIVITY_OVERHEAD:
        return VST_DEVICE_OVERHEAD;
    case VST_ACTIVITY_RUNTIME:
        return is_xpu ? VST_DEVICE_XPU_RUNTIME : VST_DEVICE_CUDA_RUNTIME;
    case VST_ACTIVITY_DRIVER:
        return is_xpu ? VST_DEVICE_XPU_DRIVER : VST_DEVICE_CUDA_DRIVER;
    default:
        return VST_DEVICE_KERNEL;
    }
}

size_t vst__timeline_device_label(const vst_trace_device *device, char *text)
{
    static const char *const gpus[] = {"cuda", "hip", "xpu"};
    const char *label = device->platform;

    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(label, gpus[i]) == 0)
            label = "GPU";
    return (size_t)snprintf(text, VST_DEVICE_LABEL_MAX, "%s %u", label,
                            device->ordinal);
}

/* ---- arguments ----------------------------------------------------------- */

/* The number that the operator goes by, else that of the annotation, else what
 * the collector said; 0: none. */
static uint64_t external_id(const vst__timeline *timeline,
                            const vst_device_span *span)
{
    uint64_t serial =
        span->op.serial != 0 ? span->op.serial : span->annotation.serial;

    return serial != 0 ? timeline->serials_before + serial : span->external;
}

/* What was copied a nanosecond is also GB a second. */
static void put_bytes(vst__timeline *timeline, const vst_device_span *span)
{
    const vst__drawing *drawing = timeline->drawing;
    int64_t ns = span->end_ns - span->start_ns;

    if (span->kind != VST_ACTIVITY_COPY && span->kind != VST_ACTIVITY_SET)
        return;
    drawing->number(timeline, "bytes", (int64_t)span->bytes);
    drawing->fraction(timeline, "memory bandwidth (GB/s)",
                      ns > 0 ? (double)span->bytes / (double)ns : 0);
}

void vst__timeline_put_activity_args(vst__timeline *timeline,
                                     const vst_device_span *span)
{
    const vst__drawing *drawing = timeline->drawing;
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t external = external_id(timeline, span);

    if (external != 0)
        drawing->number(timeline, "External id", (int64_t)external);
    if (!vst_activity_is_on_thread(span->kind)) {
        drawing->number(timeline, "device",
                        device != NULL ? device->ordinal : span->device);
        drawing->number(timeline, "context", span->context);
        drawing->number(timeline, "stream",
                        vst__timeline_stream_number(span->stream));
    }
    if (span->kind == VST_ACTIVITY_SYNC)
        drawing->definition(timeline, "cuda_sync_kind", span->id);
    drawing->number(timeline, "correlation", (int64_t)span->correlation);
    put_bytes(timeline, span);
}

uint64_t vst__timeline_activity_flow(const vst__timeline *timeline,
                                     const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t process = (uint64_t)(timeline->process - timeline->processes);
    uint64_t collector =
        device != NULL && device->collector > 1 ? device->collector - 1 : 0;

    return span->correlation + (process << 44) + (collector << 40);
}

/* ---- annotations --------------------------------------------------------- */

static void put_annotations(vst__timeline *timeline)
{
    vst__timeline_stream *self = &timeline->stream;

    for (size_t i = 0; i < self->annotated_count; i++)
        timeline->drawing->annotated(timeline, &self->annotated[i]);
    self->annotated_count = 0;
    vst__map64_clear(&self->annotated_of);
}

/* Kernels, copies and sets; from the first to the last of them. */
static vst_status note_annotation(vst__timeline *timeline,
                                  const vst_device_span *span)
{
    vst__timeline_stream *self = &timeline->stream;
    vst__timeline_annotated *items;
    uint64_t *index;

    if (span->annotation.serial == 0 || !vst_activity_is_work(span->kind))
        return VST_OK;
    items = vst__grow(self->annotated, &self->annotated_capacity,
                      self->annotated_count + 1, sizeof *items);
    if (items == NULL)
        return VST_E_NOMEM;
    self->annotated = items;
    index = vst__map64_put(&self->annotated_of, span->annotation.serial);
    if (index == NULL)
        return VST_E_NOMEM;
    if (*index == 0) {
        items[self->annotated_count++] = (vst__timeline_annotated){
            span->annotation.serial, span->annotation.id, span->start_ns,
            span->end_ns};
        *index = self->annotated_count;
    } else if (items[*index - 1].end_ns < span->end_ns) {
        items[*index - 1].end_ns = span->end_ns;
    }
    return VST_OK;
}

/* ---- streams ------------------------------------------------------------- */

void vst__timeline_put_stream(vst__timeline *timeline)
{
    const vst__timeline_stream *self = &timeline->stream;
    const vst_trace_stream *declared =
        vst_trace_stream_find(timeline->trace, self->device, self->number);
    char name[32];
    int count = snprintf(name, sizeof name, "stream %u", self->number);

    if (declared != NULL && declared->name_len != 0)
        timeline->drawing->stream(timeline, declared->name, declared->name_len);
    else
        timeline->drawing->stream(timeline, name, (size_t)count);
}

static void change_stream(vst__timeline *timeline, const vst_device_span *span)
{
    vst__timeline_stream *self = &timeline->stream;
    bool on_thread = vst_activity_is_on_thread(span->kind);

    if (!on_thread && self->device == span->device &&
        self->number == span->stream)
        return;
    put_annotations(timeline);
    self->device = on_thread ? 0 : span->device;
    self->number = span->stream;
    if (!on_thread)
        vst__timeline_put_stream(timeline);
}

static vst_status write_activity(void *ctx, const vst_device_span *span)
{
    vst__timeline *timeline = ctx;
    vst_status status;

    change_stream(timeline, span);
    timeline->drawing->activity(timeline, span);
    status = note_annotation(timeline, span);
    return status != VST_OK ? status : timeline->output->status;
}

void vst__timeline_watch_devices(vst__timeline *timeline, vst_sink *sink)
{
    timeline->stream.device = 0;
    sink->device = write_activity;
}

void vst__timeline_end_devices(vst__timeline *timeline)
{
    vst__timeline_stream *self = &timeline->stream;

    put_annotations(timeline);
    free(self->annotated);
    vst__map64_free(&self->annotated_of);
    *self = (vst__timeline_stream){0};
}
