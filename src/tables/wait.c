/* The table of waits: recorded waits, and calls of functions that only wait
 * (replay/named_waits.h), in the order in which they end. One thread at a time.
 */
#include <stdlib.h>

#include "replay/named_waits.h"
#include "tables/table.h"

#define WAIT_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, wait->thread)                                          \
    COLUMN(I64_UNLESS_0, span, wait->serial)                                   \
    COLUMN(I32_UNLESS_0, func, wait->id)                                       \
    COLUMN(SHOWN_OR_NULL, name, wait->id != 0,                                 \
           vst__names_of(filling, wait->id)->shown)                            \
    COLUMN(OWN, reason, wait->reason < VST_WAIT_REASONS ? wait->reason : 0)    \
    COLUMN(I64, start_ns, wait->start_ns)                                      \
    COLUMN(I64, duration_ns, wait->end_ns - wait->start_ns)                    \
    COLUMN(I64_OR_NULL, waiting_ns, waiting_ns != NULL, *waiting_ns)           \
    COLUMN(I32_UNLESS_0, holder, wait->holder)

/* waiting_ns is NULL if it is unknown. */
static vst_status wait_put(vst__filling *filling, const vst_wait *wait,
                           const int64_t *waiting_ns)
{
    VST_PUT_ROW(&filling->batch, WAIT_COLUMNS);
    return filling->batch.status;
}

static vst_status add_wait(void *ctx, const vst_wait *wait)
{
    int64_t duration_ns = wait->end_ns - wait->start_ns;

    return wait_put(ctx, wait, &duration_ns);
}

static vst_status add_call(void *ctx, const vst_span *span)
{
    vst__filling *filling = ctx;
    const vst__waiter *waiters = filling->own;
    int64_t waiting_ns = vst_span_waiting(span);
    vst_wait wait = {.serial = span->serial,
                     .id = span->id,
                     .thread = span->thread,
                     .start_ns = span->start_ns,
                     .end_ns = span->end_ns};

    if (span->id > filling->pass->defined_max ||
        waiters[span->id].reason == VST_WAIT_NONE ||
        waiters[span->id].is_around)
        return VST_OK;
    wait.reason = waiters[span->id].reason;
    return wait_put(filling, &wait, waiting_ns >= 0 ? &waiting_ns : NULL);
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
    if (status == VST_OK)
        filling->own =
            vst__named_waits(filling->pass->trace, filling->pass->defined_max);
    return status == VST_OK && filling->own == NULL ? VST_E_NOMEM : status;
}

static void wait_end(vst__filling *filling)
{
    free(filling->own);
    filling->own = NULL;
}

const vst__table vst__table_wait = {
    .name = "wait",
    VST_COLUMNS(WAIT_COLUMNS),
    .has_names = true,
    .begin = wait_begin,
    .end = wait_end,
};
