/* Calls of a device's runtime that their own threads recorded: the operator and
 * the annotation around such a call are those that are open where its record
 * stands. Times would be less exact: two times that were read at almost the
 * same moment may have any order. */
#include "replay/matcher_stack.h"

void vst__matcher_call(const vst_matcher *matcher, const uint64_t *payload,
                       uint32_t words, vst_devices *devices)
{
    vst_device_cause causes[VST_CAUSES] = {{0}};
    size_t missing = VST_CAUSES;

    if (words < VST_ACTIVITY_WORDS ||
        !vst_activity_is_on_thread(payload[0] & 0xffu) ||
        payload[0] >> 8 & VST_ACTIVITY_HAS_THREAD)
        return;
    for (size_t i = matcher->count; i-- > 0 && missing != 0;) {
        const vst__frame *frame = &matcher->frames[i];
        unsigned which = vst__activities_cause(devices, frame->id);

        if (which == VST_CAUSES || frame->flags & VST_FRAME_DEAD ||
            causes[which].serial != 0)
            continue;
        causes[which] = (vst_device_cause){frame->serial, frame->id};
        missing--;
    }
    vst__activities_note_cause(devices, payload, causes);
}
