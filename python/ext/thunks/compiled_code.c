/* From 3.15 on the interpreter's JIT writes the address of a C function into
 * the machine code that it makes of a loop. After ml_meth has changed, such
 * code would still call the previous function: calls would not be recorded, or
 * recorded functions would be called through a thunk that was removed. So we
 * make the interpreter drop its machine code. It compiles loops again that are
 * still hot. With the GIL. */
#include "thunks/thunks.h"

#include <vestige/memory.h>

#if VPY_COMPILES_CALLS

static struct vpy_compiled_code_state *const state = &vpy_thunks.compiled;

/* Returns whether the JIT is on, which is decided when Python starts. */
static bool is_compiling(void)
{
    PyObject *jit = state->is_known ? NULL : PySys_GetObject("_jit");
    PyObject *answer =
        jit != NULL ? PyObject_CallMethod(jit, "is_enabled", NULL) : NULL;

    if (answer != NULL) {
        state->is_known = true;
        state->is_compiling = answer == Py_True;
    } else {
        PyErr_Clear();
    }
    Py_XDECREF(answer);
    return state->is_compiling;
}

static void drop_all(void)
{
    PyObject *clear = PySys_GetObject("_clear_internal_caches");
    PyObject *done = clear != NULL && PyCFunction_Check(clear)
                         ? PyObject_CallNoArgs(clear)
                         : NULL;

    if (done == NULL)
        PyErr_Clear();
    Py_XDECREF(done);
}

void vpy_compiled_code_drop(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    vpy_hook_enter(tstate); /* calls made here are not the program's */
    vst_memory_enter();
    if (is_compiling())
        drop_all();
    vst_memory_leave();
    vpy_hook_leave(tstate);
    PyErr_Restore(type, value, traceback);
}

#else

void vpy_compiled_code_drop(void)
{
}
#endif
