/* The table of a framework's operators: their spans, with the facts that were
 * recorded of each in separate columns. One thread at a time. */
#include <string.h>

#include "export/output/json.h"
#include "tables/table.h"

enum {
    OP_PROCESS,
    OP_THREAD,
    OP_SPAN,
    OP_PARENT,
    OP_FUNC,
    OP_NAME,
    OP_START,
    OP_DURATION,
    OP_SELF,
    OP_STACK,
    OP_FLAGS,
    OP_SCOPE,
    OP_SEQUENCE,
    OP_OWN_THREAD,
    OP_FORWARD_THREAD,
    OP_SHAPES,
    OP_TYPES,
    OP_STRIDES,
    OP_INPUTS,
    OP_OVERLOAD,
    OP_FLOPS,
    OP_SELF_BYTES,
    OP_TOTAL_BYTES
};

static const vst__column_spec op_columns[] = {
    [OP_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [OP_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [OP_SPAN] = {"span", VST_COLUMN_I64, false, 0},
    [OP_PARENT] = {"parent", VST_COLUMN_I64, true, 0},
    [OP_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [OP_NAME] = {"name", VST_COLUMN_NAME, false, VST_NAMES_SHOWN},
    [OP_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [OP_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [OP_SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [OP_STACK] = {"stack", VST_COLUMN_I32, false, 0},
    [OP_FLAGS] = {"flags", VST_COLUMN_I32, false, 0},
    [OP_SCOPE] = {"scope", VST_COLUMN_I32, true, 0},
    [OP_SEQUENCE] = {"sequence", VST_COLUMN_I64, true, 0},
    [OP_OWN_THREAD] = {"own_thread", VST_COLUMN_I32, true, 0},
    [OP_FORWARD_THREAD] = {"forward_thread", VST_COLUMN_I32, true, 0},
    [OP_SHAPES] = {"shapes", VST_COLUMN_TEXT, true, 0},
    [OP_TYPES] = {"types", VST_COLUMN_TEXT, true, 0},
    [OP_STRIDES] = {"strides", VST_COLUMN_TEXT, true, 0},
    [OP_INPUTS] = {"inputs", VST_COLUMN_TEXT, true, 0},
    [OP_OVERLOAD] = {"overload", VST_COLUMN_TEXT, true, 0},
    [OP_FLOPS] = {"flops", VST_COLUMN_I64, true, 0},
    [OP_SELF_BYTES] = {"self_bytes", VST_COLUMN_I64, false, 0},
    [OP_TOTAL_BYTES] = {"total_bytes", VST_COLUMN_I64, false, 0},
};

/* Facts of an operator, which replay writes as JSON, by the names that replay
 * uses. */
static const struct {
    const char *key;
    unsigned column;
} facts[] = {
    {"\"Input Dims\"", OP_SHAPES},      {"\"Input type\"", OP_TYPES},
    {"\"Input Strides\"", OP_STRIDES},  {"\"Concrete Inputs\"", OP_INPUTS},
    {"\"Overload name\"", OP_OVERLOAD}, {"\"Flops\"", OP_FLOPS},
};

enum { FACTS = sizeof facts / sizeof facts[0] };

static void find_facts(const vst_span *span, vst__json_part found[FACTS])
{
    vst__json_part all = {span->args, span->args_len}, key, value;
    const char *at = span->args;

    memset(found, 0, FACTS * sizeof *found);
    if (span->args_len == 0 || !vst__json_is_members(at, span->args_len))
        return;
    while (vst__json_next_member(all, &at, &key, &value))
        for (size_t i = 0; i < FACTS; i++)
            if (key.count == strlen(facts[i].key) &&
                memcmp(key.at, facts[i].key, key.count) == 0)
                found[i] = value;
}

static vst_status put_facts(vst__batch *batch, const vst_span *span)
{
    vst__json_part found[FACTS];
    vst_status status = VST_OK;
    int64_t flops = 0;

    find_facts(span, found);
    for (size_t i = 0; i < FACTS && status == VST_OK; i++) {
        vst__json_part part = found[i];

        if (facts[i].column == OP_FLOPS) {
            bool known = vst__json_integer(part, &flops);
            vst__batch_i64_or_null(batch, OP_FLOPS, known, flops);
            continue;
        }
        if (facts[i].column == OP_OVERLOAD)
            part = vst__json_inside(part);
        status = vst__batch_text(batch, facts[i].column, part.at, part.count);
    }
    return status;
}

static void op_put_numbers(vst__batch *batch, const vst_operator *op)
{
    vst__batch_i32_or_null(batch, OP_SCOPE, op != NULL,
                           op != NULL ? (int32_t)op->scope : 0);
    vst__batch_i64_or_null(batch, OP_SEQUENCE, op != NULL && op->sequence >= 0,
                           op != NULL ? op->sequence : 0);
    vst__batch_i32_or_null(batch, OP_OWN_THREAD, op != NULL && op->thread != 0,
                           op != NULL ? (int32_t)op->thread : 0);
    vst__batch_i32_or_null(batch, OP_FORWARD_THREAD,
                           op != NULL && op->forward_thread != 0,
                           op != NULL ? (int32_t)op->forward_thread : 0);
}

static vst_status add_op(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    const vst__defined *defined = vst__names_of(filling, span->id);
    vst_status status;

    if (defined->kind != VST_DEF_OPERATOR)
        return VST_OK;
    status = vst__batch_reserve(batch);
    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, OP_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, OP_THREAD, (int32_t)span->thread);
    vst__batch_i64(batch, OP_SPAN, (int64_t)span->serial);
    vst__batch_i64_or_null(batch, OP_PARENT, span->parent != 0,
                           (int64_t)span->parent);
    vst__batch_i32(batch, OP_FUNC, (int32_t)span->id);
    vst__batch_i32(batch, OP_NAME, defined->shown);
    vst__batch_i64(batch, OP_START, span->start_ns);
    vst__batch_i64(batch, OP_DURATION, span->end_ns - span->start_ns);
    vst__batch_i64(batch, OP_SELF, vst__span_self(span));
    vst__batch_i32(batch, OP_STACK, (int32_t)span->place);
    vst__batch_i32(batch, OP_FLAGS, (int32_t)span->flags);
    vst__batch_i64(batch, OP_SELF_BYTES, span->self_framework_bytes);
    vst__batch_i64(batch, OP_TOTAL_BYTES, span->total_framework_bytes);
    op_put_numbers(batch, span->op);
    status = put_facts(batch, span);
    vst__batch_add(batch);
    return status;
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
    VST_COLUMNS(op_columns),
    .has_names = true,
    .begin = begin_op,
};
