/* Arrows and memory on a timeline of Perfetto's own format: what is drawn once
 * the spans are written, on a sequence of its own. One thread at a time. */
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

static vst__pf_category category_of(const char *arrow)
{
    if (strcmp(arrow, "process") == 0)
        return VST_PF_STARTS;
    return strcmp(arrow, "task") == 0 ? VST_PF_TASK : VST_PF_FWDBWD;
}

/* On a track that is no thread's the old form has no effect: there an arrow
 * goes from one mark to another. */
static void draw_mark(vst__perfetto *self, const vst__arrow_end *end)
{
    vst__pf_open_event(self, VST_PF_INSTANT, VST_PF_TASK);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID,
                   vst__pf_thread_uuid(self, end->process, end->tid));
    vst__proto_text(&self->event, VST_PF_EVENT_NAME, end->name);
    vst__proto_fixed64(&self->event,
                       end->is_head ? VST_PF_EVENT_LAST_FLOW_IDS
                                    : VST_PF_EVENT_FLOW_IDS,
                       end->id);
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, end->time_ns));
}

/* An end of an arrow is an event in the old form, which binds to the span that
 * is open at its time: the spans are in the file already. */
static void draw_end(vst__timeline *timeline, const vst__arrow_end *end)
{
    enum { PHASE = 2, UNSCOPED_ID = 6, BIND_TO_ENCLOSING = 12 };
    vst__perfetto *self = of(timeline);
    vst__pf_category category = category_of(end->category);
    size_t legacy;

    if (category == VST_PF_TASK) {
        draw_mark(self, end);
        return;
    }
    vst__proto_clear(&self->event);
    vst__proto_u64(&self->event, VST_PF_EVENT_CATEGORY_IIDS, category);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID,
                   vst__pf_thread_uuid(self, end->process, end->tid));
    vst__proto_text(&self->event, VST_PF_EVENT_NAME, end->name);
    legacy = vst__proto_open(&self->event, VST_PF_EVENT_LEGACY);
    vst__proto_u64(&self->event, PHASE, end->is_head ? 'f' : 's');
    vst__proto_u64(&self->event, UNSCOPED_ID, end->id);
    if (end->is_head)
        vst__proto_u64(&self->event, BIND_TO_ENCLOSING, 1);
    vst__proto_close(&self->event, legacy);
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, end->time_ns));
}

static void draw_point(vst__timeline *timeline, const char *name,
                       int64_t time_ns, uint64_t bytes)
{
    vst__perfetto *self = of(timeline);
    /* There are two curves. */
    uint64_t *track = &self->memory_tracks[strcmp(name, "live memory") != 0];

    if (*track == 0) {
        *track = self->next_uuid++;
        note(self,
             vst__pf_put_track(self, *track, self->process_uuid,
                               VST_PF_TRACK_OF_BYTES, name, strlen(name)));
    }
    note(self, vst__pf_write_value(self, *track, time_ns, (double)bytes));
}

static void put_place(vst__perfetto *self, const vst_memory_event *event)
{
    const vst_trace *trace = self->timeline.trace;
    const vst_stack *stack = vst__timeline_find_place(trace, event->stack);
    const vst_definition *d =
        stack != NULL ? vst_trace_definition(trace, stack->function) : NULL;
    char line[VST_JSON_NUMBER_MAX + 2];
    char *end;

    if (d == NULL)
        return;
    vst__proto_clear(&self->text);
    vst__proto_raw(&self->text, d->file + d->file_skip,
                   d->file_len - d->file_skip);
    line[0] = ':';
    end = vst__json_i64(line + 1, stack->line);
    *end++ = ' ';
    vst__proto_raw(&self->text, line, (size_t)(end - line));
    vst__proto_raw(&self->text, d->name, d->name_len);
    if (!self->text.failed)
        vst__pf_arg_text(self, VST_PERFETTO_BESIDE, "At", self->text.bytes,
                         self->text.count);
}

static void draw_memory(vst__timeline *timeline, const char *name,
                        const vst_memory_event *event, uint64_t size)
{
    enum { BESIDE = VST_PERFETTO_BESIDE };
    vst__perfetto *self = of(timeline);
    const char *kind = vst_memory_kind_name(event->kind);

    vst__pf_open_on_thread(self, event->thread, VST_PF_MEMORY);
    vst__proto_text(&self->event, VST_PF_EVENT_NAME, name);
    vst__pf_arg_u64(self, BESIDE, "Total Reserved", 0);
    vst__pf_arg_u64(self, BESIDE, "Total Allocated", event->live_bytes);
    vst__pf_arg_i64(self, BESIDE, "Bytes",
                    event->flags & VST_MEMORY_FREES ? -(int64_t)event->size
                                                    : (int64_t)event->size);
    vst__pf_arg_i64(self, BESIDE, "Device Id", -1);
    vst__pf_arg_u64(self, BESIDE, "Device Type", 0);
    vst__pf_arg_u64(self, BESIDE, "Addr", event->address);
    vst__pf_arg_text(self, BESIDE, "Kind", kind, strlen(kind));
    put_place(self, event);
    if (event->stack != 0)
        vst__pf_arg_u64(self, BESIDE, "Stack id", event->stack);
    if (event->flags & VST_MEMORY_STALE_STACK)
        vst__pf_arg_u64(self, BESIDE, "stale stack", 1);
    if (event->weight != 1) {
        vst__pf_arg_u64(self, BESIDE, "Size", size);
        vst__pf_arg_double(self, BESIDE, "Weight", event->weight);
    }
    vst__pf_arg_u64(self, BESIDE, "Ev Idx", ++timeline->serial_max);
    note(self, vst__pf_write_event(self, BESIDE, event->time_ns));
}

static void draw_lane(vst__timeline *timeline, uint32_t thread, uint32_t tid,
                      const char *name, size_t name_len)
{
    vst__perfetto *self = of(timeline);
    const vst__timeline_process *process = timeline->process;
    uint32_t under = vst__timeline_tid(process, thread);

    note(self, vst__pf_put_track(self, vst__pf_thread_uuid(self, process, tid),
                                 vst__pf_thread_uuid(self, process, under),
                                 VST_PF_TRACK_OF_SPANS, name, name_len));
}

static void draw_task(vst__timeline *timeline, const vst__task_span *span)
{
    vst__perfetto *self = of(timeline);
    uint64_t uuid = vst__pf_thread_uuid(self, timeline->process, span->tid);
    vst__pf_category category = span->is_wait ? VST_PF_AWAIT : VST_PF_TASK;
    size_t text;

    vst__pf_open_event(self, VST_PF_BEGIN, category);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, uuid);
    text = vst__proto_open(&self->event, VST_PF_EVENT_NAME);
    vst__proto_raw_utf8(&self->event, span->name, span->name_len);
    vst__proto_close(&self->event, text);
    vst__pf_arg_u64(self, VST_PERFETTO_BESIDE, "task", span->task);
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, span->start_ns));
    vst__pf_open_event(self, VST_PF_END, category);
    vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, uuid);
    note(self, vst__pf_write_event(self, VST_PERFETTO_BESIDE, span->end_ns));
}

const vst__drawing vst__perfetto_drawing = {
    .span = vst__pf_draw_span,
    .end = draw_end,
    .point = draw_point,
    .memory = draw_memory,
    .state = vst__pf_draw_state,
    .lane = draw_lane,
    .task = draw_task,
    .stream = vst__pf_draw_stream,
    .activity = vst__pf_draw_activity,
    .annotated = vst__pf_draw_annotated,
    .number = vst__pf_draw_number,
    .fraction = vst__pf_draw_fraction,
    .definition = vst__pf_draw_definition,
};
