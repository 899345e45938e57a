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

#define STEPS_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, steps, sums->count)                                            \
    COLUMN(I64, blocking, sums->blocking)                                      \
    COLUMN(I64, blocking_ns, sums->blocking_ns)                                \
    COLUMN(I64, p50_ns, vst__histogram_quantile(all, 0.5))                     \
    COLUMN(I64, p99_ns, vst__histogram_quantile(all, 0.99))                    \
    COLUMN(I64, max_ns, all->max_ns)                                           \
    COLUMN(TEXT, histogram, text, vst__histogram_write(all, text))

static void put_steps(vst__filling *filling)
{
    const vst__step_sums *sums = &filling->pass->sums->steps;
    const vst__histogram *all = &sums->all;
    char text[VST_HISTOGRAM_TEXT];

    VST_PUT_ROW(&filling->batch, STEPS_COLUMNS);
}

const vst__table vst__table_steps = {
    .name = "steps",
    VST_COLUMNS(STEPS_COLUMNS),
    .sums = VST_SUMS_STEPS,
    .put = put_steps,
};

/* ---- the longest -------------------------------------------------------- */

#define LONG_COLUMNS(COLUMN)                                                   \
    COLUMN(I64, start_ns, step[i].start_ns)                                    \
    COLUMN(I64, duration_ns, step[i].ns)                                       \
    COLUMN(I32, thread, step[i].thread)

static void steps_put_long(vst__filling *filling)
{
    const struct vst__long_step *step = filling->pass->sums->steps.longest;

    for (size_t i = 0; i < VST_LONG_STEPS && step[i].ns != 0; i++)
        VST_PUT_ROW(&filling->batch, LONG_COLUMNS);
}

const vst__table vst__table_long_steps = {
    .name = "long_steps",
    VST_COLUMNS(LONG_COLUMNS),
    .sums = VST_SUMS_STEPS,
    .put = steps_put_long,
};
