/* Tasks as lanes, between lanes_tasks_read.c, which reads them, and
 * lanes_tasks.c, which says what they are. Nothing changes once they are read.
 *
 * The first lanes are groups: all tasks of a coroutine function on a thread, or
 * where that is a wrapper, those of them that have the same name. Behind them
 * each task has one, those of a group one after the other, in the order in
 * which they began.
 *
 * Each step is two items: the step, and the wait behind it. In the row of a
 * task they are the task's own; in that of a group a step is cut where one that
 * began before it ends, and a wait stands for all tasks that wait then. 68
 * bytes are kept of each step. */
#ifndef VST_VIEW_LANES_TASKS_H
#define VST_VIEW_LANES_TASKS_H

#include "base/map64.h"
#include "replay/tasks.h"
#include "view/lanes_kind.h"

/* No more steps are kept; tasks seem to end where the next one would be. */
enum { VST_STEPS_MAX = 8000000 };

enum { VST_STEP_ENDS = 0xfe, VST_STEP_UNTOLD = 0xff };

typedef struct vst__lane_step {
    int64_t start_ns, end_ns;
    int64_t waker_ns;
    vst_id awaiting, waker_id;
    uint32_t awaited; /* number of a task */
    uint32_t waker_task, waker_thread;
    uint8_t awaits; /* vst_task_awaits, or one of the above */
    bool has_waker;
} vst__lane_step;

typedef struct vst__lane_task {
    uint32_t number, group;
    size_t first, steps; /* in vst__lane_tasks.steps */
} vst__lane_task;

typedef struct vst__task_group {
    uint32_t thread;
    vst_id id;             /* of the coroutine function */
    uint32_t first, tasks; /* lanes of its tasks */
    bool is_named;         /* all of them have one name */
    uint64_t steps;
    int64_t start_ns, end_ns;
    int64_t running_ns, awaiting_ns; /* of all of them */
} vst__task_group;

typedef struct vst__lane_tasks {
    vst__tasks *all;
    vst__task_group *groups;
    size_t group_count;
    vst__lane_task *tasks; /* by group, then in the order of their starts */
    size_t task_count;
    vst__map64 places;     /* a task's number -> 1 + its place in `all` */
    uint32_t *lane_of;     /* by that place */
    vst__lane_step *steps; /* by task, then time */
    size_t step_count;
    /* The steps of each group in order of time. When each ends: how many tasks
     * of its group have begun and not ended, and until when any step of the
     * group that began before lasts. */
    uint32_t *in_time, *alive;
    int64_t *reached_ns;
    size_t *group_first; /* of in_time, by group, and the end */
    uint32_t *task_of;   /* place in `tasks`, by step */
    int64_t end_ns;      /* of the recording */
} vst__lane_tasks;

vst_status vst__lane_tasks_read(vst__lanes *lanes, vst_trace *trace,
                                const vst__lanes_options *options,
                                vst_error *error);

#endif
