/* The table of functions: a row for each that was called, with how much its
 * calls differ where that is asked for. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "tables/sums.h"

#define FUNCTIONS_COLUMNS(COLUMN)                                              \
    COLUMN(I32, func, id)                                                      \
    COLUMN(I64, calls, sum->calls)                                             \
    COLUMN(I64, outer_calls, sum->outer)                                       \
    COLUMN(I64, self_ns, sum->self_ns)                                         \
    COLUMN(I64, total_ns, sum->total_ns)                                       \
    COLUMN(I64, max_ns, sum->max_ns)                                           \
    COLUMN(I64, self_bytes, sum->self_bytes)                                   \
    COLUMN(I64, total_bytes, sum->total_bytes)                                 \
    COLUMN(I64, allocations, sum->allocations)                                 \
    COLUMN(I64_OR_NULL, running_ns, sum->unknown == 0, sum->running_ns)        \
    COLUMN(I64_OR_NULL, self_running_ns, sum->self_unknown == 0,               \
           sum->self_running_ns)                                               \
    COLUMN(I64_OR_NULL, error_ns, sum->uncompensated == 0, sum->error_ns)      \
    COLUMN(F64_UNLESS_MINUS, self_mean_error_ns, self.error_of_mean)           \
    COLUMN(F64_UNLESS_MINUS, self_median_ns, self.median)                      \
    COLUMN(F64_UNLESS_MINUS, self_median_error_ns, self.error_of_median)       \
    COLUMN(F64_UNLESS_MINUS, total_mean_error_ns, total.error_of_mean)         \
    COLUMN(F64_UNLESS_MINUS, total_median_ns, total.median)                    \
    COLUMN(F64_UNLESS_MINUS, total_median_error_ns, total.error_of_median)

vst_status vst__function_sums_begin(vst__sums *sums)
{
    vst__function_sums *own = &sums->functions;
    size_t count = (size_t)sums->max + 1;

    own->of = calloc(count, sizeof *own->of);
    if (own->of != NULL && sums->options->spread) {
        own->self = calloc(count, sizeof *own->self);
        own->total = calloc(count, sizeof *own->total);
        if (own->self == NULL || own->total == NULL)
            return VST_E_NOMEM;
    }
    return own->of != NULL ? VST_OK : VST_E_NOMEM;
}

vst_status vst__function_sums_grow(vst__sums *sums)
{
    vst_id max = vst_trace_definition_max(sums->trace);
    vst__function_sum *of;

    if (max <= sums->max)
        return VST_OK;
    of = realloc(sums->functions.of, ((size_t)max + 1) * sizeof *of);
    if (of == NULL)
        return VST_E_NOMEM;
    memset(of + sums->max + 1, 0, (max - sums->max) * sizeof *of);
    sums->functions.of = of;
    sums->max = max;
    return VST_OK;
}

void vst__function_sums_free(vst__sums *sums)
{
    vst__function_sums *own = &sums->functions;

    for (vst_id id = 0;
         own->self != NULL && own->total != NULL && id <= sums->max; id++) {
        vst__spread_free(&own->self[id]);
        vst__spread_free(&own->total[id]);
    }
    free(own->of);
    free(own->self);
    free(own->total);
}

/* In the total of a function that calls itself, inner calls do not count again.
 */
static void add_total(vst__function_sums *own, vst__function_sum *sum,
                      const vst_span *span)
{
    int64_t duration = span->end_ns - span->start_ns;

    sum->outer += !(span->flags & VST_SPAN_RESUMED);
    sum->total_ns += duration;
    if (duration > sum->max_ns)
        sum->max_ns = duration;
    if (span->running_ns == VST_RUNNING_UNKNOWN)
        sum->unknown++;
    else
        sum->running_ns += span->running_ns;
    if (span->compensated_ns == VST_RUNNING_UNKNOWN)
        sum->uncompensated++;
    else
        sum->error_ns += span->compensated_error_ns;
    sum->total_bytes += span->total_bytes;
    if (own->total != NULL)
        vst__spread_add(&own->total[span->id], duration);
}

void vst__function_sums_add(vst__sums *sums, const vst_span *span,
                            int64_t self_ns, int64_t self_running_ns)
{
    vst__function_sums *own = &sums->functions;
    vst__function_sum *sum = &own->of[span->id];

    sum->calls += !(span->flags & VST_SPAN_RESUMED);
    sum->self_ns += self_ns;
    if (span->running_ns == VST_RUNNING_UNKNOWN)
        sum->self_unknown++;
    else
        sum->self_running_ns += self_running_ns;
    sum->self_bytes += span->self_bytes;
    sum->allocations += span->self_allocations;
    if (own->self != NULL)
        vst__spread_add(&own->self[span->id], self_ns);
    if (!(span->flags & VST_SPAN_RECURSIVE))
        add_total(own, sum, span);
}

/* Returns what is typical for a function; nothing is known without spreads. */
static vst__typical functions_typical(const vst__spread *spreads, vst_id id)
{
    return spreads != NULL ? vst__spread_typical(&spreads[id])
                           : (vst__typical){-1, -1, -1};
}

static void functions_put(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;
    const vst__function_sums *own = &sums->functions;

    for (vst_id id = 1; id <= sums->max; id++) {
        const vst__function_sum *sum = &own->of[id];
        vst__typical self, total;

        if (sum->calls == 0 && sum->self_ns == 0)
            continue;
        self = functions_typical(own->self, id);
        total = functions_typical(own->total, id);
        VST_PUT_ROW(&filling->batch, FUNCTIONS_COLUMNS);
    }
}

const vst__table vst__table_functions = {
    .name = "functions",
    VST_COLUMNS(FUNCTIONS_COLUMNS),
    .sums = VST_SUMS_FUNCTIONS,
    .put = functions_put,
};
