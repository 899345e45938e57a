/* The events of a trace in Perfetto's own format, as replay delivers them. A
 * span is two packets; of one without arguments, whose name its sequence knows,
 * they are put together from a few bytes that are ready. One thread at a time.
 *
 * Chrome's format numbers calls, so that each can name its caller. Here calls
 * have no such numbers, because the file itself holds the tree. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/perfetto.h"
#include "replay/imports.h"

enum {
    PACKETS_MAX = 128, /* bytes of a plain span */
    LANES_TRIED = 64
};

static vst__perfetto *of(vst__timeline *timeline)
{
    return (vst__perfetto *)timeline;
}

/* ---- names -------------------------------------------------------------- */

vst_status vst__pf_make_names(vst__perfetto *self)
{
    self->name_count = 0;
    self->names =
        calloc(self->timeline.trace->definition_count + 1, sizeof *self->names);
    return self->names != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__pf_free_names(vst__perfetto *self)
{
    free(self->names);
    self->names = NULL;
}

static vst__pf_category category_of(vst_definition_kind kind)
{
    switch (kind) {
    case VST_DEF_PYTHON:
    case VST_DEF_NATIVE:
    case VST_DEF_GC:
    case VST_DEF_MODULE:
        return VST_PF_PYTHON;
    case VST_DEF_OPERATOR:
        return VST_PF_OPERATOR;
    case VST_DEF_INSTANT:
        return VST_PF_MARK;
    case VST_DEF_COUNTER:
        return VST_PF_VALUE;
    case VST_DEF_ANNOTATION:
        break;
    }
    return VST_PF_ANNOTATION;
}

static void make_name(vst__perfetto *self, const vst_definition *definition,
                      vst__pf_name *name)
{
    vst_definition_kind kind = definition->kind;
    char *at = name->begin;

    name->iid = ++self->name_count;
    name->kind = kind;
    name->is_step = vst__timeline_is_step(definition);
    name->is_call =
        kind == VST_DEF_PYTHON || kind == VST_DEF_NATIVE || kind == VST_DEF_GC;
    *at++ = VST_PF_EVENT_TYPE << 3;
    *at++ = VST_PF_BEGIN;
    *at++ = VST_PF_EVENT_CATEGORY_IIDS << 3;
    *at++ = (char)category_of(kind);
    *at++ = VST_PF_EVENT_NAME_IID << 3;
    at = vst__proto_varint(at, name->iid);
    name->count = (uint8_t)(at - name->begin);
}

/* NULL: a torn file has lost the definition. */
static vst__pf_name *find_name(vst__perfetto *self, vst_id id, size_t *index)
{
    const vst_trace *trace = self->timeline.trace;

    *index = vst__trace_definition_index(trace, id);
    if (*index == VST_NO_DEFINITION)
        return NULL;
    if (self->names[*index].iid == 0)
        make_name(self, &trace->definitions[*index], &self->names[*index]);
    return &self->names[*index];
}

static void put_shown_name(vst__proto *to, const vst_definition *definition)
{
    char line[VST_JSON_NUMBER_MAX];

    if (definition->kind == VST_DEF_GC) {
        vst__proto_raw(to, "Python GC", strlen("Python GC"));
        return;
    }
    if (definition->kind == VST_DEF_PYTHON) {
        vst__proto_raw_utf8(to, definition->file + definition->file_skip,
                            definition->file_len - definition->file_skip);
        vst__proto_raw(to, "(", 1);
        vst__proto_raw(to, line,
                       (size_t)(vst__json_i64(line, definition->line) - line));
        vst__proto_raw(to, "): ", 3);
    }
    vst__proto_raw_utf8(to, definition->name, definition->name_len);
}

void vst__pf_put_name(vst__perfetto *self, uint32_t number, vst_id id)
{
    char unknown[48] = "unknown function ";
    size_t index, opened, text;
    const vst__pf_name *name = find_name(self, id, &index);

    if (name == NULL) {
        char *end = vst__json_u64(unknown + strlen(unknown), id);
        vst__proto_bytes(&self->event, VST_PF_EVENT_NAME, unknown,
                         (size_t)(end - unknown));
        return;
    }
    vst__proto_u64(&self->event, VST_PF_EVENT_NAME_IID, name->iid);
    if (!vst__pf_set_add(self, &self->sequences[number].names, name->iid))
        return;
    opened = vst__proto_open(&self->interned, VST_PF_INTERNED_EVENT_NAMES);
    vst__proto_u64(&self->interned, VST_PF_INTERNED_IID, name->iid);
    text = vst__proto_open(&self->interned, VST_PF_INTERNED_NAME);
    put_shown_name(&self->interned, &self->timeline.trace->definitions[index]);
    vst__proto_close(&self->interned, text);
    vst__proto_close(&self->interned, opened);
}

/* ---- spans -------------------------------------------------------------- */

static void set_thread(vst__perfetto *self, uint32_t number)
{
    static const char lanes[] = "overlapping spans";
    vst__timeline *timeline = &self->timeline;
    const vst_trace_thread *thread =
        vst_trace_thread_find(timeline->trace, number);

    timeline->thread = number;
    timeline->thread_tid =
        thread != NULL
            ? timeline->process->tracks[thread - timeline->trace->threads].tid
            : timeline->process->windows_tid;
    self->thread_uuid =
        vst__pf_thread_uuid(self, timeline->process, timeline->thread_tid);
    vst__pf_begin_lanes(self, self->thread_uuid, lanes, sizeof lanes - 1);
    timeline->has_thread = true;
    vst__pf_forget_sequences(self, VST_PERFETTO_BESIDE);
}

static void put_ids(vst__perfetto *self, uint32_t number, const vst_span *span,
                    const vst__pf_name *name)
{
    uint64_t serial = self->timeline.serials_before + span->serial;
    size_t index;

    if (name != NULL && name->kind == VST_DEF_MODULE) {
        index = (size_t)(name - self->names);
        vst__pf_arg_i64(self, number, "Python module id",
                        self->timeline.trace->definitions[index].line);
    } else if (name != NULL && !name->is_call) {
        vst__pf_arg_u64(self, number, "External id", serial);
        vst__pf_arg_u64(self, number, "Record function id",
                        span->op != NULL && span->op->record != 0
                            ? span->op->record
                            : serial);
        vst__pf_arg_u64(self, number, "Ev Idx", serial);
    }
}

static void put_args(vst__perfetto *self, uint32_t number, const vst_span *span,
                     const vst__pf_name *name)
{
    static const struct {
        uint32_t flag;
        const char *key;
    } flags[] = {
        {VST_SPAN_OPEN_AT_START, "open at start"},
        {VST_SPAN_OPEN_AT_END, "open at end"},
        {VST_SPAN_RAISED, "raised"},
        {VST_SPAN_CUT, "cut"},
        {VST_SPAN_RESUMED, "resumed"},
        {VST_SPAN_SUSPENDED, "suspended"},
    };

    put_ids(self, number, span, name);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (span->flags & flags[i].flag)
            vst__pf_arg_u64(self, number, flags[i].key, 1);
    if (span->total_allocations != 0) {
        vst__pf_arg_u64(self, number, "Allocated Bytes", span->total_bytes);
        vst__pf_arg_u64(self, number, "Self Allocated Bytes", span->self_bytes);
    }
    if (span->flags & VST_SPAN_IMPORT) {
        char module[VST_IMPORT_NAME_MAX];
        vst__pf_arg_text(self, number, "imports", module,
                         vst__import_name(self->timeline.trace, span->import,
                                          span->module, module));
    }
    if (span->args_len != 0)
        vst__pf_args_json(self, number, span->args, span->args_len);
}

/* Both packets; track is 0 where the sequence's own is meant. */
static vst_status write_slowly(vst__perfetto *self, uint32_t number,
                               uint64_t track, const vst_span *span,
                               const vst__pf_name *name)
{
    vst_status status;

    vst__pf_open_event(self, VST_PF_BEGIN,
                       name != NULL ? category_of(name->kind) : VST_PF_PYTHON);
    if (track != 0)
        vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
    vst__pf_put_name(self, number, span->id);
    put_args(self, number, span, name);
    status = vst__pf_write_event(self, number, span->start_ns);
    if (status != VST_OK)
        return status;
    vst__pf_open_event(self, VST_PF_END, VST_PF_PYTHON);
    if (track != 0)
        vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
    return vst__pf_write_event(self, number, span->end_ns);
}

/* A packet's head, up to its event. The length is put in when it is known: it
 * is less than 128. */
static inline char *put_head(char *at, uint32_t number, uint64_t delta)
{
    at[0] = VST_PF_PACKET << 3 | VST_PROTO_BYTES;
    at[2] = VST_PF_PACKET_TIMESTAMP << 3;
    at = vst__proto_varint(at + 3, delta);
    at[0] = VST_PF_PACKET_SEQUENCE << 3;
    at[1] = (char)(number + 1);
    at[2] = VST_PF_PACKET_TRACK_EVENT << 3 | VST_PROTO_BYTES;
    return at + 3;
}

static void write_fast(vst__perfetto *self, uint32_t number,
                       const vst_span *span, const vst__pf_name *name)
{
    vst__output *output = self->timeline.output;
    vst__pf_sequence *sequence = &self->sequences[number];
    char *begin = vst__output_reserve(output, PACKETS_MAX), *at;

    at = put_head(begin, number,
                  (uint64_t)span->start_ns - (uint64_t)sequence->last_ns);
    *at++ = (char)name->count;
    /* A constant size is a few moves; the rest is overwritten. */
    memcpy(at, name->begin, sizeof name->begin);
    at += name->count;
    begin[1] = (char)(at - begin - 2);
    begin = at;
    at = put_head(begin, number, (uint64_t)(span->end_ns - span->start_ns));
    at[0] = 2;
    at[1] = VST_PF_EVENT_TYPE << 3;
    at[2] = VST_PF_END;
    at += 3;
    begin[1] = (char)(at - begin - 2);
    sequence->last_ns = span->end_ns;
    vst__output_commit(output, at);
}

void vst__pf_begin_lanes(vst__perfetto *self, uint64_t parent, const char *name,
                         size_t name_len)
{
    self->lane_parent = parent;
    self->lane_name_len =
        name_len < sizeof self->lane_name ? name_len : sizeof self->lane_name;
    memcpy(self->lane_name, name, self->lane_name_len);
    self->lane_count = 0;
    self->timeline.has_thread = false; /* its lanes are others */
}

vst_status vst__pf_find_lane(vst__perfetto *self, int64_t start_ns,
                             int64_t end_ns, uint64_t *uuid)
{
    size_t first =
        self->lane_count > LANES_TRIED ? self->lane_count - LANES_TRIED : 0;
    int64_t *lanes;
    uint64_t *uuids;

    for (size_t i = first; i < self->lane_count; i++)
        if (self->lanes[i] <= start_ns) {
            self->lanes[i] = end_ns;
            *uuid = self->lane_uuids[i];
            return VST_OK;
        }
    lanes = vst__grow(self->lanes, &self->lane_capacity, self->lane_count + 1,
                      sizeof *lanes);
    if (lanes == NULL)
        return VST_E_NOMEM;
    self->lanes = lanes;
    uuids = vst__grow(self->lane_uuids, &self->lane_uuid_capacity,
                      self->lane_count + 1, sizeof *uuids);
    if (uuids == NULL)
        return VST_E_NOMEM;
    self->lane_uuids = uuids;
    *uuid = self->next_uuid++;
    lanes[self->lane_count] = end_ns;
    uuids[self->lane_count++] = *uuid;
    return vst__pf_put_track(self, *uuid, self->lane_parent,
                             VST_PF_TRACK_OF_SPANS, self->lane_name,
                             self->lane_name_len);
}

static vst_status write_beside(vst__perfetto *self, const vst_span *span,
                               const vst__pf_name *name)
{
    vst__timeline *timeline = &self->timeline;
    uint64_t track;
    vst_status status = VST_OK;

    if (name != NULL && name->is_step &&
        vst__timeline_make_room_for_step(timeline, span))
        track = vst__pf_thread_uuid(self, timeline->process,
                                    timeline->process->windows_tid);
    else
        status = vst__pf_find_lane(self, span->start_ns, span->end_ns, &track);
    return status != VST_OK
               ? status
               : write_slowly(self, VST_PERFETTO_BESIDE, track, span, name);
}

vst_status vst__pf_draw_span(vst__timeline *timeline, const vst_span *span)
{
    vst__perfetto *self = of(timeline);
    size_t index;
    const vst__pf_name *name = find_name(self, span->id, &index);
    uint32_t number = span->depth < VST_PERFETTO_DEPTHS
                          ? span->depth
                          : VST_PERFETTO_DEPTHS - 1;
    uint64_t serial = timeline->serials_before + span->serial;
    vst_status status = VST_OK;

    if (serial > timeline->serial_max)
        timeline->serial_max = serial;
    if (!timeline->has_thread || timeline->thread != span->thread)
        set_thread(self, span->thread);
    if (span->flags & VST_SPAN_ASYNC)
        return write_beside(self, span, name);
    if (!self->sequences[number].begun)
        status = vst__pf_begin_sequence(self, number, self->thread_uuid);
    if (status != VST_OK)
        return status;
    if (VST_LIKELY(
            name != NULL && name->is_call && span->args_len == 0 &&
            (span->flags &
             ~(uint32_t)(VST_SPAN_RECURSIVE | VST_SPAN_MACHINERY)) == 0 &&
            span->total_allocations == 0 &&
            vst__pf_set_has(&self->sequences[number].names, name->iid))) {
        write_fast(self, number, span, name);
        return timeline->output->status;
    }
    status = write_slowly(self, number, 0, span, name);
    if (status == VST_OK && span->op != NULL)
        status =
            vst__timeline_note_operator(timeline, span, timeline->thread_tid);
    if (status == VST_OK && span->flags & VST_SPAN_STEP)
        status = vst__timeline_note_step(timeline, span);
    return status;
}

/* ---- what else a thread has --------------------------------------------- */

static vst_status write_span(void *ctx, const vst_span *span)
{
    return vst__pf_draw_span(ctx, span);
}

void vst__pf_open_on_thread(vst__perfetto *self, uint32_t thread,
                            vst__pf_category category)
{
    if (!self->timeline.has_thread || self->timeline.thread != thread)
        set_thread(self, thread);
    vst__pf_open_event(self, VST_PF_INSTANT, category);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, self->thread_uuid);
}

static vst_status write_instant(void *ctx, const vst_instant *instant)
{
    vst__perfetto *self = ctx;
    size_t index;
    const vst__pf_name *name = find_name(self, instant->id, &index);

    vst__pf_open_on_thread(self, instant->thread,
                           name != NULL ? category_of(name->kind)
                                        : VST_PF_PYTHON);
    vst__pf_put_name(self, VST_PERFETTO_BESIDE, instant->id);
    if (instant->args_len != 0)
        vst__pf_args_json(self, VST_PERFETTO_BESIDE, instant->args,
                          instant->args_len);
    return vst__pf_write_event(self, VST_PERFETTO_BESIDE, instant->time_ns);
}

vst_status vst__pf_write_value(vst__perfetto *self, uint64_t track,
                               int64_t time_ns, double value)
{
    vst__pf_open_event(self, VST_PF_COUNTER, VST_PF_VALUE);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
    if (value >= 0 && value < 9007199254740992.0 &&
        value == (double)(int64_t)value)
        vst__proto_i64(&self->event, VST_PF_EVENT_COUNTER_VALUE,
                       (int64_t)value);
    else
        vst__proto_double(&self->event, VST_PF_EVENT_DOUBLE_COUNTER_VALUE,
                          value);
    return vst__pf_write_event(self, VST_PERFETTO_BESIDE, time_ns);
}

static vst_status write_counter(void *ctx, const vst_counter *counter)
{
    static const char unknown[] = "unknown counter";
    vst__perfetto *self = ctx;
    size_t index;
    vst__pf_name *name = find_name(self, counter->id, &index);
    uint64_t track = name != NULL ? name->track : 0;
    vst_status status = VST_OK;

    if (track == 0) {
        const vst_definition *d =
            name != NULL ? &self->timeline.trace->definitions[index] : NULL;

        track = self->next_uuid++;
        if (name != NULL)
            name->track = track;
        status = vst__pf_put_track(
            self, track, self->process_uuid, VST_PF_TRACK_OF_VALUES,
            d != NULL ? d->name : unknown,
            d != NULL ? d->name_len : sizeof unknown - 1);
    }
    return status == VST_OK ? vst__pf_write_value(self, track, counter->time_ns,
                                                  counter->value)
                            : status;
}

/* A mark, not a span: a span of its own could overlap those around it. */
static vst_status write_loss(void *ctx, const vst_loss *loss)
{
    vst__perfetto *self = ctx;
    bool dropped = loss->kind == VST_LOSS_DROPPED;

    vst__pf_open_on_thread(self, loss->thread, VST_PF_MARK);
    vst__proto_text(&self->event, VST_PF_EVENT_NAME,
                    dropped                      ? "dropped records"
                    : loss->kind == VST_LOSS_GAP ? "hooks away"
                                                 : "lost records");
    vst__pf_arg_i64(self, VST_PERFETTO_BESIDE, "start_ns", loss->start_ns);
    vst__pf_arg_i64(self, VST_PERFETTO_BESIDE, "duration_ns",
                    loss->end_ns - loss->start_ns);
    vst__pf_arg_u64(self, VST_PERFETTO_BESIDE, "records", loss->records);
    /* What was dropped lies before all that is shown: marked where it ends. */
    return vst__pf_write_event(self, VST_PERFETTO_BESIDE,
                               dropped ? loss->end_ns : loss->start_ns);
}

void vst__perfetto_sink(vst__perfetto *self, vst_sink *sink)
{
    *sink = (vst_sink){
        .ctx = self,
        .span = write_span,
        .instant = write_instant,
        .counter = write_counter,
        .loss = write_loss,
        .tells_compensated = true,
    };
}
