/* Records which tensors the modules and optimizers of a framework hold:
 * parameters, and the state that optimizers keep for each parameter. The
 * framework's adapter records their storages: a module's when it is first
 * called in a recording, an optimizer's after a step, if they have changed.
 *
 * We read only dictionaries, lists and tuples, and run no code of the program.
 * Optimizers are identified by address and weak reference, and none is kept
 * alive. Called with the GIL held. */
#include "program/program.h"

#include <stdlib.h>

#include <vestige/storage.h>

static struct vpy_framework_tensors_state *const state = &vpy_program.tensors;

enum { DEPTH_MAX = 3, HUSHED = 2 };

/* The tensors that were found. */
typedef struct found {
    uintptr_t *tensors;
    unsigned char *roles;
    size_t count, capacity;
    uint64_t hash;  /* over the objects, in order */
    bool only_hash; /* compute the hash, and collect no tensors */
} found;

typedef struct vpy_noted_optimizer {
    PyObject *self; /* borrowed; only compared */
    PyObject *weakref;
    uint64_t hash; /* of the tensors that were recorded last */
} optimizer;

/* ---- finding tensors ----------------------------------------------------- */

static void tensors_add(found *out, PyObject *tensor, vst_storage_role role)
{
    PyObject *address;
    void *impl;

    out->hash = (out->hash ^ (uintptr_t)tensor) * UINT64_C(0x9e3779b97f4a7c15);
    if (out->only_hash)
        return;
    if (out->count == out->capacity) {
        size_t size = out->capacity ? 2 * out->capacity : 64;
        uintptr_t *tensors = realloc(out->tensors, size * sizeof *tensors);
        unsigned char *roles;
        if (tensors != NULL)
            out->tensors = tensors;
        roles = tensors != NULL ? realloc(out->roles, size) : NULL;
        if (roles == NULL)
            return;
        out->roles = roles;
        out->capacity = size;
    }
    address = PyObject_GetAttrString(tensor, "_cdata");
    impl = address != NULL ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    if (impl == NULL) {
        PyErr_Clear();
        return;
    }
    out->tensors[out->count] = (uintptr_t)impl;
    out->roles[out->count++] = (unsigned char)role;
}

/* value: a tensor, or a container of tensors. */
static void tensors_collect(found *out, PyObject *value, vst_storage_role role,
                            int depth)
{
    Py_ssize_t at = 0;
    PyObject *key, *item;

    if (PyObject_TypeCheck(value, state->tensor_type)) {
        tensors_add(out, value, role);
    } else if (depth == DEPTH_MAX) {
        return;
    } else if (PyDict_Check(value)) {
        while (PyDict_Next(value, &at, &key, &item))
            tensors_collect(out, item, role, depth + 1);
    } else if (PyList_Check(value)) {
        for (; at < PyList_GET_SIZE(value); at++)
            tensors_collect(out, PyList_GET_ITEM(value, at), role, depth + 1);
    } else if (PyTuple_Check(value)) {
        for (; at < PyTuple_GET_SIZE(value); at++)
            tensors_collect(out, PyTuple_GET_ITEM(value, at), role, depth + 1);
    }
}

PyObject *vpy_own_member(PyObject *self, const char *name)
{
    PyObject *members = PyObject_GenericGetDict(self, NULL);
    PyObject *value =
        members != NULL ? PyDict_GetItemString(members, name) : NULL;

    Py_XDECREF(members); /* the instance holds another reference */
    PyErr_Clear();
    return value;
}

static void tensors_collect_optimizer(found *out, PyObject *self)
{
    PyObject *groups = vpy_own_member(self, "param_groups");
    PyObject *states = vpy_own_member(self, "state");

    for (Py_ssize_t i = 0;
         groups != NULL && PyList_Check(groups) && i < PyList_GET_SIZE(groups);
         i++) {
        PyObject *group = PyList_GET_ITEM(groups, i);
        PyObject *params =
            PyDict_Check(group) ? PyDict_GetItemString(group, "params") : NULL;
        if (params != NULL)
            tensors_collect(out, params, VST_STORAGE_PARAMETER, DEPTH_MAX - 1);
    }
    PyErr_Clear();
    if (states != NULL)
        tensors_collect(out, states, VST_STORAGE_OPTIMIZER, 0);
}

static void tensors_record(found *out)
{
    if (out->count)
        state->note(out->tensors, out->roles, out->count, vst_record_storages);
    free(out->tensors);
    free(out->roles);
}

int vpy_tensors_hush(void)
{
    return state->hush != NULL ? state->hush(HUSHED) : 0;
}

void vpy_tensors_unhush(int before)
{
    if (state->hush != NULL)
        state->hush(before);
}

/* ---- modules and optimizers ---------------------------------------------- */

void vpy_tensors_of_module(PyObject *self)
{
    found out = {0};
    PyObject *parameters =
        state->tensor_type != NULL ? vpy_own_member(self, "_parameters") : NULL;
    int before;

    if (parameters == NULL)
        return;
    before = vpy_tensors_hush();
    tensors_collect(&out, parameters, VST_STORAGE_PARAMETER, DEPTH_MAX - 1);
    vpy_tensors_unhush(before);
    tensors_record(&out);
}

/* Returns the entry of an optimizer, which is made if there is none, or NULL if
 * memory ran out. */
static optimizer *tensors_entry_of(PyObject *self)
{
    optimizer *grown;
    PyObject *weakref;

    for (size_t i = 0; i < state->optimizer_count; i++)
        if (state->optimizers[i].self == self) {
            if (vpy_weakref_is_to(state->optimizers[i].weakref, self))
                return &state->optimizers[i];
            Py_DECREF(
                state->optimizers[i]
                    .weakref); /* of an earlier optimizer at this address */
            state->optimizers[i] = state->optimizers[--state->optimizer_count];
            break;
        }
    grown = realloc(state->optimizers,
                    (state->optimizer_count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    state->optimizers = grown;
    weakref = vpy_weakref_new(self);
    if (weakref == NULL)
        return NULL;
    grown[state->optimizer_count] = (optimizer){self, weakref, 0};
    return &grown[state->optimizer_count++];
}

static PyObject *note_optimizer(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    found out = {.only_hash = true};
    optimizer *entry;
    int before;

    (void)module;
    if (count < 1 || state->tensor_type == NULL)
        Py_RETURN_NONE;
    tensors_collect_optimizer(&out, args[0]);
    entry = tensors_entry_of(args[0]);
    PyErr_Clear();
    if (entry != NULL && entry->hash == out.hash)
        Py_RETURN_NONE;
    if (entry != NULL)
        entry->hash = out.hash;
    out.only_hash = false;
    before = vpy_tensors_hush();
    tensors_collect_optimizer(&out, args[0]);
    vpy_tensors_unhush(before);
    tensors_record(&out);
    Py_RETURN_NONE;
}

/* ---- the framework ------------------------------------------------------- */

static PyObject *set_framework_tensors(PyObject *module, PyObject *args)
{
    PyObject *type;
    unsigned long long hush_at, note_at;
    PyTypeObject *old = state->tensor_type;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKK:set_framework_tensors", &type, &hush_at,
                          &note_at))
        return NULL;
    if (type != Py_None && !PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError,
                        "set_framework_tensors takes a class or None");
        return NULL;
    }
    for (size_t i = 0; i < state->optimizer_count; i++)
        Py_DECREF(state->optimizers[i].weakref);
    free(state->optimizers);
    state->optimizers = NULL;
    state->optimizer_count = 0;
    state->hush = (vpy_hush_fn *)(uintptr_t)hush_at;
    state->note = (vpy_note_fn *)(uintptr_t)note_at;
    state->tensor_type =
        type != Py_None && state->hush != NULL && state->note != NULL
            ? (PyTypeObject *)type
            : NULL;
    Py_XINCREF(state->tensor_type);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef vpy_tensors_functions[] = {
    {"set_framework_tensors", set_framework_tensors, METH_VARARGS,
     PyDoc_STR(
         "set_framework_tensors(type, hush, note)\n--\n\nSet the class of a "
         "framework's tensors, and the addresses of its adapter's "
         "functions. None: tensors are not recorded.")},
    {"note_optimizer", (PyCFunction)(void (*)(void))note_optimizer,
     METH_FASTCALL,
     PyDoc_STR("note_optimizer(optimizer, args, kwargs)\n--\n\nRecord which "
               "tensors the optimizer holds, if they have changed.")},
    {NULL, NULL, 0, NULL},
};
