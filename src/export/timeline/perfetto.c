/* Perfetto's own format: a list of packets (protobuf), here of processes,
 * threads and the events on them; perfetto.h says how they are made small.
 * Shows what the Chrome exporter shows, by the same names and numbers, with
 * times of the wall clock. One thread at a time. */
#include <stdlib.h>

#include "export/exporter.h"
#include "export/timeline/perfetto.h"

enum {
    /* Of the descriptors of processes and threads. */
    PID = 1,
    PROCESS_NAME = 6,
    PROCESS_LABELS = 8,
    TID = 2,
    SORT_INDEX = 3,
    THREAD_NAME = 5,

    UNIT = 3, /* of a counter's descriptor */
    UNIT_BYTES = 3
};

/* ---- tracks ------------------------------------------------------------- */

static uint64_t uuid_of(const vst__perfetto *self,
                        const vst__timeline_process *process)
{
    size_t index = (size_t)(process - self->timeline.processes);

    return (uint64_t)(index + 1) << 34;
}

/* A process has room for 2^32 tids and as many tracks beside them. */
uint64_t vst__pf_thread_uuid(const vst__perfetto *self,
                             const vst__timeline_process *process, uint32_t tid)
{
    return uuid_of(self, process) + 1 + tid;
}

/* A packet that describes one, up to what it is. */
static size_t open_track(vst__perfetto *self, uint64_t uuid, uint64_t parent)
{
    vst__proto *packet = &self->packet;
    size_t track;

    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, VST_PERFETTO_BESIDE + 1);
    track = vst__proto_open(packet, VST_PF_PACKET_TRACK_DESCRIPTOR);
    vst__proto_u64(packet, VST_PF_TRACK_UUID, uuid);
    if (parent != 0)
        vst__proto_u64(packet, VST_PF_TRACK_PARENT_UUID, parent);
    return track;
}

static vst_status close_track(vst__perfetto *self, size_t track)
{
    vst__proto_close(&self->packet, track);
    return vst__proto_write(&self->packet, VST_PF_PACKET,
                            self->timeline.output);
}

vst_status vst__pf_put_track(vst__perfetto *self, uint64_t uuid,
                             uint64_t parent, vst__pf_track kind,
                             const char *name, size_t name_len)
{
    vst__proto *packet = &self->packet;
    size_t track = open_track(self, uuid, parent);
    size_t text = vst__proto_open(packet, VST_PF_TRACK_NAME);

    vst__proto_raw_utf8(packet, name, name_len);
    vst__proto_close(packet, text);
    if (kind != VST_PF_TRACK_OF_SPANS) {
        size_t counter = vst__proto_open(packet, VST_PF_TRACK_COUNTER);
        if (kind == VST_PF_TRACK_OF_BYTES)
            vst__proto_u64(packet, UNIT, UNIT_BYTES);
        vst__proto_close(packet, counter);
    }
    return close_track(self, track);
}

static vst_status put_thread(vst__perfetto *self, uint32_t tid,
                             const char *name, size_t name_len, uint64_t place)
{
    vst__proto *packet = &self->packet;
    vst__timeline_process *process = self->timeline.process;
    char fallback[48] = "thread ";
    size_t track = open_track(self, vst__pf_thread_uuid(self, process, tid),
                              self->process_uuid);
    size_t thread = vst__proto_open(packet, VST_PF_TRACK_THREAD), text;

    if (name_len == 0) {
        name = fallback;
        name_len = (size_t)(vst__json_u64(fallback + strlen(fallback), tid) -
                            fallback);
    }
    vst__proto_u64(packet, PID, process->pid);
    vst__proto_u64(packet, TID, tid);
    vst__proto_u64(packet, SORT_INDEX, place);
    text = vst__proto_open(packet, THREAD_NAME);
    vst__proto_raw_utf8(packet, name, name_len);
    vst__proto_close(packet, text);
    vst__proto_close(packet, thread);
    return close_track(self, track);
}

/* Puts what one of the timeline's functions writes into a field. */
static void put_said(vst__perfetto *self, uint32_t field,
                     void (*say)(vst__timeline *, vst__output *))
{
    char bytes[VST_TIMELINE_NAME_MAX];
    vst__output said = {.at = bytes, .end = bytes + sizeof bytes};
    size_t text = vst__proto_open(&self->packet, field);

    say(&self->timeline, &said);
    vst__proto_raw_json(&self->packet, bytes + 1,
                        (size_t)(said.at - bytes) - 2); /* the quotes */
    vst__proto_close(&self->packet, text);
}

static void put_process_name(vst__perfetto *self)
{
    vst__json_part name = vst__json_inside(vst__json_whole(vst_trace_metadata(
        self->timeline.trace, VST_TIMELINE_INTERNAL "process_name")));
    size_t text;

    if (self->timeline.process_count > 1) {
        put_said(self, PROCESS_NAME, vst__timeline_put_long_name);
        return;
    }
    text = vst__proto_open(&self->packet, PROCESS_NAME);
    if (name.count != 0)
        vst__proto_raw_json(&self->packet, name.at, name.count);
    else
        vst__proto_raw(&self->packet, "python", strlen("python"));
    vst__proto_close(&self->packet, text);
}

static vst_status put_process(vst__perfetto *self)
{
    static const char windows[] = "Recording windows";
    vst__proto *packet = &self->packet;
    const vst_trace *trace = self->timeline.trace;
    const vst__timeline_process *process = self->timeline.process;
    size_t track = open_track(self, self->process_uuid, 0);
    size_t message = vst__proto_open(packet, VST_PF_TRACK_PROCESS);
    vst_status status;

    vst__proto_u64(packet, PID, process->pid);
    vst__proto_u64(packet, SORT_INDEX,
                   (size_t)(process - self->timeline.processes));
    put_process_name(self);
    put_said(self, PROCESS_LABELS, vst__timeline_put_labels);
    vst__proto_close(packet, message);
    status = close_track(self, track);
    if (status == VST_OK)
        status = put_thread(self, process->windows_tid, windows,
                            sizeof windows - 1, 0);
    for (size_t i = 0; status == VST_OK && i < trace->thread_count; i++)
        if (process->tracks[i].shown)
            status =
                put_thread(self, process->tracks[i].tid, trace->threads[i].name,
                           trace->threads[i].name_len, i + 1);
    return status;
}

/* ---- windows ------------------------------------------------------------ */

/* What was said of the recording as a whole goes with its stretches. */
static void put_metadata(vst__perfetto *self)
{
    const vst_trace *trace = self->timeline.trace;
    const char *key, *json;

    for (size_t i = 0; (json = vst_trace_metadata_at(trace, i, &key)) != NULL;
         i++)
        if (strncmp(key, VST_TIMELINE_INTERNAL,
                    strlen(VST_TIMELINE_INTERNAL)) != 0)
            vst__pf_arg_json(self, VST_PERFETTO_BESIDE, key, json);
}

static vst_status put_window_event(vst__perfetto *self, vst__pf_type type,
                                   const char *name, int64_t time_ns,
                                   bool metadata)
{
    vst__timeline_process *process = self->timeline.process;

    vst__pf_open_event(self, type, VST_PF_TRACE);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID,
                   vst__pf_thread_uuid(self, process, process->windows_tid));
    if (name != NULL)
        vst__proto_text(&self->event, VST_PF_EVENT_NAME, name);
    if (metadata)
        put_metadata(self);
    return vst__pf_write_event(self, VST_PERFETTO_BESIDE, time_ns);
}

static vst_status put_window(vst__perfetto *self, const vst__window *window)
{
    vst__clockmap *clock = &self->timeline.trace->clock;
    int64_t start_ns = vst__clockmap_to_ns(clock, window->first);
    int64_t end_ns = vst__clockmap_to_ns(clock, window->last);
    char name[64] = "vestige (";
    char *at = vst__json_u64(name + strlen(name), window->number);
    vst_status status;

    memcpy(at, ")", 2);
    status = put_window_event(self, VST_PF_BEGIN, name, start_ns, true);
    if (status == VST_OK)
        status = put_window_event(self, VST_PF_END, NULL, end_ns, false);
    return status;
}

/* ---- the document ------------------------------------------------------- */

static vst_status write_process(vst__perfetto *self,
                                vst__timeline_process *process,
                                const vst_export_options *options,
                                vst_error *error)
{
    vst__timeline *timeline = &self->timeline;
    vst_trace *trace = process->trace;
    vst_sink sink;
    vst_status status;

    timeline->process = process;
    timeline->trace = trace;
    timeline->has_thread = false;
    process->steps_end_ns = INT64_MIN;
    self->process_uuid = uuid_of(self, process);
    self->next_uuid = self->process_uuid + (UINT64_C(1) << 33);
    self->device_uuid = 0;
    memset(self->memory_tracks, 0, sizeof self->memory_tracks);
    /* Numbers of names are this process's own. */
    vst__pf_forget_sequences(self, VST_PERFETTO_SEQUENCES);
    status = vst__pf_make_names(self);
    if (status == VST_OK)
        status = vst__pf_begin_sequence(self, VST_PERFETTO_BESIDE, 0);
    if (status == VST_OK)
        status = put_process(self);
    if (status == VST_OK) {
        vst__perfetto_sink(self, &sink);
        vst__timeline_watch(timeline, &sink);
        status = vst__timeline_replay(timeline, options, &sink, error);
        vst__timeline_end_devices(timeline);
    } else {
        vst_error_set(error, status, 0, 0);
    }
    if (status == VST_OK)
        vst__timeline_put_flows(timeline);
    self->state_thread = NULL;
    if (status == VST_OK) {
        status = vst__timeline_put_states(timeline);
        vst_error_set(error, status, 0, 0);
    }
    timeline->serials_before = timeline->serial_max;
    for (size_t i = 0; status == VST_OK && i < process->window_count; i++) {
        status = put_window(self, &trace->windows[process->first_window + i]);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
    }
    vst__pf_free_names(self);
    return status;
}

static vst_status put_trace_id(vst__perfetto *self)
{
    const uint8_t *id = self->timeline.processes[0].trace->header.trace_id;
    uint64_t halves[2] = {0, 0};
    size_t message;

    for (size_t i = 0; i < 16; i++)
        halves[i / 8] = halves[i / 8] << 8 | id[i];
    vst__proto_u64(&self->packet, VST_PF_PACKET_SEQUENCE,
                   VST_PERFETTO_BESIDE + 1);
    message = vst__proto_open(&self->packet, VST_PF_PACKET_TRACE_UUID);
    vst__proto_u64(&self->packet, 1, halves[0]);
    vst__proto_u64(&self->packet, 2, halves[1]);
    vst__proto_close(&self->packet, message);
    return vst__proto_write(&self->packet, VST_PF_PACKET,
                            self->timeline.output);
}

static vst_status write_document(vst__perfetto *self,
                                 const vst_export_options *options,
                                 vst_error *error)
{
    vst__timeline *timeline = &self->timeline;
    vst_status status = put_trace_id(self);

    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    for (size_t i = 0; status == VST_OK && i < timeline->process_count; i++)
        status = write_process(self, &timeline->processes[i], options, error);
    if (status != VST_OK)
        return status;
    status = vst__timeline_put_arrows(timeline);
    if (status == VST_OK)
        status = self->status;
    return status == VST_OK ? VST_OK : vst_error_set(error, status, 0, 0);
}

static void free_all(vst__perfetto *self)
{
    for (size_t i = 0; i < VST_PERFETTO_SEQUENCES; i++) {
        free(self->sequences[i].names.words);
        free(self->sequences[i].keys.words);
    }
    vst__proto_free(&self->packet);
    vst__proto_free(&self->event);
    vst__proto_free(&self->interned);
    vst__proto_free(&self->text);
    vst__intern_destroy(self->keys);
    free(self->lanes);
    free(self->lane_uuids);
    vst__timeline_end(&self->timeline);
    free(self);
}

static vst_status write_perfetto(vst_trace *const *traces, size_t count,
                                 const vst_export_options *options,
                                 const char *path, vst__output *output,
                                 vst_error *error)
{
    vst__perfetto *self = calloc(1, sizeof *self);
    vst_status status;

    (void)path;
    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->timeline.drawing = &vst__perfetto_drawing;
    self->timeline.output = output;
    self->keys = vst__intern_create();
    status = self->keys != NULL ? vst__timeline_begin(&self->timeline, traces,
                                                      count, options->window)
                                : VST_E_NOMEM;
    status = status == VST_OK ? write_document(self, options, error)
                              : vst_error_set(error, status, 0, 0);
    free_all(self);
    return status;
}

const vst__exporter vst__exporter_perfetto = {
    "perfetto", ".pftrace .perfetto-trace", write_perfetto};
