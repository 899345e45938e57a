/* Registers functions that run before the interpreter ends. */
#include "vpy.h"

/* The calls that this makes are not the program's, even if hooks are placed
 * already. */
int vpy_at_exit(PyMethodDef *method)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *atexit, *function, *result = NULL;
    int failed;

    vpy_hook_enter(tstate);
    atexit = PyImport_ImportModule("atexit");
    function = PyCFunction_New(method, NULL);
    if (atexit != NULL && function != NULL)
        result = PyObject_CallMethod(atexit, "register", "O", function);
    failed = result == NULL ? -1 : 0;
    vpy_hook_leave(tstate);
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    return failed;
}
