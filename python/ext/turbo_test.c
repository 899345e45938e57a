/* The turbo engine's test of itself, before it records for the first time: is
 * this the interpreter it was made for, and do the hooks see of a few calls
 * what they must? The calls are made for this, and none is recorded. It takes a
 * fraction of a millisecond. With the GIL held. */
#include "turbo_test.h"

#include "frame_hook.h"

#include <stdlib.h>
#include <string.h>

static const char *const failure = "its self test fails on this Python";

/* ---- the interpreter's structures ---------------------------------------- */

/* The version that runs is the one that this was compiled for. */
static bool is_same_version(void)
{
    char version[16];

    snprintf(version, sizeof version, "%d.%d.", PY_MAJOR_VERSION,
             PY_MINOR_VERSION);
    return strncmp(Py_GetVersion(), version, strlen(version)) == 0;
}

/* What is read directly is what the interpreter says. */
static bool structures_agree(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyFrameObject *frame = PyEval_GetFrame();
    const vpy_iframe *running = vpy_iframe_running(tstate);
    PyObject *code = (PyObject *)PyCode_NewEmpty("vestige", "test", 1);
    bool agree = code && (frame != NULL) == (running != NULL);

    if (agree && frame)
        agree = vpy_frame_code(frame) == (PyObject *)vpy_iframe_code(running);
    if (agree) {
        void *mark = (void *)(uintptr_t)0x1234567890;
        agree =
            vpy_code_set_extra(code, vpy_code_extra_index, mark) == 0 &&
            vpy_code_get_extra(code, vpy_code_extra_index) == (uintptr_t)mark;
    }
    Py_XDECREF(code);
    return agree;
}

/* ---- the hook of frames -------------------------------------------------- */

#if VPY_HAS_FRAME_HOOK
/* Run often enough first for the interpreter to have its own short ways. */
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
static const char expected[] = "g(a()b(a())b()b()b(!c(!e(a())_()f())";

static bool frames_are_seen(void)
{
    PyObject *code = Py_CompileString(program, "<vestige>", Py_file_input);
    PyObject *globals = code ? PyDict_New() : NULL;
    PyObject *ran = NULL, *result = NULL, *function = NULL;
    bool as_expected = false;

    if (globals && PyDict_SetItemString(globals, "__builtins__",
                                        PyEval_GetBuiltins()) == 0)
        ran = PyEval_EvalCode(code, globals, globals);
    if (ran)
        function = PyDict_GetItemString(globals, "g");
    if (function) {
        vpy_frames_hook();
        vpy_frames_test_begin();
        result = PyObject_CallNoArgs(function);
        as_expected = strcmp(vpy_frames_test_end(), expected) == 0;
        vpy_frames_unhook();
    }
    as_expected = as_expected && result != NULL;
    Py_XDECREF(result);
    Py_XDECREF(ran);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    PyErr_Clear();
    return as_expected;
}
#else
static bool frames_are_seen(void)
{
    return true; /* monitoring is the interpreter's own way to tell */
}
#endif

const char *vpy_turbo_test(void)
{
    static bool passed;
    const char *asked = getenv("VESTIGE_TURBO_SELF_TEST");

    if (asked && strcmp(asked, "fail") == 0)
        return "its self test fails, as VESTIGE_TURBO_SELF_TEST asks for";
    if (passed)
        return NULL;
    if (!is_same_version())
        return "it was built for another version of Python";
    if (!structures_agree() || !frames_are_seen())
        return failure;
    passed = true;
    return NULL;
}
