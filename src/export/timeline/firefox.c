/* Writes profiles for the Firefox Profiler (profiler.firefox.com): calls are
 * samples whose weight is their own time; annotations, collections, operators,
 * instants, losses and whatever has arguments or overlaps the stack are markers
 * too; counters and live memory are tracks. See firefox.h.
 *
 * What is kept while a thread is read: 32 bytes a span, 48 and its arguments a
 * marker; a trace of several windows is kept whole, as its threads come anew in
 * each. One thread at a time. */
#include "export/timeline/firefox.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "export/exporter.h"

/* ---- what a replay tells ------------------------------------------------ */

static vst_status find_function(vst__firefox *self, vst_id id, uint32_t *index)
{
    const vst_trace *trace = self->timeline.trace;
    size_t at = vst__trace_definition_index(trace, id);
    bool known = at != VST_NO_DEFINITION;
    uint32_t *number = &self->function_of[known ? at : trace->definition_count];
    vst_status status = VST_OK;

    if (*number == 0) {
        status = vst__tree_find_function(
            &self->tree, known ? &trace->definitions[at] : NULL, index);
        if (status != VST_OK)
            return status;
        *number = *index + 1;
    }
    *index = *number - 1;
    return status;
}

static vst__ff_thread *add_thread(vst__firefox *self, uint32_t number)
{
    vst__ff_thread *threads =
        vst__grow(self->threads, &self->thread_capacity, self->thread_count + 1,
                  sizeof *threads);

    if (threads == NULL)
        return NULL;
    self->threads = threads;
    threads[self->thread_count] =
        (vst__ff_thread){.number = number, .kept = {.room = &self->room}};
    return &threads[self->thread_count++];
}

/* With a single window a thread comes once, and the one before is done. */
static vst_status turn_to(vst__firefox *self, uint32_t number)
{
    bool once = self->timeline.process->window_count == 1;
    vst_status status = VST_OK;

    if (self->thread != NULL && self->thread->number == number)
        return VST_OK;
    if (once && self->thread != NULL) {
        status = vst__ff_put_thread(self, self->thread);
        self->thread->number = number;
        return status;
    }
    self->thread = NULL;
    for (size_t i = 0; i < self->thread_count; i++)
        if (self->threads[i].number == number)
            self->thread = &self->threads[i];
    if (self->thread == NULL)
        self->thread = add_thread(self, number);
    return self->thread != NULL ? VST_OK : VST_E_NOMEM;
}

static bool is_marker(const vst_definition *d, const vst_span *span)
{
    bool is_call = d == NULL || d->kind == VST_DEF_PYTHON ||
                   d->kind == VST_DEF_NATIVE || d->kind == VST_DEF_MODULE;

    return !is_call || span->args_len != 0 || span->flags & VST_SPAN_ASYNC;
}

static vst_status take_span(void *ctx, const vst_span *span)
{
    vst__firefox *self = ctx;
    const vst_definition *d =
        vst_trace_definition(self->timeline.trace, span->id);
    uint32_t function;
    vst_status status = turn_to(self, span->thread);

    if (status == VST_OK)
        status = find_function(self, span->id, &function);
    if (status == VST_OK && is_marker(d, span))
        status = vst__ff_add_marker(
            self->thread,
            &(vst__ff_marker){
                .start_ns = span->start_ns,
                .end_ns = span->end_ns,
                .name = VST_FF_FUNCTIONS + function,
                .kind = d != NULL ? vst__ff_kind(d->kind) : 0,
            },
            span->args, span->args_len);
    if (status == VST_OK && !(span->flags & VST_SPAN_ASYNC))
        status = vst__kept_add(&self->thread->kept, span, function);
    return status;
}

static vst_status take_instant(void *ctx, const vst_instant *instant)
{
    vst__firefox *self = ctx;
    uint32_t function;
    vst_status status = turn_to(self, instant->thread);

    if (status == VST_OK)
        status = find_function(self, instant->id, &function);
    if (status != VST_OK)
        return status;
    return vst__ff_add_marker(self->thread,
                              &(vst__ff_marker){
                                  .start_ns = instant->time_ns,
                                  .name = VST_FF_FUNCTIONS + function,
                                  .kind = VST_DEF_INSTANT,
                                  .is_instant = true,
                              },
                              instant->args, instant->args_len);
}

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    vst__firefox *self = ctx;
    char text[VST_JSON_NUMBER_MAX + sizeof "\"records\": "] = "\"records\": ";
    char *end = vst__json_u64(text + strlen(text), loss->records);
    vst_status status = turn_to(self, loss->thread);

    if (status != VST_OK)
        return status;
    return vst__ff_add_marker(
        self->thread,
        &(vst__ff_marker){
            .start_ns = loss->start_ns,
            .end_ns = loss->end_ns,
            .name = loss->kind == VST_LOSS_GAP       ? VST_FF_GAP
                    : loss->kind == VST_LOSS_DROPPED ? VST_FF_DROPPED
                                                     : VST_FF_LOST,
        },
        text, loss->records != 0 ? (size_t)(end - text) : 0);
}

static vst_status add_point(vst__firefox *self, uint32_t name, int64_t time_ns,
                            double value)
{
    vst__ff_point *points = vst__grow(self->points, &self->point_capacity,
                                      self->point_count + 1, sizeof *points);

    if (points == NULL)
        return VST_E_NOMEM;
    self->points = points;
    points[self->point_count] = (vst__ff_point){
        .time_ns = time_ns,
        .value = value,
        .process =
            (uint32_t)(self->timeline.process - self->timeline.processes),
        .name = name,
        .order = self->point_count,
    };
    self->point_count++;
    return VST_OK;
}

/* What is no number has no place on a curve. */
static vst_status take_counter(void *ctx, const vst_counter *counter)
{
    vst__firefox *self = ctx;
    uint32_t function;
    vst_status status = find_function(self, counter->id, &function);

    if (status != VST_OK || !isfinite(counter->value))
        return status;
    return add_point(self, VST_FF_FUNCTIONS + function, counter->time_ns,
                     counter->value);
}

static void draw_point(vst__timeline *timeline, const char *name,
                       int64_t time_ns, uint64_t bytes)
{
    vst__firefox *self = (vst__firefox *)timeline;
    bool all = strcmp(name, "live memory") == 0;

    if (self->status == VST_OK)
        self->status =
            add_point(self, all ? VST_FF_MEMORY : VST_FF_FRAMEWORK_MEMORY,
                      time_ns, (double)bytes);
}

/* ---- the document ------------------------------------------------------- */

/* Threads that are left; one at least, as a process is what its threads are. */
static vst_status put_threads(vst__firefox *self, size_t before)
{
    vst_status status = VST_OK;

    if (self->thread_count == 0 && self->thread_total == before &&
        add_thread(self, 0) == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < self->thread_count && status == VST_OK; i++)
        status = vst__ff_put_thread(self, &self->threads[i]);
    return status;
}

static vst_status write_process(vst__firefox *self,
                                vst__timeline_process *process,
                                const vst_export_options *options,
                                vst_error *error)
{
    vst__timeline *timeline = &self->timeline;
    vst_export_options of_curves = *options;
    vst_sink sink = {
        .ctx = self,
        .span = take_span,
        .instant = take_instant,
        .counter = take_counter,
        .loss = take_loss,
        .tells_compensated = true,
    };
    size_t before = self->thread_total;
    vst_status status;

    timeline->process = process;
    timeline->trace = process->trace;
    of_curves.no_memory_events = true;
    self->main_threads[process - timeline->processes] = (uint32_t)before;
    self->function_of =
        calloc(process->trace->definition_count + 1, sizeof *self->function_of);
    if (self->function_of == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->room = vst__kept_room(timeline->trace);
    status = vst__timeline_replay(timeline, &of_curves, &sink, error);
    if (status == VST_OK) {
        status = self->status;
        if (status == VST_OK)
            status = put_threads(self, before);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
    }
    for (size_t i = 0; i < self->thread_count; i++)
        vst__ff_free_thread(&self->threads[i]);
    self->thread_count = 0;
    self->thread = NULL;
    free(self->function_of);
    self->function_of = NULL;
    return status;
}

static vst_status write_document(vst__firefox *self, int64_t end_ns,
                                 const vst_export_options *options,
                                 vst_error *error)
{
    vst__timeline *timeline = &self->timeline;
    vst_status status = VST_OK;

    vst__ff_put_meta(self, end_ns);
    vst__output_text(timeline->output,
                     ",\n\"libs\":[],\"pages\":[],\n\"threads\":[");
    for (size_t i = 0; status == VST_OK && i < timeline->process_count; i++)
        status = write_process(self, &timeline->processes[i], options, error);
    if (status != VST_OK)
        return status;
    vst__output_text(timeline->output, "]");
    vst__ff_put_counters(self);
    status = vst__ff_put_shared(self);
    vst__output_text(timeline->output, "}\n");
    return status == VST_OK ? VST_OK : vst_error_set(error, status, 0, 0);
}

static void free_all(vst__firefox *self)
{
    vst__tree_free(&self->tree);
    vst__map64_free(&self->stack_of);
    free(self->stacks);
    free(self->points);
    free(self->main_threads);
    free(self->threads);
    free(self->samples);
    vst__timeline_end(&self->timeline);
}

static vst_status write_firefox(vst_trace *const *traces, size_t count,
                                const vst_export_options *options,
                                const char *path, vst__output *output,
                                vst_error *error)
{
    static const vst__drawing drawing = {.point = draw_point};
    vst__firefox self = {
        .timeline = {.drawing = &drawing, .output = output},
        .base_ns = INT64_MAX,
        .tree = {.known = vst__intern_create()},
        .main_threads = calloc(count + 1, sizeof *self.main_threads),
    };
    int64_t end_ns = INT64_MIN;
    vst_status status = self.tree.known != NULL && self.main_threads != NULL
                            ? vst__timeline_begin(&self.timeline, traces, count,
                                                  options->window)
                            : VST_E_NOMEM;

    (void)path;
    for (size_t i = 0; i < count; i++) {
        vst_trace_info info;

        vst_trace_get_info(traces[i], &info);
        if (info.start_ns < self.base_ns)
            self.base_ns = info.start_ns;
        if (info.end_ns > end_ns)
            end_ns = info.end_ns;
    }
    status = status == VST_OK ? write_document(&self, end_ns, options, error)
                              : vst_error_set(error, status, 0, 0);
    free_all(&self);
    return status;
}

const vst__exporter vst__exporter_firefox = {"firefox", ".firefox.json",
                                             write_firefox};
