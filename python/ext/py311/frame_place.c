/* Installs the evaluation hook, removes it, and puts it back. frame_hook.c has
 * what the hook does for a call, and says why it is removed at times. Call with
 * the GIL held. */
#include "py311/frame_hook.h"

#include "calls/ids.h"
#include "program/program.h"
#include "program/triggers.h"
#include "record/language.h"
#include "thunks/thunks.h"

struct vpy_py311_state vpy_py311 = {.depths = {.extra_index = -1}};

static struct vpy_frame_place_state *const state = &vpy_py311.place;

#define STACK_BACK(size)                                                       \
    ((size) / 16) /* a thread must return this far before the hook comes back  \
                   */

VST_THREAD_LOCAL vpy_frames_thread vpy_frames_this VST_TLS_MODEL = {
    .era = UINT64_MAX};

static _PyFrameEvalFunction in_place(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(state->interpreter);
}

static void frame_place(_PyFrameEvalFunction function)
{
    _PyInterpreterState_SetEvalFrameFunc(state->interpreter, function);
}

static void put_in_place(void)
{
    state->interpreter = PyThreadState_Get()->interp;
    if (in_place() == vpy_evaluate)
        return;
    state->next_evaluate = in_place();
    frame_place(vpy_evaluate);
}

/* ---- a thread's stack ---------------------------------------------------- */

void vpy_frames_join_era(vpy_frames_thread *t, PyThreadState *tstate)
{
    t->era = t->since = state->era;
    t->depth = 0;
    t->is_low = false;
    t->limit = vpy_stack_limit(&t->stack, &t->stack_size);
    vpy_open_calls_take(t, tstate);
}

void vpy_frames_catch_up_slow(PyThreadState *tstate)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (!state->era)
        return;
    if (t->era != state->era)
        vpy_frames_join_era(t, tstate);
    if (t->depth == t->open_depth)
        vpy_open_calls_end_inner(t, tstate);
}

/* ---- away and back ------------------------------------------------------- */

static void begin_gap(void)
{
    vst__record_gap(false);
    vpy_triggers_forget_thread();
    state->pauses++;
}

/* Evaluates a frame while another hook stays on top of ours, so that ours
 * cannot be removed. Calls of the thread are not recorded until this evaluation
 * ends. */
static PyObject *evaluate_in_gap(PyThreadState *tstate, vpy_iframe *frame,
                                 int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = state->era;
    bool is_first = !t->is_low;
    PyObject *result;

    if (is_first)
        begin_gap();
    t->is_low = true;
    result = state->next_evaluate(tstate, frame, throwing);
    if (is_first && state->era == era) {
        t->is_low = false;
        vst__record_gap(true);
    }
    return result;
}

PyObject *vpy_evaluate_without(PyThreadState *tstate, vpy_iframe *frame,
                               int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (in_place() != vpy_evaluate)
        return evaluate_in_gap(tstate, frame, throwing);
    begin_gap();
    state->paused.era = state->era;
    state->paused.thread = t;
    state->paused.ends_above = t->limit + STACK_BACK(t->stack_size);
    state->era = 0;
    frame_place(state->next_evaluate);
    return state->next_evaluate(tstate, frame, throwing);
}

/* Puts the hook back. Other threads notice that with their next call. */
VST_COLD static void come_back(vpy_frames_thread *t, PyThreadState *tstate)
{
    state->paused.era = 0;
    vpy_open_calls_forget(t->open);
    if (!vpy_open_calls_note_all(tstate, true))
        return; /* without memory, the hook stays removed */
    state->era = t->era = ++state->last_era;
    put_in_place();
    vst__record_gap(true);
}

void vpy_frames_leave_late(uint64_t era, uint32_t value, bool raises)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t now = state->era ? state->era : state->paused.era;

    if (now == 0 || t->era != now || era < t->since)
        return;
    t->depth--;
    if (value)
        vst_record_end_of_call(raises ? VST_RAISE : VST_EXIT, VPY_ID(value));
    if (state->paused.era && state->paused.thread == t &&
        (stack_pointer() > state->paused.ends_above || t->depth == 0))
        come_back(t, PyThreadState_Get());
}

/* ---- for the hook -------------------------------------------------------- */

bool vpy_frames_are_recorded(void)
{
    return state->era != 0 || state->paused.era != 0;
}

void vpy_frames_give_way(void)
{
    if (in_place() == vpy_evaluate)
        frame_place(state->next_evaluate);
}

/* ---- start and stop ------------------------------------------------------ */

/* If the default evaluation function is in place, no other code calls our
 * hook. */
size_t vpy_frames_in_place(void)
{
    if (state->interpreter == NULL)
        return false;
    if (in_place() == _PyEval_EvalFrameDefault)
        state->buried = false;
    return in_place() == vpy_evaluate || state->buried;
}

size_t vpy_frames_pauses(void)
{
    return state->pauses;
}

void vpy_frames_unhook(void)
{
    if (in_place() == vpy_evaluate)
        frame_place(state->next_evaluate);
    state->buried = in_place() != state->next_evaluate &&
                    in_place() != _PyEval_EvalFrameDefault;
}

/* Returns whether the hook on top of ours calls ours. If it does, installing
 * ours again would make the two call each other forever. */
static bool is_reached(void)
{
    PyObject *code, *globals, *result = NULL;
    bool reached;

    if (!vpy_frames_in_place() || in_place() == vpy_evaluate)
        return false;
    code = Py_CompileString("0", "<vestige>", Py_file_input);
    globals = PyDict_New();
    vpy_frames_test_begin();
    if (code != NULL && globals != NULL)
        result = PyEval_EvalCode(code, globals, globals);
    reached = vpy_frames_test_end()[0] != 0;
    Py_XDECREF(result);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    PyErr_Clear();
    return reached;
}

void vpy_frames_hook(void)
{
    if (!is_reached())
        put_in_place();
}

bool vpy_frames_rest(bool rests)
{
    if (rests && in_place() != vpy_evaluate)
        return false; /* another hook is on top of ours */
    state->returns += state->is_resting && !rests;
    state->is_resting = rests;
    if (in_place() == (rests ? vpy_evaluate : state->next_evaluate))
        frame_place(rests ? state->next_evaluate : vpy_evaluate);
    return true;
}

/* Puts the hook back if the default function is in place: only then it is
 * certain that no other code calls our hook. */
void vpy_frames_check(void)
{
    if (!state->era || state->is_resting ||
        in_place() != _PyEval_EvalFrameDefault)
        return;
    vpy_open_calls_forget(NULL);
    if (!vpy_open_calls_note_all(NULL, true))
        return;
    put_in_place();
    state->era = ++state->last_era;
}

const bool vpy_frames_see_raises = false;

bool vpy_frames_start(vpy_tracer *tracer)
{
    (void)tracer;
    state->pauses = state->returns = 0;
    vpy_frames_hook();
    if (!vpy_open_calls_note_all(NULL, false)) {
        vpy_open_calls_forget(NULL);
        vpy_frames_unhook();
        return false;
    }
    vpy_getitems_hide();
    state->era = ++state->last_era;
    return true;
}

void vpy_frames_stop(vpy_tracer *tracer)
{
    (void)tracer;
    state->era = 0;
    state->paused.era = 0;
    state->is_resting = false;
    vpy_frames_unhook();
    if (!vpy_thunks_are_passed_on())
        vpy_getitems_show();
    vpy_open_calls_forget(NULL);
}

void vpy_frames_give_up(void)
{
    if (vpy_py311.getitems.are_hidden && !vpy_frames_are_recorded())
        vpy_getitems_show();
}
