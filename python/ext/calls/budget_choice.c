/* Chooses the functions that a budget leaves out: those with most calls, C
 * functions first, then leaves, then others. A function with few calls stays,
 * as long as leaving out functions with many calls is enough. */
#include "calls/budget.h"

#include <stdlib.h>

static struct vpy_budget_state *const state = &vpy_calls.budget;

typedef enum rank { NATIVES, LEAVES, OTHERS, RANKS } rank;

static bool can_go(const vpy_counted *counted)
{
    return counted->calls != 0 && !(counted->is & VPY_BUDGET_OUT) &&
           counted->is & (VPY_BUDGET_NATIVE | VPY_BUDGET_PLAIN);
}

/* A function is a leaf if nine of ten calls had no call inside. */
static rank rank_of(const vpy_counted *counted)
{
    if (counted->is & VPY_BUDGET_NATIVE)
        return NATIVES;
    return counted->leaves >= counted->calls - counted->calls / 10 ? LEAVES
                                                                   : OTHERS;
}

static int by_calls(const void *a, const void *b)
{
    const vpy_counted *x = &state->counts.of[*(const vst_id *)a];
    const vpy_counted *y = &state->counts.of[*(const vst_id *)b];

    return (x->calls < y->calls) - (x->calls > y->calls);
}

static double passing_cost(const vpy_counted *counted,
                           const vpy_budget_costs *costs)
{
    return counted->is & VPY_BUDGET_NATIVE ? 0
                                           : counted->calls * costs->passed_ns;
}

double vpy_budget_passing_ns(const vpy_budget_costs *costs)
{
    const vpy_counts *all = &state->counts;
    double sum = 0;

    for (size_t i = 0; i < all->seen_count; i++) {
        const vpy_counted *counted = &all->of[all->seen[i]];
        if (counted->is & VPY_BUDGET_OUT)
            sum += passing_cost(counted, costs);
    }
    return sum;
}

static double sum_of_costs(const vpy_budget_costs *costs)
{
    const vpy_counts *all = &state->counts;
    double sum = vpy_budget_passing_ns(costs);

    for (size_t i = 0; i < all->seen_count; i++) {
        const vpy_counted *counted = &all->of[all->seen[i]];
        if (!(counted->is & VPY_BUDGET_OUT))
            sum += vpy_counted_cost(counted, costs);
    }
    return sum;
}

bool vpy_budget_choose(const vpy_budget_costs *costs, double most_ns)
{
    vpy_counts *all = &state->counts;
    double sum = sum_of_costs(costs);

    qsort(all->seen, all->seen_count, sizeof *all->seen, by_calls);
    for (int pass = 0; pass < 2 && sum > most_ns; pass++) {
        double least = pass == 0 ? (sum - most_ns) / 32 : 0;
        for (rank r = NATIVES; r < RANKS; r++)
            for (size_t i = 0; i < all->seen_count && sum > most_ns; i++) {
                vpy_counted *counted = &all->of[all->seen[i]];
                double cost = vpy_counted_cost(counted, costs);
                if (!can_go(counted) || rank_of(counted) != r || cost < least)
                    continue;
                counted->is |= VPY_BUDGET_OUT;
                sum -= cost - passing_cost(counted, costs);
            }
    }
    return sum <= most_ns;
}

/* ---- the list of what is left out --------------------------------------- */

bool vpy_budget_is_out(vst_id id)
{
    return id < state->counts.size && state->counts.of[id].is & VPY_BUDGET_OUT;
}

void vpy_budget_take_all_in(void)
{
    const vpy_counts *all = &state->counts;

    for (size_t i = 0; i < all->out_count; i++)
        all->of[all->out[i]].is &= (uint8_t)~VPY_BUDGET_OUT;
}

void vpy_budget_list_out(void)
{
    vpy_counts *all = &state->counts;
    size_t count = 0;

    for (size_t i = 0; i < all->out_count; i++)
        if (all->of[all->out[i]].is & VPY_BUDGET_OUT)
            all->out[count++] = all->out[i];
    all->out_count = count;
    for (size_t i = 0; i < all->seen_count; i++) {
        const vpy_counted *counted = &all->of[all->seen[i]];
        if (counted->is & VPY_BUDGET_OUT && !(counted->is & VPY_BUDGET_WAS_OUT))
            all->out[all->out_count++] = all->seen[i];
    }
}

void vpy_budget_end_change(void)
{
    vpy_counts *all = &state->counts;

    for (vst_id id = 0; id < all->size; id++)
        all->of[id].is &= (uint8_t)~VPY_BUDGET_WAS_OUT;
    for (size_t i = 0; i < all->out_count; i++)
        all->of[all->out[i]].is |= VPY_BUDGET_WAS_OUT;
}
