/* Perfetto's own format: a list of packets (protobuf); perfetto_packets.h
 * explains how they are made small. This file draws processes, their tracks and
 * the windows; perfetto_events.c draws everything on the tracks. Times are of
 * the wall clock.
 *
 * Chrome's format numbers calls, so that each can name its caller. Here the
 * file itself holds the tree, so calls need no numbers. A slice must not
 * overlap another slice of its track, so overlapping spans go to several tracks
 * of one name, which viewers draw as one. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/exporter.h"
#include "export/timeline/perfetto.h"
#include "store/reader.h"

enum {
    /* Fields of the descriptors of processes and threads. */
    PID = 1,
    PROCESS_NAME = 6,
    PROCESS_LABELS = 8,
    TID = 2,
    SORT_INDEX = 3,
    THREAD_NAME = 5,

    UNIT = 3, /* a field of a counter's descriptor */
    UNIT_BYTES = 3,

    TRACKS_TRIED = 64
};

/* ---- tracks -------------------------------------------------------------- */

/* Begins a packet that describes a track, up to the track's kind. */
static size_t open_track(vst__perfetto *self, uint64_t uuid, uint64_t parent)
{
    vst__proto *packet = &self->pf.packet;
    size_t track;

    vst__pf_begin_packet(&self->pf);
    track = vst__proto_open(packet, VST_PF_PACKET_TRACK_DESCRIPTOR);
    vst__proto_u64(packet, VST_PF_TRACK_UUID, uuid);
    if (parent != 0)
        vst__proto_u64(packet, VST_PF_TRACK_PARENT_UUID, parent);
    return track;
}

static void close_track(vst__perfetto *self, size_t track)
{
    vst__proto_close(&self->pf.packet, track);
    vst__pf_write_packet(&self->pf);
}

void vst__pf_put_track(vst__perfetto *self, uint64_t uuid, uint64_t parent,
                       vst__pf_track_kind kind, const char *name,
                       size_t name_len)
{
    vst__proto *packet = &self->pf.packet;
    size_t track = open_track(self, uuid, parent);

    vst__proto_utf8(packet, VST_PF_TRACK_NAME, name, name_len);
    if (kind != VST_PF_OF_SPANS) {
        size_t counter = vst__proto_open(packet, VST_PF_TRACK_COUNTER);
        if (kind == VST_PF_OF_BYTES)
            vst__proto_u64(packet, UNIT, UNIT_BYTES);
        vst__proto_close(packet, counter);
    }
    close_track(self, track);
}

static void perfetto_put_thread(vst__perfetto *self,
                                const vst__drawn_lane *lane)
{
    vst__proto *packet = &self->pf.packet;
    uint32_t tid = (uint32_t)lane->tid;
    size_t track =
        open_track(self, vst__pf_lane_uuid(self->drawing.process, tid),
                   self->process_uuid);
    size_t thread = vst__proto_open(packet, VST_PF_TRACK_THREAD);

    vst__proto_u64(packet, PID, self->drawing.process->pid);
    vst__proto_u64(packet, TID, tid);
    vst__proto_u64(packet, SORT_INDEX, lane->place);
    vst__proto_utf8(packet, THREAD_NAME, lane->name, lane->name_len);
    vst__proto_close(packet, thread);
    close_track(self, track);
}

/* Draws a lane. Lanes of groups are drawn with their first event instead. */
static void perfetto_draw_lane(vst__drawing *drawing,
                               const vst__drawn_lane *lane)
{
    if (lane->group != NULL)
        return;
    if (lane->under == 0)
        perfetto_put_thread(vst__perfetto_of(drawing), lane);
    else
        vst__pf_put_track(
            vst__perfetto_of(drawing),
            vst__pf_lane_uuid(drawing->process, (uint32_t)lane->tid),
            vst__pf_lane_uuid(drawing->process, lane->under), VST_PF_OF_SPANS,
            lane->name, lane->name_len);
}

/* ---- tracks on which nothing overlaps ------------------------------------ */

/* From here on, find_track uses tracks of this name under `parent`. */
static void begin_tracks(vst__perfetto *self, uint64_t parent, int64_t tid,
                         const char *name, size_t name_len)
{
    vst__pf_tracks *loose = &self->loose;

    if (name_len > sizeof loose->name)
        name_len = sizeof loose->name;
    if (loose->parent == parent && loose->tid == tid &&
        loose->name_len == name_len && memcmp(loose->name, name, name_len) == 0)
        return;
    loose->parent = parent;
    loose->tid = tid;
    loose->name_len = name_len;
    memcpy(loose->name, name, name_len);
    loose->count = 0;
}

/* Returns a track on which nothing overlaps this range. Spans arrive in the
 * order of their ends, or of their starts: a track is free if its last span
 * ended before. */
static uint64_t find_track(vst__perfetto *self, int64_t start_ns,
                           int64_t end_ns)
{
    vst__pf_tracks *loose = &self->loose;
    size_t first =
        loose->count > TRACKS_TRIED ? loose->count - TRACKS_TRIED : 0;
    uint64_t uuid;

    for (size_t i = first; i < loose->count; i++)
        if (loose->ends[i] <= start_ns) {
            loose->ends[i] = end_ns;
            return loose->uuids[i];
        }
    if (!VST_RESERVE(loose->ends, loose->count + 1, loose->capacity) ||
        !VST_RESERVE(loose->uuids, loose->count + 1, loose->uuid_capacity)) {
        vst__drawing_fail(&self->drawing, VST_E_NOMEM);
        return 0;
    }
    uuid = self->next_uuid++;
    loose->ends[loose->count] = end_ns;
    loose->uuids[loose->count++] = uuid;
    vst__pf_put_track(self, uuid, loose->parent, VST_PF_OF_SPANS, loose->name,
                      loose->name_len);
    return uuid;
}

/* Returns the track of a group's lanes, which is made when the first lane has
 * something to draw. */
static uint64_t find_group(vst__perfetto *self, vst__drawn_group *group)
{
    vst__proto *text = &self->pf.text;

    if (group->track != 0)
        return group->track;
    group->track = self->next_uuid++;
    vst__proto_clear(text);
    vst__proto_raw(text, group->label, strlen(group->label));
    if (group->name_len != 0) {
        vst__proto_raw(text, ": ", 2);
        vst__proto_raw(text, group->name, group->name_len);
    }
    if (text->failed)
        vst__drawing_fail(&self->drawing, VST_E_NOMEM);
    else
        vst__pf_put_track(self, group->track, self->process_uuid,
                          VST_PF_OF_SPANS, text->bytes, text->count);
    return group->track;
}

/* Returns the track of a span that is not nested in the stack of its thread. */
uint64_t vst__pf_track_of(vst__perfetto *self, const vst__drawn_span *span)
{
    static const char overlapping[] = "overlapping spans";
    const vst__drawn_process *process = self->drawing.process;
    const vst__drawn_lane *lane = span->lane;

    if (span->fit == VST_FIT_ALONE)
        return vst__pf_lane_uuid(process, span->tid);
    if (span->fit == VST_FIT_OVERLAPS)
        begin_tracks(self, vst__pf_lane_uuid(process, span->tid), span->tid,
                     overlapping, sizeof overlapping - 1);
    else
        begin_tracks(self,
                     lane->group != NULL
                         ? find_group(self, lane->group)
                         : vst__pf_lane_uuid(process, lane->under),
                     lane->group != NULL ? lane->tid : lane->under, lane->name,
                     lane->name_len);
    return find_track(self, span->start_ns, span->end_ns);
}

/* ---- processes and windows ----------------------------------------------- */

static void put_json_text(vst__proto *packet, uint32_t field,
                          vst__json_part text)
{
    size_t opened = vst__proto_open(packet, field);

    vst__proto_raw_json(packet, text.at, text.count);
    vst__proto_close(packet, opened);
}

static void perfetto_draw_process(vst__drawing *drawing)
{
    vst__perfetto *self = vst__perfetto_of(drawing);
    vst__proto *packet = &self->pf.packet;
    const vst__drawn_process *process = drawing->process;
    size_t track, message;

    self->process_uuid = vst__pf_process_uuid(process);
    self->next_uuid = self->process_uuid + (UINT64_C(1) << 33);
    self->has_tid = self->has_state_tid = false;
    self->loose.parent = 0;
    /* Numbers of names are valid for one process. */
    vst__pf_forget_sequences(&self->pf, VST_PF_SEQUENCES);
    vst__pf_begin_sequence(&self->pf, VST_PF_OTHERS, 0);
    track = open_track(self, self->process_uuid, 0);
    message = vst__proto_open(packet, VST_PF_TRACK_PROCESS);
    vst__proto_u64(packet, PID, process->pid);
    vst__proto_u64(packet, SORT_INDEX, process->index);
    put_json_text(packet, PROCESS_NAME, process->name);
    put_json_text(packet, PROCESS_LABELS, process->labels);
    vst__proto_close(packet, message);
    close_track(self, track);
}

/* Draws a window, with metadata about the recording as its arguments. */
static void perfetto_draw_window(vst__drawing *drawing,
                                 const vst__drawn_window *window)
{
    const vst__drawn_process *process = drawing->process;
    uint64_t track = vst__pf_lane_uuid(process, process->windows_tid);
    vst__pf *pf = &vst__perfetto_of(drawing)->pf;
    char name[64] = "vestige (";
    char *at = vst__json_u64(name + strlen(name), window->number);
    const char *key, *json;

    memcpy(at, ")", 2);
    vst__pf_open_event(pf, VST_PF_BEGIN, VST_CATEGORY_WINDOW, track);
    vst__proto_text(&pf->event, VST_PF_EVENT_NAME, name);
    for (size_t i = 0;
         (json = vst_trace_metadata_at(process->trace, i, &key)) != NULL; i++)
        if (strncmp(key, VST_DRAWING_INTERNAL, strlen(VST_DRAWING_INTERNAL)) !=
            0)
            vst__pf_put_json(pf, VST_PF_OTHERS, key, json);
    vst__pf_write_event(pf, VST_PF_OTHERS, window->start_ns);
    vst__pf_open_event(pf, VST_PF_END, VST_CATEGORY_WINDOW, track);
    vst__pf_write_event(pf, VST_PF_OTHERS, window->end_ns);
}

/* ---- the document -------------------------------------------------------- */

static void perfetto_begin(vst__drawing *drawing)
{
    const uint8_t *id = drawing->processes[0].trace->header.trace_id;
    vst__pf *pf = &vst__perfetto_of(drawing)->pf;
    uint64_t halves[2] = {0, 0};
    size_t message;

    for (size_t i = 0; i < 16; i++)
        halves[i / 8] = halves[i / 8] << 8 | id[i];
    vst__pf_begin_packet(pf);
    message = vst__proto_open(&pf->packet, VST_PF_PACKET_TRACE_UUID);
    vst__proto_u64(&pf->packet, 1, halves[0]);
    vst__proto_u64(&pf->packet, 2, halves[1]);
    vst__proto_close(&pf->packet, message);
    vst__pf_write_packet(pf);
}

static vst_status write_perfetto(vst_trace *const *traces, size_t count,
                                 const vst_export_options *options,
                                 vst__output *output, vst_error *error)
{
    static const vst__drawing_ops ops = {
        .begin = perfetto_begin,
        .process = perfetto_draw_process,
        .lane = perfetto_draw_lane,
        .span = vst__perfetto_span,
        .instant = vst__perfetto_instant,
        .counter = vst__perfetto_counter,
        .arrow = vst__perfetto_arrow,
        .state = vst__perfetto_state,
        .window = perfetto_draw_window,
    };
    vst__perfetto *self = calloc(1, sizeof *self);
    vst_status status;

    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->drawing.ops = &ops;
    self->drawing.output = output;
    self->pf.drawing = &self->drawing;
    self->pf.keys = vst__intern_create();
    status = self->pf.keys != NULL ? vst__timeline_draw(&self->drawing, traces,
                                                        count, options, error)
                                   : vst_error_set(error, VST_E_NOMEM, 0, 0);
    vst__pf_free(&self->pf);
    free(self->loose.ends);
    free(self->loose.uuids);
    free(self);
    return status;
}

const vst__exporter vst__exporter_perfetto = {
    "perfetto", ".pftrace .perfetto-trace", .write = write_perfetto};
