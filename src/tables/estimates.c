/* Functions that a budget left out for a time (replay/budget.h): a recorded
 * call stands for several calls, whose time is added to the function's.
 *
 * That time must come from somewhere. While a function is left out, its time
 * counts for the calls around it, or for no call if there are none. So each
 * thread has accounts: the own time of the calls that a recorded call stands
 * for is a gain of their function and a loss of the functions around them. At
 * the end of the thread, losses are limited by what can be lost, and gains are
 * scaled to the losses. So a function's own time is at most its total, which is
 * at most the time of the threads in which it ran, and own times add up to the
 * time of the threads. */
#include "replay/budget.h"
#include "tables/sums.h"

#include <math.h>
#include <stdlib.h>

struct vst__estimate {
    /* Sums over the threads that were read to their end. */
    double calls; /* in addition to the recorded calls */
    double self_ns, total_ns;
    double threads_ns; /* total time of the threads in which it ran */
    double reduced_ns; /* how much larger the total would be without limits */
    int64_t recorded_ns;
    /* sums over stretches of the time added to the total */
    double sum, squares;
    uint64_t threads;
    /* Sums of the thread that is being read. */
    struct of_thread {
        bool is_touched;
        double gain_ns, loss_ns;
        int64_t self_ns, total_ns; /* as recorded */
        /* Facts for the total time. gains_ns: own time of the calls that
         * recorded calls stand for. recorded_inside_ns: time of calls inside
         * these calls that is recorded as other calls. fitting_ns: added time
         * that fits into the gaps; wanted_ns: the added time without that
         * limit. */
        double gains_ns, recorded_inside_ns, fitting_ns, wanted_ns;
        int64_t ended_ns; /* end of its last call */
        /* The stretch in which that call began. */
        size_t stretch;
        /* taken: time already used of the gaps before and after the stretch */
        double in_stretch, taken_ns[2];
        int64_t before_ns; /* end of the last call before the stretch */
    } here;
};

/* Totals that are reduced by less than this part are not reported. */
static const double reported_share = 0.01;

vst_status vst__estimates_begin(vst__sums *sums)
{
    vst__estimates *e = &sums->estimates;
    vst_status status = vst__budget_read(sums->trace, &e->budget, NULL);
    size_t count = (size_t)sums->max + 1;

    if (status != VST_OK || e->budget == NULL)
        return status;
    e->of = calloc(count, sizeof *e->of);
    e->touched = calloc(count, sizeof *e->touched);
    return e->of != NULL && e->touched != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__estimates_free(vst__estimates *e)
{
    vst__budget_free(e->budget);
    free(e->of);
    free(e->touched);
}

/* ---- a call -------------------------------------------------------------- */

static void estimates_end_stretch(struct vst__estimate *of)
{
    struct of_thread *here = &of->here;

    of->sum += here->in_stretch;
    of->squares += here->in_stretch * here->in_stretch;
    here->in_stretch = here->taken_ns[0] = here->taken_ns[1] = 0;
}

static struct vst__estimate *estimates_touch(vst__estimates *e, vst_id id,
                                             size_t stretch)
{
    struct vst__estimate *of = &e->of[id];

    if (of->here.is_touched)
        return of;
    e->touched[e->touched_count++] = id;
    of->here = (struct of_thread){.is_touched = true,
                                  .stretch = stretch,
                                  .ended_ns = INT64_MIN,
                                  .before_ns = INT64_MIN};
    return of;
}

static double estimates_least(double a, double b)
{
    return a < b ? a : b;
}

void vst__estimates_see(vst__estimates *e, const vst_span *span,
                        int64_t spent_ns)
{
    if (span->start_ns < e->first_ns || !e->has_thread)
        e->first_ns = span->start_ns;
    if (span->left_ns > e->last_ns || !e->has_thread)
        e->last_ns = span->left_ns;
    e->has_thread = true;
    e->spent_ns += spent_ns;
    /* time that does not count for a function is not free either */
    if (span->parent == 0)
        e->spent_ns += span->left_ns - span->end_ns;
}

/* Adds the time of the calls that an outermost call stands for; it must fit
 * into the gaps, together with what earlier calls stand for. Returns the added
 * time. */
static double estimates_add_outer(struct vst__estimate *of,
                                  const vst_span *span, int64_t ns,
                                  const vst_budget_gap gaps[2])
{
    struct of_thread *here = &of->here;
    double added = 0;

    for (int i = 0; i < 2; i++) {
        double wanted = gaps[i].calls * (double)ns;
        double left = gaps[i].all_ns - here->taken_ns[i];
        double fits = left > 0 ? estimates_least(wanted, left) : 0;
        here->wanted_ns += wanted;
        here->taken_ns[i] += fits;
        added += fits;
    }
    here->fitting_ns += added;
    here->in_stretch += added;
    here->total_ns += ns;
    here->ended_ns = span->left_ns;
    return added;
}

double vst__estimates_add(vst__estimates *e, const vst_span *span, int64_t ns,
                          int64_t self_ns, double inside_ns)
{
    size_t stretch = vst__budget_find(e->budget, span->start_ns);
    struct vst__estimate *of = estimates_touch(e, span->id, stretch);
    struct of_thread *here = &of->here;
    bool is_outer = !(span->flags & VST_SPAN_RECURSIVE);
    vst_budget_gap gaps[2];
    double lasted_ns = (double)(span->left_ns - span->start_ns);
    double calls = 0, gain, kept, fitting;

    if (is_outer && here->stretch != stretch) {
        estimates_end_stretch(of);
        here->stretch = stretch;
        here->before_ns = here->ended_ns;
    }
    vst__budget_gaps(e->budget, stretch, span->id, span->start_ns,
                     span->left_ns, is_outer ? here->before_ns : INT64_MIN,
                     gaps);
    for (int i = 0; i < 2; i++)
        calls += gaps[i].calls * lasted_ns > gaps[i].own_ns
                     ? gaps[i].own_ns / lasted_ns
                     : gaps[i].calls;
    of->calls += span->flags & VST_SPAN_RESUMED ? 0 : calls;
    gain = calls * (double)self_ns;
    if (is_outer) {
        fitting = estimates_add_outer(of, span, ns, gaps);
        gain = self_ns == ns ? fitting : gain;
    }
    /* The calls that this call stands for contain such gains, too, so this
     * function loses less. */
    kept = estimates_least(inside_ns, calls * (double)(ns - self_ns));
    if (is_outer) {
        here->gains_ns += gain + kept;
        here->recorded_inside_ns += calls * (double)(ns - self_ns) - kept;
    }
    here->gain_ns += gain;
    here->loss_ns += inside_ns - kept;
    here->self_ns += self_ns;
    vst__estimates_see(e, span, self_ns);
    return gain + kept;
}

/* ---- a thread ------------------------------------------------------------ */

/* Returns the share of all gains that is covered by losses. Sets *lost_ns to
 * the covered time that was outside of all calls. */
static double estimates_share_of_gains(const vst__estimates *e, double *lost_ns)
{
    double gains = 0, losses = 0, net = 0;
    double free_ns = (double)((uint64_t)e->last_ns - (uint64_t)e->first_ns);

    free_ns = free_ns > (double)e->spent_ns ? free_ns - (double)e->spent_ns : 0;
    for (size_t i = 0; i < e->touched_count; i++) {
        const struct of_thread *here = &e->of[e->touched[i]].here;
        double ns = here->gain_ns - here->loss_ns;
        net += ns;
        if (ns > 0)
            gains += ns;
        else
            losses += estimates_least(-ns, (double)here->self_ns);
    }
    *lost_ns = net > 0 ? estimates_least(net, free_ns) : 0;
    losses += *lost_ns;
    return losses < gains ? losses / gains : 1;
}

static void estimates_end_function(struct vst__estimate *of, double part,
                                   double thread_ns)
{
    struct of_thread *here = &of->here;
    double self_ns = here->gain_ns - here->loss_ns, total_ns;

    self_ns = (double)here->self_ns + (self_ns > 0 ? part : 1) * self_ns;
    self_ns = self_ns > 0 ? self_ns : 0;
    total_ns = estimates_least(part * here->gains_ns + here->recorded_inside_ns,
                               here->fitting_ns);
    total_ns = estimates_least((double)here->total_ns + total_ns, thread_ns);
    total_ns = total_ns > self_ns ? total_ns : self_ns;
    of->self_ns += self_ns;
    of->total_ns += total_ns;
    of->recorded_ns += here->total_ns;
    of->reduced_ns += (double)here->total_ns + here->wanted_ns - total_ns;
    of->threads_ns += thread_ns;
    of->threads++;
    estimates_end_stretch(of);
    here->is_touched = false;
}

int64_t vst__estimates_end_thread(vst__estimates *e)
{
    double lost_ns, part = estimates_share_of_gains(e, &lost_ns),
                    thread_ns = lost_ns;

    for (size_t i = 0; i < e->touched_count; i++)
        thread_ns += (double)e->of[e->touched[i]].here.self_ns;
    for (size_t i = 0; i < e->touched_count; i++)
        estimates_end_function(&e->of[e->touched[i]], part, thread_ns);
    e->touched_count = 0;
    e->spent_ns = 0;
    e->has_thread = false;
    return (int64_t)ceil(lost_ns);
}

/* ---- sums over all threads ----------------------------------------------- */

/* Returns twice the standard error, computed from the differences between
 * windows; with fewer than two windows the error is unknown. The result is
 * limited by what is certain: the recorded calls, and the threads in which the
 * function did not run. */
static double estimates_error_of(const struct vst__estimate *of, double windows)
{
    double samples = windows * (double)of->threads, variance;
    double added = of->total_ns - (double)of->recorded_ns, error = of->sum;
    double missing = of->threads_ns - of->total_ns;

    if (windows >= 2) {
        variance = of->squares - of->sum * of->sum / samples;
        error = 2 * sqrt(variance > 0 ? variance * samples / (samples - 1) : 0);
    }
    return estimates_least(error, added > missing ? added : missing);
}

static bool is_reduced(const struct vst__estimate *of)
{
    return of->reduced_ns > reported_share * (of->total_ns + of->reduced_ns);
}

/* Rounds down, so that sums stay within their limits. */
void vst__estimates_end(vst__sums *sums)
{
    const vst__estimates *e = &sums->estimates;
    bool is_compensated = vst__trace_is_compensated(sums->trace);
    vst_budget_info info;

    vst__budget_get_info(e->budget, &info);
    for (vst_id id = 1; id <= sums->max; id++) {
        vst__function_sum *sum = &sums->functions.of[id];
        const struct vst__estimate *of = &e->of[id];
        double compensated = 0, error;

        if (of->threads == 0)
            continue;
        /* The compensated error of estimated calls is proportional to that of
         * the recorded ones. */
        if (is_compensated && of->recorded_ns > 0)
            compensated =
                (double)sum->error_ns * of->total_ns / (double)of->recorded_ns;
        if (!is_compensated)
            sum->uncompensated = 0;
        error = estimates_error_of(of, (double)info.windows) + compensated;
        sum->calls += (uint64_t)(of->calls + 0.5);
        sum->self_ns = (int64_t)of->self_ns;
        sum->total_ns += (int64_t)of->total_ns - of->recorded_ns;
        sum->error_ns = error > 0 ? (int64_t)(error + 0.5) : 0;
    }
}

/* ---- budget -------------------------------------------------------------- */

#define BUDGET_COLUMNS(COLUMN)                                                 \
    COLUMN(I64, changes, info.changes)                                         \
    COLUMN(I64, windows, info.windows)                                         \
    COLUMN(I64, functions, info.functions)                                     \
    COLUMN(I64, cpu_ns, info.cpu_ns)                                           \
    COLUMN(I64, cost_ns, info.cost_ns)                                         \
    COLUMN(I64, out_cpu_ns, info.out_cpu_ns)

static void put_budget(vst__filling *filling)
{
    const vst_budget *budget = filling->pass->sums->estimates.budget;
    vst_budget_info info;

    if (budget == NULL)
        return;
    vst__budget_get_info(budget, &info);
    VST_PUT_ROW(&filling->batch, BUDGET_COLUMNS);
}

const vst__table vst__table_budget = {
    .name = "budget",
    VST_COLUMNS(BUDGET_COLUMNS),
    .sums = VST_SUMS_ESTIMATES,
    .put = put_budget,
};

/* ---- reduced estimates --------------------------------------------------- */

#define REDUCED_COLUMNS(COLUMN)                                                \
    COLUMN(I32, func, id)                                                      \
    COLUMN(I64, reduced_ns, of[id].reduced_ns)

static void put_reduced(vst__filling *filling)
{
    const vst__sums *sums = filling->pass->sums;
    const struct vst__estimate *of = sums->estimates.of;

    for (vst_id id = 1; of != NULL && id <= sums->max; id++)
        if (is_reduced(&of[id]))
            VST_PUT_ROW(&filling->batch, REDUCED_COLUMNS);
}

const vst__table vst__table_reduced_estimates = {
    .name = "reduced_estimates",
    VST_COLUMNS(REDUCED_COLUMNS),
    .sums = VST_SUMS_ESTIMATES,
    .put = put_reduced,
};
