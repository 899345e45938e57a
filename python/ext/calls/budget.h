/* A budget for what recording costs (<vestige/wire.h> says what the trace has
 * of it). Every few thousand words, a thread counts what it recorded, by
 * function. Where that costs more than the budget allows, the functions that
 * are called most are left out: first those in C, then leaves, then others.
 * From time to time there is a window in which everything is recorded; its
 * counts decide anew what is left out.
 *
 *  - budget.c         what is spent, and when something must change
 *  - budget_choice.c  which functions are left out
 *  - budget_frames.c  calls that were open when their function was left out, or
 *                     was recorded again
 *  - budget_clock.c   a thread that asks for windows while nothing is recorded
 *
 * How a function is left out: with sys.monitoring its places are disabled
 * (sys.monitoring.DISABLE), and a window enables all places. An evaluation hook
 * passes by; where that costs too much, the hook itself is removed and no
 * Python function is recorded. A C function's thunk is taken away, or with the
 * monitoring engine the places that call it are disabled.
 *
 * With the GIL held. A build without the GIL has no budget. */
#ifndef VPY_CALLS_BUDGET_H
#define VPY_CALLS_BUDGET_H

#include "calls/ids.h"

#pragma GCC visibility push(hidden)

/* Before functions get their ids. share: of CPU time; 0: any. */
void vpy_budget_prepare(double share);
/* Not while the engine cannot leave functions out: then all is recorded. */
void vpy_budget_begin(vpy_tracer *tracer);
void vpy_budget_end(void);

/* Called when a function gets its id. */
void vpy_budget_define(vst_id id, bool is_native);
/* The value with which the hooks are to know a function now. */
uint32_t vpy_budget_value(uint32_t value);

/* What a word takes beside being stored, with such a budget or none. */
double vpy_budget_word_ns(vst_recording *recording, double share);

/* Around a fork: the thread of budget_clock.c is not there meanwhile. */
void vpy_budget_before_fork(void);
void vpy_budget_after_fork_in_parent(void);
void vpy_budget_after_fork(void); /* in the child */

/* ---- between the files -------------------------------------------------- */

/* What is known of an id. */
enum {
    VPY_BUDGET_NATIVE = 1, /* a function in C */
    VPY_BUDGET_PLAIN = 2,  /* a Python function that may be left out */
    VPY_BUDGET_OUT = 4,
    VPY_BUDGET_WAS_OUT = 8 /* before what is being changed now */
};

typedef struct vpy_counted {
    uint32_t calls,
        leaves;   /* in this sample; of those, without a call inside */
    uint16_t odd; /* see budget_frames.c */
    uint8_t is;
} vpy_counted;

static inline double vpy_counted_cost(const vpy_counted *counted,
                                      const vpy_budget_costs *costs)
{
    return counted->calls * (counted->is & VPY_BUDGET_NATIVE
                                 ? costs->native_ns
                                 : costs->python_ns);
}

/* Marks functions as left out, until what is still recorded of the sample, and
 * what passing by the others costs, comes to at most `most_ns`. False: it does
 * not. */
bool vpy_budget_choose(const vpy_budget_costs *costs, double most_ns);
/* What passing by those that are left out costs, in the sample. */
double vpy_budget_passing_ns(const vpy_budget_costs *costs);

bool vpy_budget_is_out(vst_id id);
/* Takes all functions in again; a new list must follow. */
void vpy_budget_take_all_in(void);
/* The functions with VPY_BUDGET_OUT are those that are left out from here on;
 * new ones are among those of the sample. */
void vpy_budget_list_out(void);
/* The change is done: they have VPY_BUDGET_WAS_OUT. */
void vpy_budget_settle(void);

static inline bool vpy_counted_changes(const vpy_counted *counted)
{
    return !(counted->is & VPY_BUDGET_OUT) !=
           !(counted->is & VPY_BUDGET_WAS_OUT);
}

/* budget_frames.c. A frame is odd if it was entered while its function was
 * recorded and is not now, or the other way round. Functions are being left
 * out, or recorded again; ends: the id whose call ends in this thread now, 0:
 * none. */
void vpy_odd_frames_turn(vst_id ends);
void vpy_odd_frames_clear(void);
/* What the hooks do with a value that has VPY_LEFT_OUT. place: see vpy_step.
 * result and waits: see vpy_step_before_exit. True: nothing more will come of
 * this place in the code, which can be disabled. */
VST_COLD bool vpy_left_out_enter(uint32_t value, const void *place);
VST_COLD bool vpy_left_out_leave(uint32_t value, PyObject *code,
                                 PyObject *result, bool waits);

/* budget_clock.c: calls turn() some milliseconds after the process has used so
 * much CPU time, in a thread of its own, with the GIL. own_ns: CPU time that
 * the thread itself has used since turn() returned last. */
void vpy_budget_clock_start(vpy_budget_turn *turn);
void vpy_budget_clock_set(uint64_t cpu_ns);
void vpy_budget_clock_stop(void);
uint64_t vpy_cpu_ns(void); /* of the process */

#pragma GCC visibility pop
#endif
