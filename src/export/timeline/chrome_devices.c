/* What devices did, as torch.profiler writes it: a device is a process, a
 * stream a thread of it, calls of the runtime are on the threads that made
 * them, and an arrow leads from a call to each kernel that it launched.
 * Arguments have the names that clients look for.
 *
 * Replay delivers activities stream by stream. So what an annotation's kernels
 * took on a stream is known when the stream ends. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/chrome.h"

/* torch puts devices behind all processes. */
#define DEVICES_PLACE UINT32_C(5000000)

static void text(const vst__timeline *timeline, const char *what)
{
    vst__output_text(timeline->output, what);
}

static void number(const vst__timeline *timeline, const char *what,
                   uint64_t value)
{
    vst__output_text(timeline->output, what);
    vst__json_put_u64(timeline->output, value);
}

/* Members that the collector gave, if there are any. */
static void put_members(const vst__timeline *timeline, const char *members,
                        size_t count)
{
    if (count == 0)
        return;
    text(timeline, ", ");
    if (vst__json_is_members(members, count)) {
        vst__output_write(timeline->output, members, count);
    } else {
        text(timeline, "\"attributes\": ");
        vst__json_string(timeline->output, members, count);
    }
}

/* ---- devices and streams ------------------------------------------------- */

void vst__chrome_put_properties(vst__timeline *timeline)
{
    const vst_trace *trace = timeline->processes[0].trace;

    for (size_t i = 0; i < vst_trace_device_count(trace); i++) {
        const vst_trace_device *device = vst_trace_device_at(trace, i);

        number(timeline,
               i == 0 ? "\n{\"id\": " : ",\n{\"id\": ", device->ordinal);
        text(timeline, ", \"name\": ");
        vst__json_string(timeline->output, device->name, device->name_len);
        put_members(timeline, device->attributes, device->attributes_len);
        text(timeline, "}");
    }
}

static void put_label(const vst__timeline *timeline,
                      const vst_trace_device *device)
{
    static const char *const gpus[] = {"cuda", "hip", "xpu"};
    const char *label = device->platform;
    char name[48];
    int count;

    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(label, gpus[i]) == 0)
            label = "GPU";
    count = snprintf(name, sizeof name, "%s %u", label, device->ordinal);
    vst__json_string(timeline->output, name, (size_t)count);
}

static void put_stream(vst__timeline *timeline, const vst_trace_stream *stream)
{
    uint32_t pid = vst__timeline_device_pid(timeline->process, stream->device);
    char name[32];
    int count = snprintf(name, sizeof name, "stream %u", stream->number);

    text(timeline, ",\n");
    vst__chrome_put_about(timeline, "thread_name", pid, stream->number, "name");
    if (stream->name_len != 0)
        vst__json_string(timeline->output, stream->name, stream->name_len);
    else
        vst__json_string(timeline->output, name, (size_t)count);
    text(timeline, "}},\n");
    vst__chrome_put_about(timeline, "thread_sort_index", pid, stream->number,
                          "sort_index");
    number(timeline, "", stream->number);
    text(timeline, "}}");
}

void vst__chrome_put_devices(vst__timeline *timeline)
{
    const vst_trace *trace = timeline->trace;

    vst__chrome_of(timeline)->device = 0;
    for (size_t i = 0; i < vst_trace_device_count(trace); i++) {
        const vst_trace_device *device = vst_trace_device_at(trace, i);
        uint32_t pid = timeline->process->device_pids[i];

        text(timeline, ",\n");
        vst__chrome_put_about(timeline, "process_name", pid, 0, "name");
        vst__chrome_put_name(timeline);
        text(timeline, "}},\n");
        vst__chrome_put_about(timeline, "process_labels", pid, 0, "labels");
        put_label(timeline, device);
        text(timeline, "}},\n");
        vst__chrome_put_about(timeline, "process_sort_index", pid, 0,
                              "sort_index");
        number(timeline, "", DEVICES_PLACE + i);
        text(timeline, "}}");
    }
}

/* A stream that was declared has its name from there. */
static void put_new_stream(vst__timeline *timeline, uint32_t device,
                           uint32_t stream)
{
    const vst_trace_stream plain = {
        .device = device, .number = stream, .name = ""};
    const vst_trace_stream *declared =
        vst_trace_stream_find(timeline->trace, device, stream);

    put_stream(timeline, declared != NULL ? declared : &plain);
}

/* ---- events -------------------------------------------------------------- */

static const char *category(uint32_t kind, bool is_xpu)
{
    switch (kind) {
    case VST_ACTIVITY_COPY:
        return "gpu_memcpy";
    case VST_ACTIVITY_SET:
        return "gpu_memset";
    case VST_ACTIVITY_SYNC:
        return "cuda_sync";
    case VST_ACTIVITY_OVERHEAD:
        return "overhead";
    case VST_ACTIVITY_RUNTIME:
        return is_xpu ? "xpu_runtime" : "cuda_runtime";
    case VST_ACTIVITY_DRIVER:
        return is_xpu ? "xpu_driver" : "cuda_driver";
    default:
        return "kernel";
    }
}

static void put_name_of(const vst__timeline *timeline, vst_id id)
{
    const vst_definition *definition =
        vst_trace_definition(timeline->trace, id);

    if (definition != NULL)
        vst__json_string(timeline->output, definition->name,
                         definition->name_len);
    else
        text(timeline, "\"unknown\"");
}

/* Where an activity is shown. */
typedef struct place {
    int64_t pid;
    uint32_t tid;
} place;

static place place_of(const vst__timeline *timeline,
                      const vst_device_span *span)
{
    const vst__timeline_process *process = timeline->process;

    if (span->kind == VST_ACTIVITY_OVERHEAD)
        return (place){-1, 0};
    if (vst_activity_is_on_thread(span->kind))
        return (place){process->pid, vst__timeline_tid(process, span->thread)};
    return (place){vst__timeline_device_pid(process, span->device),
                   span->stream};
}

static void put_place(const vst__timeline *timeline, place where,
                      int64_t time_ns)
{
    text(timeline, ", \"pid\": ");
    vst__json_put_i64(timeline->output, where.pid);
    number(timeline, ", \"tid\": ", where.tid);
    text(timeline, ", \"ts\": ");
    vst__json_put_us(timeline->output, vst__timeline_time(timeline, time_ns));
}

static void begin_event(const vst__timeline *timeline, const char *kind,
                        vst_id id, place where, int64_t start_ns,
                        int64_t end_ns)
{
    text(timeline, ",\n{\"ph\": \"X\", \"cat\": \"");
    text(timeline, kind);
    text(timeline, "\", \"name\": ");
    put_name_of(timeline, id);
    put_place(timeline, where, start_ns);
    text(timeline, ", \"dur\": ");
    vst__json_put_us(timeline->output, end_ns - start_ns);
    text(timeline, ", \"args\": {");
}

/* The number that the operator goes by, else that of the annotation, else what
 * the collector said; 0: none. */
static uint64_t external_id(const vst__timeline *timeline,
                            const vst_device_span *span)
{
    uint64_t serial =
        span->op.serial != 0 ? span->op.serial : span->annotation.serial;

    return serial != 0 ? timeline->serials_before + serial : span->external;
}

/* Ids of several processes, or collectors, are told apart by what no such id
 * reaches: numbers stay exact up to 2 ** 53. */
static uint64_t flow_id(const vst__timeline *timeline,
                        const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t process = (uint64_t)(timeline->process - timeline->processes);
    uint64_t collector =
        device != NULL && device->collector > 1 ? device->collector - 1 : 0;

    return span->correlation + (process << 44) + (collector << 40);
}

static void put_flow(const vst__timeline *timeline, const vst_device_span *span,
                     place where, bool is_head)
{
    text(timeline,
         is_head ? ",\n{\"ph\": \"f\", \"bp\": \"e\"" : ",\n{\"ph\": \"s\"");
    text(timeline, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
    number(timeline, ", \"id\": ", flow_id(timeline, span));
    put_place(timeline, where, span->start_ns);
    text(timeline, "}");
}

/* What was copied a nanosecond is also GB a second. */
static void put_bytes(const vst__timeline *timeline,
                      const vst_device_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;

    if (span->kind != VST_ACTIVITY_COPY && span->kind != VST_ACTIVITY_SET)
        return;
    number(timeline, ", \"bytes\": ", span->bytes);
    text(timeline, ", \"memory bandwidth (GB/s)\": ");
    vst__json_put_double(timeline->output,
                         ns > 0 ? (double)span->bytes / (double)ns : 0);
}

static void put_args(const vst__timeline *timeline, const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t external = external_id(timeline, span);

    if (external != 0) {
        number(timeline, "\"External id\": ", external);
        text(timeline, ", ");
    }
    if (!vst_activity_is_on_thread(span->kind)) {
        number(timeline,
               "\"device\": ", device != NULL ? device->ordinal : span->device);
        number(timeline, ", \"context\": ", span->context);
        number(timeline, ", \"stream\": ", span->stream);
        text(timeline, ", ");
    }
    if (span->kind == VST_ACTIVITY_SYNC) {
        text(timeline, "\"cuda_sync_kind\": ");
        put_name_of(timeline, span->id);
        text(timeline, ", ");
    }
    number(timeline, "\"correlation\": ", span->correlation);
    put_bytes(timeline, span);
    put_members(timeline, span->args, span->args_len);
    text(timeline, "}}");
}

/* ---- annotations --------------------------------------------------------- */

static void put_annotations(vst__timeline *timeline)
{
    vst__chrome *self = vst__chrome_of(timeline);
    place where;

    if (self->annotated_count == 0)
        return;
    where = (place){vst__timeline_device_pid(timeline->process, self->device),
                    self->stream};
    for (size_t i = 0; i < self->annotated_count; i++) {
        const vst__chrome_annotated *one = &self->annotated[i];

        begin_event(timeline, "gpu_user_annotation", one->id, where,
                    one->start_ns, one->end_ns);
        number(timeline,
               "\"External id\": ", timeline->serials_before + one->serial);
        text(timeline, "}}");
    }
    self->annotated_count = 0;
    vst__map64_clear(&self->annotated_of);
}

/* Kernels, copies and sets; from the first to the last of them. */
static vst_status note_annotation(vst__timeline *timeline,
                                  const vst_device_span *span)
{
    vst__chrome *self = vst__chrome_of(timeline);
    vst__chrome_annotated *items;
    uint64_t *index;

    if (span->annotation.serial == 0 || !vst_activity_is_work(span->kind))
        return VST_OK;
    index = vst__map64_put(&self->annotated_of, span->annotation.serial);
    items = vst__grow(self->annotated, &self->annotated_capacity,
                      self->annotated_count + 1, sizeof *items);
    if (index == NULL || items == NULL)
        return VST_E_NOMEM;
    self->annotated = items;
    if (*index == 0) {
        items[self->annotated_count++] = (vst__chrome_annotated){
            span->annotation.serial, span->annotation.id, span->start_ns,
            span->end_ns};
        *index = self->annotated_count;
    } else if (items[*index - 1].end_ns < span->end_ns) {
        items[*index - 1].end_ns = span->end_ns;
    }
    return VST_OK;
}

static void change_stream(vst__timeline *timeline, const vst_device_span *span)
{
    vst__chrome *self = vst__chrome_of(timeline);
    bool on_thread = vst_activity_is_on_thread(span->kind);

    if (!on_thread && self->device == span->device &&
        self->stream == span->stream)
        return;
    put_annotations(timeline);
    self->device = on_thread ? 0 : span->device;
    self->stream = span->stream;
    if (!on_thread)
        put_new_stream(timeline, span->device, span->stream);
}

void vst__chrome_end_devices(vst__timeline *timeline)
{
    vst__chrome *self = vst__chrome_of(timeline);

    put_annotations(timeline);
    free(self->annotated);
    self->annotated = NULL;
    self->annotated_capacity = 0;
    vst__map64_free(&self->annotated_of);
    self->annotated_of = (vst__map64){0};
}

/* ---- the sink ------------------------------------------------------------ */

vst_status vst__chrome_write_device(void *ctx, const vst_device_span *span)
{
    vst__timeline *timeline = ctx;
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    bool is_xpu = device != NULL && strcmp(device->platform, "xpu") == 0;
    place where = place_of(timeline, span);
    vst_status status;

    change_stream(timeline, span);
    begin_event(timeline, category(span->kind, is_xpu), span->id, where,
                span->start_ns, span->end_ns);
    put_args(timeline, span);
    if (span->launched != 0)
        put_flow(timeline, span, where, false);
    if (span->launch != NULL && vst_activity_is_work(span->kind))
        put_flow(timeline, span, where, true);
    status = note_annotation(timeline, span);
    return status != VST_OK ? status : timeline->output->status;
}
