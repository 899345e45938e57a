/* calls/ records calls of functions. This header declares the Python tracer, an
 * implementation of the contract in <vestige/tracer.h>. The core makes one when
 * a recording starts; session/ says with which options.
 *
 *  - tracer.c    starts and stops the parts of a recording, in order
 *  - engine.c    chooses an engine; each engine_*.c places the hooks (engine.h)
 *  - ids.h       the id of a Python or C function, as every hook reads it
 *  - turbo_frames.h        Python frames for engine_turbo.c
 *  - special_functions.c         functions that need more than enter and exit
 */
#ifndef VPY_CALLS_TRACER_H
#define VPY_CALLS_TRACER_H

#include "calls/state.h"

#pragma GCC visibility push(hidden)

/* The calls that a recording contains. */
typedef struct vpy_options {
    bool with_stack;   /* calls of Python functions */
    bool c_functions;  /* calls of C functions */
    PyObject *include; /* tuple of glob patterns (str), or NULL: all files */
    PyObject *exclude; /* as `include`; NULL: no file */
    /* Tuples of function names, or NULL: */
    PyObject *record_args; /* record arguments and results of these functions */
    PyObject *only;        /* record calls only inside these functions */
    PyObject *waits;    /* entries of functions that wait, see wait_reasons.h */
    bool spins;         /* functions that spin */
    const char *engine; /* the name of an engine, or "auto" */
    bool raises;        /* a trigger waits for exceptions */
    bool exceptions;    /* marks where exceptions are raised */
    bool lines;         /* record the lines of calls */
    bool qualified_names; /* show Python functions as `C.f` instead of `f` */
    bool sched;           /* record waits for the GIL */
    double budget;        /* share of CPU time for recording, 0: no limit */
    /* cost of a call, as measured before the start */
    double budget_python_ns, budget_native_ns;
    bool is_bounded; /* the file drops old records */
} vpy_options;

/* Drops the references that the options hold. */
void vpy_options_clear(vpy_options *options);

typedef struct vpy_tracer {
    vst_tracer base;
    vst_recording *recording;
    vpy_options options;
    const struct vpy_engine *engine; /* the engine that placed the hooks */
    vst_matcher *matcher;            /* NULL until get_events; needs no GIL */
    bool running;
    bool gc;
    bool is_parents; /* in a forked child: nothing more is written to the
                      * recording */
} vpy_tracer;

/* Returns whether a recording is in progress. For callers that only record: if
 * the recording ends meanwhile, the record is dropped. */
static inline bool vpy_is_active(void)
{
    return __atomic_load_n(&vpy_calls.tracer.active, __ATOMIC_RELAXED) != NULL;
}

/* context->options are vpy_options. */
vst_status vpy_tracer_make(vst_recording *recording,
                           const vst_tracer_context *context,
                           vst_tracer **tracer);
/* Call in a forked child: removes the hooks, whatever state the threads that do
 * not exist in the child left them in. */
void vpy_tracer_abandon(void);

#pragma GCC visibility pop
#endif
