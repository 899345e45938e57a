/* See monitoring_callback.h. */
#include "calls/monitoring_callback.h"

#include <stddef.h>
#include <structmember.h>

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(vpy_callback, vectorcall),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot callback_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callback_members},
    {Py_tp_dealloc, callback_dealloc},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "vestige._core.monitoring_callback",
    .basicsize = sizeof(vpy_callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

PyObject *vpy_callback_new(PyTypeObject *type, vpy_callback_fn function,
                           char mark)
{
    vpy_callback *object = PyObject_New(vpy_callback, type);

    if (object != NULL) {
        object->vectorcall = function;
        object->mark = mark;
    }
    return (PyObject *)object;
}

PyTypeObject *vpy_callback_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &callback_spec,
                                                    NULL);
}
