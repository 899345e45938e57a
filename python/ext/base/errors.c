/* Turns errors of the core into Python exceptions, and its progress reports
 * into calls of a Python function. */
#include "vpy.h"

int vpy_errors_init(PyObject *module)
{
    vpy_shared.trace_error = PyErr_NewExceptionWithDoc(
        "vestige.TraceError", "A trace cannot be read or written.", NULL, NULL);
    if (vpy_shared.trace_error == NULL)
        return -1;
    return PyModule_AddObjectRef(module, "TraceError", vpy_shared.trace_error);
}

PyObject *vpy_raise(vst_status status, const vst_error *error, PyObject *path)
{
    PyObject *name = NULL;

    if (PyErr_Occurred() != NULL)
        return NULL;
    if (path != NULL)
        name = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path));
    if (status == VST_E_NOMEM) {
        PyErr_NoMemory();
    } else if (error != NULL && error->sys_errno) {
        errno = error->sys_errno;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name);
    } else {
        PyObject *type = status == VST_E_ARGUMENT ? PyExc_ValueError
                         : status == VST_E_STATE  ? PyExc_RuntimeError
                                                  : vpy_shared.trace_error;
        const char *text = vst_status_string(status);
        if (name != NULL && error != NULL && error->offset)
            PyErr_Format(type, "%U: %s (at byte %llu)", name, text,
                         (unsigned long long)error->offset);
        else if (name != NULL)
            PyErr_Format(type, "%U: %s", name, text);
        else
            PyErr_SetString(type, text);
    }
    Py_XDECREF(name);
    return NULL;
}

void vpy_raise_for_both(int sys_errno, PyObject *source, PyObject *target)
{
    PyObject *first = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(source));
    PyObject *second = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(target));

    errno = sys_errno;
    if (first != NULL && second != NULL)
        PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
}

int vpy_report_progress(void *function, double done)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(function, "d", done);
    int failed = result == NULL;

    /* If the function failed, its exception stays set for the caller that
     * started the replay. */
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return failed;
}
