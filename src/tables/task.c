/* The table of asyncio's tasks and of greenlets, in the order of their first
 * steps. The rows come when the whole trace was replayed. One thread at a time.
 */
#include <stdlib.h>

#include <vestige/tasks.h>

#include "tables/table.h"

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

enum { ROWS_AT_ONCE = 1024, FIRST_KIND = 3 /* among the table's names */ };

/* Of a trace. */
typedef struct reading {
    vst_tasks *tasks;
    bool is_read;
} reading;

static vst_status on_event(void *ctx, const vst_task_event *event)
{
    const reading *own = ((vst__table_stream *)ctx)->own;

    return vst_tasks_event(own->tasks, event);
}

static vst_status on_span(void *ctx, const vst_span *span)
{
    const reading *own = ((vst__table_stream *)ctx)->own;

    return vst_tasks_span(own->tasks, span);
}

static vst_status add_task(vst__table_stream *stream, const vst_task *task)
{
    vst__batch *batch = &stream->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, TASK_PROCESS, stream->source->process);
    vst__batch_i64(batch, TASK_TASK, (int64_t)task->number);
    vst__batch_i32(batch, TASK_THREAD, (int32_t)task->thread);
    vst__batch_i32(batch, TASK_FUNC, (int32_t)task->id);
    vst__batch_i32(batch, TASK_NAME, vst__names_of(stream, task->id)->shown);
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

static vst_status begin_task(vst__table_stream *stream)
{
    const char *names[] = {vst_task_end_name(VST_TASK_OPEN),
                           vst_task_end_name(VST_TASK_RETURNED),
                           vst_task_end_name(VST_TASK_RAISED),
                           vst_task_kind_name(VST_TASK_OF_LOOP),
                           vst_task_kind_name(VST_TASK_GREENLET),
                           vst_task_kind_name(VST_TASK_HUB)};
    vst_sink sink = {
        .ctx = stream, .no_args = true, .span = on_span, .task = on_event};
    reading *own = calloc(1, sizeof *own);
    vst_status status = own != NULL ? VST_OK : VST_E_NOMEM;

    stream->own = own;
    if (status == VST_OK)
        status = vst_tasks_create(&own->tasks);
    if (status == VST_OK)
        status = vst__names_add(stream, VST_NAMES_OWN, names,
                                sizeof names / sizeof names[0]);
    return status == VST_OK ? vst__replayed_begin(stream, &sink, 0) : status;
}

static vst_status step_task(vst__table_stream *stream, bool *done)
{
    reading *own = stream->own;
    vst_status status = VST_OK;
    size_t count;

    *done = false;
    if (!own->is_read)
        return vst__replayed_step(stream, &own->is_read);
    count = vst_tasks_count(own->tasks);
    for (size_t i = 0;
         status == VST_OK && i < ROWS_AT_ONCE && stream->at < count; i++)
        status = add_task(stream, vst_tasks_at(own->tasks, stream->at++));
    *done = stream->at >= count;
    return status;
}

static void end_task(vst__table_stream *stream)
{
    reading *own = stream->own;

    if (own != NULL)
        vst_tasks_destroy(own->tasks);
    free(own);
    stream->own = NULL;
}

const vst__table vst__table_task = {
    .name = "task",
    VST_COLUMNS(task_columns),
    .has_names = true,
    .begin = begin_task,
    .step = step_task,
    .end = end_task,
};
