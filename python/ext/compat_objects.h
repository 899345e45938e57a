/* The part of compat.h about dictionaries, modules and types. compat.h includes
 * it. References that are returned are new ones: without the GIL another thread
 * may remove what a borrowed one is borrowed from. */
#ifndef VPY_COMPAT_OBJECTS_H
#define VPY_COMPAT_OBJECTS_H

/* What a dictionary has under a key: a new reference, or NULL. No error is set.
 */
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

/* sys.modules: a new reference, or NULL where an interpreter that ends has none
 * any more. PyImport_GetModuleDict() aborts the process there. */
static inline PyObject *vpy_modules(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */

    return modules != NULL && PyDict_Check(modules) ? Py_NewRef(modules) : NULL;
}

/* A module, if somebody has imported it: a new reference, or NULL. */
static inline PyObject *vpy_loaded_module(const char *name)
{
    PyObject *modules = vpy_modules();
    PyObject *module =
        modules != NULL ? vpy_dict_get_named(modules, name) : NULL;

    Py_XDECREF(modules);
    return module;
}

/* Changes whenever the type does; 0: not known. */
static inline uint32_t vpy_type_version(PyTypeObject *type)
{
    return (uint32_t)__atomic_load_n(&type->tp_version_tag, __ATOMIC_RELAXED);
}

/* A type's dictionary: a new reference, or NULL. */
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
