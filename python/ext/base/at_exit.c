/* Registers functions that run before the interpreter ends. */
#include "vpy.h"

int vpy_at_exit(PyMethodDef *method)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *function = PyCFunction_New(method, NULL);
    PyObject *result =
        atexit != NULL && function != NULL
            ? PyObject_CallMethod(atexit, "register", "O", function)
            : NULL;
    int failed = result == NULL ? -1 : 0;

    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    return failed;
}
