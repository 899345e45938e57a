/* The tables of what devices did in sum: by name, by device and stream, and the
 * longest idle times. One thread at a time. */
#include "tables/device_sums.h"

static vst_status device_uses_begin(vst__filling *filling)
{
    return vst__device_sums_join(filling);
}

/* Returns the sums when all is read; NULL before that, and if they cannot be
 * made (*status). */
static const vst__device_sums *sums_of(vst__filling *filling, bool *done,
                                       vst_status *status)
{
    *done = filling->pass->is_replayed;
    *status = *done ? vst__device_sums_finish(filling->pass->devices) : VST_OK;
    return *done && *status == VST_OK ? filling->pass->devices : NULL;
}

static void put_known(vst__batch *batch, unsigned column, uint32_t number)
{
    vst__batch_i32_or_null(batch, column, number != 0, (int32_t)number);
}

/* ---- by name ------------------------------------------------------------- */

enum {
    NAMED_DEVICE,
    NAMED_KIND,
    NAMED_FUNC,
    NAMED_COUNT,
    NAMED_TOTAL,
    NAMED_LONGEST,
    NAMED_BYTES
};

static const vst__column_spec named_columns[] = {
    [NAMED_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [NAMED_KIND] = {"kind", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [NAMED_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [NAMED_COUNT] = {"activities", VST_COLUMN_I64, false, 0},
    [NAMED_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [NAMED_LONGEST] = {"longest_ns", VST_COLUMN_I64, false, 0},
    [NAMED_BYTES] = {"bytes", VST_COLUMN_I64, false, 0},
};

static vst_status begin_named(vst__filling *filling)
{
    const char *names[VST_ACTIVITY_LOST];
    vst_status status;

    for (uint32_t i = 0; i < VST_ACTIVITY_LOST; i++)
        names[i] = vst_activity_kind_name(i);
    status = vst__names_add(filling, names, VST_ACTIVITY_LOST);
    return status == VST_OK ? device_uses_begin(filling) : status;
}

static vst_status step_named(vst__filling *filling, bool *done)
{
    vst_status status;
    const vst__device_sums *sums = sums_of(filling, done, &status);
    vst__batch *batch = &filling->batch;

    for (size_t i = 0; sums != NULL && i < sums->named_count; i++) {
        const vst__device_named *named = &sums->named[i];

        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            break;
        vst__batch_i32(batch, NAMED_DEVICE, (int32_t)named->device);
        vst__batch_i32(batch, NAMED_KIND, (int32_t)named->kind);
        vst__batch_i32(batch, NAMED_FUNC, (int32_t)named->id);
        vst__batch_i64(batch, NAMED_COUNT, (int64_t)named->count);
        vst__batch_i64(batch, NAMED_TOTAL, named->total_ns);
        vst__batch_i64(batch, NAMED_LONGEST, named->longest_ns);
        vst__batch_i64(batch, NAMED_BYTES, (int64_t)named->bytes);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_device_sums = {
    .name = "device_sums",
    VST_COLUMNS(named_columns),
    .begin = begin_named,
    .step = step_named,
    .end = vst__device_sums_leave,
};

/* ---- use ----------------------------------------------------------------- */

enum {
    USE_DEVICE,
    USE_STREAM,
    USE_WORKS,
    USE_START,
    USE_END,
    USE_SPAN,
    USE_BUSY,
    USE_IDLE,
    USE_GAPS,
    USE_LONGEST,
    USE_UNLAUNCHED,
    USE_LAUNCHED,
    USE_DELAY,
    USE_QUEUE_MAX,
    USE_QUEUE_SUM
};

static const vst__column_spec use_columns[] = {
    [USE_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [USE_STREAM] = {"stream", VST_COLUMN_I64, true, 0},
    [USE_WORKS] = {"works", VST_COLUMN_I64, false, 0},
    [USE_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [USE_END] = {"end_ns", VST_COLUMN_I64, false, 0},
    [USE_SPAN] = {"span_ns", VST_COLUMN_I64, false, 0},
    [USE_BUSY] = {"busy_ns", VST_COLUMN_I64, false, 0},
    [USE_IDLE] = {"idle_ns", VST_COLUMN_I64, false, 0},
    [USE_GAPS] = {"gaps", VST_COLUMN_I64, false, 0},
    [USE_LONGEST] = {"longest_gap_ns", VST_COLUMN_I64, false, 0},
    [USE_UNLAUNCHED] = {"unlaunched_ns", VST_COLUMN_I64, false, 0},
    [USE_LAUNCHED] = {"launched", VST_COLUMN_I64, false, 0},
    [USE_DELAY] = {"delay_ns", VST_COLUMN_I64, false, 0},
    [USE_QUEUE_MAX] = {"queue_max", VST_COLUMN_I64, false, 0},
    [USE_QUEUE_SUM] = {"queue_sum", VST_COLUMN_I64, false, 0},
};

static void put_use(vst__batch *batch, const vst__device_use *use)
{
    vst__batch_i32(batch, USE_DEVICE, (int32_t)use->device);
    vst__batch_i64_or_null(batch, USE_STREAM, use->is_stream, use->stream);
    vst__batch_i64(batch, USE_WORKS, (int64_t)use->works);
    vst__batch_i64(batch, USE_START, use->start_ns);
    vst__batch_i64(batch, USE_END, use->end_ns);
    vst__batch_i64(batch, USE_SPAN, use->span_ns);
    vst__batch_i64(batch, USE_BUSY, use->busy_ns);
    vst__batch_i64(batch, USE_IDLE, use->idle_ns);
    vst__batch_i64(batch, USE_GAPS, (int64_t)use->gaps);
    vst__batch_i64(batch, USE_LONGEST, use->longest_gap_ns);
    vst__batch_i64(batch, USE_UNLAUNCHED, use->unlaunched_ns);
    vst__batch_i64(batch, USE_LAUNCHED, (int64_t)use->launched);
    vst__batch_i64(batch, USE_DELAY, use->delay_ns);
    vst__batch_i64(batch, USE_QUEUE_MAX, (int64_t)use->queue_max);
    vst__batch_i64(batch, USE_QUEUE_SUM, (int64_t)use->queue_sum);
    vst__batch_add(batch);
}

static vst_status step_uses(vst__filling *filling, bool *done)
{
    vst_status status;
    const vst__device_sums *sums = sums_of(filling, done, &status);

    for (size_t i = 0; sums != NULL && i < sums->use_count; i++) {
        status = vst__batch_reserve(&filling->batch);
        if (status != VST_OK)
            break;
        put_use(&filling->batch, &sums->uses[i]);
    }
    return status;
}

const vst__table vst__table_device_uses = {
    .name = "device_uses",
    VST_COLUMNS(use_columns),
    .begin = device_uses_begin,
    .step = step_uses,
    .end = vst__device_sums_leave,
};

/* ---- gaps ---------------------------------------------------------------- */

enum {
    GAP_DEVICE,
    GAP_START,
    GAP_END,
    GAP_UNLAUNCHED,
    GAP_STREAM,
    GAP_FUNC,
    GAP_THREAD,
    GAP_OP,
    GAP_ANNOTATION
};

static const vst__column_spec gap_columns[] = {
    [GAP_DEVICE] = {"device", VST_COLUMN_I32, false, 0},
    [GAP_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [GAP_END] = {"end_ns", VST_COLUMN_I64, false, 0},
    [GAP_UNLAUNCHED] = {"unlaunched_ns", VST_COLUMN_I64, true, 0},
    [GAP_STREAM] = {"stream", VST_COLUMN_I64, false, 0},
    [GAP_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [GAP_THREAD] = {"thread", VST_COLUMN_I32, true, 0},
    [GAP_OP] = {"op", VST_COLUMN_I32, true, 0},
    [GAP_ANNOTATION] = {"annotation", VST_COLUMN_I32, true, 0},
};

static vst_status step_gaps(vst__filling *filling, bool *done)
{
    vst_status status;
    const vst__device_sums *sums = sums_of(filling, done, &status);
    vst__batch *batch = &filling->batch;

    for (size_t i = 0; sums != NULL && i < sums->gap_count; i++) {
        const vst__device_gap *gap = &sums->gaps[i];

        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            break;
        vst__batch_i32(batch, GAP_DEVICE, (int32_t)gap->device);
        vst__batch_i64(batch, GAP_START, gap->start_ns);
        vst__batch_i64(batch, GAP_END, gap->end_ns);
        vst__batch_i64_or_null(batch, GAP_UNLAUNCHED, gap->unlaunched_ns >= 0,
                               gap->unlaunched_ns);
        vst__batch_i64(batch, GAP_STREAM, gap->stream);
        vst__batch_i32(batch, GAP_FUNC, (int32_t)gap->id);
        put_known(batch, GAP_THREAD, gap->thread);
        put_known(batch, GAP_OP, gap->op);
        put_known(batch, GAP_ANNOTATION, gap->annotation);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_device_gaps = {
    .name = "device_gaps",
    VST_COLUMNS(gap_columns),
    .begin = device_uses_begin,
    .step = step_gaps,
    .end = vst__device_sums_leave,
};
