/* Reads the tasks of a trace into lanes: takes their steps from replay, then
 * sorts them by group and task. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/lanes_tasks.h"

/* A step as replay delivers it. */
typedef struct arrived {
    vst__lane_step step;
    uint32_t task; /* place in lanes->all */
} arrived;

typedef struct reading {
    vst__lanes *to;
    vst__lane_tasks *lanes;
    const vst_view_ids *wrappers;
    arrived *steps;
    size_t count, capacity;
    size_t *last; /* by task's place: 1 + index of its last step */
    size_t last_capacity, task_count;
} reading;

/* ---- reading steps ------------------------------------------------------- */

/* Returns 1 + the task's place; 0 if memory ran out. Places are numbered in the
 * order of first steps, as vst__tasks does. */
static size_t tasks_place_of(reading *r, uint32_t number)
{
    uint64_t *place = vst__map64_put(&r->lanes->places, number);
    size_t *last;

    if (place == NULL || *place != 0)
        return place != NULL ? (size_t)*place : 0;
    last =
        vst__grow(r->last, &r->last_capacity, r->task_count + 1, sizeof *last);
    if (last == NULL)
        return 0;
    r->last = last;
    last[r->task_count] = 0;
    *place = ++r->task_count;
    return (size_t)*place;
}

static vst_status tasks_begin_step(reading *r, const vst_task_event *event)
{
    size_t place = tasks_place_of(r, event->task);
    vst_task_waker waker = vst__tasks_waker(r->lanes->all);

    if (place == 0)
        return VST_E_NOMEM;
    if (event->goes_on)
        return VST_OK;
    r->last[place - 1] = 0;
    if (r->count == VST_STEPS_MAX) {
        r->to->left_out++;
        return VST_OK;
    }
    if (!VST_RESERVE(r->steps, r->count + 1, r->capacity))
        return VST_E_NOMEM;
    r->steps[r->count++] = (arrived){
        .task = (uint32_t)(place - 1),
        .step = {.start_ns = event->time_ns,
                 .end_ns = event->time_ns,
                 .awaits = VST_STEP_UNKNOWN,
                 .has_waker = waker.is_known,
                 .waker_ns = waker.time_ns,
                 .waker_id = waker.id,
                 .waker_task = waker.task,
                 .waker_thread = waker.thread},
    };
    r->last[place - 1] = r->count;
    return VST_OK;
}

static vst__lane_step *last_step(const reading *r, uint32_t number)
{
    const uint64_t *place = vst__map64_find(&r->lanes->places, number);
    size_t last = place != NULL ? r->last[*place - 1] : 0;

    return last != 0 ? &r->steps[last - 1].step : NULL;
}

static vst_status tasks_on_task(void *ctx, const vst_task_event *event)
{
    reading *r = ctx;
    vst_status status = vst__tasks_event(r->lanes->all, event);
    vst__lane_step *step;

    if (status != VST_OK)
        return status;
    if (event->what == VST_TASK_STEP)
        return tasks_begin_step(r, event);
    if (event->what != VST_TASK_AWAITS && event->what != VST_TASK_ENDS)
        return VST_OK;
    step = last_step(r, event->task);
    if (step == NULL)
        return VST_OK;
    step->awaits =
        event->what == VST_TASK_ENDS ? VST_STEP_ENDS : (uint8_t)event->awaits;
    step->awaiting = event->awaiting;
    step->awaited = event->awaited;
    return VST_OK;
}

static vst_status tasks_on_span(void *ctx, const vst_span *span)
{
    reading *r = ctx;
    vst__lane_step *step =
        span->flags & VST_SPAN_STEP ? last_step(r, span->task) : NULL;

    if (step != NULL && step->start_ns <= span->start_ns)
        step->end_ns = span->end_ns;
    return vst__tasks_span(r->lanes->all, span);
}

/* ---- groups -------------------------------------------------------------- */

static bool is_wrapped(const vst_view_ids *wrappers, const vst__task *task)
{
    for (size_t i = 0; i < wrappers->count; i++)
        if (wrappers->ids[i] == task->id)
            return true;
    return false;
}

/* Returns a key that is equal for tasks of one group. */
static uint64_t tasks_key_of(const vst_view_ids *wrappers,
                             const vst__task *task)
{
    uint64_t key = (uint64_t)task->thread << 32 | task->id;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    if (!is_wrapped(wrappers, task))
        return key;
    for (size_t at = 0; at < task->name_len; at++)
        hash = (hash ^ (unsigned char)task->name[at]) * UINT64_C(0x100000001b3);
    return key ^ hash;
}

static vst_status count_group(vst__lane_tasks *lanes, const vst__task *task,
                              uint64_t key, vst__map64 *groups,
                              size_t *capacity, uint32_t *group)
{
    uint64_t *place = vst__map64_put(groups, key);
    vst__task_group *grown;

    if (place == NULL)
        return VST_E_NOMEM;
    if (*place == 0) {
        grown = vst__grow(lanes->groups, capacity, lanes->group_count + 1,
                          sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        lanes->groups = grown;
        grown[lanes->group_count] =
            (vst__task_group){.thread = task->thread,
                              .id = task->id,
                              .start_ns = task->start_ns,
                              .end_ns = task->end_ns};
        *place = ++lanes->group_count;
    }
    *group = (uint32_t)*place - 1;
    grown = &lanes->groups[*group];
    grown->tasks++;
    grown->running_ns += task->running_ns;
    grown->awaiting_ns += task->awaiting_ns;
    if (task->start_ns < grown->start_ns)
        grown->start_ns = task->start_ns;
    if (task->end_ns > grown->end_ns)
        grown->end_ns = task->end_ns;
    return VST_OK;
}

/* Gives groups and tasks their lanes. */
static vst_status make_groups(const reading *r, uint32_t *group_of)
{
    vst__lane_tasks *lanes = r->lanes;
    vst__map64 groups = {0};
    size_t capacity = 0, first;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < r->task_count; i++) {
        const vst__task *task = vst__tasks_at(lanes->all, i);

        status = count_group(lanes, task, tasks_key_of(r->wrappers, task),
                             &groups, &capacity, &group_of[i]);
    }
    vst__map64_free(&groups);
    if (status != VST_OK)
        return status;
    first = lanes->group_count;
    for (size_t i = 0; i < lanes->group_count; i++) {
        lanes->groups[i].first = (uint32_t)first;
        first += lanes->groups[i].tasks;
        lanes->groups[i].tasks = 0;
    }
    for (size_t i = 0; i < r->task_count; i++) {
        vst__task_group *group = &lanes->groups[group_of[i]];

        group->is_named = is_wrapped(r->wrappers, vst__tasks_at(lanes->all, i));
    }
    for (size_t i = 0; i < r->task_count; i++) {
        vst__task_group *group = &lanes->groups[group_of[i]];
        uint32_t lane = group->first + group->tasks++;

        lanes->lane_of[i] = lane;
        lanes->tasks[lane - lanes->group_count] =
            (vst__lane_task){.number = vst__tasks_at(lanes->all, i)->number,
                             .group = group_of[i]};
    }
    lanes->task_count = r->task_count;
    return VST_OK;
}

/* ---- sorting steps ------------------------------------------------------- */

/* Sorts the steps by task; a task's steps arrive in order of time. */
static void tasks_sort_by_task(const reading *r)
{
    vst__lane_tasks *lanes = r->lanes;
    size_t first = 0;

    for (size_t i = 0; i < r->count; i++)
        lanes->tasks[lanes->lane_of[r->steps[i].task] - lanes->group_count]
            .steps++;
    for (size_t i = 0; i < lanes->task_count; i++) {
        vst__lane_task *task = &lanes->tasks[i];

        task->first = first;
        first += task->steps;
        lanes->groups[task->group].steps += task->steps;
        task->steps = 0;
    }
    for (size_t i = 0; i < r->count; i++) {
        size_t at = lanes->lane_of[r->steps[i].task] - lanes->group_count;
        vst__lane_task *task = &lanes->tasks[at];
        size_t place = task->first + task->steps++;

        lanes->steps[place] = r->steps[i].step;
        lanes->task_of[place] = (uint32_t)at;
    }
    lanes->step_count = r->count;
}

/* Lists the steps of each group as they arrived, which is in order of time,
 * because a group belongs to one thread. */
static void tasks_sort_by_time(const reading *r, size_t *next)
{
    vst__lane_tasks *lanes = r->lanes;
    size_t first = 0;

    for (size_t i = 0; i < lanes->group_count; i++) {
        lanes->group_first[i] = next[i] = first;
        first += (size_t)lanes->groups[i].steps;
    }
    lanes->group_first[lanes->group_count] = first;
    for (size_t i = 0; i < lanes->task_count; i++)
        lanes->tasks[i].steps = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t at = lanes->lane_of[r->steps[i].task] - lanes->group_count;
        vst__lane_task *task = &lanes->tasks[at];

        lanes->in_time[next[task->group]++] =
            (uint32_t)(task->first + task->steps++);
    }
}

static void tasks_sum_in_time(vst__lane_tasks *lanes)
{
    for (size_t group = 0; group < lanes->group_count; group++) {
        int64_t reached_ns = INT64_MIN;
        uint32_t alive = 0;

        for (size_t i = lanes->group_first[group];
             i < lanes->group_first[group + 1]; i++) {
            size_t at = lanes->in_time[i];
            const vst__lane_step *step = &lanes->steps[at];

            alive += at == lanes->tasks[lanes->task_of[at]].first;
            alive -= step->awaits == VST_STEP_ENDS && alive != 0;
            if (step->end_ns > reached_ns)
                reached_ns = step->end_ns;
            lanes->alive[i] = alive;
            lanes->reached_ns[i] = reached_ns;
        }
    }
}

/* Adds the lane of a group or a task, with two items per step. */
static vst_status add_lane(vst__lanes *to, uint64_t steps)
{
    const uint32_t items = (uint32_t)steps * 2;

    return vst__lanes_add(to, &items, 1);
}

static vst_status add_lanes(vst__lanes *to, const vst__lane_tasks *lanes)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < lanes->group_count; i++)
        status = add_lane(to, lanes->groups[i].steps);
    for (size_t i = 0; status == VST_OK && i < lanes->task_count; i++)
        status = add_lane(to, lanes->tasks[i].steps);
    return status;
}

static vst_status tasks_arrange(const reading *r)
{
    vst__lane_tasks *lanes = r->lanes;
    uint32_t *group_of = calloc(r->task_count + 1, sizeof *group_of);
    size_t *next = NULL;
    vst_status status = VST_E_NOMEM;

    lanes->tasks = calloc(r->task_count + 1, sizeof *lanes->tasks);
    lanes->lane_of = calloc(r->task_count + 1, sizeof *lanes->lane_of);
    lanes->steps = calloc(r->count + 1, sizeof *lanes->steps);
    lanes->task_of = calloc(r->count + 1, sizeof *lanes->task_of);
    lanes->in_time = calloc(r->count + 1, sizeof *lanes->in_time);
    lanes->alive = calloc(r->count + 1, sizeof *lanes->alive);
    lanes->reached_ns = calloc(r->count + 1, sizeof *lanes->reached_ns);
    if (group_of != NULL && lanes->tasks != NULL && lanes->lane_of != NULL &&
        lanes->steps != NULL && lanes->task_of != NULL &&
        lanes->in_time != NULL && lanes->alive != NULL &&
        lanes->reached_ns != NULL)
        status = make_groups(r, group_of);
    free(group_of);
    if (status != VST_OK)
        return status;
    lanes->group_first =
        calloc(lanes->group_count + 1, sizeof *lanes->group_first);
    next = calloc(lanes->group_count + 1, sizeof *next);
    if (lanes->group_first != NULL && next != NULL) {
        tasks_sort_by_task(r);
        tasks_sort_by_time(r, next);
        tasks_sum_in_time(lanes);
        status = add_lanes(r->to, lanes);
    } else {
        status = VST_E_NOMEM;
    }
    free(next);
    return status;
}

/* ---- making the lanes ---------------------------------------------------- */

vst_status vst__lane_tasks_read(vst__lanes *to, vst_trace *trace,
                                const vst__lanes_options *options,
                                vst_error *error)
{
    static const vst_view_ids none;
    vst__lane_tasks *lanes = calloc(1, sizeof *lanes);
    reading r = {.to = to, .lanes = lanes, .wrappers = &none};
    vst_sink sink = {.ctx = &r,
                     .no_args = true,
                     .span = tasks_on_span,
                     .task = tasks_on_task};
    vst_trace_info info;
    vst_status status;

    if (lanes == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    to->own = lanes;
    if (options->wrappers != NULL)
        r.wrappers = options->wrappers;
    status = vst_error_set(error, vst__tasks_create(&lanes->all), 0, 0);
    if (status == VST_OK)
        status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    vst_trace_get_info(trace, &info);
    lanes->end_ns = info.end_ns;
    if (status == VST_OK)
        status = vst_error_set(error, tasks_arrange(&r), 0, 0);
    free(r.steps);
    free(r.last);
    return status;
}
