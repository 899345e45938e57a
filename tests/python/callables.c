/* Callables of every kind that are no functions, for test_callables.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const char *name;
} fast_object;

static PyObject *answer(Py_ssize_t count, PyObject *names)
{
    return Py_BuildValue("(nn)", count, names ? PyTuple_GET_SIZE(names) : 0);
}

/* ---- objects with a vectorcall pointer, without weak references ----------- */

static PyObject *fast_vectorcall(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *names)
{
    (void)self;
    if (PyVectorcall_NARGS(nargsf) == 1 && args[0] == Py_None) {
        PyErr_SetString(PyExc_KeyError, "as it shall");
        return NULL;
    }
    return answer(PyVectorcall_NARGS(nargsf), names);
}

static void fast_dealloc(PyObject *self)
{
    PyObject_Free(self);
}

static PyMemberDef fast_members[] = {
    {"__name__", T_STRING, offsetof(fast_object, name), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject fast_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "callables.fast",
    .tp_basicsize = sizeof(fast_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(fast_object, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = fast_dealloc,
    .tp_members = fast_members,
};

static PyObject *make_fast(PyObject *self, PyObject *unused)
{
    fast_object *made = PyObject_New(fast_object, &fast_type);

    (void)self, (void)unused;
    if (made != NULL) {
        made->vectorcall = fast_vectorcall;
        made->name = "made";
    }
    return (PyObject *)made;
}

/* ---- objects that are called by the slot of their type --------------------- */

static PyObject *slow_call(PyObject *self, PyObject *args, PyObject *kw)
{
    (void)self;
    return Py_BuildValue("(nn)", PyTuple_GET_SIZE(args),
                         kw ? PyDict_GET_SIZE(kw) : 0);
}

static PyTypeObject slow_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "callables.Slow",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_call = slow_call,
    .tp_new = PyType_GenericNew,
};

/* ---- methods that a descriptor makes, as in PyQt ---------------------------- */

static PyObject *press(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    Py_RETURN_NONE;
}

static PyMethodDef press_method = {"press", press, METH_NOARGS, NULL};

static PyObject *described_get(PyObject *self, PyObject *object,
                               PyObject *class)
{
    (void)self;
    return PyCFunction_New(&press_method, object != NULL ? object : class);
}

static PyTypeObject described_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sip.methoddescriptor",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_descr_get = described_get,
    .tp_new = PyType_GenericNew,
};

/* ---- the pointers, as they are now ------------------------------------------ */

static PyObject *pointers(PyObject *self, PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    void *own = NULL;

    (void)self;
    if (type->tp_vectorcall_offset > 0)
        own = *(void **)((char *)callable + type->tp_vectorcall_offset);
    return Py_BuildValue(
        "(KKKKk)", (unsigned long long)(uintptr_t)own,
        (unsigned long long)(uintptr_t)type->tp_call,
        (unsigned long long)(uintptr_t)type->tp_dealloc,
        PyType_Check(callable)
            ? (unsigned long long)(uintptr_t)((PyTypeObject *)callable)
                  ->tp_vectorcall
            : 0,
        type->tp_flags & Py_TPFLAGS_HAVE_VECTORCALL);
}

static PyMethodDef methods[] = {
    {"make_fast", make_fast, METH_NOARGS, NULL},
    {"pointers", pointers, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        .m_name = "callables", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit_callables(void)
{
    PyObject *module;
    fast_object *lasting;

    if (PyType_Ready(&fast_type) < 0 || PyType_Ready(&slow_type) < 0 ||
        PyType_Ready(&described_type) < 0)
        return NULL;
    module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    lasting = (fast_object *)make_fast(NULL, NULL);
    lasting->name = "lasting";
    PyModule_AddObject(module, "lasting", (PyObject *)lasting);
    Py_INCREF(&slow_type);
    PyModule_AddObject(module, "Slow", (PyObject *)&slow_type);
    Py_INCREF(&described_type);
    PyModule_AddObject(module, "Described", (PyObject *)&described_type);
    return module;
}
