/* The table of spans, in the order in which they end, and functions for all
 * tables that replay a trace. One thread at a time. */
#include "replay/imports.h"
#include "tables/pass.h"

static bool has_kind(const vst_trace *trace, int kind)
{
    for (size_t i = 0; i < trace->definition_count; i++)
        if ((int)trace->definitions[i].kind == kind)
            return true;
    return kind == 0;
}

vst_status vst__replayed_begin(vst__filling *filling, const vst_sink *sink,
                               int kind)
{
    filling->sink = *sink;
    filling->is_read = has_kind(filling->pass->trace, kind);
    return VST_OK;
}

/* ---- span ---------------------------------------------------------------- */

enum {
    SPAN_PROCESS,
    SPAN_THREAD,
    SPAN_SPAN,
    SPAN_PARENT,
    SPAN_FUNC,
    SPAN_NAME,
    SPAN_KIND,
    SPAN_START,
    SPAN_DURATION,
    SPAN_SELF,
    SPAN_DEPTH,
    SPAN_STACK,
    SPAN_FLAGS,
    SPAN_ARGS,
    SPAN_RUNNING,
    SPAN_GIL,
    SPAN_IMPORTS,
    SPAN_TASK,
    SPAN_COMPENSATED,
    SPAN_COMPENSATED_ERROR
};

static const vst__column_spec span_columns[] = {
    [SPAN_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [SPAN_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [SPAN_SPAN] = {"span", VST_COLUMN_I64, false, 0},
    [SPAN_PARENT] = {"parent", VST_COLUMN_I64, true, 0},
    [SPAN_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [SPAN_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [SPAN_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_KINDS},
    [SPAN_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [SPAN_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [SPAN_SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [SPAN_DEPTH] = {"depth", VST_COLUMN_I32, false, 0},
    [SPAN_STACK] = {"stack", VST_COLUMN_I32, false, 0},
    [SPAN_FLAGS] = {"flags", VST_COLUMN_I32, false, 0},
    [SPAN_ARGS] = {"args", VST_COLUMN_TEXT, true, 0},
    [SPAN_RUNNING] = {"running_ns", VST_COLUMN_I64, true, 0},
    [SPAN_GIL] = {"gil_ns", VST_COLUMN_I64, true, 0},
    [SPAN_IMPORTS] = {"imports", VST_COLUMN_TEXT, true, 0},
    [SPAN_TASK] = {"task", VST_COLUMN_I64, true, 0},
    [SPAN_COMPENSATED] = {"compensated_ns", VST_COLUMN_I64, true, 0},
    [SPAN_COMPENSATED_ERROR] = {"compensated_error_ns", VST_COLUMN_I64, true,
                                0},
};

int64_t vst__span_self(const vst_span *span)
{
    return span->flags & VST_SPAN_ASYNC
               ? 0
               : span->end_ns - span->start_ns - span->children_ns;
}

static vst_status add_import(vst__filling *filling, const vst_span *span)
{
    char name[VST_IMPORT_NAME_MAX];

    if (VST_LIKELY(!(span->flags & VST_SPAN_IMPORT)))
        return vst__batch_text(&filling->batch, SPAN_IMPORTS, NULL, 0);
    return vst__batch_text(&filling->batch, SPAN_IMPORTS, name,
                           vst__import_name(filling->pass->trace, span->import,
                                            span->module, name));
}

static vst_status span_add_span(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    const vst__defined *defined = vst__names_of(filling, span->id);
    bool is_compensated = span->compensated_ns != VST_RUNNING_UNKNOWN;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, SPAN_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, SPAN_THREAD, (int32_t)span->thread);
    vst__batch_i64(batch, SPAN_SPAN, (int64_t)span->serial);
    vst__batch_i64_or_null(batch, SPAN_PARENT, span->parent != 0,
                           (int64_t)span->parent);
    vst__batch_i32(batch, SPAN_FUNC, (int32_t)span->id);
    vst__batch_i32(batch, SPAN_NAME, defined->shown);
    vst__batch_i32(batch, SPAN_KIND, defined->kind);
    vst__batch_i64(batch, SPAN_START, span->start_ns);
    vst__batch_i64(batch, SPAN_DURATION, span->end_ns - span->start_ns);
    vst__batch_i64(batch, SPAN_SELF, vst__span_self(span));
    vst__batch_i32(batch, SPAN_DEPTH, (int32_t)span->depth);
    vst__batch_i32(batch, SPAN_STACK, (int32_t)span->place);
    vst__batch_i32(batch, SPAN_FLAGS, (int32_t)span->flags);
    vst__batch_i64_or_null(batch, SPAN_RUNNING,
                           span->running_ns != VST_RUNNING_UNKNOWN,
                           span->running_ns);
    vst__batch_i64_or_null(batch, SPAN_GIL, span->gil_ns != VST_RUNNING_UNKNOWN,
                           span->gil_ns);
    vst__batch_i64_or_null(batch, SPAN_COMPENSATED, is_compensated,
                           span->compensated_ns);
    vst__batch_i64_or_null(batch, SPAN_COMPENSATED_ERROR, is_compensated,
                           span->compensated_error_ns);
    vst__batch_i64_or_null(batch, SPAN_TASK, span->task != 0, span->task);
    if (VST_LIKELY(span->args_len == 0)) {
        vst__batch_no_text(batch, SPAN_ARGS);
        vst__batch_valid(batch, SPAN_ARGS, false);
    } else {
        status =
            vst__batch_members(batch, SPAN_ARGS, span->args, span->args_len);
    }
    if (status == VST_OK)
        status = add_import(filling, span);
    vst__batch_add(batch);
    return status;
}

static vst_status begin_span(vst__filling *filling)
{
    vst_sink sink = {
        .ctx = filling,
        .span = span_add_span,
        .inside = &filling->pass->inside,
    };

    return vst__replayed_begin(filling, &sink, 0);
}

const vst__table vst__table_span = {
    .name = "span",
    VST_COLUMNS(span_columns),
    .has_names = true,
    .begin = begin_span,
};

/* ---- spans of some functions --------------------------------------------- */

static vst_status span_add_chosen(void *ctx, const vst_span *span)
{
    const vst__filling *filling = ctx;
    const unsigned char *marks = filling->pass->options->marks;

    if (marks == NULL || span->id > filling->pass->defined_max ||
        !(marks[span->id] & VST_MARK_CHOSEN))
        return VST_OK;
    return span_add_span(ctx, span);
}

static vst_status begin_chosen(vst__filling *filling)
{
    vst_sink sink = {
        .ctx = filling,
        .span = span_add_chosen,
        .inside = &filling->pass->inside,
    };

    return vst__replayed_begin(filling, &sink, 0);
}

const vst__table vst__table_chosen_spans = {
    .name = "chosen_spans",
    VST_COLUMNS(span_columns),
    .has_names = true,
    .begin = begin_chosen,
};
