/* Facts about tasks that several tables share: a pass collects them once for
 * all tables. One thread at a time. */
#ifndef VST_TABLES_TASK_FACTS_H
#define VST_TABLES_TASK_FACTS_H

#include "replay/tasks.h"
#include "tables/table.h"

/* Facts that are wanted in addition to tasks and awaited objects. */
enum { VST_TASKS_STEPS = 1, VST_TASKS_BLOCKED = 2 };

/* Values of `awaits` for steps that are not followed by a wait. */
enum { VST_STEP_ENDED = -1, VST_STEP_GOES_ON = -2 };

/* A step, or one of the several calls of a step. */
typedef struct vst__task_step {
    uint32_t task;
    vst_id id;
    int64_t start_ns, end_ns;
    int awaits; /* vst_task_awaits, or one of the two values above */
    vst_id awaiting;
    vst_task_waker waker;
} vst__task_step;

/* A call that took long, and the longest call inside it. */
typedef struct vst__long_call {
    vst_id id;
    int64_t ns;
    size_t longest;    /* 1 + index; 0: no call inside took long */
    uint32_t imported; /* a vst_import; 0: no import */
    vst_id module;     /* id of the imported module's code; 0: not known */
    bool is_machinery; /* a frame of the import system */
} vst__long_call;

typedef struct vst__blocked_step {
    uint32_t task, thread;
    int64_t start_ns, ns;
    size_t call; /* 1 + index */
} vst__blocked_step;

typedef struct vst__task_list {
    void *items;
    size_t count, capacity;
} vst__task_list;

typedef struct vst__task_facts {
    vst__tasks *tasks;
    unsigned wanted;
    int64_t blocked_ns; /* shorter steps do not block a loop */
    vst__task_list steps, calls, blocked;
    vst__task_list longest; /* by depth: 1 + index of the longest call there */
    uint32_t thread;
    vst_task_event last; /* the last AWAITS or ENDS */
} vst__task_facts;

/* Call join when a table begins, and leave when it ends. */
vst_status vst__task_facts_join(vst__filling *filling, unsigned wanted);
void vst__task_facts_leave(vst__filling *filling);

#endif
