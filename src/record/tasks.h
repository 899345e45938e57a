/* Records events of tasks. */
#ifndef VST_RECORD_TASKS_H
#define VST_RECORD_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/record.h>

/* Records a payload of VST_ESCAPE_TASK (<vestige/wire.h>), directly behind the
 * previous record and with its time. Follows the rule of vst_record. */
void vst__record_task(const uint64_t *payload, uint32_t words);
/* Records VST_TASK_WAKES with the present time: if calls in C are not recorded,
 * the previous record may be old. */
void vst__record_task_wakes(uint64_t address);

/* The code that the two functions below share: stores the record `delta` ticks
 * after the previous one. words is a constant. */
VST_INLINE bool vst__record_task_later_at_once(const uint64_t *payload,
                                               uint32_t words, uint64_t delta)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t *at = buffer->cursor;

    if (!VST_LIKELY(buffer->epoch == vst_record_epoch() &&
                    buffer->limit - at > (ptrdiff_t)words && delta >> 32 == 0))
        return false;
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at,
                   vst_word_escape(VST_ESCAPE_TASK, words, (uint32_t)delta));
    buffer->last += delta;
    buffer->cursor = buffer->floor = at + 1 + words;
    return true;
}

/* Like the two functions above, for hooks that must be small: call nothing.
 * Return false if nothing was recorded; the caller then calls the function
 * above. */
VST_INLINE bool vst__record_task_at_once(const uint64_t *payload,
                                         uint32_t words)
{
    return vst__record_task_later_at_once(payload, words, 0);
}

VST_INLINE bool vst__record_task_wakes_at_once(uint64_t address)
{
    const uint64_t payload[2] = {vst_task_word(VST_TASK_WAKES, 0), address};

    return vst_clock_is_at_hand() &&
           vst__record_task_later_at_once(
               payload, 2, vst_clock_ticks() - vst_thread_buffer->last);
}

/* Records VST_TASK_STEP with a name, or VST_TASK_NAMED. */
void vst__record_task_name(vst_task_what what, uint32_t task, const char *name,
                           size_t length);
/* Records VST_TASK_STACK, behind the record of the switch. */
void vst__record_task_stack(uint32_t task, uint32_t flags, const char *name,
                            size_t length);

#endif
