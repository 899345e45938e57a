/* The tables of what devices did in sum: by name, by device and stream, and the
 * longest idle times. One thread at a time. */
#include "tables/device_sums.h"

static vst_status device_uses_begin(vst__filling *filling)
{
    return vst__device_sums_join(filling);
}

/* Returns the sums when all is read. */
static const vst__device_sums *sums_of(vst__filling *filling)
{
    filling->batch.status = vst__device_sums_finish(filling->pass->devices);
    return filling->pass->devices;
}

/* ---- by name ------------------------------------------------------------- */

#define NAMED_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, device, named->device)                                         \
    COLUMN(OWN, kind, named->kind)                                             \
    COLUMN(I32, func, named->id)                                               \
    COLUMN(I64, activities, named->count)                                      \
    COLUMN(I64, total_ns, named->total_ns)                                     \
    COLUMN(I64, longest_ns, named->longest_ns)                                 \
    COLUMN(I64, bytes, named->bytes)

static vst_status begin_named(vst__filling *filling)
{
    const char *names[VST_ACTIVITY_LOST];
    vst_status status;

    for (uint32_t i = 0; i < VST_ACTIVITY_LOST; i++)
        names[i] = vst_activity_kind_name(i);
    status = vst__names_add(filling, names, VST_ACTIVITY_LOST);
    return status == VST_OK ? device_uses_begin(filling) : status;
}

static void put_named(vst__filling *filling)
{
    const vst__device_sums *sums = sums_of(filling);

    for (size_t i = 0; i < sums->named_count; i++) {
        const vst__device_named *named = &sums->named[i];

        VST_PUT_ROW(&filling->batch, NAMED_COLUMNS);
    }
}

const vst__table vst__table_device_sums = {
    .name = "device_sums",
    VST_COLUMNS(NAMED_COLUMNS),
    .begin = begin_named,
    .put = put_named,
    .end = vst__device_sums_leave,
};

/* ---- use ----------------------------------------------------------------- */

#define USE_COLUMNS(COLUMN)                                                    \
    COLUMN(I32, device, use->device)                                           \
    COLUMN(I64_OR_NULL, stream, use->is_stream, use->stream)                   \
    COLUMN(I64, works, use->works)                                             \
    COLUMN(I64, start_ns, use->start_ns)                                       \
    COLUMN(I64, end_ns, use->end_ns)                                           \
    COLUMN(I64, span_ns, use->span_ns)                                         \
    COLUMN(I64, busy_ns, use->busy_ns)                                         \
    COLUMN(I64, idle_ns, use->idle_ns)                                         \
    COLUMN(I64, gaps, use->gaps)                                               \
    COLUMN(I64, longest_gap_ns, use->longest_gap_ns)                           \
    COLUMN(I64, unlaunched_ns, use->unlaunched_ns)                             \
    COLUMN(I64, launched, use->launched)                                       \
    COLUMN(I64, delay_ns, use->delay_ns)                                       \
    COLUMN(I64, queue_max, use->queue_max)                                     \
    COLUMN(I64, queue_sum, use->queue_sum)

static void put_uses(vst__filling *filling)
{
    const vst__device_sums *sums = sums_of(filling);

    for (size_t i = 0; i < sums->use_count; i++) {
        const vst__device_use *use = &sums->uses[i];

        VST_PUT_ROW(&filling->batch, USE_COLUMNS);
    }
}

const vst__table vst__table_device_uses = {
    .name = "device_uses",
    VST_COLUMNS(USE_COLUMNS),
    .begin = device_uses_begin,
    .put = put_uses,
    .end = vst__device_sums_leave,
};

/* ---- gaps ---------------------------------------------------------------- */

#define GAP_COLUMNS(COLUMN)                                                    \
    COLUMN(I32, device, gap->device)                                           \
    COLUMN(I64, start_ns, gap->start_ns)                                       \
    COLUMN(I64, end_ns, gap->end_ns)                                           \
    COLUMN(I64_OR_NULL, unlaunched_ns, gap->unlaunched_ns >= 0,                \
           gap->unlaunched_ns)                                                 \
    COLUMN(I64, stream, gap->stream)                                           \
    COLUMN(I32, func, gap->id)                                                 \
    COLUMN(I32_UNLESS_0, thread, gap->thread)                                  \
    COLUMN(I32_UNLESS_0, op, gap->op)                                          \
    COLUMN(I32_UNLESS_0, annotation, gap->annotation)

static void put_gaps(vst__filling *filling)
{
    const vst__device_sums *sums = sums_of(filling);

    for (size_t i = 0; i < sums->gap_count; i++) {
        const vst__device_gap *gap = &sums->gaps[i];

        VST_PUT_ROW(&filling->batch, GAP_COLUMNS);
    }
}

const vst__table vst__table_device_gaps = {
    .name = "device_gaps",
    VST_COLUMNS(GAP_COLUMNS),
    .begin = device_uses_begin,
    .put = put_gaps,
    .end = vst__device_sums_leave,
};
