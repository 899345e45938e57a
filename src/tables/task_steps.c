/* The tables of the steps of tasks, of the steps that blocked their loop, and
 * of the calls that took most of the time of these. One thread at a time. */
#include "tables/task_facts.h"

/* ---- steps --------------------------------------------------------------- */

#define STEP_COLUMNS(COLUMN)                                                   \
    COLUMN(I64, task, step->task)                                              \
    COLUMN(I32, func, step->id)                                                \
    COLUMN(I64, start_ns, step->start_ns)                                      \
    COLUMN(I64, duration_ns, step->end_ns - step->start_ns)                    \
    /* vst_task_awaits; null if the task ends, or if the step continues with   \
     * another call */                                                         \
    COLUMN(I32_OR_NULL, awaits, step->awaits >= 0, step->awaits)               \
    COLUMN(BOOL, goes_on, step->awaits == VST_STEP_GOES_ON)                    \
    COLUMN(I32_UNLESS_0, awaiting, step->awaiting) /* a function */            \
    /* 0 if a callback woke the task */                                        \
    COLUMN(I64_OR_NULL, waker_task, step->waker.is_known, step->waker.task)    \
    COLUMN(I32_UNLESS_0, waker, step->waker.id) /* a function */

static vst_status begin_steps(vst__filling *filling)
{
    return vst__task_facts_join(filling, VST_TASKS_STEPS);
}

static void put_steps(vst__filling *filling)
{
    const vst__task_list *steps = &filling->pass->tasks->steps;

    for (size_t i = 0; i < steps->count; i++) {
        const vst__task_step *step = (const vst__task_step *)steps->items + i;

        VST_PUT_ROW(&filling->batch, STEP_COLUMNS);
    }
}

const vst__table vst__table_task_steps = {
    .name = "task_steps",
    VST_COLUMNS(STEP_COLUMNS),
    .begin = begin_steps,
    .put = put_steps,
    .end = vst__task_facts_leave,
};

/* ---- steps that blocked their loop --------------------------------------- */

#define BLOCKED_COLUMNS(COLUMN)                                                \
    COLUMN(I64, task, blocked[i].task)                                         \
    COLUMN(I32, thread, blocked[i].thread)                                     \
    COLUMN(I64, start_ns, blocked[i].start_ns)                                 \
    COLUMN(I64, duration_ns, blocked[i].ns)

static vst_status begin_blocked(vst__filling *filling)
{
    return vst__task_facts_join(filling, VST_TASKS_BLOCKED);
}

static void put_blocked(vst__filling *filling)
{
    const vst__task_facts *facts = filling->pass->tasks;
    const vst__blocked_step *blocked = facts->blocked.items;

    for (size_t i = 0; i < facts->blocked.count; i++)
        VST_PUT_ROW(&filling->batch, BLOCKED_COLUMNS);
}

const vst__table vst__table_blocked_steps = {
    .name = "blocked_steps",
    VST_COLUMNS(BLOCKED_COLUMNS),
    .begin = begin_blocked,
    .put = put_blocked,
    .end = vst__task_facts_leave,
};

/* ---- their calls --------------------------------------------------------- */

/* Outermost first; machinery: a frame of the import system, which is folded. */
#define CALL_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, step, step) /* row of blocked_steps */                         \
    COLUMN(I32, func, call->id)                                                \
    COLUMN(I64, duration_ns, call->ns)                                         \
    COLUMN(I32_UNLESS_0, imported, call->imported) /* vst_import */            \
    COLUMN(I32_UNLESS_0, module, call->module) /* id of the module's code */   \
    COLUMN(BOOL, machinery, call->is_machinery)

static void put_calls(vst__filling *filling)
{
    const vst__task_facts *facts = filling->pass->tasks;
    const vst__blocked_step *blocked = facts->blocked.items;
    const vst__long_call *calls = facts->calls.items;

    for (size_t step = 0; step < facts->blocked.count; step++)
        for (size_t at = blocked[step].call; at != 0;
             at = calls[at - 1].longest) {
            const vst__long_call *call = &calls[at - 1];

            VST_PUT_ROW(&filling->batch, CALL_COLUMNS);
        }
}

const vst__table vst__table_blocked_calls = {
    .name = "blocked_calls",
    VST_COLUMNS(CALL_COLUMNS),
    .begin = begin_blocked,
    .put = put_calls,
    .end = vst__task_facts_leave,
};
