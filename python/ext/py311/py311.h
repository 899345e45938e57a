/* py311/ has all code that only Python 3.11 needs; the build compiles it for
 * 3.11 alone. When support of 3.11 ends, delete the folder and what names it:
 * scripts/check_layers.py lists the few files that may.
 *
 * Other folders include compat_py311.h, which is this header on 3.11 and has
 * functions that do nothing elsewhere. calls/turbo_frames.h is the interface of
 * the files that see frames for the turbo engine: some files of this folder, or
 * calls/monitoring_frames.c.
 *
 * - engine_profile.c the safe engine: a C profile function on every thread
 * - frame_hook.c Python frames for the turbo engine, by the evaluation hook
 * - frame_place.c installs that hook
 * - frame_open.c handles calls that were open before
 * - frame_inlined.c handles those that the hook would not see
 * - frame_test.c is for turbo's test of itself
 * - made_frames.h makes the frames of simple calls
 * - stack_depths.c finds the arguments of the others
 * - known.c checks what all that needs to know of the interpreter
 * - passing.c is the folder's part of a budget
 *
 * With the GIL held. */
#ifndef VPY_PY311_H
#define VPY_PY311_H

#include "py311/state.h"

#pragma GCC visibility push(hidden)

/* ---- the evaluation hook ------------------------------------------------ */

/* A call that began before the hook was installed. The interpreter evaluates it
 * to its end without calling the hook. */
typedef struct vpy_open_call {
    const vpy_iframe *frame;
    vst_id id; /* 0: the call is not recorded */
} vpy_open_call;

/* The open calls of a thread, outermost first. */
typedef struct vpy_open_calls {
    struct vpy_open_calls *next;
    uint64_t thread; /* tstate->id: never reused */
    bool after_gap;  /* the thread must record a gap and this stack */
    size_t count;
    vpy_open_call calls[];
} vpy_open_calls;

/* The data of the hook about a thread. Only that thread uses it. */
typedef struct vpy_frames_thread {
    uint64_t era;   /* the era in which the thread made its last call */
    uint64_t since; /* evaluations that began in this era or later count */
    /* lowest address of the C stack at which a call keeps the hook */
    uintptr_t limit;
    uint32_t depth; /* number of open evaluations that count */
    /* the depth at which one of the open calls runs; VPY_NO_DEPTH: no call was
     * open */
    uint32_t open_depth;
    const vpy_iframe *open_top; /* the innermost of the open calls */
    uintptr_t stack;            /* lowest address of the thread's C stack */
    size_t stack_size;
    /* the thread is in a gap, because the hook cannot be removed */
    bool is_low;
    vpy_open_calls *open; /* freed when the era ends */
} vpy_frames_thread;

#define VPY_NO_DEPTH UINT32_MAX

extern VST_THREAD_LOCAL vpy_frames_thread vpy_frames_this VST_TLS_MODEL;

VST_COLD void vpy_frames_catch_up_slow(PyThreadState *tstate);

/* Returns whether the safe engine's hook is installed on this thread. */
bool vpy_profile_is_here(const PyThreadState *tstate);

/* Call before a C call is recorded: records the ends of open calls that ended
 * unseen. Returns false if no hook is installed; then the call must not be
 * recorded. */
static inline bool vpy_frames_catch_up(PyThreadState *tstate)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (VST_LIKELY(t->era == vpy_py311.place.era &&
                   (t->depth != t->open_depth ||
                    vpy_iframe_innermost(tstate) == t->open_top)))
        return true;
    vpy_frames_catch_up_slow(tstate);
    return vpy_py311.place.era != 0 || vpy_profile_is_here(tstate);
}

/* Returns how often the hook was put back. */
static inline uint32_t vpy_frames_returns(void)
{
    return vpy_py311.place.returns;
}

/* Returns whether the hook looks at every call of functions with this code
 * object. */
bool vpy_getitem_is_code(const PyCodeObject *code);

/* ---- known.c ------------------------------------------------------------ */

#define VPY_MAKES_FRAMES 1
#define vpy_threads_made(interp) ((interp)->threads.next_unique_id)

/* Returns whether a new thread state gets the number up to which thread
 * states were counted. `shifted` is where we look for the count of this
 * interpreter. */
bool vpy_states_are_counted(PyInterpreterState *interpreter,
                            const PyInterpreterState *shifted);
/* Call while C code runs that a frame called, with that frame last on the
 * thread's stack of frames. Returns whether the frame belongs to a call of
 * `caller`, which calls `callee` with these arguments. Puts an object in the
 * place of the first argument; `shifted` is where we look for the thread's
 * state. */
bool vpy_call_is_known(const PyThreadState *shifted, const vpy_iframe *frame,
                       PyObject *caller, PyObject *callee,
                       PyObject *const *args);
/* Returns whether the interpreter has released that object instead of the
 * argument. */
bool vpy_swapped_is_released(PyObject *argument);

/* ---- passing.c ---------------------------------------------------------- */

/* Returns how much it costs that the hook is called for left-out functions,
 * too; python_ns is the cost of a recorded call. */
double vpy_passing_ns(double python_ns);
/* Returns the share of the time that this costs now. */
double vpy_passing_share(void);
/* Returns whether even that was too much: then the hook is removed, and no
 * Python function is recorded. */
bool vpy_passing_rests(void);
/* Call after functions were chosen. is_enough: leaving them out is enough.
 * share: how much more of the time passing costs. */
void vpy_passing_chosen(bool is_enough, double share);
void vpy_passing_end(void); /* Call when no function is left out any more. */
void vpy_passing_apply(void);

#pragma GCC visibility pop
#endif
