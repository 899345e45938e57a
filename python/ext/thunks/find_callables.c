/* Finding the pointers by which C code is called that is no PyCFunction: of a
 * class (tp_vectorcall), of all objects of a type (tp_call), and of single
 * objects (at tp_vectorcall_offset). A function that Cython made has such a
 * pointer too, but goes on to the function of a definition, which is found
 * instead: so copies of it need nothing. With the GIL. */
#include "thunks/thunks.h"

#include "calls/ids.h"

#include <stddef.h>
#include <string.h>

typedef void found_fn(const vpy_found *);

/* ---- types --------------------------------------------------------------- */

static bool has_vectorcall(const PyTypeObject *type)
{
    return PyType_HasFeature((PyTypeObject *)type,
                             Py_TPFLAGS_HAVE_VECTORCALL) &&
           type->tp_vectorcall_offset > 0;
}

/* Objects of these types are often made for a few calls, by any code: they have
 * no pointers worth replacing. */
static bool is_made_for_a_call(const PyTypeObject *type)
{
    static const char *const names[] = {
        "functools.partial", "operator.itemgetter", "operator.attrgetter",
        "operator.methodcaller"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type->tp_name, names[i]) == 0)
            return true;
    return false;
}

static bool is_cython(const PyTypeObject *type)
{
    return strstr(type->tp_name, "cython_function_or_method") != NULL;
}

/* Whether the call slot is the type's own, or that of a base which it has not
 * got from it. Classes are called by the slot of `type`. */
static bool has_own_call(const PyTypeObject *type)
{
    if (type == &PyType_Type)
        return true;
    return type->tp_call != NULL &&
           (type->tp_base == NULL || type->tp_base->tp_call != type->tp_call) &&
           vpy_type_is_called(type) &&
           (!has_vectorcall(type) || is_made_for_a_call(type)) &&
           !is_cython(type) &&
           !PyType_IsSubtype((PyTypeObject *)type, &PyType_Type);
}

void vpy_find_type_calls(PyTypeObject *type, found_fn *found)
{
    vpy_found it = {.keeper = (PyObject *)type, .where = ""};

    if (type->tp_vectorcall != NULL && vpy_class_is_recorded(type)) {
        it.owner = VPY_OF_CALLABLE;
        it.place = (vpy_place *)(void *)&type->tp_vectorcall;
        found(&it);
    }
    if (has_own_call(type)) {
        it.owner = VPY_OF_CALLS;
        it.place = (vpy_place *)(void *)&type->tp_call;
        found(&it);
    }
    if (strstr(type->tp_name, "sip.methoddescriptor") != NULL)
        vpy_descriptors_watch(type);
}

/* ---- objects ------------------------------------------------------------- */

/* A module that is compiled for the limited API has functions of a layout of
 * their own, which begins with the definition, too: definition, module,
 * function to call. The pointer is believed if it leads into a library. */
static PyMethodDef *limited_definition(PyObject *object)
{
    PyMethodDef *method = ((PyCFunctionObject *)object)->m_ml;
    vpy_table_memory memory;

    if (Py_TYPE(object)->tp_vectorcall_offset !=
        (Py_ssize_t)(offsetof(PyCFunctionObject, m_ml) + 2 * sizeof(void *)))
        return NULL;
    vpy_table_memory_check();
    memory = vpy_table_memory_of(method);
    return memory.in_image && memory.writable ? method : NULL;
}

PyMethodDef *vpy_cython_definition(PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);

    if (type->tp_call == NULL || !is_cython(type) ||
        type->tp_basicsize < (Py_ssize_t)sizeof(PyCFunctionObject))
        return NULL;
    if (has_vectorcall(type) &&
        type->tp_vectorcall_offset !=
            (Py_ssize_t)offsetof(PyCFunctionObject, vectorcall))
        return limited_definition(object);
    return ((PyCFunctionObject *)object)->m_ml;
}

static const char *holder_name(PyObject *holder)
{
    PyObject *name;
    const char *text = NULL;

    if (holder != NULL && PyType_Check(holder))
        return ((PyTypeObject *)holder)->tp_name;
    name = holder != NULL ? PyModule_GetNameObject(holder) : NULL;
    if (name != NULL) {
        text = PyUnicode_AsUTF8(name); /* the module keeps it */
        Py_DECREF(name);
    }
    PyErr_Clear();
    return text != NULL ? text : "";
}

void vpy_find_callable(PyObject *value, PyObject *holder, found_fn *found)
{
    PyTypeObject *type = Py_TYPE(value);
    PyMethodDef *method = vpy_cython_definition(value);
    vpy_found it = {
        .method = method, .keeper = value, .owner = VPY_OF_CALLABLE};

    if (method == NULL) {
        if (!has_vectorcall(type) || is_cython(type) ||
            is_made_for_a_call(type) || !vpy_type_is_called(type))
            return;
        it.place =
            (vpy_place *)(void *)((char *)value + type->tp_vectorcall_offset);
    }
    it.where = holder_name(holder);
    found(&it);
}
