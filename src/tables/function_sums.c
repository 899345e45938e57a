/* The table of functions: a row for each that was called, with how much its
 * calls differ where that is asked for. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "tables/sums.h"

enum {
    FUNCTIONS_FUNC,
    FUNCTIONS_CALLS,
    FUNCTIONS_OUTER,
    FUNCTIONS_SELF,
    FUNCTIONS_TOTAL,
    FUNCTIONS_MAX,
    FUNCTIONS_SELF_BYTES,
    FUNCTIONS_TOTAL_BYTES,
    FUNCTIONS_ALLOCATIONS,
    FUNCTIONS_RUNNING,
    FUNCTIONS_SELF_RUNNING,
    FUNCTIONS_ERROR,
    FUNCTIONS_SELF_MEAN_ERROR,
    FUNCTIONS_SELF_MEDIAN,
    FUNCTIONS_SELF_MEDIAN_ERROR,
    FUNCTIONS_TOTAL_MEAN_ERROR,
    FUNCTIONS_TOTAL_MEDIAN,
    FUNCTIONS_TOTAL_MEDIAN_ERROR
};

static const vst__column_spec columns[] = {
    [FUNCTIONS_FUNC] = {"func", VST_COLUMN_I32, false, 0},
    [FUNCTIONS_CALLS] = {"calls", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_OUTER] = {"outer_calls", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_MAX] = {"max_ns", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_SELF_BYTES] = {"self_bytes", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_TOTAL_BYTES] = {"total_bytes", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_ALLOCATIONS] = {"allocations", VST_COLUMN_I64, false, 0},
    [FUNCTIONS_RUNNING] = {"running_ns", VST_COLUMN_I64, true, 0},
    [FUNCTIONS_SELF_RUNNING] = {"self_running_ns", VST_COLUMN_I64, true, 0},
    [FUNCTIONS_ERROR] = {"error_ns", VST_COLUMN_I64, true, 0},
    [FUNCTIONS_SELF_MEAN_ERROR] = {"self_mean_error_ns", VST_COLUMN_F64, true,
                                   0},
    [FUNCTIONS_SELF_MEDIAN] = {"self_median_ns", VST_COLUMN_F64, true, 0},
    [FUNCTIONS_SELF_MEDIAN_ERROR] = {"self_median_error_ns", VST_COLUMN_F64,
                                     true, 0},
    [FUNCTIONS_TOTAL_MEAN_ERROR] = {"total_mean_error_ns", VST_COLUMN_F64, true,
                                    0},
    [FUNCTIONS_TOTAL_MEDIAN] = {"total_median_ns", VST_COLUMN_F64, true, 0},
    [FUNCTIONS_TOTAL_MEDIAN_ERROR] = {"total_median_error_ns", VST_COLUMN_F64,
                                      true, 0},
};

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

static void put_or_null(vst__batch *batch, unsigned column, double value)
{
    vst__batch_f64(batch, column, value >= 0 ? value : 0);
    vst__batch_valid(batch, column, value >= 0);
}

static void put_spread(vst__batch *batch, unsigned first,
                       const vst__spread *spread)
{
    vst__typical typical = {-1, -1, -1};

    if (spread != NULL)
        typical = vst__spread_typical(spread);
    put_or_null(batch, first, typical.error_of_mean);
    put_or_null(batch, first + 1, typical.median);
    put_or_null(batch, first + 2, typical.error_of_median);
}

static void functions_put_function(const vst__function_sums *own, vst_id id,
                                   vst__batch *batch)
{
    const vst__function_sum *sum = &own->of[id];

    vst__batch_i32(batch, FUNCTIONS_FUNC, (int32_t)id);
    vst__batch_i64(batch, FUNCTIONS_CALLS, (int64_t)sum->calls);
    vst__batch_i64(batch, FUNCTIONS_OUTER, (int64_t)sum->outer);
    vst__batch_i64(batch, FUNCTIONS_SELF, sum->self_ns);
    vst__batch_i64(batch, FUNCTIONS_TOTAL, sum->total_ns);
    vst__batch_i64(batch, FUNCTIONS_MAX, sum->max_ns);
    vst__batch_i64(batch, FUNCTIONS_SELF_BYTES, (int64_t)sum->self_bytes);
    vst__batch_i64(batch, FUNCTIONS_TOTAL_BYTES, (int64_t)sum->total_bytes);
    vst__batch_i64(batch, FUNCTIONS_ALLOCATIONS, (int64_t)sum->allocations);
    vst__batch_i64_or_null(batch, FUNCTIONS_RUNNING, sum->unknown == 0,
                           sum->running_ns);
    vst__batch_i64_or_null(batch, FUNCTIONS_SELF_RUNNING,
                           sum->self_unknown == 0, sum->self_running_ns);
    vst__batch_i64_or_null(batch, FUNCTIONS_ERROR, sum->uncompensated == 0,
                           sum->error_ns);
    put_spread(batch, FUNCTIONS_SELF_MEAN_ERROR,
               own->self != NULL ? &own->self[id] : NULL);
    put_spread(batch, FUNCTIONS_TOTAL_MEAN_ERROR,
               own->total != NULL ? &own->total[id] : NULL);
    vst__batch_add(batch);
}

static vst_status functions_put(const vst__sums *sums, vst__batch *batch)
{
    const vst__function_sums *own = &sums->functions;
    vst_status status = VST_OK;

    for (vst_id id = 1; id <= sums->max && status == VST_OK; id++) {
        if (own->of[id].calls == 0 && own->of[id].self_ns == 0)
            continue;
        status = vst__batch_reserve(batch);
        if (status == VST_OK)
            functions_put_function(own, id, batch);
    }
    return status;
}

const vst__table vst__table_functions = {
    .name = "functions",
    VST_COLUMNS(columns),
    .sums = VST_SUMS_FUNCTIONS,
    .put = functions_put,
};
