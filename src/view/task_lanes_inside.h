/* The inside of a vst_task_lanes, between task_lanes_read.c, which makes it,
 * and task_lanes.c, which answers. Nothing in it changes once it is made. */
#ifndef VST_VIEW_TASK_LANES_INSIDE_H
#define VST_VIEW_TASK_LANES_INSIDE_H

#include <vestige/task_lanes.h>

#include "base/map64.h"

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
    size_t first, steps; /* in vst_task_lanes.steps */
} vst__lane_task;

struct vst_task_lanes {
    vst_tasks *all;
    vst_task_group *groups;
    size_t group_count;
    vst__lane_task *tasks; /* by group, then in the order of their starts */
    size_t task_count;
    vst__map64 places;     /* a task's number -> 1 + its place in `all` */
    uint32_t *lane_of;     /* by that place */
    vst__lane_step *steps; /* by task, then time */
    size_t step_count;
    uint64_t left_out;
    /* The steps of each group in order of time, and how many of its tasks have
     * begun and not ended when each ends. */
    uint32_t *in_time, *alive;
    size_t *group_first; /* of in_time, by group, and the end */
    uint32_t *task_of;   /* place in `tasks`, by step */
    int64_t end_ns;      /* of the recording */
};

#endif
