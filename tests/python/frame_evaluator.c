/* Another user of PEP 523, like a debugger or compiler. Counts the evaluated
 * frames, and passes them to the evaluator installed before, or, in rude mode,
 * directly to the interpreter. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
typedef struct _PyInterpreterFrame frame_type;

static _PyFrameEvalFunction previous;
static int rude;
static long frames;

static PyObject *evaluate(PyThreadState *tstate, frame_type *frame,
                          int throwing)
{
    frames++;
    return (rude ? _PyEval_EvalFrameDefault : previous)(tstate, frame,
                                                        throwing);
}

static PyObject *install(PyObject *module, PyObject *is_rude)
{
    PyInterpreterState *interp = PyInterpreterState_Get();

    rude = PyObject_IsTrue(is_rude);
    frames = 0;
    previous = _PyInterpreterState_GetEvalFrameFunc(interp);
    _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    Py_RETURN_NONE;
}

/* Restores the evaluator of before, even if another was installed since. */
static PyObject *uninstall(PyObject *module, PyObject *unused)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), previous);
    return PyLong_FromLong(frames);
}

static PyObject *installed(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(
                               PyInterpreterState_Get()) == evaluate);
}

static PyMethodDef functions[] = {
    {"install", install, METH_O, NULL},
    {"uninstall", uninstall, METH_NOARGS, NULL},
    {"installed", installed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "frame_evaluator",
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_frame_evaluator(void)
{
    PyObject *module = PyModule_Create(&definition);

#ifdef Py_GIL_DISABLED
    if (module != NULL)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
