/* The tables of the steps of tasks, of the steps that blocked their loop, and
 * of the calls that took most of the time of these. One thread at a time. */
#include "tables/task_facts.h"

/* ---- steps --------------------------------------------------------------- */

enum {
    STEP_TASK,
    STEP_FUNC,
    STEP_START,
    STEP_DURATION,
    STEP_AWAITS,
    STEP_GOES_ON,
    STEP_AWAITING,
    STEP_WAKER_TASK,
    STEP_WAKER
};

/* `awaits` is null if the task ends, or if the step continues with another
 * call. The waker's task is 0 if a callback woke the task. */
static const vst__column_spec step_columns[] = {
    [STEP_TASK] = {"task", VST_COLUMN_I64, false, 0},
    [STEP_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [STEP_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [STEP_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [STEP_AWAITS] = {"awaits", VST_COLUMN_I32, true, 0}, /* vst_task_awaits */
    [STEP_GOES_ON] = {"goes_on", VST_COLUMN_BOOL, false, 0},
    [STEP_AWAITING] = {"awaiting", VST_COLUMN_I32, true, 0}, /* a function */
    [STEP_WAKER_TASK] = {"waker_task", VST_COLUMN_I64, true, 0},
    [STEP_WAKER] = {"waker", VST_COLUMN_I32, true, 0}, /* a function */
};

static vst_status begin_steps(vst__filling *filling)
{
    return vst__task_facts_join(filling, VST_TASKS_STEPS);
}

static vst_status put_step(vst__batch *batch, const vst__task_step *step)
{
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i64(batch, STEP_TASK, (int64_t)step->task);
    vst__batch_i32(batch, STEP_FUNC, (int32_t)step->id);
    vst__batch_i64(batch, STEP_START, step->start_ns);
    vst__batch_i64(batch, STEP_DURATION, step->end_ns - step->start_ns);
    vst__batch_i32_or_null(batch, STEP_AWAITS, step->awaits >= 0, step->awaits);
    vst__batch_bool(batch, STEP_GOES_ON, step->awaits == VST_STEP_GOES_ON);
    vst__batch_i32_or_null(batch, STEP_AWAITING, step->awaiting != 0,
                           (int32_t)step->awaiting);
    vst__batch_i64_or_null(batch, STEP_WAKER_TASK, step->waker.is_known,
                           (int64_t)step->waker.task);
    vst__batch_i32_or_null(batch, STEP_WAKER, step->waker.id != 0,
                           (int32_t)step->waker.id);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status step_steps(vst__filling *filling, bool *done)
{
    const vst__task_facts *facts = filling->pass->tasks;
    const vst__task_step *steps = facts->steps.items;
    vst_status status = VST_OK;

    *done = filling->pass->is_replayed;
    for (size_t i = 0; *done && status == VST_OK && i < facts->steps.count; i++)
        status = put_step(&filling->batch, &steps[i]);
    return status;
}

const vst__table vst__table_task_steps = {
    .name = "task_steps",
    VST_COLUMNS(step_columns),
    .begin = begin_steps,
    .step = step_steps,
    .end = vst__task_facts_leave,
};

/* ---- steps that blocked their loop --------------------------------------- */

enum { BLOCKED_TASK, BLOCKED_THREAD, BLOCKED_START, BLOCKED_DURATION };

static const vst__column_spec blocked_columns[] = {
    [BLOCKED_TASK] = {"task", VST_COLUMN_I64, false, 0},
    [BLOCKED_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [BLOCKED_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [BLOCKED_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
};

static vst_status begin_blocked(vst__filling *filling)
{
    return vst__task_facts_join(filling, VST_TASKS_BLOCKED);
}

static vst_status step_blocked(vst__filling *filling, bool *done)
{
    const vst__task_facts *facts = filling->pass->tasks;
    const vst__blocked_step *blocked = facts->blocked.items;
    vst__batch *batch = &filling->batch;
    vst_status status = VST_OK;

    *done = filling->pass->is_replayed;
    for (size_t i = 0; *done && i < facts->blocked.count; i++) {
        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            break;
        vst__batch_i64(batch, BLOCKED_TASK, (int64_t)blocked[i].task);
        vst__batch_i32(batch, BLOCKED_THREAD, (int32_t)blocked[i].thread);
        vst__batch_i64(batch, BLOCKED_START, blocked[i].start_ns);
        vst__batch_i64(batch, BLOCKED_DURATION, blocked[i].ns);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_blocked_steps = {
    .name = "blocked_steps",
    VST_COLUMNS(blocked_columns),
    .begin = begin_blocked,
    .step = step_blocked,
    .end = vst__task_facts_leave,
};

/* ---- their calls --------------------------------------------------------- */

enum {
    CALL_STEP,
    CALL_FUNC,
    CALL_DURATION,
    CALL_IMPORTED,
    CALL_MODULE,
    CALL_MACHINERY
};

/* Outermost first; machinery: a frame of the import system, which is folded. */
static const vst__column_spec call_columns[] = {
    [CALL_STEP] = {"step", VST_COLUMN_I32, false, 0}, /* row of blocked_steps */
    [CALL_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [CALL_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [CALL_IMPORTED] = {"imported", VST_COLUMN_I32, true, 0}, /* vst_import */
    /* id of the module's code */
    [CALL_MODULE] = {"module", VST_COLUMN_I32, true, 0},
    [CALL_MACHINERY] = {"machinery", VST_COLUMN_BOOL, false, 0},
};

static vst_status steps_put_call(vst__batch *batch, size_t step,
                                 const vst__long_call *call)
{
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, CALL_STEP, (int32_t)step);
    vst__batch_i32(batch, CALL_FUNC, (int32_t)call->id);
    vst__batch_i64(batch, CALL_DURATION, call->ns);
    vst__batch_i32_or_null(batch, CALL_IMPORTED, call->imported != 0,
                           (int32_t)call->imported);
    vst__batch_i32_or_null(batch, CALL_MODULE, call->module != 0,
                           (int32_t)call->module);
    vst__batch_bool(batch, CALL_MACHINERY, call->is_machinery);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status step_calls(vst__filling *filling, bool *done)
{
    const vst__task_facts *facts = filling->pass->tasks;
    const vst__blocked_step *blocked = facts->blocked.items;
    const vst__long_call *calls = facts->calls.items;
    vst_status status = VST_OK;

    *done = filling->pass->is_replayed;
    for (size_t i = 0; *done && i < facts->blocked.count; i++)
        for (size_t at = blocked[i].call; at != 0 && status == VST_OK;
             at = calls[at - 1].longest)
            status = steps_put_call(&filling->batch, i, &calls[at - 1]);
    return status;
}

const vst__table vst__table_blocked_calls = {
    .name = "blocked_calls",
    VST_COLUMNS(call_columns),
    .begin = begin_blocked,
    .step = step_calls,
    .end = vst__task_facts_leave,
};
