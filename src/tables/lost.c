/* The table of losses: stretches about which the trace knows nothing. One
 * thread at a time. */
#include "tables/table.h"

#define LOST_COLUMNS(COLUMN)                                                   \
    COLUMN(I32, process, filling->pass->source->process)                       \
    COLUMN(I32, thread, loss->thread)                                          \
    COLUMN(OWN, kind, (size_t)loss->kind < LOSSES ? (int32_t)loss->kind : 0)   \
    COLUMN(I64, start_ns, loss->start_ns)                                      \
    COLUMN(I64, duration_ns, loss->end_ns - loss->start_ns)                    \
    COLUMN(I64, records, loss->records)

/* By vst_loss_kind. */
static const char *const losses[] = {"unknown", "records", "gap", "dropped"};

enum { LOSSES = sizeof losses / sizeof losses[0] };

static vst_status add_loss(void *ctx, const vst_loss *loss)
{
    vst__filling *filling = ctx;

    VST_PUT_ROW(&filling->batch, LOST_COLUMNS);
    return filling->batch.status;
}

static vst_status begin_lost(vst__filling *filling)
{
    vst_sink sink = {.ctx = filling, .no_args = true, .loss = add_loss};
    vst_status status = vst__names_add(filling, losses, LOSSES);

    return status == VST_OK ? vst__replayed_begin(filling, &sink, 0) : status;
}

const vst__table vst__table_lost = {
    .name = "lost",
    VST_COLUMNS(LOST_COLUMNS),
    .begin = begin_lost,
};
