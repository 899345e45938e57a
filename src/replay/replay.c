/* Replays a trace: window by window, thread by thread, batch by batch, through
 * a tracer or the matcher. Memory is bounded by a batch and what is open at one
 * moment. One thread at a time uses a trace. */
#include "replay/replay.h"

#include <stdlib.h>

#include <vestige/replay.h>

#include "replay/decode.h"
#include "replay/far_ends.h"

enum { PROGRESS_NS = 50000000 };

struct vst__replay {
    vst_trace *trace;
    vst_tracer *tracer;
    vst_matcher *matcher; /* where there is no tracer */
    vst_sink sink;        /* the caller's, and far_ends */
    vst_far_ends far_ends;
    vst_time_converter converter;
    uint64_t words_total;
    uint64_t words_before; /* of the threads that are done */
    int64_t next_progress_ns;

    /* Where it is. */
    const vst__window *window, *last_window;     /* behind the last one */
    const vst__segment *segments, *last_segment; /* of the window: the next */
    bool in_window, in_thread;
    vst__decoder decoder;
    size_t events, fed; /* of the batch: how many, and how many were fed */
    bool last;          /* the thread has no batch behind it */
};

typedef struct vst__replay replay;

static vst_status tell_progress(replay *self)
{
    vst_trace *trace = self->trace;
    uint64_t words = self->words_before + vst__decoder_words(&self->decoder);
    vst_clock_sample now;

    if (trace->progress == NULL)
        return VST_OK;
    vst_clock_sample_now(&now);
    if (now.monotonic_ns < self->next_progress_ns)
        return VST_OK;
    self->next_progress_ns = now.monotonic_ns + PROGRESS_NS;
    return trace->progress(trace->progress_ctx,
                           (double)words / (double)self->words_total) == 0
               ? VST_OK
               : VST_E_CANCELLED;
}

static vst_status feed(replay *self, const vst_compressed_event *events,
                       size_t count, int64_t end_ns)
{
    if (self->tracer != NULL)
        return self->tracer->ops->get_events(
            self->tracer, &self->converter, events, count, end_ns, &self->sink);
    return vst_matcher_feed(self->matcher, &self->converter, events, count,
                            end_ns, &self->sink);
}

/* ---- steps -------------------------------------------------------------- */

static vst_status open_window(replay *self)
{
    const vst__window *window = self->window;

    self->in_window = true;
    self->segments = &self->trace->segments[window->segments];
    self->last_segment = self->segments;
    if (vst__window_is_gone(self->trace, window))
        return VST_OK;
    self->last_segment += window->segment_count;
    if (self->sink.far_ends == NULL || window->segment_count == 0)
        return VST_OK;
    return vst__far_ends_collect(&self->far_ends, self->trace, window,
                                 &self->decoder, &self->converter);
}

static void open_thread(replay *self)
{
    size_t left = (size_t)(self->last_segment - self->segments), count = 1;

    while (count < left &&
           self->segments[count].thread == self->segments->thread)
        count++;
    vst__decoder_open(&self->decoder, self->trace, self->window, self->segments,
                      count);
    self->segments += count;
    self->events = self->fed = 0;
    self->in_thread = true;
}

/* Events of the batch up to the next SWITCH: it may deliver all calls of a deep
 * stack, and the next one those of another. */
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
        status = feed(self, events + from, count, end_ns);
    }
    if (status == VST_OK)
        status = tell_progress(self);
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
        if (!self->in_window) {
            vst_status status = VST_OK;

            *done = self->window == self->last_window;
            if (!*done)
                status = open_window(self);
            if (*done || status != VST_OK)
                return status;
        } else if (self->segments == self->last_segment) {
            self->in_window = false;
            self->window++;
        } else {
            open_thread(self);
        }
    }
    return step_thread(self);
}

/* ---- the whole ---------------------------------------------------------- */

vst_status vst__replay_begin(vst_trace *trace, int window, vst_tracer *tracer,
                             const vst_sink *sink, replay **result)
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
    self->tracer = tracer;
    self->sink = *sink;
    self->converter = vst__clockmap_converter(&trace->clock);
    self->sink.far_ends =
        vst__trace_has_far_ends(trace) ? &self->far_ends : NULL;
    self->window = trace->windows + first;
    self->last_window = self->window + count;
    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    if (tracer == NULL)
        status = vst_matcher_create(&self->matcher);
    if (status == VST_OK)
        status = feed(self, NULL, 0, VST_TIME_OPEN);
    *result = self;
    if (status != VST_OK) {
        vst__replay_end(self);
        *result = NULL;
    }
    return status;
}

void vst__replay_end(replay *self)
{
    if (self == NULL)
        return;
    if (self->matcher != NULL) {
        vst_matcher_counts counts;
        vst_matcher_count(self->matcher, &counts);
        self->trace->unmatched_exits = counts.unmatched_exits;
    }
    vst_matcher_destroy(self->matcher);
    vst__decoder_close(&self->decoder);
    vst__far_ends_free(&self->far_ends);
    free(self);
}

vst_status vst_trace_replay(vst_trace *trace, int window, vst_tracer *tracer,
                            const vst_sink *sink, vst_error *error)
{
    replay *self;
    bool done = false;
    vst_status status = vst__replay_begin(trace, window, tracer, sink, &self);

    vst_error_set(error, VST_OK, 0, 0);
    while (status == VST_OK && !done)
        status = vst__replay_step(self, &done);
    vst__replay_end(self);
    if (status != VST_OK)
        vst_error_set(error, status,
                      status == VST_E_IO ? trace->block.sys_errno : 0, 0);
    return status;
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
