/* The tables of steps of event loops, by the thread of the loop: how many there
 * were, and the longest of those that block a loop. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tables/sums.h"

enum { STEP_BLOCKS_NS = 50 * 1000 * 1000 };

/* Returns the sums of a thread's loop, or NULL if memory ran out. */
static struct vst__loop_steps *steps_of(vst__step_sums *sums, uint32_t thread)
{
    for (size_t i = sums->count; i-- != 0;)
        if (sums->of[i].thread == thread)
            return &sums->of[i];
    if (!VST_RESERVE(sums->of, sums->count + 1, sums->capacity))
        return NULL;
    sums->of[sums->count] = (struct vst__loop_steps){.thread = thread};
    return &sums->of[sums->count++];
}

static void steps_note_long(struct vst__loop_steps *steps, int64_t start_ns,
                            int64_t ns)
{
    size_t at = VST_LONG_STEPS;

    while (at != 0 && steps->longest[at - 1].ns < ns)
        at--;
    if (at == VST_LONG_STEPS)
        return;
    memmove(&steps->longest[at + 1], &steps->longest[at],
            (VST_LONG_STEPS - at - 1) * sizeof steps->longest[0]);
    steps->longest[at] = (struct vst__long_step){start_ns, ns};
}

vst_status vst__step_sums_add(vst__step_sums *sums, const vst_span *span)
{
    struct vst__loop_steps *steps = steps_of(sums, span->thread);
    int64_t ns = span->end_ns - span->start_ns;

    if (steps == NULL)
        return VST_E_NOMEM;
    steps->count++;
    if (ns >= STEP_BLOCKS_NS) {
        steps->blocking++;
        steps->blocking_ns += ns;
        steps_note_long(steps, span->start_ns, ns);
    }
    return vst__histogram_add(&steps->all, ns);
}

void vst__step_sums_free(vst__step_sums *sums)
{
    for (size_t i = 0; i < sums->count; i++)
        vst__histogram_free(&sums->of[i].all);
    free(sums->of);
}

/* ---- all ---------------------------------------------------------------- */

#define STEPS_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, steps, steps->count)                                           \
    COLUMN(I64, blocking, steps->blocking)                                     \
    COLUMN(I64, blocking_ns, steps->blocking_ns)                               \
    COLUMN(I64, p50_ns, vst__histogram_quantile(all, 0.5))                     \
    COLUMN(I64, p99_ns, vst__histogram_quantile(all, 0.99))                    \
    COLUMN(I64, max_ns, all->max_ns)                                           \
    COLUMN(TEXT, histogram, text, vst__histogram_write(all, text))             \
    COLUMN(I32, thread, steps->thread)

static void put_steps(vst__filling *filling)
{
    const vst__step_sums *sums = &filling->pass->sums->steps;
    char text[VST_HISTOGRAM_TEXT];

    for (size_t i = 0; i < sums->count; i++) {
        const struct vst__loop_steps *steps = &sums->of[i];
        const vst__histogram *all = &steps->all;

        VST_PUT_ROW(&filling->batch, STEPS_COLUMNS);
    }
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
    COLUMN(I32, thread, sums->of[loop].thread)

static void steps_put_long(vst__filling *filling)
{
    const vst__step_sums *sums = &filling->pass->sums->steps;

    for (size_t loop = 0; loop < sums->count; loop++) {
        const struct vst__long_step *step = sums->of[loop].longest;

        for (size_t i = 0; i < VST_LONG_STEPS && step[i].ns != 0; i++)
            VST_PUT_ROW(&filling->batch, LONG_COLUMNS);
    }
}

const vst__table vst__table_long_steps = {
    .name = "long_steps",
    VST_COLUMNS(LONG_COLUMNS),
    .sums = VST_SUMS_STEPS,
    .put = steps_put_long,
};
