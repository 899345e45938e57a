/* See <vestige/task_lanes.h>: what lanes answer. Any thread may ask. */
#include "view/task_lanes_inside.h"

#include "view/picture.h"

enum { LOOK_BACK = 64 }; /* steps inside of which others of a group may run */

/* ---- what there is ------------------------------------------------------- */

size_t vst_task_lanes_group_count(const vst_task_lanes *lanes)
{
    return lanes->group_count;
}

const vst_task_group *vst_task_lanes_group(const vst_task_lanes *lanes,
                                           size_t index)
{
    return &lanes->groups[index];
}

static const vst__lane_task *task_of_lane(const vst_task_lanes *lanes,
                                          uint32_t lane)
{
    return lane >= lanes->group_count &&
                   lane - lanes->group_count < lanes->task_count
               ? &lanes->tasks[lane - lanes->group_count]
               : NULL;
}

const vst_task *vst_task_lanes_task(const vst_task_lanes *lanes, uint32_t lane)
{
    const vst__lane_task *task = task_of_lane(lanes, lane);

    return task != NULL ? vst_tasks_find(lanes->all, task->number) : NULL;
}

uint64_t vst_task_lanes_left_out(const vst_task_lanes *lanes)
{
    return lanes->left_out;
}

/* 0: there is no such task; the first lane is a group's. */
static uint32_t lane_of_number(const vst_task_lanes *lanes, uint32_t number)
{
    const uint64_t *place =
        number != 0 ? vst__map64_find(&lanes->places, number) : NULL;

    return place != NULL ? lanes->lane_of[*place - 1] : 0;
}

/* ---- one task ------------------------------------------------------------ */

static bool waits_behind(const vst__lane_step *step)
{
    return step->awaits < VST_STEP_ENDS;
}

/* Where the wait behind a step ends. */
static int64_t wait_end(const vst_task_lanes *lanes, const vst__lane_task *task,
                        size_t at)
{
    return at + 1 < task->steps ? lanes->steps[task->first + at + 1].start_ns
                                : lanes->end_ns;
}

/* The first step that begins after a time. */
static size_t first_after(const vst_task_lanes *lanes,
                          const vst__lane_task *task, int64_t time_ns)
{
    const vst__lane_step *steps = lanes->steps + task->first;
    size_t low = 0, high = task->steps;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (steps[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static vst_status add_wait(vst__picture *picture, int64_t start_ns,
                           int64_t end_ns, vst_id id, uint32_t awaits,
                           uint64_t count)
{
    vst__run run = {.start_ns = start_ns,
                    .end_ns = end_ns,
                    .count = count,
                    .id = id,
                    .flags = VST__RUN_AWAITS | awaits << VST__RUN_AWAITS_SHIFT};

    /* One that is narrower is part of the run of steps around it. */
    return end_ns - start_ns > picture->pixel_ns
               ? vst__picture_add(picture, &run)
               : VST_OK;
}

static vst_status draw_task(const vst_task_lanes *lanes,
                            const vst__lane_task *task, vst__picture *picture)
{
    vst_id id = lanes->groups[task->group].id;
    size_t at = first_after(lanes, task, picture->from_ns);
    vst_status status = VST_OK;

    for (at -= at != 0; status == VST_OK && at < task->steps; at++) {
        const vst__lane_step *step = &lanes->steps[task->first + at];
        vst__run run = vst__run_of_span(step->start_ns, step->end_ns, id, 0);

        if (step->start_ns > picture->to_ns)
            break;
        status = vst__picture_add(picture, &run);
        if (status == VST_OK && waits_behind(step))
            status =
                add_wait(picture, step->end_ns, wait_end(lanes, task, at),
                         step->awaiting,
                         step->awaits == VST_AWAITS_SWITCH ? VST_AWAITS_OTHER
                                                           : step->awaits,
                         1);
    }
    return status;
}

/* ---- a group ------------------------------------------------------------- */

/* The first step of a group, by in_time, that begins after a time. */
static size_t group_first_after(const vst_task_lanes *lanes, size_t group,
                                int64_t time_ns)
{
    size_t low = lanes->group_first[group];
    size_t high = lanes->group_first[group + 1];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (lanes->steps[lanes->in_time[middle]].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last that begins at a time or before and ends at it or later; else the
 * last that begins before it. Of eager tasks, one runs inside of another. */
static size_t group_at(const vst_task_lanes *lanes, size_t group,
                       int64_t time_ns)
{
    size_t first = lanes->group_first[group];
    size_t before = group_first_after(lanes, group, time_ns);
    size_t least = before - first > LOOK_BACK ? before - LOOK_BACK : first;

    if (before == first)
        return before;
    for (size_t i = before; i-- > least;)
        if (lanes->steps[lanes->in_time[i]].end_ns >= time_ns)
            return i;
    return before - 1;
}

static vst_status draw_group(const vst_task_lanes *lanes, size_t group,
                             vst__picture *picture)
{
    vst_id id = lanes->groups[group].id;
    size_t end = lanes->group_first[group + 1];
    size_t at = group_at(lanes, group, picture->from_ns);
    int64_t reached_ns = INT64_MIN;
    vst_status status = VST_OK;

    for (; status == VST_OK && at < end; at++) {
        const vst__lane_step *step = &lanes->steps[lanes->in_time[at]];
        int64_t start_ns =
            step->start_ns > reached_ns ? step->start_ns : reached_ns;

        if (start_ns > picture->to_ns)
            break;
        if (step->end_ns > reached_ns) {
            vst__run run = vst__run_of_span(start_ns, step->end_ns, id, 0);
            status = vst__picture_add(picture, &run);
            reached_ns = step->end_ns;
        }
        if (status == VST_OK && lanes->alive[at] != 0) {
            int64_t next_ns =
                at + 1 < end ? lanes->steps[lanes->in_time[at + 1]].start_ns
                             : lanes->end_ns;
            status = add_wait(picture, reached_ns, next_ns, id,
                              VST_VIEW_AWAITS_MANY, lanes->alive[at]);
        }
    }
    return status;
}

vst_status vst_task_lanes_draw(const vst_task_lanes *lanes, int64_t from_ns,
                               int64_t to_ns, uint32_t pixels,
                               const uint32_t *of, size_t count, void **bytes,
                               size_t *size)
{
    vst__picture picture;
    vst_status status = VST_OK;

    if (from_ns >= to_ns || (uint64_t)to_ns - (uint64_t)from_ns > INT64_MAX)
        return VST_E_ARGUMENT;
    vst__picture_init(&picture, from_ns, to_ns, pixels);
    for (size_t i = 0; status == VST_OK && i < count; i++) {
        const vst__lane_task *task = task_of_lane(lanes, of[i]);

        status = vst__picture_row_begin(&picture, of[i], 0, false);
        if (status == VST_OK && task != NULL)
            status = draw_task(lanes, task, &picture);
        else if (status == VST_OK && of[i] < lanes->group_count)
            status = draw_group(lanes, of[i], &picture);
    }
    if (status == VST_OK)
        status = vst__picture_encode(&picture, 0, 0, bytes, size);
    vst__picture_free(&picture);
    return status;
}

/* ---- one step or wait ---------------------------------------------------- */

static vst_task_waker waker_of(const vst__lane_step *step)
{
    return (vst_task_waker){step->has_waker, step->waker_task,
                            step->waker_thread, step->waker_id, step->waker_ns};
}

/* A step of a task; or the wait behind it. */
static void describe(const vst_task_lanes *lanes, uint32_t lane, size_t at,
                     bool is_wait, vst_task_stretch *stretch)
{
    const vst__lane_task *task = task_of_lane(lanes, lane);
    const vst__lane_step *step = &lanes->steps[task->first + at];
    bool is_last = at + 1 == task->steps;
    const vst__lane_step *wakes = is_wait ? step + !is_last : step;
    bool has_before = wakes != lanes->steps + task->first;

    *stretch = (vst_task_stretch){
        .lane = lane,
        .is_wait = is_wait,
        .is_first = at == 0,
        .had_turn = has_before && wakes[-1].awaits == VST_AWAITS_NOTHING,
        .is_open = is_wait && is_last,
        .start_ns = is_wait ? step->end_ns : step->start_ns,
        .end_ns = is_wait ? wait_end(lanes, task, at) : step->end_ns,
        .id = lanes->groups[task->group].id,
        .awaits_known = waits_behind(step),
        .awaiting = step->awaiting,
        .awaited = lane_of_number(lanes, step->awaited),
    };
    if (stretch->awaits_known)
        stretch->awaits = (vst_task_awaits)step->awaits;
    if (is_wait && is_last)
        return;
    stretch->waker = waker_of(wakes);
    stretch->waker_lane = lane_of_number(lanes, wakes->waker_task);
}

vst_status vst_task_lanes_step(const vst_task_lanes *lanes, uint32_t lane,
                               size_t number, vst_task_stretch *step)
{
    const vst__lane_task *task = task_of_lane(lanes, lane);

    if (task == NULL || number >= task->steps)
        return VST_E_ARGUMENT;
    describe(lanes, lane, number, false, step);
    return VST_OK;
}

/* A step of a group as one of its task: its lane, and which it is there. */
static uint32_t lane_in_time(const vst_task_lanes *lanes, size_t in_time,
                             size_t *at)
{
    size_t step = lanes->in_time[in_time];
    uint32_t task = lanes->task_of[step];

    *at = step - lanes->tasks[task].first;
    return (uint32_t)lanes->group_count + task;
}

vst_status vst_task_lanes_at(const vst_task_lanes *lanes, uint32_t lane,
                             int64_t time_ns, vst_task_stretch *stretch)
{
    const vst__lane_task *task = task_of_lane(lanes, lane);
    const vst__lane_step *step;
    size_t at;

    if (task == NULL && lane < lanes->group_count) {
        size_t found = group_at(lanes, lane, time_ns);
        if (found == lanes->group_first[lane + 1])
            return VST_E_ARGUMENT;
        step = &lanes->steps[lanes->in_time[found]];
        if (step->start_ns > time_ns || step->end_ns < time_ns)
            return VST_E_ARGUMENT;
        lane = lane_in_time(lanes, found, &at);
        describe(lanes, lane, at, false, stretch);
        return VST_OK;
    }
    at = task != NULL ? first_after(lanes, task, time_ns) : 0;
    if (at == 0)
        return VST_E_ARGUMENT;
    step = &lanes->steps[task->first + --at];
    if (time_ns > step->end_ns &&
        (!waits_behind(step) || time_ns > wait_end(lanes, task, at)))
        return VST_E_ARGUMENT;
    describe(lanes, lane, at, time_ns > step->end_ns, stretch);
    return VST_OK;
}

size_t vst_task_lanes_wakes(const vst_task_lanes *lanes, int64_t from_ns,
                            int64_t to_ns, const uint32_t *of, size_t count,
                            vst_task_stretch *steps, size_t most)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const vst__lane_task *task = task_of_lane(lanes, of[i]);
        size_t at = task != NULL ? first_after(lanes, task, from_ns - 1) : 0;

        for (at += at == 0; task != NULL && at < task->steps; at++) {
            const vst__lane_step *step = &lanes->steps[task->first + at];
            if (step->start_ns > to_ns)
                break;
            if (!waits_behind(step - 1) ||
                step[-1].awaits == VST_AWAITS_NOTHING)
                continue;
            if (found < most)
                describe(lanes, of[i], at, false, &steps[found]);
            found++;
        }
    }
    return found;
}
