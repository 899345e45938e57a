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
    struct vst__exception_sum *grown;
    uint32_t number;

    if (mark->end == VST_NO_EXCEPTION)
        return VST_OK;
    if (sums->known == NULL)
        sums->known = vst__intern_create();
    if (sums->known == NULL)
        return VST_E_NOMEM;
    number = vst__intern_find(sums->known, &wanted, sizeof wanted);
    if (number == 0) {
        grown = vst__grow(sums->of, &sums->capacity, (size_t)sums->count + 1,
                          sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        sums->of = grown;
        number = sums->count + 1;
        if (vst__intern_add(sums->known, &wanted, sizeof wanted, number) !=
            VST_OK)
            return VST_E_NOMEM;
        grown[sums->count++] = (struct vst__exception_sum){wanted, 0};
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

enum {
    EXCEPTIONS_THREAD,
    EXCEPTIONS_FUNC,
    EXCEPTIONS_RAISED_IN,
    EXCEPTIONS_CAUGHT_IN,
    EXCEPTIONS_END,
    EXCEPTIONS_COUNT
};

static const vst__column_spec columns[] = {
    [EXCEPTIONS_THREAD] = {"thread", VST_COLUMN_I32, false, 0},
    /* the exception's definition: type and place */
    [EXCEPTIONS_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [EXCEPTIONS_RAISED_IN] = {"raised_in", VST_COLUMN_I32, true, 0},
    [EXCEPTIONS_CAUGHT_IN] = {"caught_in", VST_COLUMN_I32, true, 0},
    [EXCEPTIONS_END] = {"end", VST_COLUMN_NAME, false, VST_NAMES_OWN},
    [EXCEPTIONS_COUNT] = {"exceptions", VST_COLUMN_I64, false, 0},
};

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

static vst_status exceptions_put(const vst__sums *sums, vst__batch *batch)
{
    vst_status status = VST_OK;

    for (uint32_t i = 0; i < sums->exceptions.count && status == VST_OK; i++) {
        const struct vst__exception_sum *sum = &sums->exceptions.of[i];
        const struct vst__exception_key *what = &sum->what;

        status = vst__batch_reserve(batch);
        if (status != VST_OK)
            continue;
        vst__batch_i32(batch, EXCEPTIONS_THREAD, (int32_t)what->thread);
        vst__batch_i32(batch, EXCEPTIONS_FUNC, (int32_t)what->id);
        vst__batch_i32_or_null(batch, EXCEPTIONS_RAISED_IN,
                               what->raised_in != 0, (int32_t)what->raised_in);
        vst__batch_i32_or_null(batch, EXCEPTIONS_CAUGHT_IN,
                               what->caught_in != 0, (int32_t)what->caught_in);
        vst__batch_i32(batch, EXCEPTIONS_END, (int32_t)what->end);
        vst__batch_i64(batch, EXCEPTIONS_COUNT, (int64_t)sum->count);
        vst__batch_add(batch);
    }
    return status;
}

const vst__table vst__table_exceptions = {
    .name = "exceptions",
    VST_COLUMNS(columns),
    .begin = exceptions_begin,
    .sums = VST_SUMS_EXCEPTIONS,
    .put = exceptions_put,
};
