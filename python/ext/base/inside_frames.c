/* Checks what we know of frames, by a few known calls: outer() calls inner(),
 * and each of them calls a C function of ours. The C function compares the
 * frame that we find with the frame that Python's public functions show.
 * maker() calls it in a generator.
 *
 * Addresses are compared before anything is read through them. A field that has
 * moved may contain anything, so the order of comparisons matters: an address
 * on which two structures agree is valid. Called with the GIL held. */
#include "base/inside.h"

#include "compat_py311.h"

static struct vpy_inside_frames_state *const state = &vpy_base.frames;

#if VPY_KNOWS_INSIDE

static const char program[] =
    "def inner(look, mark): return look(mark)\n"
    "def outer(look, mark): return inner(look, mark) and look(mark)\n"
    "def maker(look, mark): yield look(mark)\n";

/* Returns the running frame according to the thread's state, or NULL if there
 * is none where we look. */
static const vpy_iframe *find_running(PyThreadState *tstate)
{
    PyThreadState *shifted = VPY_SHIFTED(VPY_FACT_RUNNING, tstate);

    return vpy_cframe_is_known(shifted, tstate) ? vpy_iframe_innermost(shifted)
                                                : NULL;
}

static const vpy_iframe *frame_of(PyFrameObject *object)
{
    return vpy_iframe_of(VPY_SHIFTED(VPY_FACT_FRAME_OBJECT, object));
}

static int shown_instruction(PyFrameObject *shown)
{
    PyObject *number = PyObject_GetAttrString((PyObject *)shown, "f_lasti");
    long bytes = number != NULL ? PyLong_AsLong(number) : -2;

    Py_XDECREF(number);
    return (int)(bytes / 2);
}

/* Returns whether the frame's caller is the one that Python shows. If C code
 * called the frame, a shim lies between the two. */
static bool has_caller(const vpy_iframe *frame, const vpy_iframe *caller,
                       bool is_called_from_c)
{
    const vpy_iframe *back = vpy_iframe_back(frame);

    if (back == caller)
        return !is_called_from_c || !VPY_C_CALLS_HAVE_SHIMS;
    /* With another evaluation function, all calls have shims. */
    return VPY_C_CALLS_HAVE_SHIMS && vpy_is_on_stack(back) &&
           vpy_iframe_is_shim(back) && vpy_iframe_back(back) == caller;
}

static bool callers_are_known(const vpy_iframe *frame, PyFrameObject *shown)
{
    PyFrameObject *back = PyFrame_GetBack(shown);
    bool is_known = false;

    if (state->seen == 0)
        is_known = back != NULL && has_caller(frame, frame_of(back), false);
    else if (state->seen == 1)
        is_known = has_caller(frame, state->base, true);
    else
        is_known = true; /* a generator's caller is in its own structure too */
    Py_XDECREF(back);
    return is_known;
}

/* Returns whether everything that we read of a frame is as it must be. */
static bool frame_is_known(const vpy_iframe *at, PyFrameObject *shown)
{
    const vpy_iframe *frame = VPY_SHIFTED(VPY_FACT_FRAME, at);
    vpy_frame_owner owner =
        state->seen == 2 ? VPY_FRAME_OF_GENERATOR : VPY_FRAME_OF_THREAD;
    int instruction;

    if ((PyObject *)vpy_iframe_code(frame) != state->codes[state->seen])
        return false;
    instruction = vpy_iframe_instruction(frame);
    return instruction == shown_instruction(shown) &&
           vpy_iframe_local(frame, 1) == state->mark &&
           vpy_iframe_is_of(frame, owner) && !vpy_iframe_is_shim(frame) &&
           !vpy_iframe_is_incomplete(frame, instruction) &&
           vpy_iframe_is_incomplete(frame, -1) == (state->seen != 2) &&
           callers_are_known(frame, shown) &&
           (state->seen != 1 || vpy_iframe_is_entry(frame));
}

/* The caller has checked the frame itself. */
static bool coroutine_is_known(const vpy_iframe *frame)
{
    PyObject *generator = VPY_SHIFTED(VPY_FACT_COROUTINE, state->generator);

    return vpy_iframe_of_coroutine(generator) == frame &&
           !vpy_iframe_is_new(frame);
}

static void inside_frames_check_recursion(PyThreadState *tstate)
{
    PyThreadState *shifted = VPY_SHIFTED(VPY_FACT_RECURSION, tstate);
    bool *holds = &state->holds[VPY_FACT_RECURSION];
    int before = *vpy_c_recursion_left(shifted);

    if (state->seen == 0)
        state->left = vpy_recursion_left(shifted);
    else if (state->seen == 1)
        *holds = *holds && vpy_recursion_left(shifted) == state->left + 1;
    if (VPY_ENTERING_IS_COUNTED && Py_EnterRecursiveCall(" in a test") == 0) {
        *holds = *holds && *vpy_c_recursion_left(shifted) == before - 1;
        Py_LeaveRecursiveCall();
    }
    *holds = *holds && vpy_recursion_is_known(shifted);
}

static PyObject *inside_frames_check(PyObject *self, PyObject *const *args,
                                     Py_ssize_t count)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyFrameObject *shown = PyEval_GetFrame();
    const vpy_iframe *frame = shown != NULL ? frame_of(shown) : NULL;
    const vpy_iframe *running = find_running(tstate);
    bool *holds = state->holds;

    (void)self, (void)count;
    /* If the two structures disagree, we do not understand one of them. */
    if (frame == NULL || frame != running) {
        holds[VPY_FACT_FRAME_OBJECT] = holds[VPY_FACT_RUNNING] = false;
        holds[VPY_FACT_FRAME] = false;
    }
    if (holds[VPY_FACT_FRAME])
        holds[VPY_FACT_FRAME] = frame_is_known(frame, shown);
    if (state->seen == 1)
        holds[VPY_FACT_CALLS] =
            holds[VPY_FACT_FRAME] &&
            vpy_call_is_known(VPY_SHIFTED(VPY_FACT_CALLS, tstate), frame,
                              state->outer, state->looks, args);
    if (state->seen == 2)
        holds[VPY_FACT_COROUTINE] =
            holds[VPY_FACT_FRAME] && coroutine_is_known(frame);
    inside_frames_check_recursion(tstate);
    state->seen++;
    PyErr_Clear();
    Py_RETURN_TRUE;
}

static PyMethodDef look_method = {
    "look", (PyCFunction)(void (*)(void))inside_frames_check, METH_FASTCALL,
    NULL};

static bool call_known(PyObject *functions, PyObject *looks)
{
    PyObject *inner = PyDict_GetItemString(functions, "inner");
    PyObject *outer = PyDict_GetItemString(functions, "outer");
    PyObject *maker = PyDict_GetItemString(functions, "maker");
    PyObject *result = NULL, *generator = NULL, *item = NULL;
    bool called;

    if (inner != NULL && outer != NULL && maker != NULL) {
        state->codes[0] = PyFunction_GET_CODE(inner);
        state->codes[1] = PyFunction_GET_CODE(outer);
        state->codes[2] = PyFunction_GET_CODE(maker);
        state->outer = outer;
        state->looks = looks;
        state->base = find_running(PyThreadState_Get());
        result = PyObject_CallFunctionObjArgs(outer, looks, state->mark, NULL);
        if (!vpy_swapped_is_released(state->mark))
            state->holds[VPY_FACT_CALLS] = false;
        if (result != NULL) /* otherwise an exception is set */
            generator =
                PyObject_CallFunctionObjArgs(maker, looks, state->mark, NULL);
    }
    state->generator = generator;
    item = generator != NULL ? PyIter_Next(generator) : NULL;
    called = result != NULL && item != NULL;
    Py_XDECREF(item);
    Py_XDECREF(generator);
    Py_XDECREF(result);
    return called;
}

int vpy_inside_check_frames(bool holds[VPY_FACTS])
{
    PyObject *code = Py_CompileString(program, "<vestige>", Py_file_input);
    PyObject *globals = code != NULL ? PyDict_New() : NULL;
    PyObject *looks = PyCFunction_New(&look_method, NULL);
    PyObject *mark = PyList_New(0);
    PyObject *ran = NULL;
    bool called = false;

    state->holds = holds;
    state->mark = mark;
    state->seen = 0;
    if (globals != NULL && PyDict_SetItemString(globals, "__builtins__",
                                                PyEval_GetBuiltins()) == 0)
        ran = PyEval_EvalCode(code, globals, globals);
    if (ran != NULL && looks != NULL && mark != NULL)
        called = call_known(globals, looks);
    state->holds = NULL;
    Py_XDECREF(ran);
    Py_XDECREF(mark);
    Py_XDECREF(looks);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    return called ? 0 : -1;
}

#endif
