/* What differs between the supported Pythons, in one place. */
#ifndef VPY_COMPAT_H
#define VPY_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <frameobject.h>
#include <stdbool.h>
#include <stdint.h>

/* The profile hook, which exists up to 3.11 alone, asks at every event for what
 * the public interface gives only by a call: a frame's code, and whether a
 * thread was made. */
#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_interp.h>
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_frame.h>
#define vpy_threads_made(interp) ((interp)->threads.next_unique_id)
#else
#define vpy_threads_made(interp) ((interp)->tstate_next_unique_id)
#endif
#undef Py_BUILD_CORE

/* Sets a thread's profile function. The interpreter's own way would call the
 * program's audit hooks, and on 3.11 refuses, in the thread it is about, while
 * another thread is inside one of them. */
static inline void vpy_set_profile(PyThreadState *tstate, Py_tracefunc function,
                                   PyObject *object)
{
    PyObject *old = tstate->c_profileobj;
    bool active = function != NULL || tstate->c_tracefunc != NULL;

    Py_XINCREF(object);
    tstate->c_profileobj = object;
    tstate->c_profilefunc = function;
#if PY_VERSION_HEX >= 0x030B0000
    tstate->cframe->use_tracing = active && tstate->tracing == 0 ? 255 : 0;
#else
    tstate->cframe->use_tracing = active;
#endif
    Py_XDECREF(old);
}

/* The same of its trace function, one without an object. */
static inline void vpy_set_trace(PyThreadState *tstate, Py_tracefunc function)
{
    bool active = function != NULL || tstate->c_profilefunc != NULL;

    tstate->c_tracefunc = function;
#if PY_VERSION_HEX >= 0x030B0000
    tstate->cframe->use_tracing = active && tstate->tracing == 0 ? 255 : 0;
#else
    tstate->cframe->use_tracing = active;
#endif
}
#endif

#if PY_VERSION_HEX < 0x030A0000
#error "vestige needs Python 3.10 or later"
#endif

#ifdef Py_GIL_DISABLED
#define VPY_FREE_THREADED 1
#else
#define VPY_FREE_THREADED 0
#endif

/* Hooks were proven up to this version. */
#define VPY_NEWEST_PROVEN 0x030D0000
#define VPY_IS_PROVEN ((PY_VERSION_HEX & 0xffff0000) <= VPY_NEWEST_PROVEN)

/* ---- the extra slot of a code object ----------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
#define vpy_code_request_extra(free) PyUnstable_Eval_RequestCodeExtraIndex(free)
#define vpy_code_set_extra PyUnstable_Code_SetExtra
#else
#define vpy_code_request_extra(free) _PyEval_RequestCodeExtraIndex(free)
#define vpy_code_set_extra(code, index, value)                                 \
    _PyCode_SetExtra((PyObject *)(code), index, value)
#endif

/* The layout behind co_extra, the same in all versions; reading it here saves
 * a call for every event. */
typedef struct vpy_code_extras {
    Py_ssize_t size;
    void *values[1];
} vpy_code_extras;

static inline uintptr_t vpy_code_get_extra(PyObject *code, Py_ssize_t index)
{
    vpy_code_extras *extras = ((PyCodeObject *)code)->co_extra;

    if (!extras || extras->size <= index)
        return 0;
    return (uintptr_t)extras->values[index];
}

#if PY_VERSION_HEX >= 0x030B0000
#define vpy_code_qualname(code) ((code)->co_qualname)
#else
#define vpy_code_qualname(code) ((code)->co_name)
#endif

/* ---- frames and threads ------------------------------------------------ */

/* Of the code a frame runs: borrowed, the frame keeps it. */
static inline PyObject *vpy_frame_code(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return (PyObject *)code;
#elif PY_VERSION_HEX >= 0x030B0000
    return (PyObject *)frame->f_frame->f_code;
#else
    return (PyObject *)frame->f_code;
#endif
}

/* The kernel's id of a thread, 0 where the interpreter does not know it. */
static inline uint64_t vpy_thread_system_tid(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030B0000
    return tstate->native_thread_id;
#else
    (void)tstate;
    return 0;
#endif
}

/* ---- monitoring -------------------------------------------------------- */

/* torch takes tool id 2 on 3.12 before 3.12.5 and none after. */
#define VPY_TORCH_TAKES_TOOL_ID_2                                              \
    (PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030C0500)

#endif
