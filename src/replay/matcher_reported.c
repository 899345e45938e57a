/* Spans that a framework's backend measured by itself. They were told when the
 * recording stopped, with times and a thread of their own. */
#include "replay/matcher_stack.h"
#include "replay/operator.h"
#include "store/reader.h"

/* Later than any honest clock: an offset can be added. */
#define TIME_MAX (INT64_MAX / 2)

/* The number of a thread that the system knows by `tid`, of the newest if there
 * were several; the one that told where the trace does not have it. */
static uint32_t thread_of(const vst_trace *trace, uint64_t tid,
                          uint32_t otherwise)
{
    for (size_t i = vst_trace_thread_count(trace); i-- > 0;) {
        const vst_trace_thread *thread = vst_trace_thread_at(trace, i);
        if (thread->system_tid == tid)
            return thread->number;
    }
    return otherwise;
}

vst_status vst__matcher_reported(vst_matcher *matcher, const uint64_t *payload,
                                 uint32_t words, const vst_sink *sink)
{
    vst_operator op = {.sequence = -1};
    vst_span span = {
        .thread = matcher->thread,
        .running_ns = VST_RUNNING_UNKNOWN,
        .preempted_ns = VST_RUNNING_UNKNOWN,
        .gil_ns = VST_RUNNING_UNKNOWN,
        .paused_ns = VST_RUNNING_UNKNOWN,
        .compensated_ns = VST_RUNNING_UNKNOWN,
        .compensated_error_ns = VST_RUNNING_UNKNOWN,
        .flags = VST_SPAN_REPORTED,
        .op = &op,
    };

    if (words < VST_REPORTED_HEAD_WORDS || sink->reported == NULL)
        return VST_OK;
    span.id = (vst_id)(payload[0] & VST_ID_MAX);
    span.start_ns = (int64_t)payload[2];
    span.end_ns = (int64_t)payload[3];
    if (span.id == 0 || span.start_ns < 0 || span.end_ns < span.start_ns ||
        span.end_ns > TIME_MAX)
        return VST_OK;
    if (sink->trace != NULL) {
        span.thread = thread_of(sink->trace, payload[1], span.thread);
        span.start_ns += sink->trace->clock.offset_ns;
        span.end_ns += sink->trace->clock.offset_ns;
    }
    payload += VST_REPORTED_HEAD_WORDS;
    words -= VST_REPORTED_HEAD_WORDS;
    if (!vst__operator_read(payload, words, (vst__operator_wish){false, false},
                            &op, &matcher->text))
        return VST_E_NOMEM;
    op.sequence = -1;
    if (matcher->text.count != 0) {
        span.args = matcher->text.bytes + 2; /* behind the first ", " */
        span.args_len = matcher->text.count - 2;
    }
    return sink->reported(sink->ctx, &span);
}
