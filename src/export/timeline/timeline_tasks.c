/* Tasks and greenlets on a timeline: each has a lane under its thread, with its
 * steps, the waits between them, and an arrow from the cause that ended a wait
 * to the next step.
 *
 * Lanes are given out as tasks begin. The first LANES_EACH tasks of a coroutine
 * function get one each. After that a task uses the lane of one that has ended.
 * If LANES_MAX tasks of a function are running, all further ones share a lane,
 * which shows their steps without their waits: steps of one thread do not
 * overlap.
 *
 * Also work that is handed to a thread pool: an arrow from there to the place
 * where the work runs. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map64.h"
#include "export/timeline/timeline.h"
#include "replay/tasks.h"

enum { LANES_EACH = 16, LANES_MAX = 64, TEXT_MAX = 400 };

#define TID_MAX UINT32_C(0x7fffffff)

/* The lanes of a coroutine function on a thread. */
typedef struct family {
    uint32_t *free; /* tids of lanes whose task has ended */
    size_t free_count, free_capacity, lanes;
    uint32_t shared; /* tid of the lane that all others share; 0: none yet */
} family;

typedef struct shown {
    uint32_t tid;
    bool is_shared;
    size_t family;
    int64_t end_ns; /* end of its last step */
    bool waits;     /* the task waits since then */
    bool in_step;   /* a step is running */
    /* facts about the running step, once they are known */
    bool will_wait, ends;
    vst_task_awaits awaits;
    vst_id awaiting;
    uint32_t awaited;
    vst_task_waker waker; /* the cause that woke the running step */
} shown;

/* Work that is handed to a thread pool, or begins to run. */
typedef struct work {
    uint64_t object;
    int64_t time_ns;
    uint32_t tid;
    bool runs;
} work;

struct vst__timeline_task_lanes {
    work *work;
    size_t work_count, work_capacity;
    vst__tasks *all;
    shown *shown;
    size_t count, capacity;
    vst__map64 of; /* a task's number -> 1 + index */
    family *families;
    size_t family_count, family_capacity;
    vst__map64 family_of; /* (thread, function) -> 1 + index */
    uint32_t last_tid;
};

static struct vst__timeline_task_lanes *tasks_of(vst__timeline *timeline)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;

    if (tasks != NULL)
        return tasks;
    tasks = calloc(1, sizeof *tasks);
    if (tasks == NULL || vst__tasks_create(&tasks->all) != VST_OK) {
        free(tasks);
        return NULL;
    }
    tasks->last_tid = timeline->process->last_tid;
    timeline->task_lanes = tasks;
    return tasks;
}

static void tasks_forget(vst__timeline *timeline)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;

    if (tasks == NULL)
        return;
    for (size_t i = 0; i < tasks->family_count; i++)
        free(tasks->families[i].free);
    vst__tasks_destroy(tasks->all);
    free(tasks->work);
    vst__map64_free(&tasks->of);
    vst__map64_free(&tasks->family_of);
    free(tasks->families);
    free(tasks->shown);
    free(tasks);
    timeline->task_lanes = NULL;
}

static shown *tasks_find(const struct vst__timeline_task_lanes *tasks,
                         uint32_t number)
{
    const uint64_t *place = vst__map64_find(&tasks->of, number);

    return place != NULL ? &tasks->shown[*place - 1] : NULL;
}

/* ---- texts --------------------------------------------------------------- */

static size_t tasks_append(char *text, size_t count, const char *bytes,
                           size_t more)
{
    if (more > TEXT_MAX - count)
        more = TEXT_MAX - count;
    memcpy(text + count, bytes, more);
    return count + more;
}

static size_t append_name(const vst__timeline *timeline, char *text,
                          size_t count, vst_id id)
{
    const vst_definition *d = vst_trace_definition(timeline->trace, id);

    return d != NULL ? tasks_append(text, count, d->name, d->name_len)
                     : tasks_append(text, count, "?", 1);
}

/* Writes `await Queue.get` or `await task w1`; for a greenlet `switched out:
 * sleep`. */
static size_t tasks_put_await(const vst__timeline *timeline, const shown *s,
                              vst_id own, char *text)
{
    static const char *const kinds[] = {"turn", "future", "task", "gather",
                                        "other"};
    const vst__task *awaited =
        s->awaited != 0 ? vst__tasks_find(timeline->task_lanes->all, s->awaited)
                        : NULL;
    size_t count;

    if (s->awaits == VST_AWAITS_SWITCH) {
        count = tasks_append(text, 0, "switched out", 12);
        if (s->awaiting == 0 || s->awaiting == own)
            return count;
        count = tasks_append(text, count, ": ", 2);
        return append_name(timeline, text, count, s->awaiting);
    }
    count = tasks_append(text, 0, "await ", 6);
    if (s->awaiting != 0 && s->awaiting != own)
        return append_name(timeline, text, count, s->awaiting);
    count =
        tasks_append(text, count, kinds[s->awaits], strlen(kinds[s->awaits]));
    if (awaited != NULL && awaited->name_len != 0) {
        count = tasks_append(text, count, " ", 1);
        count = tasks_append(text, count, awaited->name, awaited->name_len);
    }
    return count;
}

/* ---- lanes --------------------------------------------------------------- */

static family *family_for(struct vst__timeline_task_lanes *tasks,
                          const vst_task_event *event)
{
    uint64_t *place = vst__map64_put(&tasks->family_of,
                                     (uint64_t)event->thread << 32 | event->id);

    if (place == NULL)
        return NULL;
    if (*place == 0) {
        if (!VST_RESERVE(tasks->families, tasks->family_count + 1,
                         tasks->family_capacity))
            return NULL;
        tasks->families[tasks->family_count] = (family){0};
        *place = ++tasks->family_count;
    }
    return &tasks->families[*place - 1];
}

/* Draws a lane, named by its task as long as there are few. */
static void tasks_draw_lane(vst__timeline *timeline, const family *f,
                            uint32_t tid, const vst__task *task)
{
    const vst_trace *trace = timeline->trace;
    const vst_trace_thread *found;
    char text[TEXT_MAX];
    size_t count = 0;

    if (tid == f->shared) {
        const char *more = task->kind == VST_TASK_OF_LOOP ? "more tasks: "
                                                          : "more greenlets: ";
        count = tasks_append(text, count, more, strlen(more));
    } else if (f->lanes <= LANES_EACH && task->name_len != 0) {
        count = tasks_append(text, count, task->name, task->name_len);
        count = tasks_append(text, count, ": ", 2);
    }
    count = append_name(timeline, text, count, task->id);
    found = vst_trace_thread_find(trace, task->thread);
    timeline->drawing->ops->lane(
        timeline->drawing,
        &(vst__drawn_lane){
            .pid = timeline->process->drawn->pid,
            .tid = tid,
            .under = vst__timeline_tid(timeline->process, task->thread),
            .name = text,
            .name_len = count,
            /* The place of the task's thread: clients sort lanes of one place
             * behind each other. */
            .place = found != NULL ? (size_t)(found - trace->threads) + 1 : 0,
        });
}

static uint32_t new_tid(struct vst__timeline_task_lanes *tasks)
{
    return tasks->last_tid < TID_MAX ? ++tasks->last_tid : tasks->last_tid;
}

static uint32_t take_lane(vst__timeline *timeline, family *f,
                          const vst_task_event *event)
{
    const vst__task *task =
        vst__tasks_find(timeline->task_lanes->all, event->task);
    uint32_t tid;

    if (f->lanes >= LANES_EACH && f->free_count != 0)
        return f->free[--f->free_count];
    if (f->lanes >= LANES_MAX && f->shared != 0)
        return f->shared;
    tid = new_tid(timeline->task_lanes);
    if (f->lanes++ >= LANES_MAX)
        f->shared = tid;
    tasks_draw_lane(timeline, f, tid, task);
    return tid;
}

static vst_status give_lane_back(struct vst__timeline_task_lanes *tasks,
                                 const shown *s)
{
    family *f = &tasks->families[s->family];

    if (!VST_RESERVE(f->free, f->free_count + 1, f->free_capacity))
        return VST_E_NOMEM;
    f->free[f->free_count++] = s->tid;
    return VST_OK;
}

static shown *tasks_add(vst__timeline *timeline, const vst_task_event *event)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;
    family *f = family_for(tasks, event);
    uint64_t *place;
    shown *s;

    if (f == NULL ||
        !VST_RESERVE(tasks->shown, tasks->count + 1, tasks->capacity))
        return NULL;
    place = vst__map64_put(&tasks->of, event->task);
    if (place == NULL)
        return NULL;
    s = &tasks->shown[tasks->count++];
    *place = tasks->count;
    *s = (shown){.tid = take_lane(timeline, f, event),
                 .family = (size_t)(f - tasks->families)};
    s->is_shared = s->tid == f->shared;
    return s;
}

/* ---- events of tasks ----------------------------------------------------- */

static void draw_arrow(vst__timeline *timeline, const char *name,
                       uint32_t from_tid, int64_t from_ns, uint32_t tid,
                       int64_t time_ns)
{
    const vst__drawn_process *process = timeline->process->drawn;
    int64_t start_ns = from_ns < time_ns ? from_ns : time_ns;

    timeline->drawing->ops->arrow(
        timeline->drawing, &(vst__arrow){.category = VST_CATEGORY_TASK,
                                         .name = name,
                                         .id = ++timeline->last_arrow,
                                         .on_lanes = true,
                                         .from = {process, from_tid, start_ns},
                                         .to = {process, tid, time_ns}});
}

/* Draws a step of a task, or the wait before one. */
static void draw_on_lane(vst__timeline *timeline, uint32_t tid, uint32_t task,
                         vst__label *label, int64_t start_ns, int64_t end_ns)
{
    static const vst__key key = VST_KEY("task");
    vst__arg_list args;

    args.count = args.json_len = 0;
    vst__args_u64(&args, &key, task);
    timeline->drawing->ops->span(
        timeline->drawing, &(vst__drawn_span){.label = label,
                                              .category = VST_CATEGORY_OF_LABEL,
                                              .fit = VST_FIT_ALONE,
                                              .tid = tid,
                                              .start_ns = start_ns,
                                              .end_ns = end_ns,
                                              .args = &args});
}

static vst_status tasks_begin_step(vst__timeline *timeline,
                                   const vst_task_event *event)
{
    vst_task_waker waker = vst__tasks_waker(timeline->task_lanes->all);
    shown *s = tasks_find(timeline->task_lanes, event->task);
    char text[TEXT_MAX];
    vst__label label;

    if (event->goes_on)
        return VST_OK;
    if (s == NULL)
        s = tasks_add(timeline, event);
    if (s == NULL)
        return VST_E_NOMEM;
    if (s->waits && !s->is_shared && event->time_ns > s->end_ns) {
        const vst__task *task =
            vst__tasks_find(timeline->task_lanes->all, event->task);

        label =
            vst__label_of(text, tasks_put_await(timeline, s, task->id, text),
                          VST_CATEGORY_AWAIT);
        draw_on_lane(timeline, s->tid, event->task, &label, s->end_ns,
                     event->time_ns);
    }
    s->waits = false;
    s->in_step = true;
    s->waker = waker;
    return vst__timeline_status(timeline);
}

static vst_status note_work(vst__timeline *timeline,
                            const vst_task_event *event)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;

    if (!VST_RESERVE(tasks->work, tasks->work_count + 1, tasks->work_capacity))
        return VST_E_NOMEM;
    tasks->work[tasks->work_count++] =
        (work){event->address, event->time_ns,
               vst__timeline_tid(timeline->process, event->thread),
               event->what == VST_TASK_RUNS};
    return VST_OK;
}

static int by_object_and_time(const void *a, const void *b)
{
    const work *x = a, *y = b;

    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Draws the arrows of work. An object's address may be reused by later work: a
 * run belongs to the last work that was handed over before it. */
static vst_status tasks_finish(vst__timeline *timeline)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;
    size_t count = tasks != NULL ? tasks->work_count : 0;

    if (count != 0)
        qsort(tasks->work, count, sizeof *tasks->work, by_object_and_time);
    for (size_t i = 1; i < count; i++) {
        const work *from = &tasks->work[i - 1], *to = &tasks->work[i];
        if (from->object == to->object && !from->runs && to->runs)
            draw_arrow(timeline, "submit", from->tid, from->time_ns, to->tid,
                       to->time_ns);
    }
    return VST_OK;
}

static vst_status tasks_on_task(void *ctx, const vst_task_event *event)
{
    vst__timeline *timeline = ctx;
    struct vst__timeline_task_lanes *tasks = tasks_of(timeline);
    vst_status status =
        tasks != NULL ? vst__tasks_event(tasks->all, event) : VST_E_NOMEM;
    shown *s;

    if (status == VST_OK &&
        (event->what == VST_TASK_SUBMITS || event->what == VST_TASK_RUNS))
        return note_work(timeline, event);
    if (status != VST_OK || event->task == 0)
        return status;
    if (event->what == VST_TASK_STEP)
        return tasks_begin_step(timeline, event);
    s = tasks_find(tasks, event->task);
    if (s == NULL)
        return VST_OK;
    if (event->what == VST_TASK_AWAITS) {
        s->will_wait = s->in_step;
        s->waits = !s->in_step; /* for a greenlet whose last call has ended */
        s->awaits = event->awaits;
        s->awaiting = event->awaiting;
        s->awaited = event->awaited;
    } else if (event->what == VST_TASK_ENDS) {
        s->ends = true;
    } else if (event->what == VST_TASK_NAMED && !s->is_shared) {
        tasks_draw_lane(timeline, &tasks->families[s->family], s->tid,
                        vst__tasks_find(tasks->all, event->task));
    }
    return vst__timeline_status(timeline);
}

vst_status vst__timeline_note_step(vst__timeline *timeline,
                                   const vst_span *span)
{
    struct vst__timeline_task_lanes *tasks = timeline->task_lanes;
    shown *s = tasks != NULL ? tasks_find(tasks, span->task) : NULL;
    const vst__task *task;
    char text[TEXT_MAX];
    vst__label label;
    size_t length;

    if (s == NULL)
        return VST_OK;
    task = vst__tasks_find(tasks->all, span->task);
    length = task->name_len == 0
                 ? append_name(timeline, text, 0, task->id)
                 : tasks_append(text, 0, task->name, task->name_len);
    label = vst__label_of(text, length, VST_CATEGORY_TASK);
    draw_on_lane(timeline, s->tid, span->task, &label, span->start_ns,
                 span->end_ns);
    /* Draw the arrow after the step: clients look for the span that an arrow
     * points to. */
    if (s->waker.is_known)
        draw_arrow(timeline, "wakes",
                   vst__timeline_tid(timeline->process, s->waker.thread),
                   s->waker.time_ns, s->tid, span->start_ns);
    s->waker.is_known = false;
    s->end_ns = span->end_ns;
    s->waits = s->will_wait;
    s->will_wait = s->in_step = false;
    if (!s->ends || s->is_shared)
        return VST_OK;
    s->ends = false;
    return give_lane_back(tasks, s);
}

static void tasks_watch(vst__timeline *timeline, vst_sink *sink)
{
    (void)timeline;
    sink->task = tasks_on_task;
}

const vst__timeline_part vst__timeline_tasks = {tasks_watch, tasks_finish,
                                                tasks_forget};
