/* All differences between the supported Pythons. */
#ifndef VPY_COMPAT_H
#define VPY_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <frameobject.h>
#include <stdbool.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x030B0000
#error "vestige needs Python 3.11 or later"
#endif

/* The newest version on which the hooks were tested. */
#define VPY_NEWEST_PROVEN 0x030F0000
#define VPY_IS_PROVEN ((PY_VERSION_HEX & 0xffff0000) <= VPY_NEWEST_PROVEN)

/* Whether we read the interpreter's internal structures: not those of a version
 * that we have never tried. base/inside.c checks the structures at the
 * start. */
#define VPY_KNOWS_INSIDE VPY_IS_PROVEN

/* Tracebacks walk the interpreter's own frames. The profile hook, which exists
 * up to 3.11, reads at every event a frame's code and whether a thread has a
 * state; the public interface has these only through a call. */
#if VPY_KNOWS_INSIDE
#define Py_BUILD_CORE 1
#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_code.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#endif
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include "compat_threads.h"

#if PY_VERSION_HEX < 0x030C0000
/* Sets whether the interpreter calls a thread's profile and trace functions.
 * Call outside of such a function. */
static inline void vpy_use_tracing(PyThreadState *tstate, bool active)
{
    tstate->cframe->use_tracing = active && tstate->tracing == 0 ? 255 : 0;
}
#endif

/* Between vpy_hook_enter and vpy_hook_leave the interpreter reports no calls,
 * as within a trace function: what our hooks do is not part of the program. */
static inline void vpy_hook_enter(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyThreadState_EnterTracing(tstate);
#else
    tstate->tracing++;
    tstate->cframe->use_tracing = 0;
#endif
}

static inline void vpy_hook_leave(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyThreadState_LeaveTracing(tstate);
#else
    tstate->tracing--;
    vpy_use_tracing(tstate, tstate->c_tracefunc != NULL ||
                                tstate->c_profilefunc != NULL);
#endif
}

/* Whether "auto" means the turbo engine: on the versions where the proofs in
 * proofs/ found no differences except those that they list. */
#define VPY_TURBO_IS_PROVEN (PY_MINOR_VERSION >= 11 && PY_MINOR_VERSION <= 15)

/* 3.14.0 to 3.14.4 had a collector with other generations. */
#define VPY_COUNTS_YOUNG_OBJECTS                                               \
    (VPY_KNOWS_INSIDE && !VPY_FREE_THREADED &&                                 \
     (PY_VERSION_HEX < 0x030E0000 || PY_VERSION_HEX >= 0x030E0500))

/* ---- the extra slot of a code object ------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
#define vpy_code_request_extra(free) PyUnstable_Eval_RequestCodeExtraIndex(free)
#define vpy_code_put_extra PyUnstable_Code_SetExtra
#else
#define vpy_code_request_extra(free) _PyEval_RequestCodeExtraIndex(free)
#define vpy_code_put_extra(code, index, value)                                 \
    _PyCode_SetExtra((PyObject *)(code), index, value)
#endif

/* tracemalloc would count the slots, which the interpreter allocates, as memory
 * of the program. */
static inline int vpy_code_set_extra(PyObject *code, Py_ssize_t index,
                                     void *value)
{
    int failed = vpy_code_put_extra(code, index, value);

#if VPY_KNOWS_INSIDE
    PyTraceMalloc_Untrack(0, (uintptr_t)((PyCodeObject *)code)->co_extra);
#endif
    return failed;
}

/* The layout behind co_extra, equal in all versions that we know; reading it
 * here saves a call for every event. Without the GIL another thread may replace
 * it by a larger one: the interpreter frees the old one only after every thread
 * has come to a place where it may be stopped. Acquire pairs with the release
 * stores of PyUnstable_Code_SetExtra. */
typedef struct vpy_code_extras {
    Py_ssize_t size;
    void *values[1];
} vpy_code_extras;

static inline __attribute__((always_inline)) uintptr_t
vpy_code_get_extra(PyObject *code, Py_ssize_t index)
{
#if VPY_KNOWS_INSIDE
    vpy_code_extras *extras =
        __atomic_load_n(&((PyCodeObject *)code)->co_extra, __ATOMIC_ACQUIRE);

    if (__builtin_expect(extras == NULL || extras->size <= index, 0))
        return 0;
    return (uintptr_t)__atomic_load_n(&extras->values[index], __ATOMIC_ACQUIRE);
#else
    void *value = NULL;

    PyUnstable_Code_GetExtra(code, index, &value);
    return (uintptr_t)value;
#endif
}

/* ---- frames and threads -------------------------------------------------- */

/* Returns the frame's code object (borrowed). */
static inline PyObject *vpy_frame_code(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return (PyObject *)code;
#else
    return (PyObject *)frame->f_frame->f_code;
#endif
}

/* Returns the index of the instruction that a frame has reached; -1 if not
 * known. */
static inline int vpy_frame_instruction(PyFrameObject *frame)
{
    int bytes = PyFrame_GetLasti(frame);

    return bytes < 0 ? -1 : bytes / 2;
}

#include "compat_frames.h"

/* ---- who has the GIL ----------------------------------------------------- */

#if PY_VERSION_HEX < 0x030D0000
#define PyThreadState_GetUnchecked _PyThreadState_UncheckedGet
#endif

/* Returns the state of the calling thread if it has the GIL, else NULL. Up to
 * 3.11 also returns NULL for a thread that runs in a sub-interpreter. */
static inline PyThreadState *vpy_thread_with_gil(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyThreadState_GetUnchecked(); /* since 3.12 a variable of the thread
                                          */
#else
    PyThreadState *holder =
        PyThreadState_GetUnchecked(); /* the state of any thread */

    return holder != NULL && holder == PyGILState_GetThisThreadState() ? holder
                                                                       : NULL;
#endif
}

/* Returns whether a thread for which vpy_thread_with_gil returns NULL may wait
 * for the GIL: not if the thread may have it already. Where there are
 * sub-interpreters, PyGILState_Check always returns 1. */
static inline bool vpy_may_take_gil(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return true;
#else
    return !PyGILState_Check();
#endif
}

#if PY_VERSION_HEX >= 0x030D0000
#define vpy_is_finalizing() Py_IsFinalizing()
#else
#define vpy_is_finalizing() _Py_IsFinalizing()
#endif

/* Returns whether a weak reference refers to this object, which is alive. */
static inline bool vpy_weakref_is_to(PyObject *weakref, PyObject *object)
{
#if VPY_FREE_THREADED
    PyObject *found = NULL;
    bool is_same = PyWeakref_GetRef(weakref, &found) == 1 && found == object;

    Py_XDECREF(found);
    return is_same;
#else
    return ((PyWeakReference *)weakref)->wr_object == object;
#endif
}

/* Returns the object of a weak reference: a new reference, or NULL if the
 * object is gone. */
static inline PyObject *vpy_weakref_get(PyObject *weakref)
{
    PyObject *found = NULL;

#if PY_VERSION_HEX >= 0x030D0000
    if (PyWeakref_GetRef(weakref, &found) < 0)
        PyErr_Clear();
#else
    found = PyWeakref_GET_OBJECT(weakref);
    if (found == Py_None)
        return NULL;
    Py_INCREF(found);
#endif
    return found;
}

/* Makes a weak reference that the collector does not track, so that
 * gc.get_objects() does not show it to the program. Weak references without a
 * callback are shared, so the result may have existed already. */
static inline PyObject *vpy_weakref_new(PyObject *object)
{
    int were_on = vpy_collections_put_off();
    PyObject *made = PyWeakref_NewRef(object, NULL);

    vpy_collections_go_on(were_on);
    if (made != NULL && Py_REFCNT(made) == 1)
        PyObject_GC_UnTrack(made);
    return made;
}

static inline bool vpy_weakref_is_dead(PyObject *weakref)
{
    PyObject *found = vpy_weakref_get(weakref);

    Py_XDECREF(found);
    return found == NULL;
}

/* Returns the state of the calling thread, which must have the GIL. On 3.11 it
 * is read from a structure of the interpreter, without a call. */
static inline PyThreadState *vpy_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyThreadState_GetUnchecked();
#else
    return _PyRuntimeState_GetThreadState(&_PyRuntime);
#endif
}

/* Returns whether the calling thread holds the GIL; works for threads that
 * Python does not know, too. PyGILState_Check returns 1 for every thread once
 * there are sub-interpreters. */
static inline bool vpy_holds_gil(void)
{
    PyThreadState *current = PyThreadState_GetUnchecked();

    return current != NULL && current == PyGILState_GetThisThreadState();
}

#include "compat_objects.h"

/* Returns the callable that a staticmethod or classmethod wraps (borrowed), or
 * NULL. Both layouts begin like this in all versions. */
static inline PyObject *vpy_wrapped_function(PyObject *wrapper)
{
    typedef struct wrapping {
        PyObject_HEAD
        PyObject *callable;
    } wrapping;

    return ((wrapping *)wrapper)->callable;
}

/* ---- calls of C functions ------------------------------------------------ */

#if PY_VERSION_HEX >= 0x030D0000
#define vpy_hash_pointer Py_HashPointer
#else
#define vpy_hash_pointer _Py_HashPointer
#endif

/* Returns the hash of a built-in function, from the object that it is bound to
 * and its C function. */
static inline Py_hash_t vpy_function_hash(const void *self,
                                          PyCFunction function)
{
    Py_hash_t hash = vpy_hash_pointer(self) ^
                     vpy_hash_pointer((const void *)(uintptr_t)function);

    return hash == -1 ? -2 : hash;
}

/* Numbers of instructions (opcode.h). PLAIN_CALLS call len, isinstance and
 * list.append like any C function; UNDECIDED_CALL has not been specialized yet;
 * CALL is the instruction from which all of them are specialized.
 * base/inside_code.c checks the numbers. */
#if PY_VERSION_HEX >= 0x030D0000
#define VPY_PLAIN_CALLS                                                        \
    CALL_BUILTIN_O, CALL_BUILTIN_FAST, CALL_METHOD_DESCRIPTOR_O
#define VPY_UNDECIDED_CALL CALL
#define VPY_CALL CALL
#elif PY_VERSION_HEX >= 0x030C0000
#define VPY_PLAIN_CALLS                                                        \
    CALL_NO_KW_BUILTIN_O, CALL_NO_KW_BUILTIN_FAST,                             \
        CALL_NO_KW_METHOD_DESCRIPTOR_O
#define VPY_UNDECIDED_CALL CALL
#define VPY_CALL CALL
#else
#define VPY_PLAIN_CALLS                                                        \
    PRECALL_NO_KW_BUILTIN_O, PRECALL_NO_KW_BUILTIN_FAST,                       \
        PRECALL_NO_KW_METHOD_DESCRIPTOR_O
#define VPY_UNDECIDED_CALL PRECALL_ADAPTIVE
#define VPY_CALL PRECALL
#endif

/* Whether a new class inherits a slot only if the method that it inherits calls
 * the slot's C function. */
#define VPY_COMPARES_WITH_SLOTS (PY_VERSION_HEX >= 0x030E0000)

/* Whether the JIT's machine code may hold the address of a C function. */
#define VPY_COMPILES_CALLS (PY_VERSION_HEX >= 0x030F0000 && !VPY_FREE_THREADED)

/* ---- monitoring ---------------------------------------------------------- */

#define VPY_HAS_MONITORING (PY_VERSION_HEX >= 0x030C0000)

/* Whether events of code that is left out are disabled. 3.12 and 3.13 allow
 * this as well, but it was not tried there. */
#define VPY_DISABLES_EVENTS (PY_VERSION_HEX >= 0x030E0000)

/* Whether the event of an exception that leaves a function can be requested for
 * a single code object. */
#define VPY_UNWINDS_LOCALLY (PY_VERSION_HEX >= 0x030F0000)

/* Whether freeing a tool id removes its callbacks. */
#define VPY_FREED_TOOL_IS_CLEARED (PY_VERSION_HEX >= 0x030E0000)

/* torch uses tool id 2 on 3.12.0 to 3.12.4, and no tool id on later
 * versions. */
#define VPY_TORCH_TAKES_TOOL_ID_2                                              \
    (PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030C0500)

#endif
