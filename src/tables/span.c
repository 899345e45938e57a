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

#define SPAN_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, span->thread)                                          \
    COLUMN(I64, span, span->serial)                                            \
    COLUMN(I64_UNLESS_0, parent, span->parent)                                 \
    COLUMN(I32, func, span->id)                                                \
    COLUMN(SHOWN, name, defined->shown)                                        \
    COLUMN(FUNCTION, function, defined->function)                              \
    COLUMN(I32_OR_NULL, line, made_at != NULL, made_at->line)                  \
    COLUMN(KIND, kind, defined->kind)                                          \
    COLUMN(I64, start_ns, span->start_ns)                                      \
    COLUMN(I64, duration_ns, span->end_ns - span->start_ns)                    \
    COLUMN(I64, self_ns, vst__span_self(span))                                 \
    COLUMN(I32, depth, span->depth)                                            \
    COLUMN(I32, stack, span->place)                                            \
    COLUMN(I32, flags, span->flags)                                            \
    COLUMN(MEMBERS_OR_NULL, args, span->args, span->args_len)                  \
    COLUMN(I64_OR_NULL, running_ns, span->running_ns != VST_RUNNING_UNKNOWN,   \
           span->running_ns)                                                   \
    COLUMN(I64_OR_NULL, gil_ns, span->gil_ns != VST_RUNNING_UNKNOWN,           \
           span->gil_ns)                                                       \
    COLUMN(TEXT_OR_NULL, imports, imports ? module : NULL, length)             \
    COLUMN(I64_UNLESS_0, task, span->task)                                     \
    COLUMN(I64_OR_NULL, compensated_ns, is_compensated, span->compensated_ns)  \
    COLUMN(I64_OR_NULL, compensated_error_ns, is_compensated,                  \
           span->compensated_error_ns)

int64_t vst__span_self(const vst_span *span)
{
    return span->flags & VST_SPAN_ASYNC
               ? 0
               : span->end_ns - span->start_ns - span->children_ns;
}

static vst_status span_add_span(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    const vst__defined *defined = vst__names_of(filling, span->id);
    bool is_compensated = span->compensated_ns != VST_RUNNING_UNKNOWN;
    bool imports = (span->flags & VST_SPAN_IMPORT) != 0;
    const vst_stack *made_at =
        vst_trace_stack(filling->pass->trace, span->called_at);
    char module[VST_IMPORT_NAME_MAX];
    size_t length = 0;

    if (imports)
        length = vst__import_name(filling->pass->trace, span->import,
                                  span->module, module);
    VST_PUT_ROW(&filling->batch, SPAN_COLUMNS);
    return filling->batch.status;
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
    VST_COLUMNS(SPAN_COLUMNS),
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
    VST_COLUMNS(SPAN_COLUMNS),
    .has_names = true,
    .begin = begin_chosen,
};
