/* The table of a framework's operators: their spans, with the facts that were
 * recorded of each in separate columns. One thread at a time. */
#include <string.h>

#include "export/output/json.h"
#include "tables/table.h"

#define OP_COLUMNS(COLUMN)                                                     \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, span->thread)                                          \
    COLUMN(I64, span, span->serial)                                            \
    COLUMN(I64_UNLESS_0, parent, span->parent)                                 \
    COLUMN(I32, func, span->id)                                                \
    COLUMN(SHOWN, name, defined->shown)                                        \
    COLUMN(I64, start_ns, span->start_ns)                                      \
    COLUMN(I64, duration_ns, span->end_ns - span->start_ns)                    \
    COLUMN(I64, self_ns, vst__span_self(span))                                 \
    COLUMN(I32, stack, span->place)                                            \
    COLUMN(I32, flags, span->flags)                                            \
    COLUMN(I32_OR_NULL, scope, op != NULL, op->scope)                          \
    COLUMN(I64_OR_NULL, sequence, op != NULL && op->sequence >= 0,             \
           op->sequence)                                                       \
    COLUMN(I32_OR_NULL, own_thread, op != NULL && op->thread != 0, op->thread) \
    COLUMN(I32_OR_NULL, forward_thread, op != NULL && op->forward_thread != 0, \
           op->forward_thread)                                                 \
    COLUMN(TEXT_OR_NULL, shapes, found[SHAPES].at, found[SHAPES].count)        \
    COLUMN(TEXT_OR_NULL, types, found[TYPES].at, found[TYPES].count)           \
    COLUMN(TEXT_OR_NULL, strides, found[STRIDES].at, found[STRIDES].count)     \
    COLUMN(TEXT_OR_NULL, inputs, found[INPUTS].at, found[INPUTS].count)        \
    COLUMN(TEXT_OR_NULL, overload, overload.at, overload.count)                \
    COLUMN(I64_OR_NULL, flops, knows_flops, flops)                             \
    COLUMN(I64, self_bytes, span->self_framework_bytes)                        \
    COLUMN(I64, total_bytes, span->total_framework_bytes)

enum { SHAPES, TYPES, STRIDES, INPUTS, OVERLOAD, FLOPS, FACTS };

/* Facts of an operator, which replay writes as JSON, by the names that replay
 * uses. */
static const char *const facts[] = {
    [SHAPES] = "\"Input Dims\"",      [TYPES] = "\"Input type\"",
    [STRIDES] = "\"Input Strides\"",  [INPUTS] = "\"Concrete Inputs\"",
    [OVERLOAD] = "\"Overload name\"", [FLOPS] = "\"Flops\"",
};

static void find_facts(const vst_span *span, vst__json_part found[FACTS])
{
    vst__json_part all = {span->args, span->args_len}, key, value;
    const char *at = span->args;

    memset(found, 0, FACTS * sizeof *found);
    if (span->args_len == 0 || !vst__json_is_members(at, span->args_len))
        return;
    while (vst__json_next_member(all, &at, &key, &value))
        for (size_t i = 0; i < FACTS; i++)
            if (key.count == strlen(facts[i]) &&
                memcmp(key.at, facts[i], key.count) == 0)
                found[i] = value;
}

static vst_status add_op(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    const vst__defined *defined = vst__names_of(filling, span->id);
    const vst_operator *op = span->op;
    vst__json_part found[FACTS], overload;
    int64_t flops = 0;
    bool knows_flops;

    if (defined->kind != VST_DEF_OPERATOR)
        return VST_OK;
    find_facts(span, found);
    overload = vst__json_inside(found[OVERLOAD]);
    knows_flops = vst__json_integer(found[FLOPS], &flops);
    VST_PUT_ROW(&filling->batch, OP_COLUMNS);
    return filling->batch.status;
}

static vst_status begin_op(vst__filling *filling)
{
    vst_sink sink = {
        .ctx = filling,
        .span = add_op,
        .inside = &filling->pass->inside,
    };

    return vst__replayed_begin(filling, &sink, VST_DEF_OPERATOR);
}

const vst__table vst__table_op = {
    .name = "op",
    VST_COLUMNS(OP_COLUMNS),
    .has_names = true,
    .begin = begin_op,
};
