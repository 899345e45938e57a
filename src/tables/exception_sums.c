/* The table of exceptions: how often each was raised in a thread at a place,
 * and how it ended. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "tables/sums.h"

/* ---- adding up ----------------------------------------------------------- */

vst_status vst__exception_sums_add(vst__exception_sums *sums,
                                   const vst_instant *mark)
{
    const struct vst__exception_key wanted = {mark->id, mark->raised_in,
                                              mark->caught_in, mark->thread,
                                              (uint32_t)mark->end};
    uint32_t number;

    if (mark->end == VST_NO_EXCEPTION)
        return VST_OK;
    if (sums->known == NULL)
        sums->known = vst__intern_create();
    if (sums->known == NULL)
        return VST_E_NOMEM;
    number = vst__intern_find(sums->known, &wanted, sizeof wanted);
    if (number == 0) {
        if (!VST_RESERVE(sums->of, (size_t)sums->count + 1, sums->capacity))
            return VST_E_NOMEM;
        number = sums->count + 1;
        if (vst__intern_add(sums->known, &wanted, sizeof wanted, number) !=
            VST_OK)
            return VST_E_NOMEM;
        sums->of[sums->count++] = (struct vst__exception_sum){wanted, 0};
    }
    sums->of[number - 1].count++;
    return VST_OK;
}

void vst__exception_sums_free(vst__exception_sums *sums)
{
    vst__intern_destroy(sums->known);
    free(sums->of);
}

/* ---- the table ----------------------------------------------------------- */

#define EXCEPTIONS_COLUMNS(COLUMN)                                             \
    COLUMN(I32, thread, what->thread)                                          \
    /* the exception's definition: type and place */                           \
    COLUMN(I32, func, what->id)                                                \
    COLUMN(I32_UNLESS_0, raised_in, what->raised_in)                           \
    COLUMN(I32_UNLESS_0, caught_in, what->caught_in)                           \
    COLUMN(OWN, end, what->end)                                                \
    COLUMN(I64, exceptions, sum->count)

static vst_status exceptions_begin(vst__filling *filling)
{
    static const char *const ends[] = {
        [VST_NO_EXCEPTION] = "",
        [VST_EXCEPTION_CAUGHT] = "caught",
        [VST_EXCEPTION_NOT_CAUGHT] = "not caught",
        [VST_EXCEPTION_UNKNOWN] = "unknown",
    };

    return vst__names_add(filling, ends, sizeof ends / sizeof ends[0]);
}

static void exceptions_put(vst__filling *filling)
{
    const vst__exception_sums *sums = &filling->pass->sums->exceptions;

    for (uint32_t i = 0; i < sums->count; i++) {
        const struct vst__exception_sum *sum = &sums->of[i];
        const struct vst__exception_key *what = &sum->what;

        VST_PUT_ROW(&filling->batch, EXCEPTIONS_COLUMNS);
    }
}

const vst__table vst__table_exceptions = {
    .name = "exceptions",
    VST_COLUMNS(EXCEPTIONS_COLUMNS),
    .begin = exceptions_begin,
    .sums = VST_SUMS_EXCEPTIONS,
    .put = exceptions_put,
};
