/* The waits of tasks as leaves of the tree of calls: see sums.h. A wait is
 * counted when it is over, in the step that follows: this step calls all
 * waiting coroutines again, down to the innermost. */
#include "tables/sums.h"

#include <stdlib.h>

struct vst__open_step {
    uint32_t task;
    /* the wait before the step, until the innermost call that waited is reached
     */
    vst__task_wait wait;
};

void vst__awaits_free(vst__awaits *awaits)
{
    vst__tasks_destroy(awaits->tasks);
    free(awaits->open);
}

vst_status vst__awaits_event(vst__awaits *awaits, const vst_task_event *event)
{
    vst_status status = VST_OK;

    /* A greenlet's calls do not end when it is switched out, so the tree shows
     * where it waited even without a leaf. */
    if (event->kind != VST_TASK_OF_LOOP || event->what == VST_TASK_STACK)
        return VST_OK;
    if (awaits->tasks == NULL)
        status = vst__tasks_create(&awaits->tasks);
    if (status == VST_OK)
        status = vst__tasks_event(awaits->tasks, event);
    if (status != VST_OK || event->what != VST_TASK_STEP || event->goes_on)
        return status;
    if (awaits->count == awaits->capacity) {
        size_t capacity = awaits->capacity != 0 ? 2 * awaits->capacity : 16;
        struct vst__open_step *grown =
            realloc(awaits->open, capacity * sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        awaits->open = grown;
        awaits->capacity = capacity;
    }
    awaits->open[awaits->count++] =
        (struct vst__open_step){event->task, vst__tasks_wait(awaits->tasks)};
    return VST_OK;
}

vst_status vst__awaits_span(vst__awaits *awaits, const vst_span *span,
                            vst__task_wait *wait)
{
    bool is_step = span->flags & VST_SPAN_STEP;
    size_t at = awaits->count;
    struct vst__open_step *step;

    *wait = (vst__task_wait){.ns = 0};
    if (span->task == 0)
        return VST_OK;
    while (at != 0 && awaits->open[at - 1].task != span->task)
        at--;
    if (at != 0) {
        step = &awaits->open[at - 1];
        if (is_step || span->id == step->wait.awaiting) {
            *wait = step->wait;
            step->wait.ns = 0;
        }
        /* A step that continues after its stack was switched away has not
         * ended. */
        if (is_step && !(span->flags & VST_SPAN_SUSPENDED))
            awaits->count = at - 1;
    }
    return awaits->tasks != NULL ? vst__tasks_span(awaits->tasks, span)
                                 : VST_OK;
}
