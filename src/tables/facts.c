/* The tables that need no replay: process, thread, func. One thread at a time.
 */
#include <string.h>

#include "tables/table.h"

enum { ROWS_A_STEP = 4096 };

/* ---- process ------------------------------------------------------------- */

#define PROCESS_COLUMNS(COLUMN)                                                \
    COLUMN(I32, process, source->process)                                      \
    COLUMN(I64, pid, info.pid)                                                 \
    COLUMN(I64_OR_NULL, parent_pid, source->parent_pid >= 0,                   \
           source->parent_pid)                                                 \
    COLUMN(I32_OR_NULL, rank, source->rank >= 0, source->rank)                 \
    COLUMN(I32_OR_NULL, world_size, source->world_size >= 0,                   \
           source->world_size)                                                 \
    COLUMN(STRING_OR_NULL, host, source->host)                                 \
    COLUMN(STRING_OR_NULL, name, source->name)                                 \
    COLUMN(STRING_OR_NULL, command, source->command)                           \
    COLUMN(STRING, file, source->path)                                         \
    COLUMN(STRING, trace_id, id)                                               \
    COLUMN(I64, start_ns, info.start_ns)                                       \
    COLUMN(I64, end_ns, info.end_ns)                                           \
    COLUMN(STRING_OR_NULL, ended, source->ended)                               \
    COLUMN(I64, records, info.words)                                           \
    COLUMN(I64, lost, info.lost)                                               \
    COLUMN(I64, dropped, info.dropped)

static void put_process(vst__filling *filling)
{
    static const char hex[] = "0123456789ABCDEF";
    const vst_table_source *source = filling->pass->source;
    char id[33] = "";
    vst_trace_info info;

    vst_trace_get_info(filling->pass->trace, &info);
    for (size_t i = 0; i < 16; i++) {
        id[2 * i] = hex[info.trace_id[i] >> 4];
        id[2 * i + 1] = hex[info.trace_id[i] & 15];
    }
    VST_PUT_ROW(&filling->batch, PROCESS_COLUMNS);
}

const vst__table vst__table_process = {
    .name = "process",
    VST_COLUMNS(PROCESS_COLUMNS),
    .put = put_process,
};

/* ---- thread -------------------------------------------------------------- */

#define THREAD_COLUMNS(COLUMN)                                                 \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, thread->number)                                        \
    COLUMN(I64_UNLESS_0, tid, thread->system_tid)                              \
    COLUMN(TEXT_OR_NULL, name, thread->name_len != 0 ? thread->name : NULL,    \
           thread->name_len)                                                   \
    COLUMN(I64, records, thread->words)

static bool step_thread(vst__filling *filling)
{
    const vst_trace *trace = filling->pass->trace;
    size_t count = vst_trace_thread_count(trace);

    for (size_t i = 0; i < ROWS_A_STEP && filling->at < count; i++) {
        const vst_trace_thread *thread =
            vst_trace_thread_at(trace, filling->at++);

        VST_PUT_ROW(&filling->batch, THREAD_COLUMNS);
    }
    return filling->at >= count;
}

const vst__table vst__table_thread = {
    .name = "thread",
    VST_COLUMNS(THREAD_COLUMNS),
    .step = step_thread,
};

/* ---- func ---------------------------------------------------------------- */

#define FUNC_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, func, id)                                                      \
    COLUMN(KIND, kind, defined->kind)                                          \
    COLUMN(SHOWN, name, defined->shown)                                        \
    COLUMN(FUNCTION, function, defined->function)                              \
    COLUMN(TEXT, qualname, d->name, d->name_len)                               \
    COLUMN(FILE_OR_NULL, file, d->file_len != 0, defined->file)                \
    COLUMN(I32_OR_NULL, line, d->kind == VST_DEF_PYTHON && d->line > 0, d->line)

static bool step_func(vst__filling *filling)
{
    const vst_trace *trace = filling->pass->trace;

    for (size_t i = 0; i < ROWS_A_STEP && filling->at < trace->definition_count;
         i++) {
        const vst_definition *d = &trace->definitions[filling->at];
        vst_id id = trace->definition_ids[filling->at++];
        const vst__defined *defined = vst__names_of(filling, id);

        if ((int)d->kind != VST_DEF_FAR_ENDS)
            VST_PUT_ROW(&filling->batch, FUNC_COLUMNS);
    }
    return filling->at >= trace->definition_count;
}

const vst__table vst__table_func = {
    .name = "func",
    VST_COLUMNS(FUNC_COLUMNS),
    .has_names = true,
    .step = step_func,
};
