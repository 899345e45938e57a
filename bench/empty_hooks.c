/* Hooks that floor.py installs in place of ours: hooks that do nothing, and
 * hooks that only read the clock. Up to 3.11 a hook is a function which
 * evaluates frames, from 3.12 on a callback of sys.monitoring. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vestige/clock.h>

static volatile vst_ticks last; /* keeps the compiler from removing the clock
                                 * read */

#if PY_VERSION_HEX < 0x030C0000

static PyObject *evaluate(PyThreadState *tstate,
                          struct _PyInterpreterFrame *frame, int throws)
{
    return _PyEval_EvalFrameDefault(tstate, frame, throws);
}

static PyObject *evaluate_timed(PyThreadState *tstate,
                                struct _PyInterpreterFrame *frame, int throws)
{
    PyObject *result;

    last = vst_clock_read_counter();
    result = _PyEval_EvalFrameDefault(tstate, frame, throws);
    last = vst_clock_read_counter();
    return result;
}

static PyObject *start(PyObject *module, PyObject *timed)
{
    (void)module;
    _PyInterpreterState_SetEvalFrameFunc(
        PyInterpreterState_Get(), timed == Py_True ? evaluate_timed : evaluate);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                         _PyEval_EvalFrameDefault);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start", start, METH_O, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#else

static PyObject *callback(PyObject *module, PyObject *const *args,
                          Py_ssize_t count)
{
    (void)module;
    (void)args;
    (void)count;
    Py_RETURN_NONE;
}

static PyObject *callback_timed(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    (void)module;
    (void)args;
    (void)count;
    last = vst_clock_read_counter();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"callback", (PyCFunction)(void (*)(void))callback, METH_FASTCALL, NULL},
    {"callback_timed", (PyCFunction)(void (*)(void))callback_timed,
     METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

#endif

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "empty_hooks",
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_empty_hooks(void);
PyMODINIT_FUNC PyInit_empty_hooks(void)
{
    return PyModuleDef_Init(&module);
}
