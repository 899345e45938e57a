/* Tasks as lanes: shared by lanes_tasks_read.c, which reads the steps, and
 * lanes_tasks.c, which makes lanes and items of them. Nothing changes after
 * reading.
 *
 * The first lanes are groups. A group is all tasks of a coroutine function on a
 * thread; tasks of a wrapper are grouped by name as well. Behind the groups
 * each task has a lane, group by group, in the order in which the tasks began.
 *
 * Each step makes two items: the step, and the wait behind it. In the row of a
 * task they are the task's own. In the row of a group, a step is cut where an
 * earlier step ends, and a wait stands for all tasks that wait then. 68 bytes
 * are kept per step. */
#ifndef VST_VIEW_LANES_TASKS_H
#define VST_VIEW_LANES_TASKS_H

#include "base/map64.h"
#include "replay/tasks.h"
#include "view/lanes_kind.h"

/* Further steps are not kept; their tasks seem to end before them. */
enum { VST_STEPS_MAX = 8000000 };

enum { VST_STEP_ENDS = 0xfe, VST_STEP_UNKNOWN = 0xff };

typedef struct vst__lane_step {
    int64_t start_ns, end_ns;
    int64_t waker_ns;
    vst_id awaiting, waker_id;
    uint32_t awaited; /* number of a task */
    uint32_t waker_task, waker_thread;
    uint8_t awaits; /* vst_task_awaits, or one of the constants above */
    bool has_waker;
} vst__lane_step;

typedef struct vst__lane_task {
    uint32_t number, group;
    size_t first, steps; /* range in vst__lane_tasks.steps */
} vst__lane_task;

typedef struct vst__task_group {
    uint32_t thread;
    vst_id id;             /* id of the coroutine function */
    uint32_t first, tasks; /* range of the lanes of its tasks */
    bool is_named;         /* all of its tasks have one name */
    uint64_t steps;
    int64_t start_ns, end_ns;
    int64_t running_ns, awaiting_ns; /* sums over its tasks */
} vst__task_group;

typedef struct vst__lane_tasks {
    vst__tasks *all;
    vst__task_group *groups;
    size_t group_count;
    vst__lane_task *tasks; /* by group, then in the order of their starts */
    size_t task_count;
    vst__map64 places;     /* a task's number -> 1 + its place in `all` */
    uint32_t *lane_of;     /* by place in `all` */
    vst__lane_step *steps; /* by task, then time */
    size_t step_count;
    /* in_time: the steps of each group in order of time. By index in in_time,
     * at the step's end: `alive`, how many tasks of the group have begun and
     * not ended; `reached_ns`, until when any step of the group lasts that
     * began up to then. */
    uint32_t *in_time, *alive;
    int64_t *reached_ns;
    size_t
        *group_first;  /* by group: its first index in in_time; then the end */
    uint32_t *task_of; /* by step: place in `tasks` */
    int64_t end_ns;    /* end of the recording */
} vst__lane_tasks;

vst_status vst__lane_tasks_read(vst__lanes *lanes, vst_trace *trace,
                                const vst__lanes_options *options,
                                vst_error *error);

#endif
