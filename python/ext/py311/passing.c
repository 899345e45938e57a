/* A budget on 3.11: the hook returns early for functions that are left out
 * ("passing"), see py311.h. Call with the GIL held. */
#include "calls/budget.h"
#include "program/triggers.h"
#include "py311/frame_hook.h"

static struct vpy_passing_state *const state = &vpy_py311.passing;

/* Cost of passing a left-out call, as a share of the cost of a recorded call.
 * Measured in loops; in a server, the share was smaller. */
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

/* Makes the budget remove the hook itself, because passing costs too much. C
 * functions are left out, too: without a thunk they cost less. */
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

/* Does nothing: one hook sees the begin and the end of a call, and knows
 * whether it recorded the begin, so there are no stale frames. */
void vpy_stale_frames_update(vst_id ends)
{
    (void)ends;
}

void vpy_stale_frames_clear(void)
{
}
