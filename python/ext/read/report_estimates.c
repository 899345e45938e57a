/* Functions that a budget left out for a time (<vestige/budget.h>): a call that
 * was recorded stands for several. What these come to takes the place of a
 * function's sums. Its callers' own time gets less by as much. */
#include "read/report.h"

#include <math.h>
#include <stdlib.h>

/* Of the calls that are direct children of the one that is open at a depth. */
typedef struct below {
    double recorded_ns, estimated_ns;
} below;

struct vpy_estimate {
    double calls, total_ns, self_ns;
    /* What was added to the total, by stretch: the one that is being read, and
     * the squares of all. */
    size_t stretch;
    double in_stretch, sum, squares;
};

vst_status vpy_estimates_begin(vpy_estimates *e, vst_trace *trace,
                               vst_error *error)
{
    vst_status status = vst_budget_read(trace, &e->budget, error);

    if (status != VST_OK || e->budget == NULL)
        return status;
    e->compensated = vst_trace_is_compensated(trace);
    e->max = vst_trace_definition_max(trace);
    e->of = calloc((size_t)e->max + 1, sizeof *e->of);
    return e->of != NULL ? VST_OK : VST_E_NOMEM;
}

void vpy_estimates_free(vpy_estimates *e)
{
    vst_budget_free(e->budget);
    free(e->of);
    free(e->below);
}

static bool has_room(vpy_estimates *e, uint32_t depth)
{
    size_t wanted = (size_t)depth + 2;
    below *grown;

    if (wanted <= e->depths)
        return true;
    wanted *= 2;
    grown = realloc(e->below, wanted * sizeof *grown);
    if (grown == NULL)
        return false;
    e->below = grown;
    for (; e->depths < wanted; e->depths++)
        grown[e->depths] = (below){0, 0};
    return true;
}

static void end_stretch(struct vpy_estimate *of)
{
    of->sum += of->in_stretch;
    of->squares += of->in_stretch * of->in_stretch;
    of->in_stretch = 0;
}

bool vpy_estimates_add(vpy_estimates *e, const vst_span *span, int64_t self_ns)
{
    struct vpy_estimate *of = &e->of[span->id];
    double ns = (double)(span->end_ns - span->start_ns), weight;
    size_t stretch;
    below *inside, *beside;

    if (!has_room(e, span->depth))
        return false;
    if (e->thread != span->thread) {
        for (size_t i = 0; i < e->depths; i++)
            e->below[i] = (below){0, 0};
        e->thread = span->thread;
    }
    weight = vst_budget_weight(e->budget, span->id, span->start_ns,
                               span->end_ns, &stretch);
    inside = &e->below[span->depth + 1];
    beside = &e->below[span->depth];
    of->calls += span->flags & VST_SPAN_RESUMED ? 0 : weight;
    of->self_ns +=
        weight * ((double)self_ns + inside->recorded_ns) - inside->estimated_ns;
    *inside = (below){0, 0};
    beside->recorded_ns += ns;
    beside->estimated_ns += weight * ns;
    if (span->flags & VST_SPAN_RECURSIVE)
        return true;
    of->total_ns += weight * ns;
    if (of->stretch != stretch)
        end_stretch(of);
    of->stretch = stretch;
    of->in_stretch += (weight - 1) * ns;
    return true;
}

/* Twice the standard error, by how much the windows differ. With fewer than two
 * of them nothing is known of it. */
static double error_of(struct vpy_estimate *of, double windows)
{
    double variance;

    end_stretch(of);
    if (windows < 2)
        return of->sum;
    variance = of->squares - of->sum * of->sum / windows;
    return 2 * sqrt(variance > 0 ? variance * windows / (windows - 1) : 0);
}

static int64_t whole(double value)
{
    return value > 0 ? (int64_t)(value + 0.5) : 0;
}

void vpy_estimates_put(vpy_estimates *e, vpy_sums *sums)
{
    vst_budget_info info;

    vst_budget_get_info(e->budget, &info);
    for (vst_id id = 1; id <= e->max && id <= sums->max; id++) {
        vpy_sum *sum = &sums->of[id];
        struct vpy_estimate *of = &e->of[id];
        double compensated = 0;

        if (sum->calls == 0 && sum->self_ns == 0)
            continue;
        /* Calls that stand for others are off as those are. */
        if (e->compensated && sum->total_ns > 0)
            compensated =
                (double)sum->error_ns * of->total_ns / (double)sum->total_ns;
        if (!e->compensated)
            sum->uncompensated = 0;
        sum->calls = (uint64_t)whole(of->calls);
        sum->self_ns = whole(of->self_ns);
        sum->total_ns = whole(of->total_ns);
        sum->error_ns = whole(error_of(of, (double)info.windows) + compensated);
    }
}

PyObject *vpy_estimates_dict(const vpy_estimates *e)
{
    vst_budget_info info;

    vst_budget_get_info(e->budget, &info);
    return Py_BuildValue("{sKsKsKsKsKsK}", "changes",
                         (unsigned long long)info.changes, "windows",
                         (unsigned long long)info.windows, "functions",
                         (unsigned long long)info.functions, "cpu_ns",
                         (unsigned long long)info.cpu_ns, "cost_ns",
                         (unsigned long long)info.cost_ns, "out_cpu_ns",
                         (unsigned long long)info.out_cpu_ns);
}
