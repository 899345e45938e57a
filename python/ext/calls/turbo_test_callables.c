/* The part of turbo's test of itself that is about callables which are no
 * PyCFunctions: a thunk in place of each kind of pointer must pass all
 * arguments on, and must be gone afterwards. With the GIL held. */
#include "calls/turbo_test.h"

#include "thunks/thunks.h"

#include <structmember.h>

typedef struct test_object {
    PyObject_HEAD
    vectorcallfunc vectorcall;
} test_object;

/* ---- what is called: it answers whether it got what it was called with --- */

static PyObject *test_vectorcall(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *names)
{
    (void)self;
    return PyBool_FromLong(PyVectorcall_NARGS(nargsf) == 1 &&
                           args[0] == Py_Ellipsis && names != NULL &&
                           PyTuple_GET_SIZE(names) == 1 &&
                           args[1] == Py_NotImplemented);
}

static PyObject *test_call(PyObject *self, PyObject *args, PyObject *kw)
{
    (void)self;
    return PyBool_FromLong(PyTuple_GET_SIZE(args) == 1 &&
                           PyTuple_GET_ITEM(args, 0) == Py_Ellipsis &&
                           kw != NULL &&
                           PyDict_GetItemString(kw, "n") == Py_NotImplemented);
}

static void test_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(test_object, vectorcall),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_call, test_call},
    {Py_tp_members, members},
    {Py_tp_dealloc, test_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "vestige._core.test_callable",
    .basicsize = sizeof(test_object),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* ---- each kind of pointer ------------------------------------------------ */

static bool test_gets_all(PyObject *callable, PyObject *names)
{
    PyObject *const arguments[] = {Py_Ellipsis, Py_NotImplemented};
    PyObject *result = PyObject_Vectorcall(callable, arguments, 1, names);
    bool gets = result == Py_True;

    Py_XDECREF(result);
    return gets;
}

static bool has_thunk(const vpy_place *place)
{
    return vpy_thunk_number(*place) < VPY_THUNKS;
}

static bool test_put(vpy_place *place, PyObject *keeper, vpy_thunk_owner owner)
{
    const vpy_found found = {
        .keeper = keeper, .owner = owner, .where = "", .place = place};

    vpy_thunks_put(&found);
    return has_thunk(place);
}

/* One object keeps its thunk to the end, the other one is freed before. */
static bool objects_pass(PyTypeObject *type, PyObject *names)
{
    test_object *stays = PyObject_New(test_object, type);
    test_object *goes = PyObject_New(test_object, type);
    bool pass = stays != NULL && goes != NULL;

    if (pass) {
        vpy_place *place = (vpy_place *)(void *)&stays->vectorcall;
        stays->vectorcall = goes->vectorcall = test_vectorcall;
        pass = test_put(place, (PyObject *)stays, VPY_OF_CALLABLE) &&
               test_put((vpy_place *)(void *)&goes->vectorcall,
                        (PyObject *)goes, VPY_OF_CALLABLE) &&
               vpy_object_has_thunk((PyObject *)stays) &&
               test_gets_all((PyObject *)stays, names) &&
               type->tp_dealloc != test_dealloc;
        Py_CLEAR(goes);
        vpy_thunks_restore();
        pass = pass && stays->vectorcall == test_vectorcall &&
               type->tp_dealloc == test_dealloc;
    }
    Py_XDECREF(stays);
    Py_XDECREF(goes);
    return pass;
}

/* The type's own pointer for calls of the class. */
static bool class_passes(PyTypeObject *type, PyObject *names)
{
    bool pass;

    type->tp_vectorcall = test_vectorcall;
    pass = test_put((vpy_place *)(void *)&type->tp_vectorcall, (PyObject *)type,
                    VPY_OF_CALLABLE) &&
           test_gets_all((PyObject *)type, names);
    vpy_thunks_restore();
    pass = pass && type->tp_vectorcall == test_vectorcall;
    type->tp_vectorcall = NULL;
    return pass;
}

static PyTypeObject *class_of(PyTypeObject *type)
{
    return (PyTypeObject *)PyObject_CallFunction((PyObject *)&PyType_Type,
                                                 "s(O){}", "test", type);
}

/* The call slot: of a class that was made before, and of one that is made
 * meanwhile. */
static bool slots_pass(PyTypeObject *type, PyObject *names)
{
    PyTypeObject *before = class_of(type), *meanwhile = NULL;
    PyObject *object = (PyObject *)PyObject_New(test_object, type);
    bool pass = before != NULL && object != NULL;

    if (pass) {
        ((test_object *)object)->vectorcall = test_vectorcall;
        pass = test_put((vpy_place *)(void *)&type->tp_call, (PyObject *)type,
                        VPY_OF_CALLS) &&
               !PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL) &&
               before->tp_call == type->tp_call;
        meanwhile = class_of(type);
        pass = pass && meanwhile != NULL &&
               meanwhile->tp_call == type->tp_call &&
               test_gets_all(object, names);
        vpy_thunks_restore();
        pass = pass && type->tp_call == test_call &&
               before->tp_call == test_call &&
               meanwhile->tp_call == test_call &&
               PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL);
    }
    Py_XDECREF(before);
    Py_XDECREF(meanwhile);
    Py_XDECREF(object);
    return pass;
}

bool vpy_turbo_test_callables(void)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&spec);
    PyObject *names = Py_BuildValue("(s)", "n");
    bool pass = type != NULL && names != NULL && slots_pass(type, names) &&
                class_passes(type, names) && objects_pass(type, names);

    Py_XDECREF(names);
    Py_XDECREF(type);
    PyErr_Clear();
    return pass;
}
