/* Python frames by the evaluation hook (PEP 523): see frame_hook.c. */
#ifndef VPY_PY311_FRAME_HOOK_H
#define VPY_PY311_FRAME_HOOK_H

#include "calls/turbo_frames.h"
#include "py311/made_frames.h"
#include "py311/py311.h"

#pragma GCC visibility push(hidden)

/* Returns the function that a frame runs (borrowed). */
static inline PyObject *vpy_iframe_function(const vpy_iframe *frame)
{
    return (PyObject *)frame->f_func;
}

/* Returns whether evaluating the frame makes a generator: that is what the
 * first instructions of its code do. */
static inline bool vpy_iframe_makes_generator(const vpy_iframe *frame)
{
    return vpy_code_generates(frame->f_code) &&
           frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/* Returns whether the recursion limit allows no further frame. */
static inline bool vpy_frame_will_be_refused(const PyThreadState *tstate)
{
    return tstate->recursion_remaining <= 0 && !tstate->recursion_headroom;
}

/* Returns whether a coroutine that is being left waits, and has not ended. */
static inline bool vpy_iframe_waits(const vpy_iframe *frame)
{
    const PyGenObject *generator =
        (const PyGenObject *)(const void *)((const char *)frame -
                                            offsetof(PyGenObject, gi_iframe));
    return generator->gi_frame_state == FRAME_SUSPENDED;
}

/* For tests: install and remove the hook without a recording, and note
 * the calls of this thread as "f(g()h(!)", where h raised. */
void vpy_frames_hook(void);
void vpy_frames_unhook(void);
void vpy_frames_test_begin(void);
const char *vpy_frames_test_end(void);
/* frame_test.c: evaluates a frame of the thread that is tested. */
PyObject *vpy_frames_test(PyThreadState *tstate, vpy_iframe *frame,
                          int throwing, _PyFrameEvalFunction evaluate);

/* For a budget: removes the hook for a time, or puts it back. Returns false if
 * it cannot be removed. */
bool vpy_frames_rest(bool rests);

/* Returns the stack pointer. __builtin_frame_address would make evaluate()'s
 * frame larger. */
static inline uintptr_t stack_pointer(void)
{
    uintptr_t here;

#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(here));
#elif defined(__aarch64__)
    __asm__ volatile("mov %0, sp" : "=r"(here));
#else
    here = (uintptr_t)__builtin_frame_address(0);
#endif
    return here;
}

/* ---- between frame_hook.c and frame_place.c ------------------------------ */

PyObject *vpy_evaluate(PyThreadState *tstate, vpy_iframe *frame, int throwing);
/* Call at a thread's first call in this era. */
VST_COLD void vpy_frames_join_era(vpy_frames_thread *t, PyThreadState *tstate);
/* Call if the stack is low: removes the hook until vpy_frames_leave_late finds
 * that enough of the stack is free. */
VST_COLD PyObject *vpy_evaluate_without(PyThreadState *tstate,
                                        vpy_iframe *frame, int throwing);
/* Call when an evaluation ends in another era than it began in. */
VST_COLD void vpy_frames_leave_late(uint64_t era, uint32_t value, bool raises);
/* Returns whether a recording is in progress, with the hook installed or
 * not. */
bool vpy_frames_are_recorded(void);
/* Call if the hook is called while nothing is recorded: removes the hook if it
 * is on top. */
void vpy_frames_give_way(void);

/* frame_inlined.c */
/* Does nothing unless the interpreter inlines them. */
void vpy_getitems_hide(void);
void vpy_getitems_show(void);
/* Returns the value of the code that a frame is about to run. Hides a
 * __getitem__ if necessary. */
uint32_t vpy_frame_value(const vpy_iframe *frame);

/* frame_open.c */
bool vpy_open_calls_note_all(const PyThreadState *except, bool after_gap);
void vpy_open_calls_forget(const vpy_open_calls *except);
/* Gives the calling thread the open calls that were noted for it. */
void vpy_open_calls_take(vpy_frames_thread *t, const PyThreadState *tstate);
/* Call when one of the open calls makes a call: the open calls inside it have
 * ended. */
void vpy_open_calls_end_inner(vpy_frames_thread *t, PyThreadState *tstate);

#pragma GCC visibility pop
#endif
