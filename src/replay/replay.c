/* Replays a trace: window by window, thread by thread, batch by batch, through
 * a tracer or the matcher. Memory is bounded by a batch and what is open at one
 * moment. One thread at a time uses a trace. */
#include <stdlib.h>

#include <vestige/replay.h>

#include "replay/decode.h"
#include "replay/far_ends.h"

enum { PROGRESS_NS = 50000000 };

/* One vst_trace_replay. */
typedef struct replay {
    vst_trace *trace;
    vst_tracer *tracer;
    vst_matcher *matcher; /* where there is no tracer */
    vst_sink sink;        /* the caller's, and far_ends */
    vst_far_ends far_ends;
    vst_time_converter converter;
    vst__decoder *decoder;
    uint64_t words_total;
    uint64_t words_before; /* of the threads that are done */
    int64_t next_progress_ns;
} replay;

static vst_status tell_progress(replay *self)
{
    vst_trace *trace = self->trace;
    uint64_t words = self->words_before + vst__decoder_words(self->decoder);
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

static vst_status replay_thread(replay *self, const vst__window *window,
                                const vst__segment *segments, size_t count)
{
    int64_t end_ns = self->converter.to_ns(self->converter.ctx, window->last);
    bool last = false;

    vst__decoder_open(self->decoder, self->trace, window, segments, count);
    while (!last) {
        size_t events;
        vst_status status = vst__decoder_next(self->decoder, &events, &last);

        if (status == VST_OK)
            status = feed(self, self->decoder->events, events,
                          last ? end_ns : VST_TIME_OPEN);
        if (status == VST_OK)
            status = tell_progress(self);
        if (status != VST_OK)
            return status;
    }
    self->words_before += vst__decoder_words(self->decoder);
    return VST_OK;
}

static vst_status replay_window(replay *self, const vst__window *window)
{
    size_t next = window->segments, left = window->segment_count;

    if (vst__window_is_gone(self->trace, window))
        left = 0;
    if (self->sink.far_ends != NULL && left != 0) {
        vst_status status =
            vst__far_ends_collect(&self->far_ends, self->trace, window,
                                  self->decoder, &self->converter);
        if (status != VST_OK)
            return status;
    }
    while (left != 0) {
        const vst__segment *segments = &self->trace->segments[next];
        size_t count = 1;
        vst_status status;

        while (count < left && segments[count].thread == segments->thread)
            count++;
        status = replay_thread(self, window, segments, count);
        if (status != VST_OK)
            return status;
        next += count;
        left -= count;
    }
    return VST_OK;
}

static vst_status replay_windows(replay *self, size_t first, size_t count)
{
    const vst_trace *trace = self->trace;
    vst_status status = VST_OK;

    for (size_t i = first; i < first + count; i++)
        self->words_total += trace->windows[i].words;
    for (size_t i = first; status == VST_OK && i < first + count; i++)
        status = replay_window(self, &trace->windows[i]);
    return status;
}

vst_status vst_trace_replay(vst_trace *trace, int window, vst_tracer *tracer,
                            const vst_sink *sink, vst_error *error)
{
    replay self = {
        .trace = trace,
        .tracer = tracer,
        .sink = *sink,
        .converter = vst__clockmap_converter(&trace->clock),
    };
    size_t first, count;
    vst_status status =
        vst__trace_select_windows(trace, window, &first, &count);

    vst_error_set(error, VST_OK, 0, 0);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    self.sink.far_ends = vst__trace_has_far_ends(trace) ? &self.far_ends : NULL;
    if (tracer == NULL)
        status = vst_matcher_create(&self.matcher);
    self.decoder = calloc(1, sizeof *self.decoder);
    if (self.decoder == NULL)
        status = VST_E_NOMEM;
    if (status == VST_OK)
        status = feed(&self, NULL, 0, VST_TIME_OPEN);
    if (status == VST_OK)
        status = replay_windows(&self, first, count);
    if (self.matcher != NULL) {
        vst_matcher_counts counts;
        vst_matcher_count(self.matcher, &counts);
        trace->unmatched_exits = counts.unmatched_exits;
    }
    vst_matcher_destroy(self.matcher);
    if (self.decoder != NULL)
        vst__decoder_close(self.decoder);
    free(self.decoder);
    vst__far_ends_free(&self.far_ends);
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
