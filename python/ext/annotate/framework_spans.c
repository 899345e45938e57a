/* Uses torch's own record_function after vestige has replaced torch.profiler.
 *
 * While another listener sees torch's spans, a span of ours is made by torch:
 * the listener may be a torch profiler that records while vestige does not, or
 * a mode that takes part in every operator, such as the tracer of make_fx. Two
 * functions of torch's library say whether there is such a listener on this
 * thread. Called with the GIL held. */
#include "annotate/annotate.h"

static struct vpy_framework_spans_state *const state = &vpy_annotate.framework;

bool vpy_framework_listens(void)
{
    if (!vpy_is_recording() &&
        (state->has_callbacks == NULL || state->has_callbacks()))
        return true;
    return state->has_modes != NULL && state->has_modes(false);
}

/* Begins one of torch's spans. Returns NULL if torch raises. */
PyObject *vpy_framework_enter(PyObject *name, PyObject *args)
{
    PyObject *span =
        PyObject_CallFunctionObjArgs(state->span, name, args, (PyObject *)NULL);
    PyObject *entered =
        span != NULL ? PyObject_CallMethod(span, "__enter__", NULL) : NULL;

    if (entered == NULL)
        Py_CLEAR(span);
    Py_XDECREF(entered);
    return span;
}

/* Ends torch's span with the arguments of __exit__, and drops the reference. */
PyObject *vpy_framework_exit(PyObject *span, PyObject *const *args,
                             Py_ssize_t count)
{
    PyObject *method = PyObject_GetAttrString(span, "__exit__");
    PyObject *result =
        method != NULL ? PyObject_Vectorcall(method, args, (size_t)count, NULL)
                       : NULL;

    Py_XDECREF(method);
    Py_DECREF(span);
    return result;
}

static PyObject *set_framework_span(PyObject *module, PyObject *args)
{
    PyObject *type;
    unsigned long long callbacks_at, modes_at;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKK:set_framework_span", &type, &callbacks_at,
                          &modes_at))
        return NULL;
    state->has_callbacks = (bool (*)(void))(uintptr_t)callbacks_at;
    state->has_modes = (bool (*)(bool))(uintptr_t)modes_at;
    Py_XSETREF(state->span, type == Py_None ? NULL : Py_NewRef(type));
    Py_RETURN_NONE;
}

PyMethodDef vpy_framework_spans_functions[] = {
    {"set_framework_span", set_framework_span, METH_VARARGS,
     PyDoc_STR("set_framework_span(type, has_callbacks, has_modes)\n--\n\nLet "
               "record_function enter the framework's own spans while these "
               "functions, given by address, say that another listener sees "
               "them. None: stop that.")},
    {NULL, NULL, 0, NULL},
};
