/* Recording what happens to tasks. */
#ifndef VST_RECORD_TASKS_H
#define VST_RECORD_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/record.h>

/* Records a payload of VST_ESCAPE_TASK (<vestige/wire.h>), behind the record
 * before it and at the same time. The same rule as vst_record. */
void vst__record_task(const uint64_t *payload, uint32_t words);
/* WAKES, now: where the recorder does not see calls in C, the record before it
 * may be some time ago. */
void vst__record_task_wakes(uint64_t address);

/* Of the two functions below: delta ticks after the record before it. words is
 * a constant. */
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

/* The same two for hooks that must be small: they call nothing. False: nothing
 * was recorded, the function above does it. */
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

/* The same for STEP with a name, and NAMED. */
void vst__record_task_name(vst_task_what what, uint32_t task, const char *name,
                           size_t length);
/* The same for STACK, behind the record of the switch. */
void vst__record_task_stack(uint32_t task, uint32_t flags, const char *name,
                            size_t length);

#endif
