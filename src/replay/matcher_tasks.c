/* The task for which a call runs. A TASK escape marks the call on top as a step
 * of a task, and everything that this call calls belongs to the task too. Or
 * the escape marks a stack as a greenlet's: then each call made directly on
 * that stack is a step, and the sink gets these steps as if they had been
 * recorded. One thread at a time. */
#include "replay/matcher_stack.h"
#include "replay/sink.h"

#include <vestige/trace.h>

/* Reads the name in the words from payload[1] on, if it is complete. */
static void read_name(const uint64_t *payload, uint32_t words,
                      vst_task_event *event)
{
    uint64_t length = words > 1 ? payload[1] & UINT32_MAX : 0;

    if (words < 2 || length > (words - 2) * sizeof(uint64_t))
        return;
    event->name = (const char *)(payload + 2);
    event->name_len = (size_t)length;
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

/* Returns whether the frame below the top belongs to the task already. */
static bool is_inside(const vst_matcher *matcher, uint32_t task)
{
    return matcher->count > 1 &&
           matcher->frames[matcher->count - 2].task == task;
}

static void task_begin_step(vst_matcher *matcher, vst_task_event *event)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];

    event->goes_on = is_inside(matcher, event->task);
    event->time_ns = top->start_ns;
    top->task = event->task;
    if (!event->goes_on)
        top->flags |= VST_SPAN_STEP;
}

/* ---- stacks of greenlets ------------------------------------------------- */

static vst_status task_deliver(const vst_sink *sink,
                               const vst_task_event *event)
{
    return sink->task != NULL ? sink->task(sink->ctx, event) : VST_OK;
}

static bool is_of_kind(vst_id id, vst_definition_kind kind,
                       const vst_sink *sink)
{
    const vst_trace *trace = vst__sink_inside(sink)->trace;
    const vst_definition *definition =
        trace != NULL ? vst_trace_definition(trace, id) : NULL;

    return definition != NULL && definition->kind == kind;
}

static bool is_python(vst_id id, const vst_sink *sink)
{
    return is_of_kind(id, VST_DEF_PYTHON, sink);
}

/* Returns the innermost call that is not a C function, because the function
 * that switches is one. */
static vst_id task_innermost(const vst_matcher *matcher, const vst_sink *sink)
{
    vst_id top = 0;

    for (size_t i = matcher->count; i-- != 0;) {
        const vst__frame *frame = &matcher->frames[i];

        if (frame->flags & (uint32_t)VST_FRAME_INNER)
            continue;
        if (top == 0)
            top = frame->id;
        if (is_python(frame->id, sink))
            return frame->id;
    }
    return top;
}

static vst_status step_on_stack(vst_matcher *matcher, const vst__frame *frame,
                                const vst_sink *sink)
{
    vst_task_event event = {
        .what = VST_TASK_STEP,
        .task = matcher->stack_task,
        .thread = matcher->thread,
        .time_ns = frame->start_ns,
        .id = frame->id,
        .kind = matcher->stack_flags & VST_STACK_HUB ? VST_TASK_HUB
                                                     : VST_TASK_GREENLET,
        .waker = matcher->switched_by,
    };

    matcher->switched_by.is_known = false;
    return task_deliver(sink, &event);
}

/* Returns whether a garbage collection is running. A collection may begin
 * anywhere, even before a greenlet's first call, and its calls do not belong to
 * the greenlet. gc callbacks run outside the recorded collection span, or there
 * is no such span. */
static bool is_collecting(const vst_matcher *matcher, const vst_sink *sink)
{
    for (size_t i = matcher->count; i-- != 0;) {
        vst_id id = matcher->frames[i].id;

        if (is_of_kind(id, VST_DEF_GC, sink) ||
            vst__map64_find(&matcher->collectors, id) != NULL)
            return true;
    }
    return false;
}

static vst_status task_add_collectors(vst_matcher *matcher, const uint64_t *ids,
                                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (vst__map64_put(&matcher->collectors, ids[i]) == NULL)
            return VST_E_NOMEM;
    return VST_OK;
}

vst_status vst__matcher_enter_on_stack(vst_matcher *matcher,
                                       const vst_sink *sink)
{
    vst__frame *top = &matcher->frames[matcher->count - 1];

    /* a C function says nothing about a greenlet that began before the
     * recording, because the calls around it are unknown */
    if (top->task != 0 || is_collecting(matcher, sink) ||
        (!(matcher->stack_flags & VST_STACK_BEGINS) &&
         !is_python(top->id, sink)))
        return VST_OK;
    top->task = matcher->stack_task;
    top->flags |= VST_SPAN_STEP;
    return step_on_stack(matcher, top, sink);
}

/* A greenlet whose first call was recorded ends with that call. For a greenlet
 * that began before the recording, it is unknown whether this was its outermost
 * call. */
vst_status vst__matcher_exit_on_stack(vst_matcher *matcher, uint32_t flags,
                                      const vst_sink *sink)
{
    const vst__frame *top = &matcher->frames[matcher->count - 1];
    vst_task_event event = {
        .what = VST_TASK_ENDS,
        .task = matcher->stack_task,
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
        .id = top->id,
        .raised = (flags & VST_SPAN_RAISED) != 0,
    };

    if (top->task != matcher->stack_task ||
        !(top->flags & (uint32_t)VST_SPAN_STEP) ||
        !(matcher->stack_flags & VST_STACK_BEGINS))
        return VST_OK;
    return task_deliver(sink, &event);
}

vst_status vst__matcher_switch_out(vst_matcher *matcher, const vst_sink *sink)
{
    const vst__frame *top =
        matcher->count != 0 ? &matcher->frames[matcher->count - 1] : NULL;
    vst_task_event event = {
        .what = VST_TASK_AWAITS,
        .task = matcher->stack_task,
        .thread = matcher->thread,
        .time_ns = matcher->last_ns,
        .id = top != NULL ? top->id : 0,
        .awaits = VST_AWAITS_SWITCH,
        .awaiting = sink->task != NULL ? task_innermost(matcher, sink) : 0,
    };

    matcher->switched_by = (vst_task_waker){
        .is_known = top != NULL,
        .task = top != NULL ? top->task : 0,
        .thread = matcher->thread,
        .id = event.awaiting,
        .time_ns = matcher->last_ns,
    };
    /* a greenlet that has ended waits for nothing */
    if (event.task == 0 ||
        (top == NULL && matcher->stack_flags & VST_STACK_BEGINS))
        return VST_OK;
    return task_deliver(sink, &event);
}

vst_status vst__matcher_switch_in(vst_matcher *matcher, uint64_t stack,
                                  const vst_sink *sink)
{
    const uint64_t *found = vst__map64_find(&matcher->stack_tasks, stack);

    matcher->stack_task = found != NULL ? (uint32_t)*found : 0;
    matcher->stack_flags = found != NULL ? (uint32_t)(*found >> 32) : 0;
    for (size_t i = 0; matcher->stack_task != 0 && i < matcher->count; i++) {
        const vst__frame *frame = &matcher->frames[i];

        if (frame->task == matcher->stack_task)
            return frame->flags & (uint32_t)VST_SPAN_STEP
                       ? step_on_stack(matcher, frame, sink)
                       : VST_OK;
    }
    return VST_OK;
}

/* The current stack belongs to a greenlet; so do the calls that are open on
 * it. */
static vst_status task_set_stack(vst_matcher *matcher,
                                 const vst_task_event *event, uint32_t flags,
                                 const vst_sink *sink)
{
    uint64_t *place = vst__map64_put(&matcher->stack_tasks, matcher->stack);
    vst__frame *outermost = NULL;
    vst_status status = task_deliver(sink, event);

    if (place == NULL)
        return VST_E_NOMEM;
    if (flags & VST_STACK_BEGINS)
        matcher->switched_by.is_known = false; /* the greenlet did not wait
                                                * before */
    /* a later chunk repeats it; the greenlet has begun before */
    if ((uint32_t)*place == event->task)
        flags |= (uint32_t)(*place >> 32);
    *place = (uint64_t)flags << 32 | event->task;
    matcher->stack_task = event->task;
    matcher->stack_flags = flags;
    for (size_t i = 0; i < matcher->count; i++) {
        vst__frame *frame = &matcher->frames[i];

        if (frame->task != 0 || frame->flags & (uint32_t)VST_FRAME_INNER)
            continue;
        frame->task = event->task;
        if (outermost == NULL)
            outermost = frame;
    }
    if (status != VST_OK || outermost == NULL)
        return status;
    outermost->flags |= VST_SPAN_STEP;
    return step_on_stack(matcher, outermost, sink);
}

/* ---- the escape ---------------------------------------------------------- */

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
        if (matcher->costs != NULL && event.name != NULL)
            vst__costs_count_task(matcher->costs, &matcher->costs_so_far);
        task_begin_step(matcher, &event);
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
    case VST_TASK_STACK:
        if (event.task == 0)
            return VST_OK;
        read_name(payload, words, &event);
        return task_set_stack(matcher, &event,
                              words > 1 ? (uint32_t)(payload[1] >> 32) : 0,
                              sink);
    case VST_TASK_COLLECTORS:
        return task_add_collectors(matcher, payload + 1, words - 1);
    default:
        return VST_OK; /* written by a later version */
    }
    return task_deliver(sink, &event);
}
