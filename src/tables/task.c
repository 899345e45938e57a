/* The table of asyncio's tasks and of greenlets, in the order of their first
 * steps. The rows are made when the whole trace is replayed. One thread at a
 * time. */
#include "tables/task_facts.h"

enum {
    TASK_PROCESS,
    TASK_TASK,
    TASK_THREAD,
    TASK_TASK_NAME,
    TASK_FUNC,
    TASK_NAME,
    TASK_START,
    TASK_DURATION,
    TASK_STEPS,
    TASK_STEP_TIME,
    TASK_AWAITING,
    TASK_LONGEST,
    TASK_LONGEST_START,
    TASK_ENDED,
    TASK_KIND
};

static const vst__column_spec task_columns[] = {
    [TASK_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [TASK_TASK] = {"task", VST_COLUMN_I64, false, 0},
    [TASK_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [TASK_TASK_NAME] = {"task_name", VST_COLUMN_TEXT, true, 0},
    [TASK_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [TASK_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [TASK_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [TASK_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [TASK_STEPS] = {"steps", VST_COLUMN_I64, false, 0},
    [TASK_STEP_TIME] = {"step_ns", VST_COLUMN_I64, false, 0},
    [TASK_AWAITING] = {"awaiting_ns", VST_COLUMN_I64, false, 0},
    [TASK_LONGEST] = {"longest_step_ns", VST_COLUMN_I64, false, 0},
    [TASK_LONGEST_START] = {"longest_step_start_ns", VST_COLUMN_I64, false, 0},
    [TASK_ENDED] = {"ended", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [TASK_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_OWN},
};

/* index among the table's own names */
enum { ROWS_AT_ONCE = 1024, FIRST_KIND = 3 };

static vst_status add_task(vst__filling *filling, const vst__task *task)
{
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, TASK_PROCESS, filling->pass->source->process);
    vst__batch_i64(batch, TASK_TASK, (int64_t)task->number);
    vst__batch_i32(batch, TASK_THREAD, (int32_t)task->thread);
    vst__batch_i32(batch, TASK_FUNC, (int32_t)task->id);
    vst__batch_i32(batch, TASK_NAME, vst__names_of(filling, task->id)->shown);
    vst__batch_i64(batch, TASK_START, task->start_ns);
    vst__batch_i64(batch, TASK_DURATION, task->end_ns - task->start_ns);
    vst__batch_i64(batch, TASK_STEPS, (int64_t)task->steps);
    vst__batch_i64(batch, TASK_STEP_TIME, task->running_ns);
    vst__batch_i64(batch, TASK_AWAITING, task->awaiting_ns);
    vst__batch_i64(batch, TASK_LONGEST, task->longest_ns);
    vst__batch_i64(batch, TASK_LONGEST_START, task->longest_at_ns);
    vst__batch_i32(batch, TASK_ENDED, (int32_t)task->end);
    vst__batch_i32(batch, TASK_KIND, FIRST_KIND + (int32_t)task->kind);
    status = vst__batch_text(batch, TASK_TASK_NAME,
                             task->name_len != 0 ? task->name : NULL,
                             task->name_len);
    vst__batch_add(batch);
    return status;
}

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

static vst_status step_task(vst__filling *filling, bool *done)
{
    const vst__tasks *tasks = filling->pass->tasks->tasks;
    size_t count = vst__tasks_count(tasks);
    vst_status status = VST_OK;

    *done = false;
    if (!filling->pass->is_replayed)
        return VST_OK;
    for (size_t i = 0;
         status == VST_OK && i < ROWS_AT_ONCE && filling->at < count; i++)
        status = add_task(filling, vst__tasks_at(tasks, filling->at++));
    *done = filling->at >= count;
    return status;
}

const vst__table vst__table_task = {
    .name = "task",
    VST_COLUMNS(task_columns),
    .has_names = true,
    .begin = begin_task,
    .step = step_task,
    .end = vst__task_facts_leave,
};

/* ---- awaited objects ----------------------------------------------------- */

enum { AWAIT_FUNC, AWAIT_AWAITS, AWAIT_AWAITING, AWAIT_WAITS, AWAIT_TIME };

static const vst__column_spec await_columns[] = {
    [AWAIT_FUNC] = {"func", VST_COLUMN_I32, false, 0}, /* the task's function */
    [AWAIT_AWAITS] = {"awaits", VST_COLUMN_I32, false, 0}, /* vst_task_awaits */
    [AWAIT_AWAITING] = {"awaiting", VST_COLUMN_I32, true, 0}, /* a function */
    [AWAIT_WAITS] = {"waits", VST_COLUMN_I64, false, 0},
    [AWAIT_TIME] = {"awaiting_ns", VST_COLUMN_I64, false, 0},
};

static vst_status begin_await(vst__filling *filling)
{
    return vst__task_facts_join(filling, 0);
}

static vst_status step_await(vst__filling *filling, bool *done)
{
    const vst__tasks *tasks = filling->pass->tasks->tasks;
    vst__batch *batch = &filling->batch;
    vst_status status = VST_OK;

    *done = filling->pass->is_replayed;
    for (size_t i = 0;
         *done && status == VST_OK && i < vst__tasks_await_count(tasks); i++) {
        const vst__task_await *one = vst__tasks_await_at(tasks, i);

        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            break;
        vst__batch_i32(batch, AWAIT_FUNC, (int32_t)one->id);
        vst__batch_i32(batch, AWAIT_AWAITS, (int32_t)one->awaits);
        vst__batch_i32_or_null(batch, AWAIT_AWAITING, one->awaiting != 0,
                               (int32_t)one->awaiting);
        vst__batch_i64(batch, AWAIT_WAITS, (int64_t)one->count);
        vst__batch_i64(batch, AWAIT_TIME, one->ns);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_task_awaits = {
    .name = "task_awaits",
    VST_COLUMNS(await_columns),
    .begin = begin_await,
    .step = step_await,
    .end = vst__task_facts_leave,
};
