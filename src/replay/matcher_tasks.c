/* For which task a call runs: a TASK escape marks the call on top as a step of
 * a task, and what that call calls belongs to the task too. One thread at a
 * time. */
#include <vestige/tasks.h>

#include "replay/matcher_stack.h"

/* The name in the words from payload[1] on, if it is whole. */
static void read_name(const uint64_t *payload, uint32_t words,
                      vst_task_event *event)
{
    if (words < 2 || payload[1] > (words - 2) * sizeof(uint64_t))
        return;
    event->name = (const char *)(payload + 2);
    event->name_len = (size_t)payload[1];
}

static void read_await(const uint64_t *payload, uint32_t words,
                       vst_task_event *event)
{
    uint64_t kind = words > 1 ? payload[1] & UINT32_MAX : VST_AWAITS_OTHER;

    event->awaits =
        kind <= VST_AWAITS_OTHER ? (vst_task_awaits)kind : VST_AWAITS_OTHER;
    event->awaiting = words > 1 ? (vst_id)(payload[1] >> 32) & VST_ID_MAX : 0;
    event->address = words > 2 ? payload[2] : 0;
    event->awaited = words > 3 ? (uint32_t)payload[3] : 0;
}

/* Whether the frame below the top belongs to the task already. */
static bool is_inside(const vst_matcher *matcher, uint32_t task)
{
    return matcher->count > 1 &&
           matcher->frames[matcher->count - 2].task == task;
}

static void begin_step(vst_matcher *matcher, vst_task_event *event)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];

    event->goes_on = is_inside(matcher, event->task);
    event->time_ns = top->start_ns;
    top->task = event->task;
    if (!event->goes_on)
        top->flags |= VST_SPAN_STEP;
}

vst_status vst__matcher_task(vst_matcher *matcher, const uint64_t *payload,
                             uint32_t words, const vst_sink *sink)
{
    const vst__frame *top =
        matcher->count != 0 ? &matcher->frames[matcher->count - 1] : NULL;
    vst_task_event event = {
        .what = (vst_task_what)(payload[0] & 0xff),
        .task = (uint32_t)(payload[0] >> 8),
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
        .id = top != NULL ? top->id : 0,
    };

    switch (event.what) {
    case VST_TASK_STEP:
        if (top == NULL || event.task == 0)
            return VST_OK;
        read_name(payload, words, &event);
        begin_step(matcher, &event);
        break;
    case VST_TASK_NAMED:
        read_name(payload, words, &event);
        break;
    case VST_TASK_AWAITS:
        read_await(payload, words, &event);
        break;
    case VST_TASK_ENDS:
        event.raised = words > 1 && payload[1] != 0;
        break;
    case VST_TASK_WAKES:
    case VST_TASK_SUBMITS:
    case VST_TASK_RUNS:
        event.task = top != NULL ? top->task : 0;
        event.address = words > 1 ? payload[1] : 0;
        break;
    default:
        return VST_OK; /* of a later version */
    }
    return sink->task != NULL ? sink->task(sink->ctx, &event) : VST_OK;
}
