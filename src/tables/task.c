/* The table of asyncio's tasks and of greenlets, in the order of their first
 * steps. The rows are made when the whole trace is replayed. One thread at a
 * time. */
#include "tables/task_facts.h"

#define TASK_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I64, task, task->number)                                            \
    COLUMN(I32, thread, task->thread)                                          \
    COLUMN(TEXT_OR_NULL, task_name, task->name_len != 0 ? task->name : NULL,   \
           task->name_len)                                                     \
    COLUMN(I32, func, task->id)                                                \
    COLUMN(SHOWN, name, vst__names_of(filling, task->id)->shown)               \
    COLUMN(I64, start_ns, task->start_ns)                                      \
    COLUMN(I64, duration_ns, task->end_ns - task->start_ns)                    \
    COLUMN(I64, steps, task->steps)                                            \
    COLUMN(I64, step_ns, task->running_ns)                                     \
    COLUMN(I64, awaiting_ns, task->awaiting_ns)                                \
    COLUMN(I64, longest_step_ns, task->longest_ns)                             \
    COLUMN(I64, longest_step_start_ns, task->longest_at_ns)                    \
    COLUMN(OWN, ended, task->end)                                              \
    COLUMN(OWN, kind, FIRST_KIND + (int)task->kind)

/* index among the table's own names */
enum { ROWS_AT_ONCE = 1024, FIRST_KIND = 3 };

static vst_status begin_task(vst__filling *filling)
{
    const char *names[] = {vst__task_end_name(VST_TASK_OPEN),
                           vst__task_end_name(VST_TASK_RETURNED),
                           vst__task_end_name(VST_TASK_RAISED),
                           vst__task_kind_name(VST_TASK_OF_LOOP),
                           vst__task_kind_name(VST_TASK_GREENLET),
                           vst__task_kind_name(VST_TASK_HUB)};
    vst_status status =
        vst__names_add(filling, names, sizeof names / sizeof names[0]);

    return status == VST_OK ? vst__task_facts_join(filling, 0) : status;
}

static bool step_task(vst__filling *filling)
{
    const vst__tasks *tasks = filling->pass->tasks->tasks;
    size_t count = vst__tasks_count(tasks);

    if (!filling->pass->is_replayed)
        return false;
    for (size_t i = 0; i < ROWS_AT_ONCE && filling->at < count; i++) {
        const vst__task *task = vst__tasks_at(tasks, filling->at++);

        VST_PUT_ROW(&filling->batch, TASK_COLUMNS);
    }
    return filling->at >= count;
}

const vst__table vst__table_task = {
    .name = "task",
    VST_COLUMNS(TASK_COLUMNS),
    .has_names = true,
    .begin = begin_task,
    .step = step_task,
    .end = vst__task_facts_leave,
};

/* ---- awaited objects ----------------------------------------------------- */

#define AWAIT_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, func, one->id)                    /* the task's function */    \
    COLUMN(I32, awaits, one->awaits)              /* vst_task_awaits */        \
    COLUMN(I32_UNLESS_0, awaiting, one->awaiting) /* a function */             \
    COLUMN(I64, waits, one->count)                                             \
    COLUMN(I64, awaiting_ns, one->ns)

static vst_status begin_await(vst__filling *filling)
{
    return vst__task_facts_join(filling, 0);
}

static void put_awaits(vst__filling *filling)
{
    const vst__tasks *tasks = filling->pass->tasks->tasks;

    for (size_t i = 0; i < vst__tasks_await_count(tasks); i++) {
        const vst__task_await *one = vst__tasks_await_at(tasks, i);

        VST_PUT_ROW(&filling->batch, AWAIT_COLUMNS);
    }
}

const vst__table vst__table_task_awaits = {
    .name = "task_awaits",
    VST_COLUMNS(AWAIT_COLUMNS),
    .begin = begin_await,
    .put = put_awaits,
    .end = vst__task_facts_leave,
};
