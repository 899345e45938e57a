/* See task_facts.h. */
#include "tables/task_facts.h"

#include <stdlib.h>

#include "tables/pass.h"

/* Appends an item. Returns NULL if memory ran out. */
static void *tasks_add(vst__task_list *l, size_t size)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity != 0 ? 2 * l->capacity : 64;
        void *grown = realloc(l->items, capacity * size);
        if (grown == NULL)
            return NULL;
        l->items = grown;
        l->capacity = capacity;
    }
    return (char *)l->items + l->count++ * size;
}

/* ---- long calls ---------------------------------------------------------- */

static size_t *tasks_longest_at(vst__task_facts *r, size_t depth)
{
    while (r->longest.count <= depth) {
        size_t *item = tasks_add(&r->longest, sizeof *item);
        if (item == NULL)
            return NULL;
        *item = 0;
    }
    return (size_t *)r->longest.items + depth;
}

/* Adds a call that took at least half as long as a step that blocks its loop;
 * shorter calls are not the cause. Equally long calls inside this call have
 * ended before. */
static vst_status tasks_add_long_call(vst__task_facts *r, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    size_t *inner = tasks_longest_at(r, (size_t)span->depth + 1), *outer;
    vst__long_call *made =
        inner != NULL ? tasks_add(&r->calls, sizeof *made) : NULL;
    const vst__task *task;
    vst__blocked_step *found;

    if (made == NULL)
        return VST_E_NOMEM;
    *made = (vst__long_call){.id = span->id,
                             .ns = ns,
                             .longest = *inner,
                             .is_machinery =
                                 (span->flags & VST_SPAN_MACHINERY) != 0};
    if (span->flags & VST_SPAN_IMPORT) {
        made->imported = (uint32_t)span->import;
        made->module = span->module;
    }
    *inner = 0;
    outer = tasks_longest_at(r, span->depth);
    if (*outer == 0 || ((vst__long_call *)r->calls.items)[*outer - 1].ns < ns)
        *outer = r->calls.count;
    if (!(span->flags & VST_SPAN_STEP) || ns < r->blocked_ns)
        return VST_OK;
    /* A hub waits in its steps, and greenlets need not have a loop. */
    task = vst__tasks_find(r->tasks, span->task);
    if (task == NULL || task->kind != VST_TASK_OF_LOOP)
        return VST_OK;
    found = tasks_add(&r->blocked, sizeof *found);
    if (found == NULL)
        return VST_E_NOMEM;
    *found = (vst__blocked_step){span->task, span->thread, span->start_ns, ns,
                                 r->calls.count};
    return VST_OK;
}

/* ---- the replay ---------------------------------------------------------- */

static vst_status tasks_on_task(void *ctx, const vst_task_event *event)
{
    vst__task_facts *r = ctx;
    vst_status status = vst__tasks_event(r->tasks, event);
    vst__task_step *s;

    if (status != VST_OK || !(r->wanted & VST_TASKS_STEPS))
        return status;
    if (event->what == VST_TASK_AWAITS || event->what == VST_TASK_ENDS)
        r->last = *event;
    if (event->what != VST_TASK_STEP || event->goes_on)
        return VST_OK;
    s = tasks_add(&r->steps, sizeof *s);
    if (s == NULL)
        return VST_E_NOMEM;
    *s = (vst__task_step){.task = event->task,
                          .id = event->id,
                          .start_ns = event->time_ns,
                          .end_ns = event->time_ns,
                          .awaits = VST_STEP_GOES_ON,
                          .waker = vst__tasks_waker(r->tasks)};
    return VST_OK;
}

/* Ends a step. It is not always the last one, because eager tasks begin inside
 * steps of others. */
static void tasks_end_step(vst__task_facts *r, const vst_span *span)
{
    vst__task_step *steps = r->steps.items;

    for (size_t i = r->steps.count; i-- != 0;) {
        vst__task_step *s = &steps[i];
        if (s->task != span->task || s->start_ns != span->start_ns)
            continue;
        s->end_ns = span->end_ns;
        if (r->last.task == s->task) {
            s->awaits = r->last.what == VST_TASK_ENDS ? VST_STEP_ENDED
                                                      : (int)r->last.awaits;
            s->awaiting = r->last.awaiting;
        }
        r->last.task = 0;
        return;
    }
}

static vst_status tasks_on_span(void *ctx, const vst_span *span)
{
    vst__task_facts *r = ctx;

    if (span->task == 0)
        return VST_OK;
    if (r->thread != span->thread)
        r->longest.count = 0;
    r->thread = span->thread;
    if (r->wanted & VST_TASKS_STEPS && span->flags & VST_SPAN_STEP)
        tasks_end_step(r, span);
    if (r->wanted & VST_TASKS_BLOCKED && !(span->flags & VST_SPAN_ASYNC) &&
        span->end_ns - span->start_ns >= r->blocked_ns / 2) {
        vst_status status = tasks_add_long_call(r, span);
        if (status != VST_OK)
            return status;
    }
    return vst__tasks_span(r->tasks, span);
}

/* ---- tables -------------------------------------------------------------- */

static vst_status tasks_create(vst__filling *filling)
{
    vst__task_facts *facts = calloc(1, sizeof *facts);

    if (facts == NULL)
        return VST_E_NOMEM;
    filling->pass->tasks = facts;
    facts->blocked_ns = filling->pass->options->blocked_ns;
    filling->sink = (vst_sink){.ctx = facts,
                               .no_args = true,
                               .span = tasks_on_span,
                               .task = tasks_on_task};
    filling->is_read = true;
    return vst__tasks_create(&facts->tasks);
}

vst_status vst__task_facts_join(vst__filling *filling, unsigned wanted)
{
    vst_status status =
        filling->pass->tasks == NULL ? tasks_create(filling) : VST_OK;

    if (filling->pass->tasks != NULL)
        filling->pass->tasks->wanted |= wanted;
    return status;
}

void vst__task_facts_leave(vst__filling *filling)
{
    vst__task_facts *facts = filling->pass->tasks;

    filling->pass->tasks = NULL;
    if (facts == NULL)
        return;
    vst__tasks_destroy(facts->tasks);
    free(facts->steps.items);
    free(facts->calls.items);
    free(facts->blocked.items);
    free(facts->longest.items);
    free(facts);
}
