/* Notes the tensors of a framework's modules and optimizers in a Python list,
 * for programs that look at a recording in the process that made it. The list
 * gets an entry when a module is first called, and each time an optimizer makes
 * a step. The framework's adapter describes the tensors.
 *
 * As in framework_tensors.c, we run no code of the program. Called with the GIL
 * held. */
#include "program/program.h"

static struct vpy_noted_tensors_state *const state = &vpy_program.noted;

enum { TEXT_MAX = 4096 };

/* ---- tensors ------------------------------------------------------------- */

/* Returns a text, or None if there is nothing to describe; NULL with an
 * exception set on failure. */
static PyObject *tensors_text_of(PyObject *tensor, int gradient)
{
    char text[TEXT_MAX];
    PyObject *address = PyObject_GetAttrString(tensor, "_cdata");
    void *impl = address != NULL ? PyLong_AsVoidPtr(address) : NULL;
    size_t length = impl != NULL ? state->describe((uintptr_t)impl, gradient,
                                                   text, sizeof text)
                                 : 0;

    Py_XDECREF(address);
    PyErr_Clear();
    if (length == 0)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
}

/* Returns a list of (name, tensor), or with gradients (name, tensor, gradient),
 * for each tensor in a dict; NULL with an exception set on failure. */
static PyObject *tensors_by_name(PyObject *dict, bool gradients)
{
    PyObject *list = PyList_New(0), *name, *value;
    Py_ssize_t at = 0;

    while (list != NULL && PyDict_Next(dict, &at, &name, &value)) {
        PyObject *entry;
        if (!PyUnicode_Check(name) ||
            !PyObject_TypeCheck(value, state->tensor_type))
            continue;
        entry = gradients
                    ? Py_BuildValue("(ONN)", name, tensors_text_of(value, 0),
                                    tensors_text_of(value, 1))
                    : Py_BuildValue("(ON)", name, tensors_text_of(value, 0));
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    return list;
}

/* ---- modules and optimizers ---------------------------------------------- */

/* Returns the entry of a dict whose key is this very object: the hash of a
 * tensor is computed by code of the program. The search starts where the last
 * one ended. */
static PyObject *tensors_entry_of(PyObject *dict, PyObject *wanted,
                                  Py_ssize_t *from)
{
    PyObject *key, *value;
    Py_ssize_t start = *from;

    while (PyDict_Next(dict, from, &key, &value))
        if (key == wanted)
            return value;
    *from = 0;
    while (*from < start && PyDict_Next(dict, from, &key, &value))
        if (key == wanted)
            return value;
    return NULL;
}

/* Adds (parameter, gradient, [(name, tensor), ...]) for each parameter in a
 * list. */
static bool add_parameters(PyObject *list, PyObject *parameters,
                           PyObject *states)
{
    Py_ssize_t from = 0;

    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameters); i++) {
        PyObject *each = PyList_GET_ITEM(parameters, i);
        PyObject *own;
        if (!PyObject_TypeCheck(each, state->tensor_type))
            continue;
        own = states != NULL && PyDict_Check(states)
                  ? tensors_entry_of(states, each, &from)
                  : NULL;
        own = own != NULL && PyDict_Check(own) ? tensors_by_name(own, false)
                                               : PyList_New(0);
        if (!vpy_append(list, Py_BuildValue("(NNN)", tensors_text_of(each, 0),
                                            tensors_text_of(each, 1), own)))
            return false;
    }
    return true;
}

/* Returns a list as add_parameters fills it; NULL with an exception set on
 * failure. */
static PyObject *optimizer_tensors(PyObject *self)
{
    PyObject *groups = vpy_own_member(self, "param_groups");
    PyObject *states = vpy_own_member(self, "state");
    PyObject *list = PyList_New(0);

    for (Py_ssize_t i = 0; list != NULL && groups != NULL &&
                           PyList_Check(groups) && i < PyList_GET_SIZE(groups);
         i++) {
        PyObject *group = PyList_GET_ITEM(groups, i);
        PyObject *parameters =
            PyDict_Check(group) ? PyDict_GetItemString(group, "params") : NULL;
        if (parameters != NULL && PyList_Check(parameters) &&
            !add_parameters(list, parameters, states))
            Py_CLEAR(list);
    }
    return list;
}

/* Appends (what, number, address of the object, address and name of its class,
 * tensors). Takes over the reference to the tensors, which may be NULL. */
static void add_entry(const char *what, unsigned long number, PyObject *self,
                      PyObject *tensors)
{
    PyTypeObject *type = Py_TYPE(self);
    const char *dot = strrchr(type->tp_name, '.');

    if (tensors != NULL)
        vpy_append(state->noted,
                   Py_BuildValue("(skKKsN)", what, number,
                                 (unsigned long long)(uintptr_t)self,
                                 (unsigned long long)(uintptr_t)type,
                                 dot != NULL ? dot + 1 : type->tp_name,
                                 tensors));
    PyErr_Clear();
}

void vpy_note_module(PyObject *self, vst_id id)
{
    PyObject *parameters =
        state->noted != NULL ? vpy_own_member(self, "_parameters") : NULL;
    int before;

    if (parameters == NULL || !PyDict_Check(parameters))
        return;
    before = vpy_tensors_hush();
    add_entry("module", id, self, tensors_by_name(parameters, true));
    vpy_tensors_unhush(before);
}

void vpy_note_step(PyObject *self)
{
    PyObject *type, *error, *traceback, *address, *tensors;
    int before;

    if (state->noted == NULL)
        return;
    PyErr_Fetch(&type, &error, &traceback);
    before = vpy_tensors_hush();
    address = PyLong_FromVoidPtr(self);
    if (address != NULL && PySet_Contains(state->seen, address) == 1) {
        tensors = Py_NewRef(Py_None); /* as they were in the first step */
    } else {
        tensors = optimizer_tensors(self);
        if (address != NULL)
            PySet_Add(state->seen, address);
    }
    Py_XDECREF(address);
    add_entry("optimizer", PyThread_get_thread_native_id(), self, tensors);
    vpy_tensors_unhush(before);
    PyErr_Restore(type, error, traceback);
}

/* ---- the list ------------------------------------------------------------ */

static PyObject *note_tensors(PyObject *module, PyObject *args)
{
    PyObject *type, *list;
    unsigned long long describe_at;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKO:note_tensors", &type, &describe_at, &list))
        return NULL;
    Py_CLEAR(state->noted);
    Py_CLEAR(state->seen);
    Py_CLEAR(state->tensor_type);
    if (!PyType_Check(type) || !PyList_Check(list) || describe_at == 0)
        Py_RETURN_NONE;
    state->seen = PySet_New(NULL);
    if (state->seen == NULL)
        return NULL;
    state->describe = (vpy_describe_fn *)(uintptr_t)describe_at;
    state->tensor_type = (PyTypeObject *)Py_NewRef(type);
    state->noted = Py_NewRef(list);
    Py_RETURN_NONE;
}

PyMethodDef vpy_noted_functions[] = {
    {"note_tensors", note_tensors, METH_VARARGS,
     PyDoc_STR("note_tensors(type, describe, list)\n--\n\nNote the tensors of "
               "modules and optimizers in a list. type is the class of a "
               "framework's tensors, describe the address of its adapter's "
               "function. None: note nothing.")},
    {NULL, NULL, 0, NULL},
};
