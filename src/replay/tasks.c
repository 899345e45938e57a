/* Sums of the tasks of a trace, from its events and steps: vst__tasks of
 * tasks.h. A step counts when its call ends; a step of several calls counts
 * when the next wait or end was recorded. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map64.h"
#include "replay/tasks.h"

typedef struct task {
    vst__task shown;
    char *name;
    /* times of the current step, whose end was not recorded yet */
    int64_t step_ns, step_at_ns;
    bool in_step; /* the task is in a step */
    bool in_call; /* one of the calls of the step is running */
    /* the task's end was recorded: this is its last call */
    bool is_last;
    bool waits; /* the task has waited since shown.end_ns, for: */
    vst_task_awaits awaits;
    vst_id awaiting;
    uint64_t object; /* key of the awaited object, in `waiting` */
    /* 1 + index of the previous and next task that wait for that object; 0 if
     * none */
    size_t previous, next;
    vst_task_waker waker;
} task;

struct vst__tasks {
    task *tasks;
    size_t count, capacity;
    vst__map64 by_number; /* number -> 1 + index */
    /* Names of greenlets that have no step yet, and number -> 1 + index; NULL
     * if the place is free. */
    char **names;
    size_t name_count, name_capacity;
    vst__map64 name_of;
    vst__task_await *awaits;
    size_t await_count, await_capacity;
    vst__map64 await_of; /* key -> 1 + index */
    /* Tasks that wait: the object's address, or for a task its number with
     * NUMBER -> 1 + index of a task. */
    vst__map64 waiting;
    vst_task_waker waker; /* waker of the last STEP */
    vst__task_wait wait;  /* wait that the last STEP ended */
};

#define NUMBER (UINT64_C(1) << 63)

const char *vst__task_end_name(vst__task_end end)
{
    static const char *const names[] = {"open", "returned", "raised"};

    return (size_t)end < sizeof names / sizeof names[0] ? names[end] : "";
}

const char *vst__task_kind_name(vst_task_kind kind)
{
    static const char *const names[] = {"task", "greenlet", "hub"};

    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "";
}

vst_status vst__tasks_create(vst__tasks **tasks)
{
    *tasks = calloc(1, sizeof **tasks);
    return *tasks != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__tasks_destroy(vst__tasks *tasks)
{
    if (tasks == NULL)
        return;
    for (size_t i = 0; i < tasks->count; i++)
        free(tasks->tasks[i].name);
    for (size_t i = 0; i < tasks->name_count; i++)
        free(tasks->names[i]);
    free(tasks->tasks);
    free(tasks->names);
    free(tasks->awaits);
    vst__map64_free(&tasks->name_of);
    vst__map64_free(&tasks->by_number);
    vst__map64_free(&tasks->await_of);
    vst__map64_free(&tasks->waiting);
    free(tasks);
}

static task *tasks_find(const vst__tasks *tasks, uint32_t number)
{
    const uint64_t *place = vst__map64_find(&tasks->by_number, number);

    return place != NULL ? &tasks->tasks[*place - 1] : NULL;
}

/* Takes the name that a STACK gave to a task that begins now. */
static void take_name(vst__tasks *tasks, task *t)
{
    const uint64_t *place = vst__map64_find(&tasks->name_of, t->shown.number);

    if (place == NULL)
        return;
    t->name = tasks->names[*place - 1];
    tasks->names[*place - 1] = NULL;
    if (t->name != NULL) {
        t->shown.name = t->name;
        t->shown.name_len = strlen(t->name);
    }
    vst__map64_remove(&tasks->name_of, t->shown.number);
}

static vst_status keep_name(vst__tasks *tasks, const vst_task_event *event)
{
    uint64_t *place = vst__map64_put(&tasks->name_of, event->task);
    char **grown, *copy;

    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        grown = vst__grow(tasks->names, &tasks->name_capacity,
                          tasks->name_count + 1, sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        tasks->names = grown;
        grown[tasks->name_count++] = NULL;
        *place = tasks->name_count;
    }
    copy = strndup(event->name, event->name_len);
    if (copy == NULL)
        return VST_E_NOMEM;
    free(tasks->names[*place - 1]);
    tasks->names[*place - 1] = copy;
    return VST_OK;
}

static task *find_or_add(vst__tasks *tasks, const vst_task_event *event)
{
    task *found = tasks_find(tasks, event->task), *grown;
    uint64_t *place;

    if (found != NULL)
        return found;
    grown = vst__grow(tasks->tasks, &tasks->capacity, tasks->count + 1,
                      sizeof *grown);
    if (grown == NULL)
        return NULL;
    tasks->tasks = grown;
    place = vst__map64_put(&tasks->by_number, event->task);
    if (place == NULL)
        return NULL;
    grown += tasks->count++;
    *place = tasks->count;
    *grown = (task){.shown = {.number = event->task,
                              .thread = event->thread,
                              .id = event->id,
                              .kind = event->kind,
                              .name = "",
                              .start_ns = event->time_ns,
                              .end_ns = event->time_ns}};
    take_name(tasks, grown);
    return grown;
}

static vst_status set_name(task *t, const char *name, size_t length)
{
    char *copy;

    if (name == NULL || (length == t->shown.name_len &&
                         memcmp(name, t->shown.name, length) == 0))
        return VST_OK;
    copy = realloc(t->name, length + 1);
    if (copy == NULL)
        return VST_E_NOMEM;
    memcpy(copy, name, length);
    copy[length] = 0;
    t->shown.name = t->name = copy;
    t->shown.name_len = length;
    return VST_OK;
}

/* ---- waits --------------------------------------------------------------- */

static vst_status add_await(vst__tasks *tasks, const task *t, int64_t ns)
{
    uint64_t key = (uint64_t)t->shown.id << 33 ^ (uint64_t)t->awaiting << 3 ^
                   (uint64_t)t->awaits;
    uint64_t *place = vst__map64_put(&tasks->await_of, key);

    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        if (!VST_RESERVE(tasks->awaits, tasks->await_count + 1,
                         tasks->await_capacity))
            return VST_E_NOMEM;
        tasks->awaits[tasks->await_count] =
            (vst__task_await){t->shown.id, t->awaiting, t->awaits, 0, 0};
        *place = ++tasks->await_count;
    }
    tasks->awaits[*place - 1].count++;
    tasks->awaits[*place - 1].ns += ns;
    return VST_OK;
}

static vst_status end_await(vst__tasks *tasks, task *t, int64_t time_ns)
{
    int64_t ns = time_ns - t->shown.end_ns;

    if (!t->waits)
        return VST_OK;
    t->waits = false;
    t->shown.awaiting_ns += ns;
    return add_await(tasks, t, ns);
}

/* ---- ending waits -------------------------------------------------------- */

/* Removes a task that goes on from the list of its object. */
static void end_waiting(vst__tasks *tasks, task *t)
{
    uint64_t *first;

    if (t->object == 0)
        return;
    if (t->next != 0)
        tasks->tasks[t->next - 1].previous = t->previous;
    if (t->previous != 0) {
        tasks->tasks[t->previous - 1].next = t->next;
    } else if (t->next != 0) {
        first = vst__map64_find(&tasks->waiting, t->object);
        *first = t->next;
    } else {
        vst__map64_remove(&tasks->waiting, t->object);
    }
    t->object = 0;
    t->previous = t->next = 0;
}

static vst_status begin_waiting(vst__tasks *tasks, task *t,
                                const vst_task_event *event)
{
    uint64_t *first, object;

    end_waiting(tasks, t); /* a damaged trace may report two waits in a row */
    t->waker = (vst_task_waker){.is_known = false};
    object = event->awaited != 0 ? NUMBER | event->awaited : event->address;
    if (object == 0)
        return VST_OK;
    first = vst__map64_put(&tasks->waiting, object);
    if (first == NULL)
        return VST_E_NOMEM;
    t->object = object;
    t->next = (size_t)*first;
    *first = 1 + (size_t)(t - tasks->tasks);
    if (t->next != 0)
        tasks->tasks[t->next - 1].previous = (size_t)*first;
    return VST_OK;
}

/* All tasks that wait for the object go on. They leave the list, so only the
 * first waker counts. */
static void tasks_wake(vst__tasks *tasks, uint64_t object,
                       const vst_task_event *event)
{
    const uint64_t *first = vst__map64_find(&tasks->waiting, object);
    size_t at = first != NULL ? (size_t)*first : 0;

    if (at != 0)
        vst__map64_remove(&tasks->waiting, object);
    while (at != 0) {
        task *t = &tasks->tasks[at - 1];

        at = t->next;
        t->object = 0;
        t->previous = t->next = 0;
        t->waker = (vst_task_waker){true, event->task, event->thread, event->id,
                                    event->time_ns};
    }
}

/* ---- steps --------------------------------------------------------------- */

static void end_step(task *t)
{
    if (!t->in_step)
        return;
    t->in_step = t->is_last = false;
    t->shown.steps++;
    if (t->step_ns > t->shown.longest_ns || t->shown.steps == 1) {
        t->shown.longest_ns = t->step_ns;
        t->shown.longest_at_ns = t->step_at_ns;
    }
}

static vst_status tasks_begin_step(vst__tasks *tasks, task *t,
                                   const vst_task_event *event)
{
    if (event->goes_on)
        return VST_OK;
    t->in_call = true;
    tasks->waker = event->waker.is_known ? event->waker : t->waker;
    tasks->wait = (vst__task_wait){.ns = 0};
    if (t->waits)
        tasks->wait = (vst__task_wait){event->time_ns - t->shown.end_ns,
                                       t->awaits, t->awaiting};
    t->waker = (vst_task_waker){.is_known = false};
    end_waiting(tasks, t);
    if (!t->in_step) {
        t->in_step = true;
        t->step_ns = 0;
        t->step_at_ns = event->time_ns;
    }
    /* the number appears again after records were lost */
    t->shown.end = VST_TASK_OPEN;
    return end_await(tasks, t, event->time_ns);
}

vst_status vst__tasks_event(vst__tasks *tasks, const vst_task_event *event)
{
    task *t;
    vst_status status;

    if (event->what == VST_TASK_WAKES)
        tasks_wake(tasks, event->address, event);
    if (event->task == 0 ||
        (event->what > VST_TASK_ENDS && event->what != VST_TASK_STACK))
        return VST_OK;
    t = event->what == VST_TASK_STEP ? find_or_add(tasks, event)
                                     : tasks_find(tasks, event->task);
    if (t == NULL && event->what == VST_TASK_STACK && event->name_len != 0)
        return keep_name(tasks, event);
    if (t == NULL)
        return event->what == VST_TASK_STEP ? VST_E_NOMEM : VST_OK;
    switch (event->what) {
    case VST_TASK_STEP:
        status = set_name(t, event->name, event->name_len);
        return status == VST_OK ? tasks_begin_step(tasks, t, event) : status;
    case VST_TASK_NAMED:
    case VST_TASK_STACK:
        return set_name(t, event->name, event->name_len);
    case VST_TASK_AWAITS:
        t->is_last = t->waits = true;
        if (!t->in_call)
            end_step(t); /* a greenlet's step: its last call has ended before */
        t->awaits = event->awaits;
        t->awaiting = event->awaiting;
        return begin_waiting(tasks, t, event);
    case VST_TASK_ENDS:
        t->is_last = true;
        t->waits = false;
        t->shown.end = event->raised ? VST_TASK_RAISED : VST_TASK_RETURNED;
        tasks_wake(tasks, NUMBER | event->task, event);
        break;
    default:
        break;
    }
    return VST_OK;
}

vst_task_waker vst__tasks_waker(const vst__tasks *tasks)
{
    return tasks->waker;
}

vst__task_wait vst__tasks_wait(const vst__tasks *tasks)
{
    return tasks->wait;
}

vst_status vst__tasks_span(vst__tasks *tasks, const vst_span *span)
{
    task *t =
        span->flags & VST_SPAN_STEP ? tasks_find(tasks, span->task) : NULL;

    if (t == NULL)
        return VST_OK;
    t->shown.running_ns += span->end_ns - span->start_ns;
    t->step_ns += span->end_ns - span->start_ns;
    t->shown.end_ns = span->end_ns;
    t->in_call = (span->flags & VST_SPAN_SUSPENDED) != 0;
    /* if the task's end was not recorded, the file ends here */
    if (t->is_last || span->flags & VST_SPAN_OPEN_AT_END)
        end_step(t);
    return VST_OK;
}

/* ---- answers ------------------------------------------------------------- */

const vst__task *vst__tasks_find(const vst__tasks *tasks, uint32_t number)
{
    const task *t = tasks_find(tasks, number);

    return t != NULL ? &t->shown : NULL;
}

size_t vst__tasks_count(const vst__tasks *tasks)
{
    return tasks->count;
}

const vst__task *vst__tasks_at(const vst__tasks *tasks, size_t index)
{
    return &tasks->tasks[index].shown;
}

size_t vst__tasks_await_count(const vst__tasks *tasks)
{
    return tasks->await_count;
}

const vst__task_await *vst__tasks_await_at(const vst__tasks *tasks,
                                           size_t index)
{
    return &tasks->awaits[index];
}
