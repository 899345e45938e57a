/* What differs between the supported Pythons, in one place. */
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

/* Hooks were proven up to this version. */
#define VPY_NEWEST_PROVEN 0x030F0000
#define VPY_IS_PROVEN ((PY_VERSION_HEX & 0xffff0000) <= VPY_NEWEST_PROVEN)

/* Whether we read the interpreter's own structures: not those of a version that
 * nobody has seen. What we do read is checked by base/inside.c at the start. */
#define VPY_KNOWS_INSIDE VPY_IS_PROVEN

/* Tracebacks walk the interpreter's own frames. The profile hook, which exists
 * up to 3.11, reads at every event what the public interface gives only through
 * a call: a frame's code, and whether a thread was made. */
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
/* Says whether the interpreter calls a thread's functions, outside of them. */
static inline void vpy_use_tracing(PyThreadState *tstate, bool active)
{
    tstate->cframe->use_tracing = active && tstate->tracing == 0 ? 255 : 0;
}
#endif

/* Between these two the interpreter reports no calls, as within a trace
 * function: what a hook of ours does is not the program's. */
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

/* Whether "auto" means the turbo engine: on the versions where proofs/ found no
 * difference but those that it lists. */
#define VPY_TURBO_IS_PROVEN (PY_MINOR_VERSION >= 11 && PY_MINOR_VERSION <= 15)

/* Before 3.14.5 the collector of 3.14 had other generations. */
#define VPY_COUNTS_YOUNG_OBJECTS                                               \
    (VPY_KNOWS_INSIDE && !VPY_FREE_THREADED &&                                 \
     (PY_VERSION_HEX < 0x030E0000 || PY_VERSION_HEX >= 0x030E0500))

/* ---- the extra slot of a code object ----------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
#define vpy_code_request_extra(free) PyUnstable_Eval_RequestCodeExtraIndex(free)
#define vpy_code_put_extra PyUnstable_Code_SetExtra
#else
#define vpy_code_request_extra(free) _PyEval_RequestCodeExtraIndex(free)
#define vpy_code_put_extra(code, index, value)                                 \
    _PyCode_SetExtra((PyObject *)(code), index, value)
#endif

/* The interpreter allocates the slots; tracemalloc would count them among what
 * the program has allocated. */
static inline int vpy_code_set_extra(PyObject *code, Py_ssize_t index,
                                     void *value)
{
    int failed = vpy_code_put_extra(code, index, value);

#if VPY_KNOWS_INSIDE
    PyTraceMalloc_Untrack(0, (uintptr_t)((PyCodeObject *)code)->co_extra);
#endif
    return failed;
}

/* The layout behind co_extra, the same in all versions that we know; reading it
 * here saves a call for every event. Without the GIL another thread may put a
 * larger one in its place: the interpreter frees the old one only after every
 * thread has come to a place where it may be stopped. Acquire pairs with the
 * release stores of PyUnstable_Code_SetExtra. */
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

/* ---- frames and threads ------------------------------------------------ */

/* Of the code a frame runs: borrowed, the frame keeps it. */
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

/* The number of the instruction a frame is at; -1 if it is not known. */
static inline int vpy_frame_instruction(PyFrameObject *frame)
{
    int bytes = PyFrame_GetLasti(frame);

    return bytes < 0 ? -1 : bytes / 2;
}

#include "compat_frames.h"

/* ---- who has the GIL ---------------------------------------------------- */

/* The state of the calling thread if it has the GIL, else NULL. Up to 3.11 it
 * is NULL too for a thread that runs in a sub-interpreter. */
static inline PyThreadState *vpy_thread_with_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked(); /* from 3.12 a variable per thread */
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet();
#else
    PyThreadState *holder = _PyThreadState_UncheckedGet(); /* any thread's */

    return holder != NULL && holder == PyGILState_GetThisThreadState() ? holder
                                                                       : NULL;
#endif
}

/* Whether a thread without a state as above may wait for the GIL: not if it may
 * have it. Where there are sub-interpreters, PyGILState_Check says yes. */
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

/* Whether a weak reference is one to this object, which is alive. */
static inline bool vpy_weakref_is_to(PyObject *weakref, PyObject *object)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found = NULL;
    bool is_it = PyWeakref_GetRef(weakref, &found) == 1 && found == object;

    Py_XDECREF(found);
    return is_it;
#else
    return PyWeakref_GET_OBJECT(weakref) == object;
#endif
}

/* The object of a weak reference: a new reference, or NULL. */
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

/* A new weak reference that the collector does not track: gc.get_objects()
 * would show it to the program. One without a callback is shared, so it may
 * exist already. */
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

/* The state of the calling thread, which has the GIL. Up to 3.11 it is read
 * from a structure of the interpreter's, without a call. */
static inline PyThreadState *vpy_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet();
#else
    return _PyRuntimeState_GetThreadState(&_PyRuntime);
#endif
}

/* Whether the calling thread, known to Python or not, holds the GIL. The public
 * function returns 1 for every thread once there are sub-interpreters. */
static inline bool vpy_holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *current = PyThreadState_GetUnchecked();
#else
    PyThreadState *current = _PyThreadState_UncheckedGet();
#endif
    return current != NULL && current == PyGILState_GetThisThreadState();
}

#include "compat_objects.h"

/* What a staticmethod or classmethod wraps; borrowed, NULL if nothing. Their
 * layout begins like this in all versions. */
static inline PyObject *vpy_wrapped_function(PyObject *wrapper)
{
    typedef struct wrapping {
        PyObject_HEAD
        PyObject *callable;
    } wrapping;

    return ((wrapping *)wrapper)->callable;
}

/* ---- calls of C functions ----------------------------------------------- */

#if PY_VERSION_HEX >= 0x030D0000
#define vpy_hash_pointer Py_HashPointer
#else
#define vpy_hash_pointer _Py_HashPointer
#endif

/* The hash of a built-in function, from what it is bound to and its C function.
 */
static inline Py_hash_t vpy_function_hash(const void *self,
                                          PyCFunction function)
{
    Py_hash_t hash = vpy_hash_pointer(self) ^
                     vpy_hash_pointer((const void *)(uintptr_t)function);

    return hash == -1 ? -2 : hash;
}

/* Instructions (opcode.h) that call len, isinstance or list.append as they call
 * any C function, the one that has still to choose among them, and the one that
 * all of them were specialized from. base/inside_code.c checks the numbers. */
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

/* Whether a new class inherits a slot only if the method that it inherits has
 * the same C function. */
#define VPY_COMPARES_WITH_SLOTS (PY_VERSION_HEX >= 0x030E0000)

/* Whether the JIT's machine code may hold the address of a C function. */
#define VPY_COMPILES_CALLS (PY_VERSION_HEX >= 0x030F0000 && !VPY_FREE_THREADED)

/* ---- monitoring -------------------------------------------------------- */

#define VPY_HAS_MONITORING (PY_VERSION_HEX >= 0x030C0000)

/* Whether events of code that is left out are disabled. It may be done
 * from 3.12 on, but was not tried before 3.14. */
#define VPY_DISABLES_EVENTS (PY_VERSION_HEX >= 0x030E0000)

/* Whether the event of an exception that leaves a function may be set for one
 * code object. */
#define VPY_UNWINDS_LOCALLY (PY_VERSION_HEX >= 0x030F0000)

/* Whether a tool id that is freed has its callbacks taken out. */
#define VPY_FREED_TOOL_IS_CLEARED (PY_VERSION_HEX >= 0x030E0000)

/* torch takes tool id 2 on 3.12 before 3.12.5 and none after. */
#define VPY_TORCH_TAKES_TOOL_ID_2                                              \
    (PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030C0500)

#endif
