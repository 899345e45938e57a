/* A budget limits the cost of recording (<vestige/wire.h> specifies its
 * records). Every few thousand words, a thread counts its recorded calls by
 * function. If they cost more than the budget allows, the functions with most
 * calls are left out: first C functions, then leaves, then others. From time to
 * time there is a window in which every function is recorded; the counts of the
 * window decide again which functions are left out.
 *
 *  - budget.c         counts the cost, and decides when to change the set
 *  - budget_choice.c  chooses the functions to leave out
 *  - budget_frames.c  handles calls that were open when their function was left
 *                     out, or was recorded again
 *  - budget_clock.c   has a thread that begins windows while nothing is
 * recorded
 *
 * How a function is left out: with sys.monitoring its places are disabled
 * (sys.monitoring.DISABLE), and a window enables all places. An evaluation hook
 * returns early for it; if even that costs too much, the hook is removed and no
 * Python function is recorded. A C function loses its thunk; with the
 * monitoring engine, the places that call it are disabled. Call all functions
 * with the GIL held. A build without the GIL has no budget. */
#ifndef VPY_CALLS_BUDGET_H
#define VPY_CALLS_BUDGET_H

#include "calls/ids.h"

#pragma GCC visibility push(hidden)

/* Call before functions get their ids. share: share of CPU time; 0: no
 * budget. */
void vpy_budget_prepare(double share);
/* Does nothing if the engine cannot leave functions out: then every call is
 * recorded. */
void vpy_budget_begin(vpy_tracer *tracer);
void vpy_budget_end(void);

/* Called when a function gets its id. */
void vpy_budget_define(vst_id id, bool is_native);
/* Returns the value by which the hooks know a function now. */
uint32_t vpy_budget_value(uint32_t value);

/* Returns the cost of counting a word, in addition to storing it; with share 0,
 * there is no budget. */
double vpy_budget_word_ns(vst_recording *recording, double share);

/* Call around a fork. The thread of budget_clock.c does not run meanwhile. */
void vpy_budget_before_fork(void);
void vpy_budget_after_fork_in_parent(void);
void vpy_budget_after_fork(void); /* in the child */

/* ---- between the files -------------------------------------------------- */

/* Facts about an id. */
enum {
    VPY_BUDGET_NATIVE = 1, /* a function in C */
    VPY_BUDGET_PLAIN = 2,  /* a Python function that may be left out */
    VPY_BUDGET_OUT = 4,
    VPY_BUDGET_WAS_OUT = 8 /* was left out before the change in progress */
};

typedef struct vpy_counted {
    uint32_t calls,
        /* calls in this sample, and how many of these had no call inside */
        leaves;
    uint16_t stale; /* number of stale frames, see budget_frames.c */
    uint8_t is;
} vpy_counted;

static inline double vpy_counted_cost(const vpy_counted *counted,
                                      const vpy_budget_costs *costs)
{
    return counted->calls * (counted->is & VPY_BUDGET_NATIVE
                                 ? costs->native_ns
                                 : costs->python_ns);
}

/* Marks functions as left out, until the calls of the sample that are still
 * recorded, and the early returns for the others, cost at most `most_ns`.
 * Returns false if they still cost more. */
bool vpy_budget_choose(const vpy_budget_costs *costs, double most_ns);
/* Returns the cost of the hook's early returns for left-out functions in the
 * sample. */
double vpy_budget_passing_ns(const vpy_budget_costs *costs);

bool vpy_budget_is_out(vst_id id);
/* Records all functions again. Call vpy_budget_list_out after this. */
void vpy_budget_take_all_in(void);
/* Makes the list of left-out functions from VPY_BUDGET_OUT. Only functions of
 * the sample can be new in the list. */
void vpy_budget_list_out(void);
/* Ends a change: sets VPY_BUDGET_WAS_OUT to VPY_BUDGET_OUT. */
void vpy_budget_end_change(void);

static inline bool vpy_counted_changes(const vpy_counted *counted)
{
    return !(counted->is & VPY_BUDGET_OUT) !=
           !(counted->is & VPY_BUDGET_WAS_OUT);
}

/* budget_frames.c. A frame is stale if its call began while its function was
 * recorded and the function is left out now, or the other way round. Call
 * vpy_stale_frames_update when the set of left-out functions changes. ends: id
 * of the call that ends in this thread now; 0: none. */
void vpy_stale_frames_update(vst_id ends);
void vpy_stale_frames_clear(void);
/* Called by hooks for a value that has VPY_LEFT_OUT. place: see vpy_step.
 * result and waits: see vpy_step_before_exit. Return true if this place in the
 * code can be disabled, because no event of it will be recorded. */
VST_COLD bool vpy_left_out_enter(uint32_t value, const void *place);
VST_COLD bool vpy_left_out_leave(uint32_t value, PyObject *code,
                                 PyObject *result, bool waits);

/* budget_clock.c: calls on_due() some milliseconds after the process has used
 * this much CPU time, in a thread of its own that holds the GIL. own_ns: CPU
 * time that this thread used since the previous on_due() returned. */
void vpy_budget_clock_start(vpy_budget_due_fn *on_due);
void vpy_budget_clock_set(uint64_t cpu_ns);
void vpy_budget_clock_stop(void);
uint64_t vpy_cpu_ns(void); /* CPU time of the process */

#pragma GCC visibility pop
#endif
