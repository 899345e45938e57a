/* What devices did, in Perfetto's own format: a device is a group of tracks
 * under its process, a stream a track of it, the calls of a runtime are on a
 * track under the thread that made them, and an arrow leads from a call to
 * each kernel that it launched. One thread at a time.
 *
 * A slice must not overlap another one of its track. Two kernels of one stream
 * may, and so may a call with the spans of its thread, because a device's
 * library measures it with a clock of its own. So calls have a track apart, and
 * what overlaps goes to a second track of the same name, which viewers draw as
 * one. */
#include <stdio.h>

#include "export/timeline/perfetto.h"

static vst__perfetto *of(vst__timeline *timeline)
{
    return (vst__perfetto *)timeline;
}

static void note(vst__perfetto *self, vst_status status)
{
    if (self->status == VST_OK)
        self->status = status;
}

/* ---- tracks -------------------------------------------------------------- */

/* The group of a device, when its first stream comes. */
static uint64_t find_group(vst__perfetto *self, uint32_t number)
{
    vst__timeline *timeline = &self->timeline;
    const vst_trace_device *device =
        vst_trace_device_find(timeline->trace, number);
    char label[VST_DEVICE_LABEL_MAX] = "unknown device";
    size_t count = strlen(label);

    if (self->device == number && self->device_uuid != 0)
        return self->device_uuid;
    self->device = number;
    self->device_uuid = self->next_uuid++;
    vst__proto_clear(&self->text);
    if (device != NULL)
        count = vst__timeline_device_label(device, label);
    vst__proto_raw(&self->text, label, count);
    if (device != NULL && device->name_len != 0) {
        vst__proto_raw(&self->text, ": ", 2);
        vst__proto_raw(&self->text, device->name, device->name_len);
    }
    if (self->text.failed)
        note(self, VST_E_NOMEM);
    else
        note(self, vst__pf_put_track(self, self->device_uuid,
                                     self->process_uuid, VST_PF_TRACK_OF_SPANS,
                                     self->text.bytes, self->text.count));
    return self->device_uuid;
}

void vst__pf_draw_stream(vst__timeline *timeline, const char *name,
                         size_t name_len)
{
    vst__perfetto *self = of(timeline);

    vst__pf_begin_lanes(self, find_group(self, timeline->stream.device), name,
                        name_len);
    self->has_annotations = false;
}

/* Calls and overhead come thread by thread. */
static void begin_calls(vst__perfetto *self, uint32_t thread)
{
    static const char name[] = "device calls";
    vst__timeline *timeline = &self->timeline;
    uint64_t uuid = vst__pf_thread_uuid(
        self, timeline->process,
        thread != 0 ? vst__timeline_tid(timeline->process, thread)
                    : timeline->process->windows_tid);

    if (self->lane_parent != uuid || self->lane_name_len != sizeof name - 1)
        vst__pf_begin_lanes(self, uuid, name, sizeof name - 1);
}

/* ---- slices -------------------------------------------------------------- */

/* The event that begins a slice, up to its arguments. */
static uint64_t open_slice(vst__perfetto *self, vst__device_category category,
                           vst_id id, int64_t start_ns, int64_t end_ns)
{
    uint64_t track = 0;

    note(self, vst__pf_find_lane(self, start_ns, end_ns, &track));
    vst__pf_open_event(self, VST_PF_BEGIN,
                       (vst__pf_category)(VST_PF_DEVICE + (int)category));
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
    vst__pf_put_name(self, VST_PERFETTO_BESIDE, id);
    return track;
}

static void close_slice(vst__perfetto *self, uint64_t track, int64_t start_ns,
                        int64_t end_ns)
{
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, start_ns));
    vst__pf_open_event(self, VST_PF_END, VST_PF_DEVICE);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, end_ns));
}

/* A number that all 64 bits make: those of a call's arrows follow it. */
static uint64_t first_flow(const vst__timeline *timeline,
                           const vst_device_span *span)
{
    uint64_t x = vst__timeline_activity_flow(timeline, span);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* An arrow goes from the earlier end to the later one, and has a number of its
 * own. Where the device's clock is off, the kernel may be the earlier one. */
static void put_flows(vst__perfetto *self, const vst_device_span *span)
{
    uint64_t first = first_flow(&self->timeline, span);
    const vst_device_launch *launch = span->launch;

    for (uint32_t i = 0; i < span->launched; i++)
        vst__proto_fixed64(&self->event, VST_PF_EVENT_FLOW_IDS, first + i);
    if (launch != NULL && vst_activity_is_work(span->kind))
        vst__proto_fixed64(&self->event,
                           span->start_ns >= launch->start_ns
                               ? VST_PF_EVENT_LAST_FLOW_IDS
                               : VST_PF_EVENT_FLOW_IDS,
                           first + launch->number);
}

void vst__pf_draw_activity(vst__timeline *timeline, const vst_device_span *span)
{
    vst__perfetto *self = of(timeline);
    uint64_t track;

    if (vst_activity_is_on_thread(span->kind))
        begin_calls(self, span->thread);
    else if (self->lane_parent != self->device_uuid)
        vst__timeline_put_stream(
            timeline); /* a window later, threads between */
    track = open_slice(self, vst__timeline_activity_category(timeline, span),
                       span->id, span->start_ns, span->end_ns);
    vst__timeline_put_activity_args(timeline, span);
    if (span->args_len != 0)
        vst__pf_args_json(self, VST_PERFETTO_BESIDE, span->args,
                          span->args_len);
    put_flows(self, span);
    close_slice(self, track, span->start_ns, span->end_ns);
}

void vst__pf_draw_annotated(vst__timeline *timeline,
                            const vst__timeline_annotated *annotated)
{
    vst__perfetto *self = of(timeline);
    char name[64];
    uint64_t track;

    if (!self->has_annotations) {
        int count = snprintf(name, sizeof name, "annotations of stream %u",
                             timeline->stream.number);

        vst__pf_begin_lanes(self, self->device_uuid, name, (size_t)count);
        self->has_annotations = true;
    }
    track = open_slice(self, VST_DEVICE_ANNOTATION, annotated->id,
                       annotated->start_ns, annotated->end_ns);
    vst__pf_arg_u64(self, VST_PERFETTO_BESIDE, "External id",
                    timeline->serials_before + annotated->serial);
    close_slice(self, track, annotated->start_ns, annotated->end_ns);
}

/* ---- arguments ----------------------------------------------------------- */

void vst__pf_draw_number(vst__timeline *timeline, const char *key,
                         int64_t value)
{
    if (value < 0)
        vst__pf_arg_i64(of(timeline), VST_PERFETTO_BESIDE, key, value);
    else
        vst__pf_arg_u64(of(timeline), VST_PERFETTO_BESIDE, key,
                        (uint64_t)value);
}

void vst__pf_draw_fraction(vst__timeline *timeline, const char *key,
                           double value)
{
    vst__pf_arg_double(of(timeline), VST_PERFETTO_BESIDE, key, value);
}

void vst__pf_draw_definition(vst__timeline *timeline, const char *key,
                             vst_id id)
{
    const vst_definition *definition =
        vst_trace_definition(timeline->trace, id);

    if (definition != NULL)
        vst__pf_arg_text(of(timeline), VST_PERFETTO_BESIDE, key,
                         definition->name, definition->name_len);
}
