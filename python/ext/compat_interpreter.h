/* How Python versions differ in the interpreter's own state: where it keeps
 * len, isinstance and list.append, and where the collector counts. Only for the
 * few files that need it; base/inside.c checks all of it first. */
#ifndef VPY_COMPAT_INTERPRETER_H
#define VPY_COMPAT_INTERPRETER_H

#include "compat.h"

#if VPY_KNOWS_INSIDE
#define Py_BUILD_CORE 1
#undef _PyGC_FINALIZED /* the internal header has a function of this name */
#include <internal/pycore_gil.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE
#endif

/* ---- the GIL ------------------------------------------------------------- */

/* Whether this build has a GIL whose structure we know. */
#define VPY_KNOWS_GIL (VPY_KNOWS_INSIDE && !VPY_FREE_THREADED)

#if VPY_KNOWS_GIL
typedef struct _gil_runtime_state vpy_gil;

/* The types of last_holder and locked differ between versions, but not their
 * sizes. */
static inline PyThreadState *vpy_gil_last_holder(const vpy_gil *gil)
{
    PyThreadState *holder;

    memcpy(&holder, &gil->last_holder, sizeof holder);
    return holder;
}

static inline const int *vpy_gil_is_held(const vpy_gil *gil)
{
    return (const int *)(const void *)&gil->locked;
}

#ifdef FORCE_SWITCHING
static inline const void *vpy_gil_switch_condition(const vpy_gil *gil)
{
    return &gil->switch_cond;
}
#else
static inline const void *vpy_gil_switch_condition(const vpy_gil *gil)
{
    (void)gil;
    return NULL;
}
#endif
#endif

/* ---- locks of objects ---------------------------------------------------- */

#if VPY_FREE_THREADED
/* Returns whether a thread is entering a critical section, or coming back to
 * one: the innermost section has no lock yet. */
static inline bool vpy_thread_enters_section(const PyThreadState *tstate)
{
    const PyCriticalSection *section =
        (const void *)(tstate->critical_section & ~(uintptr_t)3);

    return section != NULL && section->_cs_mutex == NULL;
}

/* Returns why a thread waits that is about to sleep at this address;
 * VST_WAIT_NONE for the program's own locks, because a thread detaches its
 * state before it waits for one of these. */
static inline vst_wait_reason vpy_thread_parks_for(const PyThreadState *tstate,
                                                   uintptr_t address)
{
    uintptr_t world = (uintptr_t)&tstate->interp->stoptheworld;

    if (address == (uintptr_t)&tstate->state ||
        address - world < sizeof tstate->interp->stoptheworld)
        return VST_WAIT_WORLD;
    return PyThreadState_GetUnchecked() == tstate ||
                   vpy_thread_enters_section(tstate)
               ? VST_WAIT_OBJECT
               : VST_WAIT_NONE;
}
#endif

/* ---- len, isinstance and list.append ------------------------------------- */

#if VPY_KNOWS_INSIDE
static inline void vpy_callables_find(PyInterpreterState *interpreter,
                                      PyObject **found[VPY_CALLABLES])
{
    found[0] = &interpreter->callable_cache.len;
    found[1] = &interpreter->callable_cache.isinstance;
    found[2] = &interpreter->callable_cache.list_append;
}
#endif

/* ---- the collector ------------------------------------------------------- */

#if VPY_COUNTS_YOUNG_OBJECTS
typedef struct _gc_runtime_state vpy_collector;
#define VPY_GENERATION_SIZE sizeof(struct gc_generation)
#define VPY_GENERATION_COUNT offsetof(struct gc_generation, count)
#define VPY_GENERATION_THRESHOLD offsetof(struct gc_generation, threshold)

static inline vpy_collector *vpy_collector_of(PyInterpreterState *interpreter)
{
    return &interpreter->gc;
}
#endif

#endif
