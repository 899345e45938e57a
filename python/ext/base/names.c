/* Names that a forked child looks up. Their str objects are made when the
 * module is loaded: a child that makes an object copies pages of its parent's
 * memory. */
#include "base/names.h"

#include "base/state.h"

static struct vpy_names_state *const state = &vpy_base.names;

int vpy_names_init(void)
{
    static const char *const texts[VPY_NAMES] = {
        [VPY_NAME_MODULES] = "modules",
        [VPY_NAME_PATH] = "path",
        [VPY_NAME_REFCOUNT] = "gettotalrefcount",
        [VPY_NAME_MONITORING] = "monitoring",
        [VPY_NAME_TORCH] = "torch",
        [VPY_NAME_THREADING] = "threading",
        [VPY_NAME_GREENLET] = "greenlet",
        [VPY_NAME_PROCESSES] = "multiprocessing.process",
        [VPY_NAME_PROCESSES_UTIL] = "multiprocessing.util",
    };
    PyObject *module = PyImport_ImportModule("sys");

    for (size_t i = 0; i < VPY_NAMES; i++) {
        Py_XSETREF(state->objects[i], PyUnicode_InternFromString(texts[i]));
        if (state->objects[i] == NULL)
            Py_CLEAR(module);
    }
    if (module != NULL)
        Py_XSETREF(state->system, Py_NewRef(PyModule_GetDict(module)));
    Py_XDECREF(module);
    return module != NULL ? 0 : -1;
}

PyObject *vpy_system_object(vpy_name name)
{
#if VPY_FREE_THREADED
    PyObject *found = vpy_dict_get(state->system, state->objects[name]);

    Py_XDECREF(found); /* the dictionary has a reference, too */
#else
    /* without counting a reference, which copies a page in a forked child */
    PyObject *found =
        PyDict_GetItemWithError(state->system, state->objects[name]);

    if (found == NULL)
        PyErr_Clear();
#endif
    return found;
}

PyObject *vpy_loaded(vpy_name name)
{
    PyObject *modules = vpy_system_object(VPY_NAME_MODULES);

    return modules != NULL && PyDict_Check(modules)
               ? vpy_dict_get(modules, state->objects[name])
               : NULL;
}
