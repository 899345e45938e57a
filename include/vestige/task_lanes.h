/* Tasks as lanes of a picture: their steps and the waits between them, read
 * once from a trace and kept in memory (56 bytes a step). Several threads may
 * ask at once.
 *
 * Lanes have numbers. The first vst_task_lanes_group_count are groups: all
 * tasks of a coroutine function on a thread, or where that is a wrapper, those
 * of them that have the same name. Behind them each task has one,
 * those of a group one after the other, in the order in which they began. */
#ifndef VESTIGE_TASK_LANES_H
#define VESTIGE_TASK_LANES_H

#include "tasks.h"
#include "trace.h"
#include "view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No more steps are kept; tasks seem to end where the next one would be. */
enum { VST_TASK_LANES_STEPS_MAX = 8000000 };

typedef struct vst_task_lanes vst_task_lanes;

/* Wrappers are coroutine functions that run others. The trace may be closed
 * afterwards. */
VST_API vst_status vst_task_lanes_create(vst_trace *trace,
                                         const vst_view_ids *wrappers,
                                         vst_task_lanes **lanes,
                                         vst_error *error);
VST_API void vst_task_lanes_destroy(vst_task_lanes *lanes);

typedef struct vst_task_group {
    uint32_t thread;
    vst_id id;             /* of the coroutine function */
    uint32_t first, tasks; /* lanes of its tasks */
    uint64_t steps;
    int64_t start_ns, end_ns;
    int64_t running_ns, awaiting_ns; /* of all of them */
} vst_task_group;

VST_API size_t vst_task_lanes_group_count(const vst_task_lanes *lanes);
VST_API const vst_task_group *vst_task_lanes_group(const vst_task_lanes *lanes,
                                                   size_t index);
/* NULL: the lane is none of a task. */
VST_API const vst_task *vst_task_lanes_task(const vst_task_lanes *lanes,
                                            uint32_t lane);
/* Steps that were not kept. */
VST_API uint64_t vst_task_lanes_left_out(const vst_task_lanes *lanes);

/* A window as vst_view_window answers it; a row's thread is its lane, its depth
 * 0. A step is as any span. A wait has VST_VIEW_AWAITS and,
 * VST_VIEW_AWAITS_SHIFT bits up, its vst_task_awaits; its id is that of the
 * innermost function that waits. In a group's lane it stands for all tasks that
 * wait then, and has VST_VIEW_AWAITS_MANY: its count is how many do, its id
 * that of the coroutine function. */
VST_API vst_status vst_task_lanes_draw(const vst_task_lanes *lanes,
                                       int64_t from_ns, int64_t to_ns,
                                       uint32_t pixels, const uint32_t *of,
                                       size_t count, void **bytes,
                                       size_t *size);

/* A step, or the wait behind it. */
typedef struct vst_task_stretch {
    uint32_t lane; /* of the task */
    bool is_wait;
    bool is_first; /* step of its task */
    bool had_turn; /* nobody woke it: it had let others have their turn */
    bool is_open;  /* goes on when the recording ends */
    int64_t start_ns, end_ns;
    vst_id id; /* of the step's coroutine function */
    /* Of a wait, or what the step ends with: */
    bool awaits_known;
    vst_task_awaits awaits;
    vst_id awaiting;
    uint32_t awaited; /* lane of the task; 0: none, or not known */
    /* What ended the wait, or the one before the step. */
    vst_task_waker waker;
    uint32_t waker_lane; /* 0: no task did */
} vst_task_stretch;

/* What a lane shows at a time. In a group's lane that is a step, if one ran
 * then. VST_E_ARGUMENT: there is nothing. */
VST_API vst_status vst_task_lanes_at(const vst_task_lanes *lanes, uint32_t lane,
                                     int64_t time_ns,
                                     vst_task_stretch *stretch);

/* A step of a task's lane, counted from 0. VST_E_ARGUMENT: there is none. */
VST_API vst_status vst_task_lanes_step(const vst_task_lanes *lanes,
                                       uint32_t lane, size_t number,
                                       vst_task_stretch *step);

/* Steps of tasks' lanes that begin in a range and before which the task waited
 * for something: the first `most`. Returns how many there are. */
VST_API size_t vst_task_lanes_wakes(const vst_task_lanes *lanes,
                                    int64_t from_ns, int64_t to_ns,
                                    const uint32_t *of, size_t count,
                                    vst_task_stretch *steps, size_t most);

#ifdef __cplusplus
}
#endif
#endif
