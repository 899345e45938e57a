/* Waits that were recorded, and how much of a thread's time they took. */
#include "base/wait_reasons.h"
#include "replay/matcher_stack.h"

/* A thread records nothing while it waits, so no wait began before the previous
 * event, nor before the end of the previous wait. Waits that the thread stored
 * late follow each other, all with the time at which they were written. */
vst_status vst__matcher_waited(vst_matcher *matcher,
                               const vst_time_converter *converter,
                               const vst_compressed_event *event,
                               int64_t previous_ns, const vst_sink *sink)
{
    const uint64_t *payload = event->payload;
    vst_wait wait = {.thread = matcher->thread};

    if (event->payload_words < 3)
        return VST_OK;
    wait.reason = (uint32_t)payload[2];
    wait.holder = (uint32_t)(payload[2] >> 32);
    wait.start_ns = converter->to_ns(converter->ctx, payload[0]);
    wait.end_ns = converter->to_ns(converter->ctx, payload[1]);
    if (previous_ns != matcher->wait_event_ns &&
        previous_ns > matcher->waited_until_ns)
        matcher->waited_until_ns = previous_ns;
    matcher->wait_event_ns = matcher->last_ns;
    if (wait.start_ns < matcher->waited_until_ns)
        wait.start_ns = matcher->waited_until_ns;
    if (wait.end_ns <= wait.start_ns)
        return VST_OK;
    matcher->waited_until_ns = wait.end_ns;
    if (vst__wait_is_of_language(wait.reason))
        matcher->waited_ns += wait.end_ns - wait.start_ns;
    if (matcher->count != 0) {
        wait.id = matcher->frames[matcher->count - 1].id;
        wait.serial = matcher->frames[matcher->count - 1].serial;
    }
    return sink->wait != NULL ? sink->wait(sink->ctx, &wait) : VST_OK;
}
