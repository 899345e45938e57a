/* Finds definitions of C functions: in the tables of all types and modules, and
 * in the functions and descriptors that their dictionaries hold. Nothing is
 * looked up by name, and no code of the program is called, not even
 * metaclasses: types are found through type's own __subclasses__, and
 * dictionaries are read directly. Call with the GIL held; the collector does
 * not run meanwhile. */
#include "thunks/thunks.h"

#include "calls/ids.h"

#include <stdlib.h>
#include <string.h>

typedef void found_fn(const vpy_found *);

/* The types that were seen, in order, with a reference to each; a hash table
 * finds them. */
typedef struct types {
    PyTypeObject **items;
    size_t count, capacity;
    PyTypeObject **table; /* types by address, NULL: the entry is empty */
    size_t mask;
} types;

/* ---- functions and tables ---------------------------------------------- */

static const char *module_name(PyObject *name)
{
    const char *text =
        name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;

    if (text == NULL)
        PyErr_Clear();
    return text != NULL ? text : "";
}

static void report_function(PyCFunctionObject *function, found_fn *found)
{
    PyObject *self = function->m_self;
    vpy_found it = {.method = function->m_ml, .keeper = (PyObject *)function};

    if (function->m_ml->ml_flags & METH_STATIC && self != NULL &&
        PyType_Check(self)) {
        it.owner = VPY_OF_TYPE;
        it.where = ((PyTypeObject *)self)->tp_name;
    } else if (self != NULL && !PyModule_Check(self) &&
               !vpy_is_pybind11(self)) {
        it.owner = VPY_OF_SELF;
    } else {
        it.owner = VPY_OF_MODULE;
        it.where = module_name(function->m_module);
    }
    found(&it);
}

static void report_method(PyMethodDef *method, PyTypeObject *type,
                          found_fn *found)
{
    vpy_found it = {.method = method, .keeper = (PyObject *)type};

    it.owner = method->ml_flags & METH_STATIC ? VPY_OF_TYPE : VPY_OF_SELF;
    it.where = type->tp_name;
    found(&it);
}

/* Reports the definition of the function that a descriptor makes whenever it is
 * asked for one: the program may have kept such a function. */
static void report_made(PyObject *descriptor, PyTypeObject *class,
                        found_fn *found)
{
    PyObject *made = vpy_described_function(descriptor, class);

    if (made != NULL && PyCFunction_CheckExact(made))
        report_method(((PyCFunctionObject *)made)->m_ml, class, found);
    Py_XDECREF(made);
}

/* Reports the definition behind a value. A static method is a staticmethod
 * object around a built-in function; pybind11 wraps its functions into instance
 * methods. holder: the module or type whose dictionary has the value. */
static void report_value(PyObject *value, PyObject *holder, found_fn *found)
{
    PyTypeObject *type = Py_TYPE(value);

    if (type == &PyFunction_Type || type == &PyType_Type)
        return;
    if (type == &PyCFunction_Type || type == &PyCMethod_Type) {
        report_function((PyCFunctionObject *)value, found);
    } else if (type == &PyMethodDescr_Type ||
               type == &PyClassMethodDescr_Type) {
        PyMethodDescrObject *descriptor = (PyMethodDescrObject *)value;
        report_method(descriptor->d_method, descriptor->d_common.d_type, found);
    } else if (type == &PyInstanceMethod_Type) {
        PyObject *inner = PyInstanceMethod_GET_FUNCTION(value);
        if (inner != NULL && PyCFunction_Check(inner))
            report_function((PyCFunctionObject *)inner, found);
    } else if (type == &PyStaticMethod_Type || type == &PyClassMethod_Type) {
        PyObject *inner = vpy_wrapped_function(value);
        if (inner != NULL && PyCFunction_Check(inner))
            report_function((PyCFunctionObject *)inner, found);
        else if (inner != NULL && Py_TYPE(inner)->tp_call != NULL)
            vpy_find_callable(inner, holder, found);
    } else if (type->tp_call != NULL) {
        vpy_find_callable(value, holder, found);
    } else if (holder != NULL && PyType_Check(holder)) {
        report_made(value, (PyTypeObject *)holder, found);
    }
}

/* Reports the values of a dictionary in groups, and prefetches each group
 * first: with torch there are 130,000 values, all over the memory. */
static void report_values(PyObject *dict, PyObject *holder, found_fn *found)
{
    PyObject *key, *values[16];
    Py_ssize_t position = 0;
    size_t count;

    if (dict == NULL || !PyDict_Check(dict))
        return;
    do {
        count = 0;
        while (count < 16 && PyDict_Next(dict, &position, &key, &values[count]))
            __builtin_prefetch(values[count++]);
        for (size_t i = 0; i < count; i++)
            report_value(values[i], holder, found);
    } while (count == 16);
}

/* ---- types ------------------------------------------------------------- */

/* The dictionary of a static type was made from its tables, but Cython adds
 * functions to the dictionary. */
static void report_added(PyObject *dict, PyTypeObject *type, found_fn *found)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;

    while (dict != NULL && PyDict_Check(dict) &&
           PyDict_Next(dict, &position, &key, &value))
        if (Py_TYPE(value) != &PyMethodDescr_Type &&
            Py_TYPE(value) != &PyWrapperDescr_Type &&
            vpy_cython_definition(value) != NULL)
            vpy_find_callable(value, (PyObject *)type, found);
}

static void report_type(PyTypeObject *type, found_fn *found)
{
    PyObject *dict;

    /* A class without a table is written in Python, and so is not one of ours.
     * Its name is not looked at, because the name lies elsewhere in memory. */
    if ((type->tp_methods != NULL || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) &&
        strncmp(type->tp_name, "vestige.", 8) == 0)
        return;
    for (PyMethodDef *m = type->tp_methods; m != NULL && m->ml_name != NULL;
         m++)
        report_method(m, type, found);
    vpy_find_type_calls(type, found);
    dict = vpy_type_dict(type);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        report_values(dict, (PyObject *)type, found);
    else
        report_added(dict, type, found);
    Py_XDECREF(dict);
}

/* Prefetches a type that will be looked at soon. With torch there are ten
 * thousand types, each with a dictionary of its own, all over the memory. */
static void fetch_type(const types *seen, size_t at)
{
    enum { DICT_AHEAD = 4, TYPE_AHEAD = 8 };
    const PyTypeObject *type;

    if (at + TYPE_AHEAD >= seen->count)
        return;
    type = seen->items[at + TYPE_AHEAD];
    __builtin_prefetch(&type->tp_flags);
    __builtin_prefetch(&type->tp_methods);
    __builtin_prefetch(&type->tp_dict);
    type = seen->items[at + DICT_AHEAD];
    if (type->tp_dict != NULL)
        __builtin_prefetch(type->tp_dict);
    type = seen->items[at + DICT_AHEAD / 2];
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && type->tp_dict != NULL)
        __builtin_prefetch(((PyDictObject *)type->tp_dict)->ma_keys);
}

static PyTypeObject **definitions_place_of(const types *seen,
                                           const PyTypeObject *type)
{
    size_t i = ((uintptr_t)type >> 4 ^ (uintptr_t)type >> 13) & seen->mask;

    while (seen->table[i] != NULL && seen->table[i] != type)
        i = (i + 1) & seen->mask;
    return &seen->table[i];
}

static bool definitions_make_room(types *seen)
{
    size_t capacity = seen->capacity ? seen->capacity * 2 : 1024;
    PyTypeObject **items = realloc(seen->items, capacity * sizeof *items);
    PyTypeObject **table =
        items != NULL ? calloc(capacity * 2, sizeof *table) : NULL;

    if (items != NULL)
        seen->items = items;
    if (table == NULL)
        return false;
    free(seen->table);
    seen->capacity = capacity;
    seen->table = table;
    seen->mask = capacity * 2 - 1;
    for (size_t i = 0; i < seen->count; i++)
        *definitions_place_of(seen, items[i]) = items[i];
    return true;
}

static bool definitions_note(types *seen, PyObject *type)
{
    PyTypeObject **place;

    if (seen->count == seen->capacity && !definitions_make_room(seen))
        return false;
    place = definitions_place_of(seen, (PyTypeObject *)type);
    if (*place != NULL)
        return true;
    Py_INCREF(type);
    *place = seen->items[seen->count++] = (PyTypeObject *)type;
    return true;
}

/* Returns the C function behind type.__subclasses__, or NULL if it is not the
 * usual one. */
static PyCFunction subclasses_function(void)
{
    PyObject *dict = vpy_type_dict(&PyType_Type);
    PyObject *found =
        dict != NULL ? PyDict_GetItemString(dict, "__subclasses__") : NULL;
    PyMethodDef *method = NULL;

    if (found != NULL && Py_IS_TYPE(found, &PyMethodDescr_Type))
        method = ((PyMethodDescrObject *)found)->d_method;
    Py_XDECREF(dict);
    return method != NULL && method->ml_flags == METH_NOARGS
               ? vpy_thunk_original(method->ml_meth)
               : NULL;
}

PyObject *vpy_subclasses(PyTypeObject *type)
{
    PyCFunction subclasses = subclasses_function();
    PyObject *list =
        subclasses != NULL ? subclasses((PyObject *)type, NULL) : NULL;

    if (list != NULL && !PyList_Check(list))
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

static bool find_types(types *seen)
{
    PyCFunction subclasses = subclasses_function();
    bool complete = definitions_note(seen, (PyObject *)&PyBaseObject_Type);

    for (size_t i = 0; complete && subclasses != NULL && i < seen->count; i++) {
        PyObject *list = subclasses((PyObject *)seen->items[i], NULL);
        Py_ssize_t count =
            list != NULL && PyList_Check(list) ? PyList_GET_SIZE(list) : 0;
        complete = list != NULL;
        for (Py_ssize_t k = 0; complete && k < count; k++)
            complete = definitions_note(seen, PyList_GET_ITEM(list, k));
        Py_XDECREF(list);
    }
    PyErr_Clear();
    return complete && subclasses != NULL;
}

/* ---- modules ----------------------------------------------------------- */

/* Reports the definitions of a module. A function in the dictionary knows the
 * module that it was made for. */
static void report_module(PyObject *module, found_fn *found)
{
    PyModuleDef *definition = PyModule_GetDef(module);
    PyObject *name;
    vpy_found it = {.keeper = module, .owner = VPY_OF_MODULE};

    report_values(PyModule_GetDict(module), module, found);
    if (definition == NULL || definition->m_methods == NULL)
        return; /* most modules are written in Python */
    name = PyModule_GetNameObject(module);
    PyErr_Clear();
    it.where = module_name(name);
    for (PyMethodDef *m = definition->m_methods; m->ml_name != NULL; m++) {
        it.method = m;
        found(&it);
    }
    Py_XDECREF(name);
}

static void report_modules(found_fn *found)
{
    PyObject *modules = vpy_modules();
    PyObject *key, *value;
    Py_ssize_t position = 0;

    while (modules != NULL && PyDict_Next(modules, &position, &key, &value))
        if (PyModule_Check(value))
            report_module(value, found);
    Py_XDECREF(modules);
}

bool vpy_find_methods(found_fn *found)
{
    types seen = {0};
    int young = vpy_young_objects();
    bool complete = find_types(&seen);

    report_modules(found);
    for (size_t i = 0; i < seen.count; i++) {
        fetch_type(&seen, i);
        report_type(seen.items[i], found);
        Py_DECREF(seen.items[i]);
    }
    free(seen.items);
    free(seen.table);
    vpy_young_objects_set(young);
    return complete;
}

bool vpy_find_types(void (*found)(PyTypeObject *))
{
    types seen = {0};
    int young = vpy_young_objects();
    bool complete = find_types(&seen);

    for (size_t i = 0; i < seen.count; i++) {
        found(seen.items[i]);
        Py_DECREF(seen.items[i]);
    }
    free(seen.items);
    free(seen.table);
    vpy_young_objects_set(young);
    return complete;
}

void vpy_find_value(PyObject *value, found_fn *found)
{
    report_value(value, NULL, found);
}

void vpy_find_methods_of(PyObject *object, found_fn *found)
{
    PyObject *key, *value, *dict;
    Py_ssize_t position = 0;
    int young;

    if (!PyModule_Check(object))
        return;
    young = vpy_young_objects();
    report_module(object, found);
    dict = PyModule_GetDict(object);
    while (dict != NULL && PyDict_Next(dict, &position, &key, &value))
        if (PyType_Check(value))
            report_type((PyTypeObject *)value, found);
    vpy_young_objects_set(young);
}
