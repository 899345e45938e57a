/* speedscope's own format: for each thread a profile of events that open and
 * close frames, in whole nanoseconds since the first trace began.
 *
 * Spans that overlap their neighbours cannot be shown and are left out. One
 * thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/exporter.h"
#include "export/output/json.h"
#include "export/timeline/kept.h"
#include "store/reader.h"

typedef struct speedscope {
    vst__output *output;
    int64_t base_ns;
    size_t trace_count;
    bool any; /* a profile was written */

    /* functions in the order of their first use; NULL: unknown function */
    const vst_definition **frames;
    size_t frame_count, frame_capacity;

    /* For the trace that is being replayed: */
    const vst_trace *trace;
    /* by definition: 1 + index of its frame; the last entry is for unknown
     * functions */
    uint32_t *frame_of;

    /* For the thread that is being replayed: */
    uint32_t thread;
    vst__kept kept;
    size_t room; /* how many spans may still be kept */
    int64_t start_ns, end_ns;
    bool any_event;
} speedscope;

/* ---- a profile ----------------------------------------------------------- */

static vst_status put_event(speedscope *self, char type, uint32_t index,
                            int64_t time_ns)
{
    enum { EVENT_MAX = 128 };
    static const char head[] = ",\n{\"type\":\"O\",\"frame\":";
    char *at = vst__output_reserve(self->output, EVENT_MAX);
    size_t skip = self->any_event ? 0 : 1; /* skip the comma */

    memcpy(at, head + skip, sizeof head - 1 - skip);
    at[sizeof ",\n{\"type\":\"" - 1 - skip] = type;
    at = vst__json_u64(at + sizeof head - 1 - skip, index);
    memcpy(at, ",\"at\":", 6);
    at = vst__json_i64(at + 6, time_ns - self->base_ns);
    *at++ = '}';
    vst__output_commit(self->output, at);
    self->any_event = true;
    return self->output->status;
}

static vst_status put_open(void *ctx, const vst__kept_span *span)
{
    return put_event(ctx, 'O', span->function, span->start_ns);
}

static vst_status put_close(void *ctx, const vst__kept_span *span)
{
    return put_event(ctx, 'C', span->function, span->end_ns);
}

static void put_profile_name(speedscope *self)
{
    const vst_trace_thread *thread =
        vst_trace_thread_find(self->trace, self->thread);
    bool named = thread != NULL && thread->name_len != 0;
    size_t room = named ? thread->name_len : 0;
    char *text = malloc(room + 128), *at = text;

    if (text == NULL) {
        vst__output_text(self->output, "\"\"");
        return;
    }
    if (self->trace_count > 1) {
        memcpy(at, "process ", 8);
        at = vst__json_u64(at + 8, self->trace->header.pid);
        memcpy(at, ", ", 2);
        at += 2;
    }
    if (named) {
        memcpy(at, thread->name, thread->name_len);
        at += thread->name_len;
    } else {
        memcpy(at, "thread ", 7);
        at = vst__json_u64(at + 7, self->thread);
    }
    vst__json_string(self->output, text, (size_t)(at - text));
    free(text);
}

/* Writes everything that was kept of a thread. */
static vst_status write_profile(speedscope *self)
{
    vst__output *output = self->output;
    vst__kept_walk walk = {self, put_open, put_close};
    vst_status status;

    if (self->kept.count == 0)
        return VST_OK;
    vst__output_text(output, self->any ? ",\n" : "\n");
    self->any = true;
    vst__output_text(output, "{\"type\":\"evented\",\"name\":");
    put_profile_name(self);
    vst__output_text(output, ",\"unit\":\"nanoseconds\",\"startValue\":");
    vst__json_put_i64(output, self->start_ns - self->base_ns);
    vst__output_text(output, ",\"endValue\":");
    vst__json_put_i64(output, self->end_ns - self->base_ns);
    vst__output_text(output, ",\"events\":[");
    self->any_event = false;
    status = vst__kept_visit(&self->kept, &walk);
    vst__output_text(output, "]}");
    vst__kept_clear(&self->kept);
    return status;
}

/* ---- spans --------------------------------------------------------------- */

static bool speedscope_find_frame(speedscope *self, vst_id id, uint32_t *index)
{
    size_t at = vst__trace_definition_index(self->trace, id);
    bool known = at != VST_NO_DEFINITION;
    uint32_t *number =
        &self->frame_of[known ? at : self->trace->definition_count];

    if (*number == 0) {
        if (!VST_RESERVE(self->frames, self->frame_count + 1,
                         self->frame_capacity))
            return false;
        self->frames[self->frame_count++] =
            known ? &self->trace->definitions[at] : NULL;
        *number = (uint32_t)self->frame_count;
    }
    *index = *number - 1;
    return true;
}

static vst_status keep_span(void *ctx, const vst_span *span)
{
    speedscope *self = ctx;
    vst_status status = VST_OK;
    uint32_t index;

    if (span->flags & VST_SPAN_ASYNC)
        return VST_OK;
    if (self->thread != span->thread) {
        status = write_profile(self);
        self->thread = span->thread;
    }
    if (status != VST_OK)
        return status;
    if (self->kept.count == 0 || span->start_ns < self->start_ns)
        self->start_ns = span->start_ns;
    if (self->kept.count == 0 || span->end_ns > self->end_ns)
        self->end_ns = span->end_ns;
    if (!speedscope_find_frame(self, span->id, &index))
        return VST_E_NOMEM;
    return vst__kept_add(&self->kept, span, index);
}

/* ---- the document -------------------------------------------------------- */

static void speedscope_put_frames(speedscope *self)
{
    static const char unknown[] = "unknown function";
    vst__output *output = self->output;

    for (size_t i = 0; i < self->frame_count; i++) {
        const vst_definition *d = self->frames[i];

        vst__output_text(output, i != 0 ? ",\n{\"name\":" : "\n{\"name\":");
        if (d == NULL)
            vst__json_string(output, unknown, sizeof unknown - 1);
        else if (d->kind == VST_DEF_GC)
            vst__output_text(output, "\"Python GC\"");
        else
            vst__json_string(output, d->name, d->name_len);
        if (d != NULL && d->kind == VST_DEF_PYTHON) {
            vst__output_text(output, ",\"file\":");
            vst__json_string(output, d->file, d->file_len);
            vst__output_text(output, ",\"line\":");
            vst__json_put_i64(output, d->line);
        }
        vst__output_text(output, "}");
    }
}

static vst_status write_trace(speedscope *self, vst_trace *trace,
                              const vst_export_options *options,
                              vst_error *error)
{
    vst_sink sink = {.ctx = self, .span = keep_span};
    vst_status status;

    self->trace = trace;
    self->thread = UINT32_MAX;
    self->room = vst__kept_room(trace);
    self->kept.room = &self->room;
    self->frame_of =
        calloc(trace->definition_count + 1, sizeof *self->frame_of);
    if (self->frame_of == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    if (status == VST_OK) {
        status = write_profile(self);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
    }
    free(self->frame_of);
    return status;
}

static vst_status write_speedscope(vst_trace *const *traces, size_t count,
                                   const vst_export_options *options,
                                   vst__output *output, vst_error *error)
{
    speedscope self = {
        .output = output, .base_ns = INT64_MAX, .trace_count = count};
    const char *slash = strrchr(output->path, '/');
    const char *name = slash != NULL ? slash + 1 : output->path;
    vst_status status = VST_OK;

    for (size_t i = 0; i < count; i++) {
        int64_t start_ns = vst__clockmap_to_ns(&traces[i]->clock,
                                               traces[i]->header.start.ticks);
        if (start_ns < self.base_ns)
            self.base_ns = start_ns;
    }
    vst__output_text(
        output,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
        "\n\"exporter\":\"vestige\",\n\"name\":");
    vst__json_string(output, name, strlen(name));
    vst__output_text(output, ",\n\"profiles\":[");
    for (size_t i = 0; i < count && status == VST_OK; i++)
        status = write_trace(&self, traces[i], options, error);
    vst__output_text(output, "],\n\"shared\":{\"frames\":[");
    speedscope_put_frames(&self);
    vst__output_text(output, "]}}\n");
    free(self.frames);
    vst__kept_free(&self.kept);
    return status;
}

const vst__exporter vst__exporter_speedscope = {
    "speedscope", ".speedscope.json", .write = write_speedscope};
