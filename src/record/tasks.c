/* Records of tasks, made by a tracer's hooks behind the enter or before the
 * exit of a call. Any thread, each on its own buffer. */
#include <string.h>

#include "record/recording.h"
#include "record/tasks.h"

void vst__record_task(const uint64_t *payload, uint32_t words)
{
    vst__record_behind(VST_ESCAPE_TASK, payload, words);
}

void vst__record_task_wakes(uint64_t address)
{
    const uint64_t payload[2] = {vst_task_word(VST_TASK_WAKES, 0), address};

    vst__record_escape(VST_ESCAPE_TASK, payload, 2);
}

/* Records a payload with a name; `flags` are the other bits of its second
 * word. */
static void record_name(uint64_t first, uint64_t flags, const char *name,
                        size_t length)
{
    uint64_t payload[2 + VST_TASK_NAME_MAX / sizeof(uint64_t)] = {0};

    if (length > VST_TASK_NAME_MAX) {
        length = VST_TASK_NAME_MAX;
        /* do not cut inside a character */
        while (length != 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
    }
    payload[0] = first;
    payload[1] = flags << 32 | length;
    memcpy(&payload[2], name, length);
    vst__record_task(payload, 2 + (uint32_t)((length + 7) / 8));
}

void vst__record_task_name(vst_task_what what, uint32_t task, const char *name,
                           size_t length)
{
    record_name(vst_task_word(what, task), 0, name, length);
}

void vst__record_task_stack(uint32_t task, uint32_t flags, const char *name,
                            size_t length)
{
    record_name(vst_task_word(VST_TASK_STACK, task), flags, name, length);
}
