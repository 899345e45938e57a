/* Replays a trace into a sink of events: window by window, thread by thread,
 * batch by batch. If spans are wanted, the sink is the matcher, or a tracer.
 * Memory is bounded by a batch and by the calls that are open at one moment.
 * One thread at a time uses a trace. */
#include "replay/replay.h"

#include <stdlib.h>

#include "os/progress.h"
#include "replay/costs.h"
#include "replay/decode.h"
#include "replay/devices.h"
#include "replay/far_ends.h"
#include "replay/imports.h"
#include "replay/matcher.h"
#include "replay/running.h"
#include "replay/sink.h"

/* Makes spans from events. */
typedef struct span_maker {
    vst_tracer *tracer;
    vst_matcher *matcher;   /* used if there is no tracer */
    vst_sink sink;          /* the caller's sink, but for `inside` */
    vst_sink_inside inside; /* values found by the members below */
    vst_devices devices;
    vst_far_ends far_ends;
    vst_running running;
    vst_imports imports;
    vst_costs costs;
} span_maker;

struct vst__replay {
    vst_trace *trace;
    vst_event_sink sink;
    span_maker spans; /* all zero if no spans are wanted */
    vst_time_converter converter;
    uint64_t words_total;
    uint64_t words_before; /* words of the threads that are done */
    int64_t next_progress_ns;

    /* Position in the trace. */
    const vst__window *window, *last_window; /* end of the windows */
    /* next segment of the window, and end of its segments */
    const vst__segment *segments, *last_segment;
    bool in_window, in_thread;
    vst__decoder decoder;
    /* number of events in the batch, and how many were fed */
    size_t events, fed;
    bool last; /* this is the thread's last batch */
};

typedef struct vst__replay replay;

static vst_status replay_report_progress(replay *self)
{
    vst_trace *trace = self->trace;
    uint64_t words = self->words_before + vst__decoder_words(&self->decoder);

    return vst__progress_report(trace->progress, trace->progress_ctx,
                                &self->next_progress_ns,
                                (double)words / (double)self->words_total);
}

static vst_status replay_feed(replay *self, const vst_compressed_event *events,
                              size_t count, int64_t end_ns)
{
    return self->sink.events(self->sink.ctx, &self->converter, events, count,
                             end_ns);
}

/* ---- spans --------------------------------------------------------------- */

static vst_status feed_tracer(void *ctx, const vst_time_converter *converter,
                              const vst_compressed_event *events, size_t count,
                              int64_t end_ns)
{
    const span_maker *self = ctx;

    return self->tracer->ops->get_events(self->tracer, converter, events, count,
                                         end_ns, &self->sink);
}

static vst_status feed_matcher(void *ctx, const vst_time_converter *converter,
                               const vst_compressed_event *events, size_t count,
                               int64_t end_ns)
{
    const span_maker *self = ctx;

    return vst_matcher_feed(self->matcher, converter, events, count, end_ns,
                            &self->sink);
}

/* ---- steps --------------------------------------------------------------- */

static vst_status open_window(replay *self)
{
    const vst__window *window = self->window;
    vst_status status = VST_OK;

    self->in_window = true;
    self->segments = &self->trace->segments[window->segments];
    self->last_segment = self->segments;
    if (vst__window_is_gone(self->trace, window))
        return VST_OK;
    self->last_segment += window->segment_count;
    if (window->segment_count == 0)
        return VST_OK;
    if (self->spans.inside.devices != NULL)
        status =
            vst__activities_collect(&self->spans.devices, self->trace, window);
    if (status == VST_OK && self->spans.inside.running != NULL)
        status =
            vst__running_collect(&self->spans.running, self->trace, window);
    if (status == VST_OK && self->spans.inside.far_ends != NULL)
        status =
            vst__far_ends_collect(&self->spans.far_ends, self->trace, window,
                                  &self->decoder, &self->converter);
    return status;
}

static vst_status open_thread(replay *self)
{
    uint32_t thread = self->segments->thread;
    size_t left = (size_t)(self->last_segment - self->segments), count = 1;

    while (count < left && self->segments[count].thread == thread)
        count++;
    vst__decoder_open(&self->decoder, self->trace, self->window, self->segments,
                      count);
    self->segments += count;
    self->events = self->fed = 0;
    self->in_thread = true;
    return self->spans.inside.running != NULL
               ? vst__running_open(&self->spans.running, thread)
               : VST_OK;
}

/* Returns how many events of the batch come up to the next SWITCH: one SWITCH
 * may deliver all calls of a deep stack, and the next one those of another
 * stack. */
static size_t count_step(const replay *self)
{
    const uint32_t switches = vst_trace_key_kind_of_escape(VST_ESCAPE_SWITCH);
    size_t at = self->fed;

    while (at < self->events &&
           vst_trace_key_kind(self->decoder.events[at].key) != switches)
        at++;
    return at < self->events ? at + 1 - self->fed : at - self->fed;
}

static vst_status step_thread(replay *self)
{
    const vst_compressed_event *events = self->decoder.events;
    int64_t end_ns = VST_TIME_OPEN;
    vst_status status = VST_OK;
    bool last = false;

    if (self->fed == self->events) {
        self->fed = 0;
        status = vst__decoder_next(&self->decoder, &self->events, &self->last);
    }
    if (status == VST_OK) {
        size_t from = self->fed, count = count_step(self);

        self->fed += count;
        last = self->last && self->fed == self->events;
        if (last)
            end_ns =
                self->converter.to_ns(self->converter.ctx, self->window->last);
        status = replay_feed(self, events + from, count, end_ns);
        if (status == VST_OK)
            status = self->spans.running.status;
    }
    if (status == VST_OK)
        status = replay_report_progress(self);
    if (status == VST_OK && last) {
        self->words_before += vst__decoder_words(&self->decoder);
        self->in_thread = false;
    }
    return status;
}

vst_status vst__replay_step(replay *self, bool *done)
{
    *done = false;
    while (!self->in_thread) {
        vst_status status = VST_OK;

        if (!self->in_window) {
            *done = self->window == self->last_window;
            if (!*done)
                status = open_window(self);
            if (*done)
                return status;
        } else if (self->segments == self->last_segment) {
            bool more = false;

            if (self->spans.inside.devices != NULL)
                status = vst__activities_deliver(&self->spans.devices,
                                                 &self->spans.sink, &more);
            if (status != VST_OK || more)
                return status;
            self->in_window = false;
            self->window++;
        } else {
            status = open_thread(self);
        }
        if (status != VST_OK)
            return status;
    }
    return step_thread(self);
}

const vst__window *vst__replay_window(const replay *self)
{
    return self->window;
}

/* ---- the whole ----------------------------------------------------------- */

static vst_status replay_create(vst_trace *trace, int window, replay **result)
{
    size_t first, count;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &count);
    replay *self;

    *result = NULL;
    if (status != VST_OK)
        return status;
    self = calloc(1, sizeof *self);
    if (self == NULL)
        return VST_E_NOMEM;
    self->trace = trace;
    self->converter = vst__clockmap_converter(&trace->clock);
    self->window = trace->windows + first;
    self->last_window = self->window + count;
    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    *result = self;
    return VST_OK;
}

static vst_status begin_reading(replay **made)
{
    vst_status status = replay_feed(*made, NULL, 0, VST_TIME_OPEN);

    if (status != VST_OK) {
        vst__replay_end(*made);
        *made = NULL;
    }
    return status;
}

static vst_status begin_events(vst_trace *trace, int window,
                               const vst_event_sink *sink, replay **result)
{
    vst_status status = replay_create(trace, window, result);

    if (status != VST_OK)
        return status;
    (*result)->sink = *sink;
    return begin_reading(result);
}

static vst_status begin_spans(vst_trace *trace, int window, vst_tracer *tracer,
                              const vst_sink *sink, replay **result)
{
    vst_status status = replay_create(trace, window, result);
    replay *self = *result;
    vst_sink_inside *inside;

    if (status != VST_OK)
        return status;
    inside = &self->spans.inside;
    self->spans.tracer = tracer;
    self->spans.sink = *sink;
    *inside = *vst__sink_inside(sink);
    self->spans.sink.inside = inside;
    inside->far_ends =
        vst__trace_has_far_ends(trace) ? &self->spans.far_ends : NULL;
    inside->running =
        vst__trace_has_switches(trace) ? &self->spans.running : NULL;
    inside->devices = sink->device != NULL && trace->devices.count != 0
                          ? &self->spans.devices
                          : NULL;
    inside->knows_gil = vst__trace_has_gil_waits(trace);
    inside->knows_pauses = vst__trace_has_object_waits(trace);
    inside->by_running = trace->by_running;
    inside->trace = trace;
    inside->compensated = trace->compensated;
    if ((!sink->no_imports &&
         !vst__imports_make(&self->spans.imports, trace)) ||
        !vst__costs_make(&self->spans.costs, trace)) {
        vst__replay_end(self);
        *result = NULL;
        return VST_E_NOMEM;
    }
    inside->imports =
        self->spans.imports.class_of != NULL ? &self->spans.imports : NULL;
    inside->costs = vst__costs_known(&self->spans.costs);
    self->sink.ctx = &self->spans;
    self->sink.events = tracer != NULL ? feed_tracer : feed_matcher;
    if (tracer == NULL)
        status = vst_matcher_create(&self->spans.matcher);
    if (status != VST_OK) {
        vst__replay_end(self);
        *result = NULL;
        return status;
    }
    return begin_reading(result);
}

vst_status vst__replay_begin(vst_trace *trace, int window, const vst_sink *sink,
                             replay **result)
{
    return begin_spans(trace, window, NULL, sink, result);
}

void vst__replay_end(replay *self)
{
    if (self == NULL)
        return;
    if (self->spans.matcher != NULL) {
        vst_matcher_counts counts;
        vst__matcher_count(self->spans.matcher, &counts);
        self->trace->unmatched_exits = counts.unmatched_exits;
    }
    vst_matcher_destroy(self->spans.matcher);
    vst__decoder_close(&self->decoder);
    vst__far_ends_free(&self->spans.far_ends);
    vst__running_free(&self->spans.running);
    vst__activities_free(&self->spans.devices);
    vst__imports_free(&self->spans.imports);
    vst__costs_free(&self->spans.costs);
    free(self);
}

/* Replays to the end; `status` is the status of the beginning. */
static vst_status replay_run(vst_trace *trace, replay *self, vst_status status,
                             vst_error *error)
{
    bool done = false;

    vst_error_set(error, VST_OK, 0, 0);
    while (status == VST_OK && !done)
        status = vst__replay_step(self, &done);
    vst__replay_end(self);
    if (status != VST_OK)
        vst_error_set(error, status,
                      status == VST_E_IO ? trace->source.sys_errno : 0, 0);
    return status;
}

vst_status vst_trace_replay(vst_trace *trace, int window, vst_tracer *tracer,
                            const vst_sink *sink, vst_error *error)
{
    replay *self;
    vst_status status = begin_spans(trace, window, tracer, sink, &self);

    return replay_run(trace, self, status, error);
}

vst_status vst__trace_replay_events(vst_trace *trace, int window,
                                    const vst_event_sink *sink,
                                    vst_error *error)
{
    replay *self;
    vst_status status = begin_events(trace, window, sink, &self);

    return replay_run(trace, self, status, error);
}

uint64_t vst_trace_unmatched_exits(const vst_trace *trace)
{
    return trace->unmatched_exits;
}

void vst_trace_set_progress(vst_trace *trace, vst_progress_fn fn, void *ctx)
{
    trace->progress = fn;
    trace->progress_ctx = ctx;
}
