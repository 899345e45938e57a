/* The part of compat.h about dictionaries, modules and types. compat.h includes
 * it. All returned references are new: without the GIL another thread could
 * free an object to which we hold a borrowed reference. */
#ifndef VPY_COMPAT_OBJECTS_H
#define VPY_COMPAT_OBJECTS_H

/* Returns a dictionary's value for a key: a new reference, or NULL. Sets no
 * error. */
static inline PyObject *vpy_dict_get(PyObject *dict, PyObject *key)
{
    PyObject *found = NULL;

#if PY_VERSION_HEX >= 0x030D0000
    if (PyDict_GetItemRef(dict, key, &found) < 0)
        PyErr_Clear();
#else
    found = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(found);
    if (found == NULL)
        PyErr_Clear();
#endif
    return found;
}

static inline PyObject *vpy_dict_get_named(PyObject *dict, const char *name)
{
    PyObject *key = PyUnicode_FromString(name);
    PyObject *found = key != NULL ? vpy_dict_get(dict, key) : NULL;

    Py_XDECREF(key);
    if (found == NULL)
        PyErr_Clear();
    return found;
}

/* Returns sys.modules: a new reference, or NULL if the interpreter is ending
 * and has none any more. PyImport_GetModuleDict() would abort the process
 * then. */
static inline PyObject *vpy_modules(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */

    return modules != NULL && PyDict_Check(modules) ? Py_NewRef(modules) : NULL;
}

/* Returns a module if it is already imported: a new reference, or NULL. */
static inline PyObject *vpy_loaded_module(const char *name)
{
    PyObject *modules = vpy_modules();
    PyObject *module =
        modules != NULL ? vpy_dict_get_named(modules, name) : NULL;

    Py_XDECREF(modules);
    return module;
}

/* Changes a bytes object that nobody else refers to; text has its length. */
static inline void vpy_bytes_change(PyObject *bytes, const char *text)
{
    memcpy(PyBytes_AS_STRING(bytes), text, (size_t)PyBytes_GET_SIZE(bytes));
    _Py_COMP_DIAG_PUSH _Py_COMP_DIAG_IGNORE_DEPR_DECLS((PyBytesObject *)bytes)
        ->ob_shash = -1; /* not known */
    _Py_COMP_DIAG_POP
}

/* Returns a number that changes whenever the type changes; 0: not known. */
static inline uint32_t vpy_type_version(PyTypeObject *type)
{
    return (uint32_t)__atomic_load_n(&type->tp_version_tag, __ATOMIC_RELAXED);
}

/* Returns a type's dictionary: a new reference, or NULL. */
static inline PyObject *vpy_type_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(type);
#else
    Py_XINCREF(type->tp_dict);
    return type->tp_dict;
#endif
}

/* The callables for which the interpreter has special instructions: len,
 * isinstance and list.append. */
enum { VPY_CALLABLES = 3 };

#endif
