/* A budget, where functions that are left out are passed by: see py311.h. With
 * the GIL held. */
#include "calls/budget.h"
#include "program/triggers.h"
#include "py311/frame_hook.h"

static struct vpy_passing_state *const state = &vpy_py311.passing;

/* A Python call that is left out, of what one costs that is recorded: as
 * measured in loops. In a server it was less. */
static const double passed = 0.5;

double vpy_passing_ns(double python_ns)
{
    return python_ns * passed;
}

double vpy_passing_share(void)
{
    return state->share;
}

bool vpy_passing_rests(void)
{
    return state->rests;
}

/* Passing by costs so much that the hook itself has to go; then what is called
 * in C costs less without its thunk. */
static void passing_rest(void)
{
    const vpy_counts *all = &vpy_calls.budget.counts;

    state->rests = true;
    state->share = 0;
    for (size_t i = 0; i < all->seen_count; i++) {
        vpy_counted *counted = &all->of[all->seen[i]];
        counted->is &= (uint8_t)~VPY_BUDGET_OUT;
        if (counted->is & VPY_BUDGET_NATIVE)
            counted->is |= VPY_BUDGET_OUT;
    }
}

void vpy_passing_chosen(bool is_enough, double share)
{
    if (!is_enough && !vpy_triggers_want_calls())
        passing_rest();
    else
        state->share += share;
}

void vpy_passing_end(void)
{
    state->rests = false;
    state->share = 0;
}

void vpy_passing_apply(void)
{
    vpy_frames_rest(state->rests);
}

/* ---- calls that are open when their function is left out ----------------- */

/* One hook sees the begin and the end of a call, and knows whether it recorded
 * it: there are no odd frames. */
void vpy_odd_frames_turn(vst_id ends)
{
    (void)ends;
}

void vpy_odd_frames_clear(void)
{
}
