/* The tables that need no replay: process, thread, func. One thread at a time.
 */
#include <string.h>

#include "tables/table.h"

enum { ROWS_A_STEP = 4096 };

static vst_status facts_put_text(vst__batch *batch, unsigned column,
                                 const char *text)
{
    return vst__batch_text(batch, column, text,
                           text != NULL ? strlen(text) : 0);
}

/* ---- process ------------------------------------------------------------- */

enum {
    PROCESS_PROCESS,
    PROCESS_PID,
    PROCESS_PARENT_PID,
    PROCESS_RANK,
    PROCESS_WORLD_SIZE,
    PROCESS_HOST,
    PROCESS_NAME,
    PROCESS_COMMAND,
    PROCESS_FILE,
    PROCESS_TRACE_ID,
    PROCESS_START,
    PROCESS_END,
    PROCESS_ENDED,
    PROCESS_RECORDS,
    PROCESS_LOST,
    PROCESS_DROPPED
};

static const vst__column_spec process_columns[] = {
    [PROCESS_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [PROCESS_PID] = {"pid", VST_COLUMN_I64, false, 0},
    [PROCESS_PARENT_PID] = {"parent_pid", VST_COLUMN_I64, true, 0},
    [PROCESS_RANK] = {"rank", VST_COLUMN_I32, true, 0},
    [PROCESS_WORLD_SIZE] = {"world_size", VST_COLUMN_I32, true, 0},
    [PROCESS_HOST] = {"host", VST_COLUMN_TEXT, true, 0},
    [PROCESS_NAME] = {"name", VST_COLUMN_TEXT, true, 0},
    [PROCESS_COMMAND] = {"command", VST_COLUMN_TEXT, true, 0},
    [PROCESS_FILE] = {"file", VST_COLUMN_TEXT, false, 0},
    [PROCESS_TRACE_ID] = {"trace_id", VST_COLUMN_TEXT, false, 0},
    [PROCESS_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [PROCESS_END] = {"end_ns", VST_COLUMN_I64, false, 0},
    [PROCESS_ENDED] = {"ended", VST_COLUMN_TEXT, true, 0},
    [PROCESS_RECORDS] = {"records", VST_COLUMN_I64, false, 0},
    [PROCESS_LOST] = {"lost", VST_COLUMN_I64, false, 0},
    [PROCESS_DROPPED] = {"dropped", VST_COLUMN_I64, false, 0},
};

static vst_status put_process_texts(vst__batch *batch,
                                    const vst_table_source *source,
                                    const uint8_t *trace_id)
{
    static const char hex[] = "0123456789ABCDEF";
    char id[33] = "";
    vst_status status = facts_put_text(batch, PROCESS_HOST, source->host);

    for (size_t i = 0; i < 16; i++) {
        id[2 * i] = hex[trace_id[i] >> 4];
        id[2 * i + 1] = hex[trace_id[i] & 15];
    }
    if (status == VST_OK)
        status = facts_put_text(batch, PROCESS_NAME, source->name);
    if (status == VST_OK)
        status = facts_put_text(batch, PROCESS_COMMAND, source->command);
    if (status == VST_OK)
        status = facts_put_text(batch, PROCESS_FILE, source->path);
    if (status == VST_OK)
        status = facts_put_text(batch, PROCESS_TRACE_ID, id);
    if (status == VST_OK)
        status = facts_put_text(batch, PROCESS_ENDED, source->ended);
    return status;
}

static vst_status step_process(vst__filling *filling, bool *done)
{
    const vst_table_source *source = filling->pass->source;
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);
    vst_trace_info info;

    *done = true;
    if (status != VST_OK)
        return status;
    vst_trace_get_info(filling->pass->trace, &info);
    vst__batch_i32(batch, PROCESS_PROCESS, source->process);
    vst__batch_i64(batch, PROCESS_PID, info.pid);
    vst__batch_i64_or_null(batch, PROCESS_PARENT_PID, source->parent_pid >= 0,
                           source->parent_pid);
    vst__batch_i32_or_null(batch, PROCESS_RANK, source->rank >= 0,
                           source->rank);
    vst__batch_i32_or_null(batch, PROCESS_WORLD_SIZE, source->world_size >= 0,
                           source->world_size);
    vst__batch_i64(batch, PROCESS_START, info.start_ns);
    vst__batch_i64(batch, PROCESS_END, info.end_ns);
    vst__batch_i64(batch, PROCESS_RECORDS, (int64_t)info.words);
    vst__batch_i64(batch, PROCESS_LOST, (int64_t)info.lost);
    vst__batch_i64(batch, PROCESS_DROPPED, (int64_t)info.dropped);
    status = put_process_texts(batch, source, info.trace_id);
    vst__batch_add(batch);
    return status;
}

const vst__table vst__table_process = {
    .name = "process",
    VST_COLUMNS(process_columns),
    .step = step_process,
};

/* ---- thread -------------------------------------------------------------- */

enum { THREAD_PROCESS, THREAD_THREAD, THREAD_TID, THREAD_NAME, THREAD_RECORDS };

static const vst__column_spec thread_columns[] = {
    [THREAD_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [THREAD_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [THREAD_TID] = {"tid", VST_COLUMN_I64, true, 0},
    [THREAD_NAME] = {"name", VST_COLUMN_TEXT, true, 0},
    [THREAD_RECORDS] = {"records", VST_COLUMN_I64, false, 0},
};

static vst_status facts_add_thread(vst__filling *filling,
                                   const vst_trace_thread *thread)
{
    vst__batch *batch = &filling->batch;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, THREAD_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, THREAD_THREAD, (int32_t)thread->number);
    vst__batch_i64_or_null(batch, THREAD_TID, thread->system_tid != 0,
                           (int64_t)thread->system_tid);
    status = vst__batch_text(batch, THREAD_NAME,
                             thread->name_len != 0 ? thread->name : NULL,
                             thread->name_len);
    vst__batch_i64(batch, THREAD_RECORDS, (int64_t)thread->words);
    vst__batch_add(batch);
    return status;
}

static vst_status step_thread(vst__filling *filling, bool *done)
{
    size_t count = vst_trace_thread_count(filling->pass->trace);
    vst_status status = VST_OK;

    for (size_t i = 0;
         i < ROWS_A_STEP && filling->at < count && status == VST_OK; i++)
        status = facts_add_thread(
            filling, vst_trace_thread_at(filling->pass->trace, filling->at++));
    *done = filling->at >= count;
    return status;
}

const vst__table vst__table_thread = {
    .name = "thread",
    VST_COLUMNS(thread_columns),
    .step = step_thread,
};

/* ---- func ---------------------------------------------------------------- */

enum {
    FUNC_PROCESS,
    FUNC_FUNC,
    FUNC_KIND,
    FUNC_NAME,
    FUNC_QUALNAME,
    FUNC_FILE,
    FUNC_LINE
};

static const vst__column_spec func_columns[] = {
    [FUNC_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [FUNC_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [FUNC_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_KINDS},
    [FUNC_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [FUNC_QUALNAME] = {"qualname", VST_COLUMN_TEXT, false, 0},
    [FUNC_FILE] = {"file", VST_COLUMN_NAME, true, VST_NAMES_FILES},
    [FUNC_LINE] = {"line", VST_COLUMN_I32, true, 0},
};

static vst_status add_func(vst__filling *filling, const vst_definition *d,
                           vst_id id)
{
    vst__batch *batch = &filling->batch;
    const vst__defined *defined = vst__names_of(filling, id);
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, FUNC_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, FUNC_FUNC, (int32_t)id);
    vst__batch_i32(batch, FUNC_KIND, defined->kind);
    vst__batch_i32(batch, FUNC_NAME, defined->shown);
    status = vst__batch_text(batch, FUNC_QUALNAME, d->name, d->name_len);
    vst__batch_i32_or_null(batch, FUNC_FILE, d->file_len != 0, defined->file);
    vst__batch_i32_or_null(batch, FUNC_LINE,
                           d->kind == VST_DEF_PYTHON && d->line > 0, d->line);
    vst__batch_add(batch);
    return status;
}

static vst_status step_func(vst__filling *filling, bool *done)
{
    const vst_trace *trace = filling->pass->trace;
    vst_status status = VST_OK;

    for (size_t i = 0;
         i < ROWS_A_STEP && filling->at < trace->definition_count &&
         status == VST_OK;
         i++, filling->at++)
        if ((int)trace->definitions[filling->at].kind != VST_DEF_FAR_ENDS)
            status = add_func(filling, &trace->definitions[filling->at],
                              trace->definition_ids[filling->at]);
    *done = filling->at >= trace->definition_count;
    return status;
}

const vst__table vst__table_func = {
    .name = "func",
    VST_COLUMNS(func_columns),
    .has_names = true,
    .step = step_func,
};
