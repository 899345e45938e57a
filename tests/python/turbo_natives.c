/* C functions of every kind, for test_turbo_natives.py: all calling
 * conventions, read-only tables, and definitions on the heap. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

/* ---- every convention: what arrived is what comes back ------------------ */

static PyObject *noargs(PyObject *self, PyObject *unused)
{
    (void)self;
    return PyBool_FromLong(unused == NULL);
}

static PyObject *one(PyObject *self, PyObject *argument)
{
    (void)self;
    return Py_BuildValue("(O)", argument);
}

static PyObject *varargs(PyObject *self, PyObject *args)
{
    (void)self;
    Py_INCREF(args);
    return args;
}

static PyObject *keywords(PyObject *self, PyObject *args, PyObject *kw)
{
    (void)self;
    return Py_BuildValue("(OO)", args, kw ? kw : Py_None);
}

static PyObject *tuple_of(PyObject *const *args, Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made && i < count; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(made, i, args[i]);
    }
    return made;
}

static PyObject *fast(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return tuple_of(args, count);
}

static PyObject *fast_keywords(PyObject *self, PyObject *const *args,
                               Py_ssize_t count, PyObject *names)
{
    Py_ssize_t more = names ? PyTuple_GET_SIZE(names) : 0;

    (void)self;
    return Py_BuildValue("(NO)", tuple_of(args, count + more),
                         names ? names : Py_None);
}

static PyObject *method(PyObject *self, PyTypeObject *defining,
                        PyObject *const *args, size_t count, PyObject *names)
{
    Py_ssize_t more = names ? PyTuple_GET_SIZE(names) : 0;

    (void)self;
    return Py_BuildValue("(sNO)", defining->tp_name,
                         tuple_of(args, (Py_ssize_t)count + more),
                         names ? names : Py_None);
}

static PyObject *of_class(PyObject *class, PyObject *unused)
{
    (void)unused;
    Py_INCREF(class);
    return class;
}

static PyObject *fails(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    PyErr_SetString(PyExc_KeyError, "as it shall");
    return NULL;
}

/* Calls its argument from C. */
static PyObject *calls(PyObject *self, PyObject *callable)
{
    (void)self;
    return PyObject_CallNoArgs(callable);
}

#define F(name, function, flags)                                               \
    {name, (PyCFunction)(void (*)(void))function, flags, NULL}

static PyMethodDef methods[] = {
    F("noargs", noargs, METH_NOARGS),
    F("one", one, METH_O),
    F("varargs", varargs, METH_VARARGS),
    F("keywords", keywords, METH_VARARGS | METH_KEYWORDS),
    F("fast", fast, METH_FASTCALL),
    F("fast_keywords", fast_keywords, METH_FASTCALL | METH_KEYWORDS),
    F("method", method, METH_METHOD | METH_FASTCALL | METH_KEYWORDS),
    F("of_class", of_class, METH_NOARGS | METH_CLASS),
    F("static", noargs, METH_NOARGS | METH_STATIC),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec thing = {"turbo_natives.Thing", sizeof(PyObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

/* ---- a table that may not be written ------------------------------------ */

static const PyMethodDef closed[] = {
    F("closed", noargs, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

/* ---- definitions on the heap -------------------------------------------- */

static void release(PyObject *capsule)
{
    PyMethodDef *definition = PyCapsule_GetPointer(capsule, NULL);

    free((char *)definition->ml_name);
    memset(definition, 0xdd, sizeof *definition); /* a reader of the freed
                                                   * definition crashes now */
    free(definition);
}

/* Like pybind11: the function holds a capsule, which frees the definition. */
static PyObject *make(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    PyMethodDef *definition = text ? malloc(sizeof *definition) : NULL;
    PyObject *capsule, *function;

    (void)self;
    if (!definition)
        return NULL;
    *definition = (PyMethodDef){strdup(text), noargs, METH_NOARGS, NULL};
    capsule = PyCapsule_New(definition, NULL, release);
    function = PyCFunction_New(definition, capsule);
    Py_XDECREF(capsule);
    return function;
}

/* Returns the function's C pointer, for tests that keep it. */
static PyObject *pointer(PyObject *self, PyObject *function)
{
    (void)self;
    return PyLong_FromVoidPtr((void *)PyCFunction_GetFunction(function));
}

static PyObject *call_pointer(PyObject *self, PyObject *number)
{
    PyCFunction function = (PyCFunction)PyLong_AsVoidPtr(number);

    return function(self, NULL);
}

static PyMethodDef functions[] = {
    F("fails", fails, METH_NOARGS),
    F("calls", calls, METH_O),
    F("make", make, METH_O),
    F("pointer", pointer, METH_O),
    F("call_pointer", call_pointer, METH_O),
    F("plain", noargs, METH_NOARGS),
    F("alias", noargs, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&thing);
    PyObject *function = PyCFunction_New((PyMethodDef *)closed, NULL);

    return PyModule_AddObject(module, "Thing", type) < 0 ||
                   PyModule_AddObject(module, "closed", function) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot steps[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "turbo_natives",
                                        NULL,
                                        0,
                                        functions,
                                        steps,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_turbo_natives(void)
{
    return PyModuleDef_Init(&definition);
}
