/* Counts records of memory in the matcher: an allocation belongs to the
 * innermost span. These records never change the stack, because hooks of memory
 * also record where other hooks do not. One thread at a time. */
#include <vestige/memory.h>

#include "replay/matcher_stack.h"

/* Counts a framework's block, or its free (negative). The block may lie in a
 * system block that is counted too, so it is counted separately. */
static vst_status of_framework(vst_matcher *matcher, int64_t bytes,
                               uint64_t address, const vst_sink *sink)
{
    vst_loose_bytes loose = {
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
        .bytes = bytes,
        .address = address,
        .depth = (uint32_t)matcher->count,
    };

    if (matcher->count != 0)
        matcher->frames[matcher->count - 1].self_framework += bytes;
    if (sink->loose == NULL || (matcher->count != 0 && !sink->every_block))
        return VST_OK;
    return sink->loose(sink->ctx, &loose);
}

vst_status vst__matcher_memory(vst_matcher *matcher,
                               const vst_compressed_event *event, uint32_t type,
                               const vst_sink *sink)
{
    vst_id head = vst_trace_key_id(event->key);
    uint64_t size = event->payload_words > 1 ? event->payload[1] : 0;
    uint64_t address = event->payload_words > 0 && event->payload != NULL
                           ? event->payload[0]
                           : 0;

    switch (type) {
    case VST_ESCAPE_ALLOC:
        size = vst_head_size(head);
        address = vst_alloc_address(address);
        break;
    case VST_ESCAPE_ALLOC_LARGE:
        if (vst_range_of_head(head) != 0)
            return VST_OK; /* a reservation is address space, not memory */
        break;
    case VST_ESCAPE_FREE_RANGE:
        return vst_head_kind(head) == VST_MEMORY_FRAMEWORK_FREE
                   ? of_framework(matcher, 0 - (int64_t)size, address, sink)
                   : VST_OK;
    default:
        return VST_OK;
    }
    if (vst_head_kind(head) == VST_MEMORY_FRAMEWORK)
        return of_framework(matcher, (int64_t)size, address, sink);
    if (matcher->count != 0) {
        vst__frame *top = &matcher->frames[matcher->count - 1];
        top->self_bytes += size;
        top->self_allocations++;
    }
    return VST_OK;
}
