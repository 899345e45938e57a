/* The table of lines: the places in the source from which functions were
 * called. Of all calls, only those whose place was recorded (VST_ESCAPE_LINES)
 * are in the table: any long call, and a part of the short ones. One thread at
 * a time. */
#include <stdlib.h>

#include <vestige/memory.h>

#include "base/grow.h"
#include "tables/sums.h"

/* ---- adding up ----------------------------------------------------------- */

/* Returns the number of a key, which may be new; 0 if memory ran out. */
static uint32_t lines_number_of(vst__line_sums *sums,
                                const struct vst__line_key *key)
{
    uint32_t number;

    if (sums->known == NULL)
        sums->known = vst__intern_create();
    if (sums->known == NULL)
        return 0;
    number = vst__intern_find(sums->known, key, sizeof *key);
    if (number != 0)
        return number;
    if (!VST_RESERVE(sums->of, (size_t)sums->count + 1, sums->capacity))
        return 0;
    sums->of[sums->count] = (struct vst__line_sum){.what = *key};
    return vst__intern_add(sums->known, key, sizeof *key, sums->count + 1) ==
                   VST_OK
               ? ++sums->count
               : 0;
}

vst_status vst__line_sums_add(vst__line_sums *sums, const vst_trace *trace,
                              const vst_span *span)
{
    const vst_stack *stack = vst_trace_stack(trace, span->called_at);
    struct vst__line_key key;
    uint32_t number;

    if (stack == NULL)
        return VST_OK;
    key = (struct vst__line_key){span->id, stack->function, stack->line,
                                 span->called_through};
    number = lines_number_of(sums, &key);
    if (number == 0)
        return VST_E_NOMEM;
    sums->of[number - 1].calls += !(span->flags & VST_SPAN_RESUMED);
    if (!(span->flags & VST_SPAN_RECURSIVE))
        sums->of[number - 1].ns += span->end_ns - span->start_ns;
    return VST_OK;
}

void vst__line_sums_free(vst__line_sums *sums)
{
    vst__intern_destroy(sums->known);
    free(sums->of);
}

/* ---- the table ----------------------------------------------------------- */

#define LINES_COLUMNS(COLUMN)                                                  \
    COLUMN(I32, func, sum->what.id)                                            \
    /* the nearest function of the language around the call, and its line */   \
    COLUMN(I32, caller, sum->what.caller)                                      \
    COLUMN(I32, line, sum->what.line)                                          \
    /* the caller called something else, which called the function */          \
    COLUMN(BOOL, through, sum->what.through)                                   \
    COLUMN(I64, calls, sum->calls)                                             \
    COLUMN(I64, total_ns, sum->ns)

static void lines_put(vst__filling *filling)
{
    const vst__line_sums *sums = &filling->pass->sums->lines;

    for (uint32_t i = 0; i < sums->count; i++) {
        const struct vst__line_sum *sum = &sums->of[i];

        VST_PUT_ROW(&filling->batch, LINES_COLUMNS);
    }
}

const vst__table vst__table_lines = {
    .name = "lines",
    VST_COLUMNS(LINES_COLUMNS),
    .sums = VST_SUMS_LINES,
    .put = lines_put,
};
