/* Python frames by the evaluation hook (PEP 523), up to 3.11: see frame_hook.c.
 * From 3.12 on the turbo engine gets frames from sys.monitoring, and
 * vpy_frames_settle does nothing. */
#ifndef VPY_FRAME_HOOK_H
#define VPY_FRAME_HOOK_H

#include "calls/tracer.h"

#if VPY_HAS_FRAME_HOOK
#pragma GCC visibility push(hidden)

/* ---- calls that end unseen ---------------------------------------------- */

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

/* An era is a period with the hook installed. Eras are counted; 0 while the
 * hook is not installed or nothing is recorded. */
extern uint64_t vpy_frames_era;

bool vpy_frames_start(vpy_tracer *tracer); /* false: out of memory */
void vpy_frames_stop(void);
/* Undoes what a recording has passed on, if no recording follows. */
void vpy_frames_give_up(void);
/* Installs the hook again if somebody removed it. */
void vpy_frames_check(void);
/* For a budget: takes the hook away for a time, or puts it back. False: it
 * cannot be taken away. */
bool vpy_frames_rest(bool rests);
extern uint32_t vpy_frames_returns; /* how often it was put back */
/* How often the hook was removed since the start because the C stack was low.
 */
size_t vpy_frames_pauses(void);
bool vpy_frames_in_place(void);

/* For the self test: install and remove the hook without a recording, and note
 * the calls of this thread as "f(g()h(!)", where h raised. */
void vpy_frames_hook(void);
void vpy_frames_unhook(void);
void vpy_frames_test_begin(void);
const char *vpy_frames_test_end(void);
/* frame_test.c: the thread whose calls are noted, NULL: none; and an evaluation
 * there. */
extern PyThreadState *vpy_frames_tested;
PyObject *vpy_frames_test(PyThreadState *tstate, vpy_iframe *frame,
                          int throwing, _PyFrameEvalFunction evaluate);

VST_COLD void vpy_frames_settle_slow(PyThreadState *tstate);

/* To be called before a call in C is recorded: records the end of open calls
 * that ended unseen. False: the hook is not installed, and the call must not be
 * recorded. */
static inline bool vpy_frames_settle(PyThreadState *tstate)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (VST_LIKELY(t->era == vpy_frames_era &&
                   (t->depth != t->open_depth ||
                    vpy_iframe_innermost(tstate) == t->open_top)))
        return true;
    vpy_frames_settle_slow(tstate);
    return vpy_frames_era != 0;
}

/* __builtin_frame_address would make evaluate()'s frame larger. */
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

extern _PyFrameEvalFunction vpy_next_evaluate; /* the one before ours */
PyObject *vpy_evaluate(PyThreadState *tstate, vpy_iframe *frame, int throwing);
/* The first call of a thread in this era. */
VST_COLD void vpy_frames_join_era(vpy_frames_thread *t, PyThreadState *tstate);
/* The stack is low: removes the hook until vpy_frames_leave_late finds that it
 * is not. */
VST_COLD PyObject *vpy_evaluate_without(PyThreadState *tstate,
                                        vpy_iframe *frame, int throwing);
/* An evaluation ends in another era than it began in. */
VST_COLD void vpy_frames_leave_late(uint64_t era, uint32_t value, bool raises);
/* Whether there is a recording, with the hook installed or not. */
bool vpy_frames_are_recorded(void);
/* Nothing is recorded, and the hook is called: removes it if it is on top. */
void vpy_frames_give_way(void);

/* frame_inlined.c: whether the interpreter enters a __getitem__ without the
 * hook, and whether it is kept from that now. */
extern bool vpy_getitems_are_inlined, vpy_getitems_are_hidden;
void vpy_getitems_hide(void); /* if they are inlined */
void vpy_getitems_show(void);
/* Whether functions with this code object are looked at in every call. */
bool vpy_getitem_is_code(const PyCodeObject *code);
/* The value of the code that a frame is about to run. A __getitem__ is hidden
 * if it must be. */
uint32_t vpy_frame_value(const vpy_iframe *frame);

/* frame_open.c */
bool vpy_open_calls_note_all(const PyThreadState *except, bool after_gap);
void vpy_open_calls_forget(const vpy_open_calls *except);
/* The calling thread takes over the open calls that were noted for it. */
void vpy_open_calls_take(vpy_frames_thread *t, const PyThreadState *tstate);
/* One of the open calls runs and makes a call: those inside it have ended. */
void vpy_open_calls_settle(vpy_frames_thread *t, PyThreadState *tstate);

#pragma GCC visibility pop
#else
#define vpy_frames_returns 0u
#define vpy_frames_settle(tstate) ((void)(tstate), true)
#define vpy_getitem_is_code(code) false
#endif
#endif
