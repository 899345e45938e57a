/* Devices on a timeline: a device is a group of lanes, a stream is a lane of
 * the group, and calls of a runtime lie on the threads that made them. An arrow
 * leads from a call to each kernel that it launched. Categories and arguments
 * have torch.profiler's names.
 *
 * Replay delivers activities stream by stream, so the extent of an annotation
 * on a stream is known when the stream ends. Two kernels of one stream may
 * overlap, and a call may overlap the spans of its thread, because a device's
 * library measures calls with its own clock. One thread at a time. */
#include <stdio.h>
#include <stdlib.h>

#include <vestige/device.h>

#include "base/grow.h"
#include "base/map64.h"
#include "export/timeline/timeline.h"

/* Viewers support no larger pids. */
#define PID_MAX UINT32_C(0x7fffffff)

/* The extent of an annotation on one of a device's streams. */
typedef struct annotated {
    uint64_t serial;
    vst_id id;
    int64_t start_ns, end_ns;
} annotated;

/* The stream that is being drawn. */
struct vst__timeline_stream {
    uint32_t device, number; /* device 0: no stream */
    vst__drawn_lane lane;
    char name[48], of_annotations[64];
    vst__drawn_group unknown; /* stands for a device that was not declared */
    annotated *items;
    size_t count, capacity;
    vst__map64 of; /* serial -> 1 + index */
};

/* ---- groups -------------------------------------------------------------- */

static bool is_pid(const vst__timeline *timeline, uint32_t pid)
{
    for (size_t i = 0; i < timeline->drawing->process_count; i++) {
        const vst__drawn_process *process = &timeline->drawing->processes[i];

        if (process->pid == pid)
            return true;
        for (size_t k = 0; k < process->group_count; k++)
            if (process->groups[k].pid == pid)
                return true;
    }
    return false;
}

/* Writes `GPU 0`. */
static void put_label(vst__drawn_group *group, const char *platform)
{
    static const char *const gpus[] = {"cuda", "hip", "xpu"};

    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(platform, gpus[i]) == 0)
            platform = "GPU";
    snprintf(group->label, sizeof group->label, "%s %u", platform,
             group->ordinal);
}

/* Uses a device's ordinal as its pid, like torch; if that is taken, one of the
 * largest pids. */
vst_status vst__timeline_make_groups(vst__timeline *timeline,
                                     vst__timeline_process *process)
{
    const vst_trace *trace = process->trace;
    vst__drawn_process *drawn = process->drawn;
    size_t count = vst_trace_device_count(trace);
    uint32_t next = PID_MAX;

    if (count == 0)
        return VST_OK;
    drawn->groups = calloc(count, sizeof *drawn->groups);
    if (drawn->groups == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const vst_trace_device *device = vst_trace_device_at(trace, i);
        vst__drawn_group *group = &drawn->groups[i];
        uint32_t pid = device->ordinal;

        while (pid > PID_MAX || is_pid(timeline, pid))
            pid = next--;
        *group = (vst__drawn_group){
            .number = device->number,
            .pid = pid,
            .place = (uint32_t)i,
            .ordinal = device->ordinal,
            .name = device->name,
            .name_len = device->name_len,
            .attributes = device->attributes,
            .attributes_len = device->attributes_len,
        };
        put_label(group, device->platform);
        drawn->group_count++;
    }
    return VST_OK;
}

static vst__drawn_group *find_group(vst__timeline *timeline, uint32_t device)
{
    const vst__drawn_process *process = timeline->process->drawn;
    size_t index = vst__trace_device_index(timeline->trace, device);
    vst__drawn_group *unknown = &timeline->stream->unknown;

    if (index < process->group_count)
        return &process->groups[index];
    if (unknown->number != device || unknown->pid == 0)
        *unknown = (vst__drawn_group){.number = device,
                                      .pid = process->pid,
                                      .ordinal = device,
                                      .label = "unknown device"};
    return unknown;
}

/* ---- arguments ----------------------------------------------------------- */

static vst__category category_of(const vst__timeline *timeline,
                                 const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    bool is_xpu = device != NULL && strcmp(device->platform, "xpu") == 0;

    switch (span->kind) {
    case VST_ACTIVITY_COPY:
        return VST_CATEGORY_MEMCPY;
    case VST_ACTIVITY_SET:
        return VST_CATEGORY_MEMSET;
    case VST_ACTIVITY_SYNC:
        return VST_CATEGORY_SYNC;
    case VST_ACTIVITY_OVERHEAD:
        return VST_CATEGORY_OVERHEAD;
    case VST_ACTIVITY_RUNTIME:
        return is_xpu ? VST_CATEGORY_XPU_RUNTIME : VST_CATEGORY_CUDA_RUNTIME;
    case VST_ACTIVITY_DRIVER:
        return is_xpu ? VST_CATEGORY_XPU_DRIVER : VST_CATEGORY_CUDA_DRIVER;
    default:
        return VST_CATEGORY_KERNEL;
    }
}

/* Returns the number of the operator, else of the annotation, else the id that
 * the collector gave; 0: none. */
static uint64_t external_id(const vst__timeline *timeline,
                            const vst_device_span *span)
{
    uint64_t serial =
        span->op.serial != 0 ? span->op.serial : span->annotation.serial;

    return serial != 0 ? timeline->serials_before + serial : span->external;
}

/* Returns -1, as torch does, for activities without a stream, such as waits for
 * a context. */
static int64_t stream_number(uint32_t stream)
{
    return stream == UINT32_MAX ? -1 : (int64_t)stream;
}

static void add_number(vst__arg_list *args, const vst__key *key, int64_t value)
{
    if (value < 0)
        vst__args_i64(args, key, value);
    else
        vst__args_u64(args, key, (uint64_t)value);
}

/* Adds the bytes and the bandwidth: bytes per nanosecond equal GB per second.
 */
static void add_bytes(const vst_device_span *span, vst__arg_list *args)
{
    static const vst__key bytes = VST_KEY("bytes"),
                          bandwidth = VST_KEY("memory bandwidth (GB/s)");
    int64_t ns = span->end_ns - span->start_ns;

    if (span->kind != VST_ACTIVITY_COPY && span->kind != VST_ACTIVITY_SET)
        return;
    add_number(args, &bytes, (int64_t)span->bytes);
    vst__args_add(args, &bandwidth, VST_ARG_DOUBLE)->number =
        ns > 0 ? (double)span->bytes / (double)ns : 0;
}

/* Adds the arguments that clients look for, then those that the collector gave.
 */
static void add_args(const vst__timeline *timeline, const vst_device_span *span,
                     vst__arg_list *args)
{
    static const vst__key external = VST_KEY("External id"),
                          device = VST_KEY("device"),
                          context = VST_KEY("context"),
                          stream = VST_KEY("stream"),
                          sync = VST_KEY("cuda_sync_kind"),
                          correlation = VST_KEY("correlation");
    const vst_trace_device *found =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t id = external_id(timeline, span);

    args->count = 0;
    if (id != 0)
        add_number(args, &external, (int64_t)id);
    if (!vst_activity_is_on_thread(span->kind)) {
        vst__args_u64(args, &device,
                      found != NULL ? found->ordinal : span->device);
        vst__args_u64(args, &context, span->context);
        add_number(args, &stream, stream_number(span->stream));
    }
    if (span->kind == VST_ACTIVITY_SYNC) {
        const vst_definition *d =
            vst_trace_definition(timeline->trace, span->id);

        if (d != NULL)
            vst__args_text(args, &sync, d->name, d->name_len);
        else
            vst__args_text(args, &sync, "unknown", strlen("unknown"));
    }
    add_number(args, &correlation, (int64_t)span->correlation);
    add_bytes(span, args);
    args->json = span->args;
    args->json_len = span->args_len;
}

/* Returns the arrows from a call to its activities. Bits above the largest
 * correlation id hold the process and the collector; viewers keep ids up to
 * 2 ** 53 exact. */
static vst__drawn_flow flow_of(const vst__timeline *timeline,
                               const vst_device_span *span)
{
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, span->device);
    uint64_t process = timeline->process->drawn->index;
    uint64_t collector =
        device != NULL && device->collector > 1 ? device->collector - 1 : 0;
    vst__drawn_flow flow = {
        .category = VST_CATEGORY_LAUNCH,
        .id = span->correlation + (process << 44) + (collector << 40),
        .starts = span->launched,
        .ends = span->launch != NULL && vst_activity_is_work(span->kind),
    };

    if (flow.ends) {
        flow.index = span->launch->number;
        flow.from_ns = span->launch->start_ns;
    }
    return flow;
}

/* ---- annotations --------------------------------------------------------- */

static vst_status draw_loose(vst__timeline *timeline, vst_id id,
                             vst__drawn_span *span)
{
    vst__timeline_name *name = vst__timeline_find_name(timeline, id);

    if (name == NULL)
        return VST_E_NOMEM;
    span->label = &name->label;
    span->fit = VST_FIT_LOOSE;
    timeline->drawing->ops->span(timeline->drawing, span);
    return vst__timeline_status(timeline);
}

static vst_status draw_annotations(vst__timeline *timeline)
{
    static const vst__key external = VST_KEY("External id");
    struct vst__timeline_stream *self = timeline->stream;
    vst__drawn_lane lane = self->lane;
    vst_status status = VST_OK;

    lane.name = self->of_annotations;
    lane.name_len = (size_t)snprintf(
        self->of_annotations, sizeof self->of_annotations,
        "annotations of stream %lld", (long long)stream_number(self->number));
    for (size_t i = 0; status == VST_OK && i < self->count; i++) {
        const annotated *one = &self->items[i];
        vst__arg_list args;

        args.count = args.json_len = 0;
        vst__args_u64(&args, &external, timeline->serials_before + one->serial);
        status = draw_loose(
            timeline, one->id,
            &(vst__drawn_span){.category = VST_CATEGORY_DEVICE_ANNOTATION,
                               .lane = &lane,
                               .start_ns = one->start_ns,
                               .end_ns = one->end_ns,
                               .args = &args});
    }
    self->count = 0;
    vst__map64_clear(&self->of);
    return status;
}

/* Extends the annotation around a kernel, copy or set: it reaches from the
 * first to the last of these. */
static vst_status note_annotation(struct vst__timeline_stream *self,
                                  const vst_device_span *span)
{
    uint64_t *index;

    if (span->annotation.serial == 0 || !vst_activity_is_work(span->kind))
        return VST_OK;
    if (!VST_RESERVE(self->items, self->count + 1, self->capacity))
        return VST_E_NOMEM;
    index = vst__map64_put(&self->of, span->annotation.serial);
    if (index == NULL)
        return VST_E_NOMEM;
    if (*index == 0) {
        self->items[self->count++] =
            (annotated){span->annotation.serial, span->annotation.id,
                        span->start_ns, span->end_ns};
        *index = self->count;
    } else if (self->items[*index - 1].end_ns < span->end_ns) {
        self->items[*index - 1].end_ns = span->end_ns;
    }
    return VST_OK;
}

/* ---- activities ---------------------------------------------------------- */

/* Begins a stream, shown by its declared name or its number. */
static void begin_stream(vst__timeline *timeline)
{
    struct vst__timeline_stream *self = timeline->stream;
    const vst_trace_stream *declared =
        vst_trace_stream_find(timeline->trace, self->device, self->number);
    vst__drawn_group *group = find_group(timeline, self->device);
    int count = snprintf(self->name, sizeof self->name, "stream %lld",
                         (long long)stream_number(self->number));

    self->lane = (vst__drawn_lane){
        .pid = group->pid,
        .tid = stream_number(self->number),
        .group = group,
        .name = self->name,
        .name_len = (size_t)count,
        .place = self->number,
    };
    if (declared != NULL && declared->name_len != 0) {
        self->lane.name = declared->name;
        self->lane.name_len = declared->name_len;
    }
    timeline->drawing->ops->lane(timeline->drawing, &self->lane);
}

static vst_status change_stream(vst__timeline *timeline,
                                const vst_device_span *span)
{
    struct vst__timeline_stream *self = timeline->stream;
    bool on_thread = vst_activity_is_on_thread(span->kind);
    vst_status status;

    if (!on_thread && self->device == span->device &&
        self->number == span->stream)
        return VST_OK;
    status = draw_annotations(timeline);
    self->device = on_thread ? 0 : span->device;
    self->number = span->stream;
    if (!on_thread)
        begin_stream(timeline);
    return status;
}

/* Returns the lane for calls of a thread; torch shows overhead in a process of
 * its own. */
static vst__drawn_lane lane_of_calls(const vst__timeline *timeline,
                                     const vst_device_span *span)
{
    static const char name[] = "device calls";
    bool is_overhead = span->kind == VST_ACTIVITY_OVERHEAD;
    uint32_t tid = vst__timeline_tid(timeline->process, span->thread);

    return (vst__drawn_lane){
        .pid = is_overhead ? -1 : (int64_t)timeline->process->drawn->pid,
        .tid = is_overhead ? 0 : tid,
        .under = tid,
        .name = name,
        .name_len = sizeof name - 1,
    };
}

static vst_status draw_activity(void *ctx, const vst_device_span *span)
{
    vst__timeline *timeline = ctx;
    vst__drawn_flow flow;
    vst__drawn_lane lane;
    vst__arg_list args;
    vst_status status;

    if (timeline->stream == NULL)
        timeline->stream = calloc(1, sizeof *timeline->stream);
    if (timeline->stream == NULL)
        return VST_E_NOMEM;
    status = change_stream(timeline, span);
    if (status != VST_OK)
        return status;
    lane = vst_activity_is_on_thread(span->kind) ? lane_of_calls(timeline, span)
                                                 : timeline->stream->lane;
    flow = flow_of(timeline, span);
    add_args(timeline, span, &args);
    status = draw_loose(timeline, span->id,
                        &(vst__drawn_span){
                            .category = category_of(timeline, span),
                            .lane = &lane,
                            .start_ns = span->start_ns,
                            .end_ns = span->end_ns,
                            .args = &args,
                            .flow = &flow,
                        });
    return status == VST_OK ? note_annotation(timeline->stream, span) : status;
}

static void devices_watch(vst__timeline *timeline, vst_sink *sink)
{
    (void)timeline;
    sink->device = draw_activity;
}

static vst_status devices_finish(vst__timeline *timeline)
{
    return timeline->stream != NULL ? draw_annotations(timeline) : VST_OK;
}

static void devices_forget(vst__timeline *timeline)
{
    if (timeline->stream == NULL)
        return;
    free(timeline->stream->items);
    vst__map64_free(&timeline->stream->of);
    free(timeline->stream);
    timeline->stream = NULL;
}

const vst__timeline_part vst__timeline_devices = {devices_watch, devices_finish,
                                                  devices_forget};
