/* What devices did, as torch.profiler writes it: a device is a process, a
 * stream a thread of it, calls of the runtime are on the threads that made
 * them, and an arrow leads from a call to each kernel that it launched. One
 * thread at a time. */
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
    char label[VST_DEVICE_LABEL_MAX];

    vst__json_string(timeline->output, label,
                     vst__timeline_device_label(device, label));
}

void vst__chrome_put_stream(vst__timeline *timeline, const char *name,
                            size_t name_len)
{
    uint32_t stream = timeline->stream.number;
    uint32_t pid =
        vst__timeline_device_pid(timeline->process, timeline->stream.device);

    text(timeline, ",\n");
    vst__chrome_put_about(timeline, "thread_name", pid, stream, "name");
    vst__json_string(timeline->output, name, name_len);
    text(timeline, "}},\n");
    vst__chrome_put_about(timeline, "thread_sort_index", pid, stream,
                          "sort_index");
    number(timeline, "", stream);
    text(timeline, "}}");
}

void vst__chrome_put_devices(vst__timeline *timeline)
{
    const vst_trace *trace = timeline->trace;

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

/* ---- events -------------------------------------------------------------- */

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
    int64_t pid, tid;
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
                   vst__timeline_stream_number(span->stream)};
}

static void put_place(const vst__timeline *timeline, place where,
                      int64_t time_ns)
{
    text(timeline, ", \"pid\": ");
    vst__json_put_i64(timeline->output, where.pid);
    text(timeline, ", \"tid\": ");
    vst__json_put_i64(timeline->output, where.tid);
    text(timeline, ", \"ts\": ");
    vst__json_put_us(timeline->output, vst__timeline_time(timeline, time_ns));
}

static void begin_event(const vst__timeline *timeline,
                        vst__device_category category, vst_id id, place where,
                        int64_t start_ns, int64_t end_ns)
{
    text(timeline, ",\n{\"ph\": \"X\", \"cat\": \"");
    text(timeline, vst__device_category_name(category));
    text(timeline, "\", \"name\": ");
    put_name_of(timeline, id);
    put_place(timeline, where, start_ns);
    text(timeline, ", \"dur\": ");
    vst__json_put_us(timeline->output, end_ns - start_ns);
    text(timeline, ", \"args\": {");
    vst__chrome_of(timeline)->between = "";
}

static void put_flow(const vst__timeline *timeline, const vst_device_span *span,
                     place where, bool is_head)
{
    text(timeline,
         is_head ? ",\n{\"ph\": \"f\", \"bp\": \"e\"" : ",\n{\"ph\": \"s\"");
    text(timeline, ", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
    number(timeline, ", \"id\": ", vst__timeline_activity_flow(timeline, span));
    put_place(timeline, where, span->start_ns);
    text(timeline, "}");
}

/* ---- arguments ----------------------------------------------------------- */

static void put_key(vst__timeline *timeline, const char *key)
{
    vst__chrome *self = vst__chrome_of(timeline);

    text(timeline, self->between);
    text(timeline, "\"");
    text(timeline, key);
    text(timeline, "\": ");
    self->between = ", ";
}

void vst__chrome_arg_number(vst__timeline *timeline, const char *key,
                            int64_t value)
{
    put_key(timeline, key);
    vst__json_put_i64(timeline->output, value);
}

void vst__chrome_arg_fraction(vst__timeline *timeline, const char *key,
                              double value)
{
    put_key(timeline, key);
    vst__json_put_double(timeline->output, value);
}

void vst__chrome_arg_definition(vst__timeline *timeline, const char *key,
                                vst_id id)
{
    put_key(timeline, key);
    put_name_of(timeline, id);
}

/* ---- for the drawing ----------------------------------------------------- */

void vst__chrome_put_annotated(vst__timeline *timeline,
                               const vst__timeline_annotated *annotated)
{
    const place where = {
        vst__timeline_device_pid(timeline->process, timeline->stream.device),
        timeline->stream.number};

    begin_event(timeline, VST_DEVICE_ANNOTATION, annotated->id, where,
                annotated->start_ns, annotated->end_ns);
    vst__chrome_arg_number(
        timeline, "External id",
        (int64_t)(timeline->serials_before + annotated->serial));
    text(timeline, "}}");
}

void vst__chrome_put_activity(vst__timeline *timeline,
                              const vst_device_span *span)
{
    place where = place_of(timeline, span);

    begin_event(timeline, vst__timeline_activity_category(timeline, span),
                span->id, where, span->start_ns, span->end_ns);
    vst__timeline_put_activity_args(timeline, span);
    put_members(timeline, span->args, span->args_len);
    text(timeline, "}}");
    if (span->launched != 0)
        put_flow(timeline, span, where, false);
    if (span->launch != NULL && vst_activity_is_work(span->kind))
        put_flow(timeline, span, where, true);
}
