/* The turbo engine tests itself before it records for the first time: do the
 * hooks report a few known calls as they should? The test makes these calls
 * itself and records none of them. It takes about a millisecond, once. With the
 * GIL held. */
#include "calls/turbo_test.h"

#include "calls/turbo_frames.h"
#include "thunks/thunks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char *const failure = "its self test fails on this Python";

/* ---- Python functions ---------------------------------------------------- */

typedef enum verdict { UNKNOWN, FAILED, PASSED } verdict;

/* g() runs so often before the test that the interpreter specializes its
 * instructions. */
static const char program[] =
    "def a(x): return x\n"
    "def b():\n"
    "    yield a(1)\n"
    "    try: yield 2\n"
    "    except KeyError: yield 3\n"
    "def c(): raise KeyError\n"
    "class D:\n"
    "    def e(self): return a(1)\n"
    "    def __getitem__(self, i): return i\n"
    "async def f(): return 1\n"
    "def g():\n"
    "    a(1)\n"
    "    i = b(); next(i); next(i); i.throw(KeyError); i.close()\n"
    "    try: c()\n"
    "    except KeyError: pass\n"
    "    d = D(); d.e(); d[0]\n"
    "    try: f().send(None)\n"
    "    except StopIteration: pass\n"
    "for i in range(40): g()\n";

static verdict call_and_see(PyObject *function)
{
    PyObject *result;
    const char *seen;
    verdict found = FAILED;

    if (!vpy_turbo_test_begin())
        return UNKNOWN;
    result = PyObject_CallNoArgs(function);
    seen = vpy_turbo_test_end();
    if (seen == NULL)
        found = UNKNOWN;
    else if (result != NULL && strcmp(seen, vpy_turbo_test_expected) == 0)
        found = PASSED;
    else if (result != NULL && vpy_turbo_test_mends(seen))
        found = call_and_see(function);
    Py_XDECREF(result);
    return found;
}

/* Returns UNKNOWN while other tools or a recording hold the tool ids that the
 * test needs. Starting will fail for the same reason then. */
static verdict frames_are_seen(void)
{
    PyObject *code = Py_CompileString(program, VPY_TEST_FILE, Py_file_input);
    PyObject *globals = code != NULL ? PyDict_New() : NULL;
    PyObject *ran = NULL, *function = NULL;
    verdict found = FAILED;

    if (globals != NULL && PyDict_SetItemString(globals, "__builtins__",
                                                PyEval_GetBuiltins()) == 0)
        ran = PyEval_EvalCode(code, globals, globals);
    if (ran != NULL)
        function = PyDict_GetItemString(globals, "g");
    if (function != NULL)
        found = call_and_see(function);
    Py_XDECREF(ran);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    PyErr_Clear();
    return found;
}

/* ---- calls through thunks ------------------------------------------------ */

/* The functions below have one calling convention each, and return whether they
 * got the arguments that the test gave. */
static PyObject *turbo_test_answer(bool as_given)
{
    return Py_NewRef(as_given ? Py_True : Py_False);
}

static PyObject *no_arguments(PyObject *self, PyObject *unused)
{
    return turbo_test_answer(self == Py_None && unused == NULL);
}

static PyObject *turbo_test_one(PyObject *self, PyObject *argument)
{
    return turbo_test_answer(self == Py_None && argument == Py_Ellipsis);
}

static PyObject *turbo_test_tuple(PyObject *self, PyObject *args)
{
    return turbo_test_answer(self == Py_None && PyTuple_GET_SIZE(args) == 1 &&
                             PyTuple_GET_ITEM(args, 0) == Py_Ellipsis);
}

static PyObject *tuple_and_names(PyObject *self, PyObject *args, PyObject *kw)
{
    return turbo_test_answer(
        self == Py_None && PyTuple_GET_SIZE(args) == 1 && kw != NULL &&
        PyDict_GetItemString(kw, "n") == Py_NotImplemented);
}

static PyObject *turbo_test_array(PyObject *self, PyObject *const *args,
                                  Py_ssize_t count)
{
    return turbo_test_answer(self == Py_None && count == 1 &&
                             args[0] == Py_Ellipsis);
}

static bool has_name(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return count == 1 && args[0] == Py_Ellipsis && names != NULL &&
           PyTuple_GET_SIZE(names) == 1 && args[1] == Py_NotImplemented;
}

static PyObject *array_and_names(PyObject *self, PyObject *const *args,
                                 Py_ssize_t count, PyObject *names)
{
    return turbo_test_answer(self == Py_None && has_name(args, count, names));
}

static PyObject *with_class(PyObject *self, PyTypeObject *class,
                            PyObject *const *args, size_t count,
                            PyObject *names)
{
    return turbo_test_answer(self == Py_None && class == &PyLong_Type &&
                             has_name(args, (Py_ssize_t)count, names));
}

#define FUNCTION(f) ((PyCFunction)(void (*)(void))(f))
static PyMethodDef functions[] = {
    {"no_arguments", no_arguments, METH_NOARGS, NULL},
    {"one", turbo_test_one, METH_O, NULL},
    {"tuple", turbo_test_tuple, METH_VARARGS, NULL},
    {"array", FUNCTION(turbo_test_array), METH_FASTCALL, NULL},
    /* The next three are also called with a keyword. */
    {"tuple_and_names", FUNCTION(tuple_and_names), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"array_and_names", FUNCTION(array_and_names),
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"with_class", FUNCTION(with_class),
     METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static bool passes_all(PyMethodDef *method, PyObject *names)
{
    PyObject *const arguments[] = {Py_Ellipsis, Py_NotImplemented};
    bool is_method = method->ml_flags & METH_METHOD;
    PyObject *function =
        PyCMethod_New(method, Py_None, NULL, is_method ? &PyLong_Type : NULL);
    PyObject *result =
        function != NULL
            ? PyObject_Vectorcall(
                  function, arguments, method->ml_flags != METH_NOARGS,
                  method->ml_flags & METH_KEYWORDS ? names : NULL)
            : NULL;
    bool passed = result == Py_True;

    Py_XDECREF(result);
    Py_XDECREF(function);
    return passed;
}

/* Returns whether all arguments reach a function through a thunk, and whether a
 * thunk can be put in place and taken out again. */
static bool thunks_pass_all(void)
{
    PyObject *names = Py_BuildValue("(s)", "n");
    bool pass = names != NULL && vpy_thunks_count_for(0, false, VPY_COVERS_ALL);

    for (size_t i = 0; pass && i < FUNCTIONS; i++) {
        PyMethodDef *method = &functions[i];
        PyCFunction own = method->ml_meth;
        const vpy_found found = {.method = method,
                                 .keeper = Py_None,
                                 .owner = VPY_OF_TYPE,
                                 .where = "vestige"};
        vpy_thunks_put(&found);
        pass = method->ml_meth != own && passes_all(method, names);
        vpy_thunks_restore();
        pass = pass && method->ml_meth == own;
    }
    pass = pass && vpy_turbo_test_callables();
    Py_XDECREF(names);
    PyErr_Clear();
    return pass;
}

/* Runs the test with signals blocked: a handler would run inside the test's
 * functions, and the exception that it raises would be lost. */
static verdict test_without_signals(void)
{
    sigset_t all, before;
    verdict found = FAILED;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (thunks_pass_all())
        found = frames_are_seen();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return found;
}

const char *vpy_turbo_test(void)
{
    const char *asked = getenv("VESTIGE_TURBO_SELF_TEST");

    if (asked != NULL && strcmp(asked, "fail") == 0)
        return "its self test fails, as VESTIGE_TURBO_SELF_TEST asks for";
    if (vpy_calls.turbo_test.known == UNKNOWN)
        vpy_calls.turbo_test.known = test_without_signals();
    return vpy_calls.turbo_test.known == FAILED ? failure : NULL;
}
