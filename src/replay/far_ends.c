/* Collects far ends, see far_ends.h. */
#include "replay/far_ends.h"

bool vst__trace_has_far_ends(const vst_trace *trace)
{
    for (size_t i = 0; i < trace->definition_count; i++)
        if ((int)trace->definitions[i].kind == VST_DEF_FAR_ENDS)
            return true;
    return false;
}

static vst_status far_ends_take(vst_far_ends *self,
                                const vst_compressed_event *events,
                                size_t count,
                                const vst_time_converter *converter)
{
    const uint32_t wanted = vst_trace_key_kind_of_escape(VST_ESCAPE_FAR_END);

    for (size_t i = 0; i < count; i++) {
        uint64_t *end;

        if (vst_trace_key_kind(events[i].key) != wanted ||
            events[i].payload_words == 0)
            continue;
        end = vst__map64_put(&self->ends, events[i].payload[0]);
        if (end == NULL)
            return VST_E_NOMEM;
        if (*end == 0)
            *end = (uint64_t)converter->to_ns(converter->ctx, events[i].ticks);
    }
    return VST_OK;
}

vst_status vst__far_ends_collect(vst_far_ends *self, vst_trace *trace,
                                 const vst__window *window,
                                 vst__decoder *decoder,
                                 const vst_time_converter *converter)
{
    const vst__segment *segments = &trace->segments[window->segments];
    size_t left = window->segment_count;
    vst_status status = VST_OK;

    vst__map64_clear(&self->ends);
    while (status == VST_OK && left != 0) {
        size_t count = 1;
        bool last = false;

        while (count < left && segments[count].thread == segments->thread)
            count++;
        vst__decoder_open(decoder, trace, window, segments, count);
        while (status == VST_OK && !last) {
            size_t events;
            status = vst__decoder_next(decoder, &events, &last);
            if (status == VST_OK)
                status =
                    far_ends_take(self, decoder->events, events, converter);
        }
        segments += count;
        left -= count;
    }
    return status;
}

bool vst__far_ends_find(const vst_far_ends *self, uint64_t pair,
                        int64_t *end_ns)
{
    const uint64_t *end = vst__map64_find(&self->ends, pair);

    if (end == NULL)
        return false;
    *end_ns = (int64_t)*end;
    return true;
}

void vst__far_ends_free(vst_far_ends *self)
{
    vst__map64_free(&self->ends);
}
