/* calls/ records calls of functions. This header is its top: the Python tracer,
 * an implementation of the contract in <vestige/tracer.h>. The core makes one
 * when a recording starts; session/ says with which options.
 *
 *  - tracer.c    starts and stops the parts of a recording, in order
 *  - engine.c    chooses an engine; each engine_*.c places the hooks (engine.h)
 *  - ids.h       the id of a Python or C function, as every hook reads it
 *  - turbo_frames.h  Python frames for engine_turbo.c
 *  - special_functions.c         functions that need more than enter and exit
 */
#ifndef VPY_CALLS_TRACER_H
#define VPY_CALLS_TRACER_H

#include "calls/state.h"

#pragma GCC visibility push(hidden)

/* What a recording shall contain. */
typedef struct vpy_options {
    bool with_stack;   /* calls of Python functions */
    bool c_functions;  /* calls of C functions */
    PyObject *include; /* tuple of glob patterns (str), or NULL: all files */
    PyObject *exclude; /* the same, or NULL: none */
    /* Tuples of function names, or NULL: */
    PyObject *record_args; /* record arguments and results of these */
    PyObject *only;        /* record calls only inside of these */
    const char *engine;    /* the name of an engine, or "auto" */
    bool raises;           /* a trigger waits for exceptions */
    bool exceptions;       /* marks where exceptions are raised */
    bool qualified_names;  /* of Python functions, `C.f` instead of `f` */
    bool sched;            /* waits for the GIL */
    double budget;         /* share of CPU time for recording, 0: any */
    double budget_python_ns, budget_native_ns; /* what a call costs then */
    bool is_bounded;                           /* the file drops what is old */
} vpy_options;

void vpy_options_clear(vpy_options *options); /* drops what it refers to */

typedef struct vpy_tracer {
    vst_tracer base;
    vst_recording *recording;
    vpy_options options;
    const struct vpy_engine *engine; /* the one that placed the hooks */
    vst_matcher *matcher;            /* for get_events; needs no GIL */
    bool running;
    bool gc;
} vpy_tracer;

/* For who only records: a record of a recording that ends meanwhile is dropped.
 */
static inline bool vpy_is_active(void)
{
    return __atomic_load_n(&vpy_calls.tracer.active, __ATOMIC_RELAXED) != NULL;
}

/* context->options are vpy_options. */
vst_status vpy_tracer_make(vst_recording *recording,
                           const vst_tracer_context *context,
                           vst_tracer **tracer);
/* In a forked child: removes the hooks, whatever state the threads that did not
 * survive the fork left them in. */
void vpy_tracer_abandon(void);

#pragma GCC visibility pop
#endif
