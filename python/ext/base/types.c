/* Adds types to the module, and sets the path of an object. */
#include "vpy.h"

int vpy_type_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int failed =
        type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

    Py_XDECREF(type);
    return failed;
}

int vpy_class_add(PyObject *module, const vpy_class *described)
{
    newfunc make =
        described->make != NULL ? described->make : PyType_GenericNew;
    PyType_Slot slots[] = {
        {Py_tp_init, (void *)(uintptr_t)described->init},
        {Py_tp_new, (void *)(uintptr_t)make},
        {Py_tp_dealloc, (void *)(uintptr_t)described->dealloc},
        {Py_tp_methods, described->methods},
        {Py_tp_doc, (void *)(uintptr_t)described->doc},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = described->name,
        .basicsize = (int)described->size,
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };

    return vpy_type_add(module, &spec);
}

bool vpy_path_set(PyObject *object, PyObject **place, PyObject *path,
                  const char *message)
{
    bool is_set;

    VPY_BEGIN_CRITICAL_SECTION(object);
    is_set = *place == NULL;
    if (is_set)
        *place = path;
    VPY_END_CRITICAL_SECTION();
    (void)object;
    if (!is_set) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_RuntimeError, message);
    }
    return is_set;
}
