/* py311/ has all code that only Python 3.11 needs; the build compiles it for
 * 3.11 alone. When support of 3.11 ends, delete the folder and what names it:
 * scripts/check_layers.py lists the few files that may.
 *
 * Other folders include compat_py311.h, which is this header on 3.11 and has
 * functions that do nothing elsewhere. Which frames the turbo engine sees, and
 * by which hooks, is behind calls/turbo_frames.h: a part of this folder, or
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
    vst_id id; /* 0: it is not recorded */
} vpy_open_call;

/* The open calls of a thread, outermost first. */
typedef struct vpy_open_calls {
    struct vpy_open_calls *next;
    uint64_t thread; /* tstate->id: never reused */
    bool after_gap;  /* the thread must record a gap and this stack */
    size_t count;
    vpy_open_call calls[];
} vpy_open_calls;

/* What the hook keeps for a thread. Only that thread uses it. */
typedef struct vpy_frames_thread {
    uint64_t era;        /* that the thread knows of */
    uint64_t since;      /* evaluations that began in this era or later count */
    uintptr_t limit;     /* in its C stack: below it the hook is removed */
    uint32_t depth;      /* evaluations that count and are open */
    uint32_t open_depth; /* the depth at which one of the open calls runs;
                          * VPY_NO_DEPTH: there are none */
    const vpy_iframe *open_top; /* the innermost of them */
    uintptr_t stack;            /* where its C stack ends */
    size_t stack_size;
    bool is_low;          /* in a gap: the hook cannot be removed */
    vpy_open_calls *open; /* freed when the era ends */
} vpy_frames_thread;

#define VPY_NO_DEPTH UINT32_MAX

extern VST_THREAD_LOCAL vpy_frames_thread vpy_frames_this VST_TLS_MODEL;

VST_COLD void vpy_frames_settle_slow(PyThreadState *tstate);

/* To be called before a call in C is recorded: records the end of open calls
 * that ended unseen. False: the hook is not installed, and the call must not be
 * recorded. */
static inline bool vpy_frames_settle(PyThreadState *tstate)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (VST_LIKELY(t->era == vpy_py311.place.era &&
                   (t->depth != t->open_depth ||
                    vpy_iframe_innermost(tstate) == t->open_top)))
        return true;
    vpy_frames_settle_slow(tstate);
    return vpy_py311.place.era != 0;
}

/* How often the hook was put back. */
static inline uint32_t vpy_frames_returns(void)
{
    return vpy_py311.place.returns;
}

/* Whether functions with this code object are looked at in every call. */
bool vpy_getitem_is_code(const PyCodeObject *code);

/* ---- known.c ------------------------------------------------------------ */

#define VPY_MAKES_FRAMES 1
#define vpy_threads_made(interp) ((interp)->threads.next_unique_id)

/* Whether a new thread state gets the number up to which states were counted.
 * `shifted` is where we look for the count of this interpreter. */
bool vpy_states_are_counted(PyInterpreterState *interpreter,
                            const PyInterpreterState *shifted);
/* A frame that calls C code, which calls no Python function, is the last on the
 * thread's stack of frames. Whether this is the one of a call of `caller`,
 * which calls `callee` with these arguments. Puts an object in the place of the
 * first; `shifted` is where we look for the thread's state. */
bool vpy_call_is_known(const PyThreadState *shifted, const vpy_iframe *frame,
                       PyObject *caller, PyObject *callee,
                       PyObject *const *args);
/* Whether the interpreter has released that object, and not the argument. */
bool vpy_swapped_is_released(PyObject *argument);

/* ---- passing.c ---------------------------------------------------------- */

/* The hook is called for functions that a budget leaves out, too, which costs
 * this much of what a call costs that is recorded. */
double vpy_passing_ns(double python_ns);
/* The share of the time that it costs now. */
double vpy_passing_share(void);
/* Whether even that was too much: the hook is to be removed, and no Python
 * function is recorded. */
bool vpy_passing_rests(void);
/* Functions were chosen; passing by them costs this share more. Or they were
 * not enough. */
void vpy_passing_chosen(bool is_enough, double share);
void vpy_passing_end(void); /* nothing is left out */
void vpy_passing_apply(void);

#pragma GCC visibility pop
#endif
