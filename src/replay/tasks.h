/* Sums of the tasks of a trace: how long each ran and waited, and what for. One
 * thread at a time. */
#ifndef VST_REPLAY_TASKS_H
#define VST_REPLAY_TASKS_H

#include <vestige/span.h>

/* Returns "task", "greenlet" or "hub". */
const char *vst__task_kind_name(vst_task_kind kind);

typedef enum vst__task_end {
    /* the task was waiting or running when the recording ended */
    VST_TASK_OPEN = 0,
    VST_TASK_RETURNED = 1,
    VST_TASK_RAISED = 2
} vst__task_end;

/* Returns "open", "returned" or "raised". */
const char *vst__task_end_name(vst__task_end end);

typedef struct vst__task {
    uint32_t number, thread;
    vst_id id; /* the task's coroutine function, as far as known */
    vst__task_end end;
    vst_task_kind kind;
    const char *name;
    size_t name_len;
    int64_t start_ns, end_ns; /* start of its first step, end of its last */
    uint64_t steps;
    int64_t running_ns;  /* sum of its steps */
    int64_t awaiting_ns; /* sum of the times between its steps */
    int64_t longest_ns, longest_at_ns;
} vst__task;

/* How long the tasks of a coroutine function waited in one function. */
typedef struct vst__task_await {
    vst_id id;       /* the coroutine function */
    vst_id awaiting; /* the innermost function that waited */
    vst_task_awaits awaits;
    uint64_t count;
    int64_t ns;
} vst__task_await;

/* The cause of a task's wait, and its length; 0 ns if the task did not wait. */
typedef struct vst__task_wait {
    int64_t ns;
    vst_task_awaits awaits;
    vst_id awaiting; /* the innermost function that waited */
} vst__task_wait;

/* Sums up the tasks of a trace, from the events and spans of a replay. One
 * thread at a time. */
typedef struct vst__tasks vst__tasks;

vst_status vst__tasks_create(vst__tasks **tasks);
void vst__tasks_destroy(vst__tasks *tasks);
vst_status vst__tasks_event(vst__tasks *tasks, const vst_task_event *event);
/* For a STEP that was just added: what made the task go on. Unknown for the
 * task's first step, or if the trace does not say. */
vst_task_waker vst__tasks_waker(const vst__tasks *tasks);
/* For a STEP that was just added: the wait that it ended. */
vst__task_wait vst__tasks_wait(const vst__tasks *tasks);
/* Spans that are no steps are ignored. */
vst_status vst__tasks_span(vst__tasks *tasks, const vst_span *span);
/* Valid until the next event or span. Returns NULL if there is no such task. */
const vst__task *vst__tasks_find(const vst__tasks *tasks, uint32_t number);
/* Tasks are in order of their first step. */
size_t vst__tasks_count(const vst__tasks *tasks);
const vst__task *vst__tasks_at(const vst__tasks *tasks, size_t index);
size_t vst__tasks_await_count(const vst__tasks *tasks);
const vst__task_await *vst__tasks_await_at(const vst__tasks *tasks,
                                           size_t index);

#endif
