/* The tables of steps of event loops: how many there were, and the longest of
 * those that block a loop. One thread at a time. */
#include <string.h>

#include "tables/sums.h"

enum { STEP_BLOCKS_NS = 50 * 1000 * 1000 };

vst_status vst__step_sums_add(vst__step_sums *sums, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    vst_status status = vst__histogram_add(&sums->all, ns);
    size_t at = VST_LONG_STEPS;

    sums->count++;
    if (ns < STEP_BLOCKS_NS)
        return status;
    sums->blocking++;
    sums->blocking_ns += ns;
    while (at != 0 && sums->longest[at - 1].ns < ns)
        at--;
    if (at == VST_LONG_STEPS)
        return status;
    memmove(&sums->longest[at + 1], &sums->longest[at],
            (VST_LONG_STEPS - at - 1) * sizeof sums->longest[0]);
    sums->longest[at] =
        (struct vst__long_step){span->start_ns, ns, span->thread};
    return status;
}

/* ---- all ---------------------------------------------------------------- */

enum {
    STEPS_STEPS,
    STEPS_BLOCKING,
    STEPS_BLOCKING_TIME,
    STEPS_P50,
    STEPS_P99,
    STEPS_MAX,
    STEPS_HISTOGRAM
};

static const vst__column_spec steps_columns[] = {
    [STEPS_STEPS] = {"steps", VST_COLUMN_I64, false, 0},
    [STEPS_BLOCKING] = {"blocking", VST_COLUMN_I64, false, 0},
    [STEPS_BLOCKING_TIME] = {"blocking_ns", VST_COLUMN_I64, false, 0},
    [STEPS_P50] = {"p50_ns", VST_COLUMN_I64, false, 0},
    [STEPS_P99] = {"p99_ns", VST_COLUMN_I64, false, 0},
    [STEPS_MAX] = {"max_ns", VST_COLUMN_I64, false, 0},
    [STEPS_HISTOGRAM] = {"histogram", VST_COLUMN_TEXT, false, 0},
};

static vst_status put_steps(const vst__sums *sums, vst__batch *batch)
{
    const vst__histogram *all = &sums->steps.all;
    vst_status status = vst__batch_reserve(batch);
    char text[VST_HISTOGRAM_TEXT];

    if (status != VST_OK)
        return status;
    vst__batch_i64(batch, STEPS_P50, vst__histogram_quantile(all, 0.5));
    vst__batch_i64(batch, STEPS_P99, vst__histogram_quantile(all, 0.99));
    vst__batch_i64(batch, STEPS_MAX, all->max_ns);
    status = vst__batch_text(batch, STEPS_HISTOGRAM, text,
                             vst__histogram_write(all, text));
    vst__batch_i64(batch, STEPS_STEPS, (int64_t)sums->steps.count);
    vst__batch_i64(batch, STEPS_BLOCKING, (int64_t)sums->steps.blocking);
    vst__batch_i64(batch, STEPS_BLOCKING_TIME, sums->steps.blocking_ns);
    vst__batch_add(batch);
    return status;
}

const vst__table vst__table_steps = {
    .name = "steps",
    VST_COLUMNS(steps_columns),
    .sums = VST_SUMS_STEPS,
    .put = put_steps,
};

/* ---- the longest -------------------------------------------------------- */

enum { LONG_START, LONG_DURATION, LONG_THREAD };

static const vst__column_spec long_columns[] = {
    [LONG_START] = {"start_ns", VST_COLUMN_I64, false, 0},
    [LONG_DURATION] = {"duration_ns", VST_COLUMN_I64, false, 0},
    [LONG_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
};

static vst_status steps_put_long(const vst__sums *sums, vst__batch *batch)
{
    const struct vst__long_step *step = sums->steps.longest;
    vst_status status = VST_OK;

    for (size_t i = 0; i < VST_LONG_STEPS && step[i].ns != 0; i++) {
        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            break;
        vst__batch_i64(batch, LONG_START, step[i].start_ns);
        vst__batch_i64(batch, LONG_DURATION, step[i].ns);
        vst__batch_i32(batch, LONG_THREAD, (int32_t)step[i].thread);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_long_steps = {
    .name = "long_steps",
    VST_COLUMNS(long_columns),
    .sums = VST_SUMS_STEPS,
    .put = steps_put_long,
};
