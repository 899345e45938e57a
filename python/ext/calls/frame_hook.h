/* Python frames by the evaluation hook (PEP 523), up to 3.11: see frame_hook.c.
 * From 3.12 on the turbo engine has them from monitoring, and what is left here
 * says that there is nothing to do. */
#ifndef VPY_FRAME_HOOK_H
#define VPY_FRAME_HOOK_H

#include "calls/tracer.h"

#if VPY_HAS_FRAME_HOOK
#pragma GCC visibility push(hidden)

/* ---- calls that end unseen ---------------------------------------------- */

/* A call that began before the hook was there: the interpreter evaluates it
 * without us to its end. */
typedef struct vpy_open_call {
    const vpy_iframe *frame;
    vst_id id; /* 0: it is not recorded */
} vpy_open_call;

/* Those of a thread, outermost first. */
typedef struct vpy_open_calls {
    struct vpy_open_calls *next;
    uint64_t thread; /* tstate->id: never reused */
    bool after_gap;  /* the thread has to be told of a gap, and of these */
    size_t count;
    vpy_open_call calls[];
} vpy_open_calls;

/* What the hook knows of a thread; its own. */
typedef struct vpy_frames_thread {
    uint64_t era;        /* the one it has taken notice of */
    uint64_t since;      /* evaluations that began in this era or later count */
    uintptr_t limit;     /* of its C stack: below it the hook goes away */
    uint32_t depth;      /* evaluations that count and have not ended */
    uint32_t open_depth; /* what depth is when one of the open calls runs;
                          * VPY_NO_DEPTH: there are none */
    const vpy_iframe *open_top; /* the innermost of them */
    uintptr_t stack;            /* where its C stack ends */
    size_t stack_size;
    bool is_low; /* nothing is recorded, and nobody can be made to leave */
    vpy_open_calls *open; /* freed when the era ends */
} vpy_frames_thread;

#define VPY_NO_DEPTH UINT32_MAX

extern VST_THREAD_LOCAL vpy_frames_thread vpy_frames_this VST_TLS_MODEL;

/* Grows whenever the hook comes to its place; 0 while it is not there, or
 * nothing is recorded. */
extern uint64_t vpy_frames_era;

bool vpy_frames_start(vpy_tracer *tracer); /* false: out of memory */
void vpy_frames_stop(void);
/* Somebody may have thrown the hook out. */
void vpy_frames_check(void);
/* How often it went away because the C stack came to its end, since start. */
size_t vpy_frames_pauses(void);
bool vpy_frames_in_place(void);

/* For tests: the hook comes and goes without a recording, and notes the calls
 * of this thread as "f(g()h(!)": h raised. */
void vpy_frames_hook(void);
void vpy_frames_unhook(void);
void vpy_frames_test_begin(void);
const char *vpy_frames_test_end(void);

VST_COLD void vpy_frames_settle_slow(PyThreadState *tstate);

/* Before a call in C is recorded: notices which of the calls that end unseen
 * have ended. False: it shall not be recorded, the hook is away. */
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

/* frame_open.c */
bool vpy_open_calls_note_all(const PyThreadState *except, bool after_gap);
void vpy_open_calls_forget(const vpy_open_calls *except);
/* The calling thread makes those that were noted of it its own. */
void vpy_open_calls_take(vpy_frames_thread *t, const PyThreadState *tstate);
/* One of them runs, and calls: those within it have ended. */
void vpy_open_calls_settle(vpy_frames_thread *t, PyThreadState *tstate);

#pragma GCC visibility pop
#else
#define vpy_frames_settle(tstate) ((void)(tstate), true)
#endif
#endif
