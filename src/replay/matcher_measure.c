/* Measures the time of a span: how long its thread ran and waited in it, and
 * how long it would have taken without the recorder. One thread at a time. */
#include "replay/matcher_stack.h"

#include <inttypes.h>
#include <stdio.h>

void vst__matcher_begin_measure(vst_matcher *matcher, vst__frame *frame)
{
    frame->waited_ns = matcher->waited_ns;
    frame->costs = matcher->costs_so_far;
    if (matcher->running == NULL)
        return;
    frame->ran_ns = vst__running_at(matcher->running, frame->start_ns);
    frame->lost_ns = vst__running_lost_at(matcher->running, frame->start_ns);
}

/* Adds the compensated time to the members of a span. */
static vst_status measure_add_args(vst_matcher *matcher, vst__frame *frame,
                                   const vst_span *span)
{
    char text[128];
    int64_t ns = span->compensated_ns, error_ns = span->compensated_error_ns;
    int length = snprintf(text, sizeof text,
                          "\"compensated_us\": %" PRId64 ".%03d, "
                          "\"compensated_error_us\": %" PRId64 ".%03d",
                          ns / 1000, (int)(ns % 1000), error_ns / 1000,
                          (int)(error_ns % 1000));

    return vst__matcher_describe(matcher, frame, text, (size_t)length);
}

/* If records are missing inside a span, it cost more than the records show. */
static void matcher_compensate(vst_matcher *matcher, const vst__frame *frame,
                               vst_span *span, const vst_sink *sink)
{
    int64_t cost_ns, duration_ns = span->end_ns - frame->start_ns;

    if (frame->start_ns >= matcher->costs_lost_ns &&
        frame->waited_ns != VST_RUNNING_UNKNOWN) {
        vst__costs_between(
            matcher->costs, &frame->costs, &matcher->costs_so_far, frame->id,
            (uint64_t)duration_ns, &cost_ns, &span->compensated_error_ns);
        /* a damaged file may claim any cost */
        if (cost_ns > duration_ns || cost_ns < duration_ns - INT64_MAX)
            cost_ns = duration_ns;
        span->compensated_ns = duration_ns - cost_ns;
        if (span->compensated_error_ns > INT64_MAX / 2 - duration_ns)
            span->compensated_error_ns = INT64_MAX / 2 - duration_ns;
    }
    vst__costs_count(matcher->costs, &matcher->costs_so_far, frame->id);
    if (!vst__sink_inside(sink)->compensated)
        return;
    if (span->compensated_ns != VST_RUNNING_UNKNOWN)
        duration_ns = span->compensated_ns;
    /* more may have been subtracted from its children than they had */
    if (duration_ns < frame->children_ns)
        duration_ns = frame->children_ns;
    span->end_ns = frame->start_ns + duration_ns;
}

vst_status vst__matcher_measure(vst_matcher *matcher, vst__frame *frame,
                                vst_span *span, const vst_sink *sink)
{
    const vst_sink_inside *inside = vst__sink_inside(sink);
    bool is_ours = frame->waited_ns != VST_RUNNING_UNKNOWN;

    span->running_ns = span->preempted_ns = VST_RUNNING_UNKNOWN;
    span->compensated_ns = span->compensated_error_ns = VST_RUNNING_UNKNOWN;
    if (matcher->running != NULL && frame->ran_ns != VST_RUNNING_UNKNOWN)
        span->running_ns = vst__running_between(
            matcher->running, frame->start_ns, frame->ran_ns, span->end_ns);
    if (span->running_ns != VST_RUNNING_UNKNOWN)
        span->preempted_ns =
            vst__running_lost_at(matcher->running, span->end_ns) -
            frame->lost_ns;
    span->gil_ns = span->paused_ns = VST_RUNNING_UNKNOWN;
    if (is_ours && inside->knows_gil)
        span->gil_ns = matcher->waited_ns - frame->waited_ns;
    else if (is_ours && inside->knows_pauses)
        span->paused_ns = matcher->waited_ns - frame->waited_ns;
    if (inside->by_running)
        span->end_ns =
            frame->start_ns + (span->running_ns > 0 ? span->running_ns : 0);
    if (VST_LIKELY(matcher->costs == NULL))
        return VST_OK;
    matcher_compensate(matcher, frame, span, sink);
    return sink->tells_compensated &&
                   span->compensated_ns != VST_RUNNING_UNKNOWN
               ? measure_add_args(matcher, frame, span)
               : VST_OK;
}

/* If switches were recorded, only running time counts, because waiting is not
 * slower while recording. */
void vst__matcher_pass_time(vst_matcher *matcher, int64_t previous_ns)
{
    bool is_first = previous_ns == INT64_MIN;
    int64_t passed_ns = is_first ? 0 : matcher->last_ns - previous_ns;

    if (matcher->running != NULL) {
        int64_t ran_ns = vst__running_at(matcher->running, matcher->last_ns);

        if (ran_ns == VST_RUNNING_UNKNOWN)
            ran_ns = matcher->costs_ran_ns;
        passed_ns = ran_ns - matcher->costs_ran_ns;
        matcher->costs_ran_ns = ran_ns;
    }
    if (matcher->count != 0 && !is_first && passed_ns > 0 &&
        vst__costs_kind(matcher->costs,
                        matcher->frames[matcher->count - 1].id) ==
            VST_DEF_PYTHON) {
        vst__costs_pass(matcher->costs, &matcher->costs_so_far,
                        (uint64_t)passed_ns);
        vst__costs_pass_left_out(matcher->costs, &matcher->costs_so_far,
                                 previous_ns, matcher->last_ns,
                                 (uint64_t)passed_ns);
    }
}
