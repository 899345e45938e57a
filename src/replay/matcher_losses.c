/* Losses that a thread's records report: records that found no room, hooks that
 * were away, words that a bounded recording dropped. */
#include "replay/matcher_stack.h"

static vst_status matcher_lose(vst_matcher *matcher, vst_loss_kind kind,
                               int64_t start_ns, uint64_t records,
                               const vst_sink *sink)
{
    vst_loss loss = {
        .kind = kind,
        .thread = matcher->thread,
        .start_ns = start_ns,
        .end_ns = matcher->last_ns,
        .records = records,
    };

    /* while the hooks were away, nothing cost anything */
    if (kind != VST_LOSS_GAP)
        matcher->costs_lost_ns = matcher->last_ns;
    return sink->loss != NULL ? sink->loss(sink->ctx, &loss) : VST_OK;
}

vst_status vst__matcher_lost(vst_matcher *matcher, uint64_t records,
                             int64_t previous_ns, const vst_sink *sink)
{
    return matcher_lose(matcher, VST_LOSS_RECORDS,
                        previous_ns == INT64_MIN ? matcher->last_ns
                                                 : previous_ns,
                        records != 0 ? records : 1, sink);
}

vst_status vst__matcher_gap(vst_matcher *matcher, bool ends,
                            const vst_sink *sink)
{
    if (ends == !matcher->in_gap)
        return VST_OK; /* the other half of the pair was lost */
    matcher->in_gap = !ends;
    if (ends)
        return matcher_lose(matcher, VST_LOSS_GAP, matcher->gap_ns, 0, sink);
    matcher->gap_ns = matcher->last_ns;
    matcher->after_gap = true;
    return VST_OK;
}

/* Open calls are known up to the event before; a checkpoint says where the
 * thread goes on. */
vst_status vst__matcher_dropped(vst_matcher *matcher,
                                const vst_time_converter *converter,
                                const vst_compressed_event *event,
                                int64_t previous_ns, const vst_sink *sink)
{
    int64_t now_ns = matcher->last_ns, since_ns = now_ns;
    vst_status status = VST_OK;

    if (previous_ns != INT64_MIN)
        status =
            vst__matcher_close_all(matcher, previous_ns, VST_SPAN_CUT, sink);
    vst__matcher_reset(matcher);
    matcher->last_ns = now_ns;
    if (sink->recursion)
        vst__matcher_build_index(matcher);
    if (event->payload_words > 1)
        since_ns = converter->to_ns(converter->ctx, event->payload[1]);
    if (since_ns < previous_ns)
        since_ns = previous_ns;
    if (since_ns > now_ns)
        since_ns = now_ns;
    if (status == VST_OK)
        status = matcher_lose(matcher, VST_LOSS_DROPPED, since_ns,
                              event->payload[0], sink);
    /* the calls that are open now may begin a little earlier, so that each has
     * its own start */
    matcher->last_ns = since_ns;
    return status;
}
