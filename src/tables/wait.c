/* The table of waits: recorded waits, and calls of functions that only wait
 * (base/wait_reasons.h), in the order in which they end. One thread at a time.
 */
#include <stdlib.h>

#include "base/wait_reasons.h"
#include "tables/table.h"

enum {
    WAIT_PROCESS,
    WAIT_THREAD,
    WAIT_SPAN,
    WAIT_FUNC,
    WAIT_NAME,
    WAIT_REASON,
    WAIT_START,
    WAIT_DURATION,
    WAIT_WAITING,
    WAIT_HOLDER
};

static const vst__column_spec columns[] = {
    [WAIT_PROCESS] = {"process", VST_COLUMN_I32, false, 0},
    [WAIT_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    [WAIT_SPAN] = {"span", VST_COLUMN_I64, true, 0},
    [WAIT_FUNC] = {"func", VST_COLUMN_I32, true, 0},
    [WAIT_NAME] = {"name", VST_COLUMN_NAME, true, VST_NAMES_SHOWN},
    [WAIT_REASON] = {"reason", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [WAIT_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [WAIT_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [WAIT_WAITING] = {"waiting_ns", VST_COLUMN_I64, true, 0},
    [WAIT_HOLDER] = {"holder", VST_COLUMN_I32, true, 0},
};

/* Finds the reasons by definition id, up to filling->pass->defined_max: a
 * vst_wait_reason each. */
static vst_status find_reasons(vst__filling *filling)
{
    const vst_trace *trace = filling->pass->trace;
    uint8_t *reasons = calloc((size_t)filling->pass->defined_max + 1, 1);

    if (reasons == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < trace->definition_count; i++) {
        const vst_definition *d = &trace->definitions[i];

        if (d->kind == VST_DEF_NATIVE)
            reasons[trace->definition_ids[i]] =
                (uint8_t)vst__wait_reason_of(d->name, d->name_len);
    }
    filling->own = reasons;
    return VST_OK;
}

static void put_place(vst__batch *batch, uint64_t serial, vst_id id,
                      const vst__filling *filling)
{
    vst__batch_i64_or_null(batch, WAIT_SPAN, serial != 0, (int64_t)serial);
    vst__batch_i32_or_null(batch, WAIT_FUNC, id != 0, (int32_t)id);
    vst__batch_i32_or_null(batch, WAIT_NAME, id != 0,
                           vst__names_of(filling, id)->shown);
}

static vst_status add_wait(void *ctx, const vst_wait *wait)
{
    vst__filling *filling = ctx;
    vst__batch *batch = &filling->batch;
    int64_t duration = wait->end_ns - wait->start_ns;
    vst_status status = vst__batch_reserve(batch);

    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, WAIT_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, WAIT_THREAD, (int32_t)wait->thread);
    put_place(batch, wait->serial, wait->id, filling);
    vst__batch_i32(batch, WAIT_REASON,
                   wait->reason < VST_WAIT_REASONS ? (int32_t)wait->reason : 0);
    vst__batch_i64(batch, WAIT_START, wait->start_ns);
    vst__batch_i64(batch, WAIT_DURATION, duration);
    vst__batch_i64_or_null(batch, WAIT_WAITING, true, duration);
    vst__batch_i32_or_null(batch, WAIT_HOLDER, wait->holder != 0,
                           (int32_t)wait->holder);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status add_call(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    const uint8_t *reasons = filling->own;
    vst__batch *batch = &filling->batch;
    int64_t waiting = vst_span_waiting(span);
    vst_status status;

    if (span->id > filling->pass->defined_max ||
        reasons[span->id] == VST_WAIT_NONE)
        return VST_OK;
    status = vst__batch_reserve(batch);
    if (status != VST_OK)
        return status;
    vst__batch_i32(batch, WAIT_PROCESS, filling->pass->source->process);
    vst__batch_i32(batch, WAIT_THREAD, (int32_t)span->thread);
    put_place(batch, span->serial, span->id, filling);
    vst__batch_i32(batch, WAIT_REASON, reasons[span->id]);
    vst__batch_i64(batch, WAIT_START, span->start_ns);
    vst__batch_i64(batch, WAIT_DURATION, span->end_ns - span->start_ns);
    vst__batch_i64_or_null(batch, WAIT_WAITING, waiting >= 0, waiting);
    vst__batch_i32_or_null(batch, WAIT_HOLDER, false, 0);
    vst__batch_add(batch);
    return VST_OK;
}

static vst_status wait_begin(vst__filling *filling)
{
    const char *names[VST_WAIT_REASONS];
    const vst_sink sink = {
        .ctx = filling, .no_args = true, .span = add_call, .wait = add_wait};
    vst_status status;

    for (uint32_t i = 0; i < VST_WAIT_REASONS; i++)
        names[i] = vst_wait_reason_name(i);
    status = vst__names_add(filling, names, VST_WAIT_REASONS);
    if (status == VST_OK)
        status = vst__replayed_begin(filling, &sink, 0);
    return status == VST_OK ? find_reasons(filling) : status;
}

static void wait_end(vst__filling *filling)
{
    free(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_wait = {
    .name = "wait",
    VST_COLUMNS(columns),
    .has_names = true,
    .begin = wait_begin,
    .end = wait_end,
};
