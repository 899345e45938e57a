/* Tasks as lanes, see lanes_tasks.h: defines their lanes, items and facts. Any
 * thread may ask. */
#include "view/lanes_tasks.h"

#include <stdlib.h>

/* Bits of the fact "state". */
enum {
    IS_WAIT = 1,
    IS_FIRST = 2, /* first step of its task */
    HAD_TURN = 4, /* nobody woke it: it had only let other tasks run */
    IS_OPEN = 8,  /* still open when the recording ends */
    IS_WOKEN = 16 /* a step before which its task waited for something */
};

enum {
    STATE,
    AWAITS,   /* 1 + vst_task_awaits, or how the step ends; 0: not known */
    AWAITING, /* the innermost function that waits */
    AWAITED,  /* lane of the awaited task; 0: none, or not known */
    /* The waker that ended the wait, or the wait before the step: */
    WAKER_LANE,   /* 0: not a task */
    WAKER_THREAD, /* 0: not known, or no waker */
    WAKER_ID,
    WOKEN_NS, /* from the waking to the wait's end, or to the step's start */
    STEP      /* for an item of a group's lane: the item of the task */
};

static const vst__lane_fact facts[] = {
    [STATE] = {"state", VST_LANE_NUMBER},
    [AWAITS] = {"awaits", VST_LANE_NUMBER},
    [AWAITING] = {"awaiting", VST_LANE_NUMBER},
    [AWAITED] = {"awaited", VST_LANE_NUMBER},
    [WAKER_LANE] = {"waker_lane", VST_LANE_NUMBER},
    [WAKER_THREAD] = {"waker_thread", VST_LANE_NUMBER},
    [WAKER_ID] = {"waker_id", VST_LANE_NUMBER},
    [WOKEN_NS] = {"woken_ns", VST_LANE_NUMBER},
    [STEP] = {"step", VST_LANE_ITEM}};

/* ---- lanes --------------------------------------------------------------- */

static const vst__task *task_of_lane(const vst__lane_tasks *own, uint32_t lane)
{
    return vst__tasks_find(own->all,
                           own->tasks[lane - own->group_count].number);
}

static void group_of(const vst__lane_tasks *own, const vst__task_group *group,
                     vst__lane *got)
{
    const vst__task *task = task_of_lane(own, group->first);

    if (group->is_named || group->tasks == 1) {
        got->name = task->name;
        got->name_len = task->name_len;
    }
    got->thread = group->thread;
    got->id = group->id;
    got->first = group->first;
    got->members = group->tasks;
    got->steps = group->steps;
    got->start_ns = group->start_ns;
    got->end_ns = group->end_ns;
    got->busy_ns = group->running_ns;
    got->awaiting_ns = group->awaiting_ns;
}

static void tasks_lane_of(const vst__lanes *lanes, uint32_t lane,
                          vst__lane *got)
{
    const vst__lane_tasks *own = lanes->own;
    const vst__lane_task *place;
    const vst__task *task;

    if (lane < own->group_count) {
        group_of(own, &own->groups[lane], got);
        return;
    }
    place = &own->tasks[lane - own->group_count];
    task = task_of_lane(own, lane);
    got->thread = own->groups[place->group].thread;
    got->id = own->groups[place->group].id;
    got->start_ns = task->start_ns;
    got->end_ns = task->end_ns;
    got->steps = task->steps;
    got->busy_ns = task->running_ns;
    got->awaiting_ns = task->awaiting_ns;
    got->name = task->name;
    got->name_len = task->name_len;
    got->end = vst__task_end_name(task->end);
    got->what = vst__task_kind_name(task->kind);
}

/* Returns 0 if there is no such task; the first lane is a group's. */
static uint32_t lane_of_number(const vst__lane_tasks *own, uint32_t number)
{
    const uint64_t *place =
        number != 0 ? vst__map64_find(&own->places, number) : NULL;

    return place != NULL ? own->lane_of[*place - 1] : 0;
}

/* ---- items of tasks ------------------------------------------------------ */

static bool waits_behind(const vst__lane_step *step)
{
    return step->awaits < VST_STEP_ENDS;
}

static const vst__lane_task *task_of(const vst__lane_tasks *own, size_t step)
{
    return &own->tasks[own->task_of[step]];
}

static bool is_last(const vst__lane_tasks *own, size_t step)
{
    const vst__lane_task *task = task_of(own, step);

    return step + 1 == task->first + task->steps;
}

static void tasks_own_item(const vst__lane_tasks *own, size_t at, bool is_wait,
                           vst__lane_item *item)
{
    const vst__lane_step *step = &own->steps[at];

    *item = (vst__lane_item){.start_ns = step->start_ns,
                             .end_ns = step->end_ns,
                             .id = own->groups[task_of(own, at)->group].id,
                             .count = 1};
    if (!is_wait)
        return;
    item->start_ns = step->end_ns;
    item->count = waits_behind(step);
    if (item->count == 0)
        return;
    item->end_ns = is_last(own, at) ? own->end_ns : step[1].start_ns;
    item->id = step->awaiting;
    item->flags = VST__RUN_AWAITS | (uint32_t)step->awaits
                                        << VST__RUN_AWAITS_SHIFT;
}

/* ---- items of groups ----------------------------------------------------- */

static bool is_first_of_group(const vst__lane_tasks *own, size_t i,
                              size_t group)
{
    return i == own->group_first[group];
}

static void group_step(const vst__lane_tasks *own, size_t i, size_t group,
                       vst__lane_item *item)
{
    const vst__lane_step *step = &own->steps[own->in_time[i]];

    *item = (vst__lane_item){.start_ns = step->start_ns,
                             .end_ns = step->end_ns,
                             .id = own->groups[group].id,
                             .count = 1};
    if (is_first_of_group(own, i, group) ||
        own->reached_ns[i - 1] <= step->start_ns)
        return;
    item->start_ns = own->reached_ns[i - 1];
    item->count = step->end_ns > item->start_ns;
    if (item->count == 0)
        item->end_ns = item->start_ns;
}

/* Makes the item for all tasks that wait until another step of the group
 * begins. */
static void group_wait(const vst__lane_tasks *own, size_t i, size_t group,
                       vst__lane_item *item)
{
    int64_t next_ns = i + 1 < own->group_first[group + 1]
                          ? own->steps[own->in_time[i + 1]].start_ns
                          : own->end_ns;

    *item = (vst__lane_item){
        .start_ns = own->reached_ns[i],
        .end_ns = own->reached_ns[i],
        .id = own->groups[group].id,
        .flags = VST__RUN_AWAITS | (uint32_t)VST_VIEW_AWAITS_MANY
                                       << VST__RUN_AWAITS_SHIFT,
    };
    if (next_ns > item->start_ns) {
        item->end_ns = next_ns;
        item->count = own->alive[i];
    }
}

/* Returns whether an item belongs to a group. Items of groups come first: two
 * for each step. */
static bool is_of_group(const vst__lane_tasks *own, uint32_t number)
{
    return number < 2 * own->step_count;
}

static void tasks_item_of(const vst__lanes *lanes, uint32_t number,
                          vst__lane_item *item)
{
    const vst__lane_tasks *own = lanes->own;
    bool is_wait = number % 2 != 0;
    size_t i = number / 2, group;

    if (!is_of_group(own, number)) {
        tasks_own_item(own, i - own->step_count, is_wait, item);
        return;
    }
    group = task_of(own, own->in_time[i])->group;
    if (is_wait)
        group_wait(own, i, group, item);
    else
        group_step(own, i, group, item);
}

/* ---- facts --------------------------------------------------------------- */

static uint64_t tasks_state_of(const vst__lane_tasks *own, size_t at,
                               bool is_wait, const vst__lane_step *woken)
{
    const vst__lane_step *first = &own->steps[task_of(own, at)->first];
    uint64_t state = is_wait ? IS_WAIT : 0;

    if (&own->steps[at] == first)
        state |= IS_FIRST;
    if (woken != first && woken[-1].awaits == VST_AWAITS_NOTHING)
        state |= HAD_TURN;
    else if (!is_wait && woken != first && waits_behind(woken - 1))
        state |= IS_WOKEN;
    if (is_wait && is_last(own, at))
        state |= IS_OPEN;
    return state;
}

static void tasks_facts_of(const vst__lanes *lanes, uint32_t number,
                           uint64_t *values)
{
    const vst__lane_tasks *own = lanes->own;
    bool is_wait = number % 2 != 0;
    size_t at = number / 2;
    const vst__lane_step *step, *woken;

    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        values[i] = 0;
    if (is_of_group(own, number)) {
        if (!is_wait)
            values[STEP] = 2 * (own->step_count + own->in_time[at]) + 1;
        return;
    }
    at -= own->step_count;
    step = &own->steps[at];
    woken = is_wait && !is_last(own, at) ? step + 1 : step;
    values[STATE] = tasks_state_of(own, at, is_wait, woken);
    values[AWAITS] = waits_behind(step) ? 1u + step->awaits : 0;
    values[AWAITING] = step->awaiting;
    values[AWAITED] = lane_of_number(own, step->awaited);
    if (values[STATE] & IS_OPEN || !woken->has_waker)
        return;
    values[WAKER_LANE] = lane_of_number(own, woken->waker_task);
    values[WAKER_THREAD] = woken->waker_thread;
    values[WAKER_ID] = woken->waker_id;
    if (woken->start_ns > woken->waker_ns)
        values[WOKEN_NS] =
            (uint64_t)woken->start_ns - (uint64_t)woken->waker_ns;
}

static void free_tasks(vst__lanes *lanes)
{
    vst__lane_tasks *own = lanes->own;

    vst__tasks_destroy(own->all);
    vst__map64_free(&own->places);
    free(own->groups);
    free(own->tasks);
    free(own->lane_of);
    free(own->steps);
    free(own->task_of);
    free(own->in_time);
    free(own->alive);
    free(own->reached_ns);
    free(own->group_first);
    free(own);
}

const vst__lanes_kind vst__lanes_tasks = {
    .name = "tasks",
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = vst__lane_tasks_read,
    .free = free_tasks,
    .lane = tasks_lane_of,
    .item = tasks_item_of,
    .facts_of = tasks_facts_of,
};
