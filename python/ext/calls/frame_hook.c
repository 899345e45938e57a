/* Python frames up to 3.11: a function that the interpreter calls to evaluate a
 * frame (PEP 523), in every thread of the main interpreter. It records the call
 * and passes the frame on to the evaluation function that was there before.
 *
 * What the interpreter does not say, and what is done about it:
 *  - Calls that are open when the hook is installed end unseen (frame_open.c).
 * The next call that one of them makes shows which are still open.
 *  - On 3.11, creating a generator also goes through the hook; we skip it.
 *  - The interpreter refuses a frame beyond the recursion limit only after the
 * hook saw it, so the hook checks the limit itself. It also skips frames of a
 * trace function, which other engines do not see.
 *  - On 3.11 the interpreter needs no C stack for Python calls, but with a hook
 * it does. When a quarter of the stack is left, the hook is removed for all
 * threads until the thread has returned some way. The thread records a gap, and
 * the others do so with their next call.
 *  - Somebody else may install a hook over ours and call ours from it. Ours
 * cannot be removed then: it records nothing once recording has stopped, and
 * removes itself when it finds itself on top again.
 *
 * An "era" is a period with the hook installed. An evaluation that ends in a
 * different era is ignored, unless its thread was there for both. With the GIL
 * held. */
#include "calls/frame_hook.h"

#include "calls/ids.h"
#include "program/program.h"
#include "program/tasks.h"
#include "program/triggers.h"

#include <stdlib.h>
#include <string.h>

#if VPY_HAS_FRAME_HOOK

#define STACK_BACK(size) ((size) / 16) /* how far it must return */

VST_THREAD_LOCAL vpy_frames_thread vpy_frames_this VST_TLS_MODEL = {
    .era = UINT64_MAX};
uint64_t vpy_frames_era;

static uint64_t last_era;
static PyInterpreterState *interpreter;
static _PyFrameEvalFunction next_evaluate; /* the one before ours */
static bool buried; /* somebody is on top of us, and may call us */
static size_t pauses;

static struct {
    uint64_t era; /* the one that was interrupted, 0: no pause */
    const vpy_frames_thread *thread; /* that asked for it */
    uintptr_t ends_above;            /* of its stack */
} paused;

static PyObject *evaluate(PyThreadState *tstate, vpy_iframe *frame,
                          int throwing);

/* An evaluation's era and its code's value, in the one word that is kept of it
 * while it lasts. */
#define BEGAN(era, value) ((uint64_t)(era) << 30 | (value))
#define BEGAN_IN(began) ((began) >> 30)
#define BEGAN_WITH(began) ((uint32_t)(began) & VST_ID_MAX)

static _PyFrameEvalFunction in_place(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(interpreter);
}

static void place(_PyFrameEvalFunction function)
{
    _PyInterpreterState_SetEvalFrameFunc(interpreter, function);
}

static void put_in_place(void)
{
    interpreter = PyThreadState_Get()->interp;
    if (in_place() == evaluate)
        return;
    next_evaluate = in_place();
    place(evaluate);
}

/* ---- a thread's stack ---------------------------------------------------- */

static inline bool stack_is_low(const vpy_frames_thread *t)
{
    uintptr_t here = stack_pointer();

    return here < t->limit && here >= t->stack;
}

/* The first call of a thread in this era. */
VST_COLD static void join_era(vpy_frames_thread *t, PyThreadState *tstate)
{
    t->era = t->since = vpy_frames_era;
    t->depth = 0;
    t->is_low = false;
    t->limit = vpy_stack_limit(&t->stack, &t->stack_size);
    vpy_open_calls_take(t, tstate);
}

void vpy_frames_settle_slow(PyThreadState *tstate)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (!vpy_frames_era)
        return;
    if (t->era != vpy_frames_era)
        join_era(t, tstate);
    if (t->depth == t->open_depth)
        vpy_open_calls_settle(t, tstate);
}

/* ---- away and back ------------------------------------------------------- */

static void begin_gap(void)
{
    vst_record_gap(false);
    vpy_triggers_forget_thread();
    pauses++;
}

/* Somebody is on top of us and stays there. What the thread does is not
 * recorded until this evaluation ends. */
static PyObject *evaluate_in_gap(PyThreadState *tstate, vpy_iframe *frame,
                                 int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_frames_era;
    bool is_first = !t->is_low;
    PyObject *result;

    if (is_first)
        begin_gap();
    t->is_low = true;
    result = next_evaluate(tstate, frame, throwing);
    if (is_first && vpy_frames_era == era) {
        t->is_low = false;
        vst_record_gap(true);
    }
    return result;
}

/* The stack is low: removes the hook until leave_late finds that it is not. */
VST_COLD static PyObject *evaluate_without(PyThreadState *tstate,
                                           vpy_iframe *frame, int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;

    if (in_place() != evaluate)
        return evaluate_in_gap(tstate, frame, throwing);
    begin_gap();
    paused.era = vpy_frames_era;
    paused.thread = t;
    paused.ends_above = t->limit + STACK_BACK(t->stack_size);
    vpy_frames_era = 0;
    place(next_evaluate);
    return next_evaluate(tstate, frame, throwing);
}

/* Other threads learn of it with their next call. */
VST_COLD static void come_back(vpy_frames_thread *t, PyThreadState *tstate)
{
    paused.era = 0;
    vpy_open_calls_forget(t->open);
    if (!vpy_open_calls_note_all(tstate, true))
        return; /* no memory: the hook stays removed */
    vpy_frames_era = t->era = ++last_era;
    put_in_place();
    vst_record_gap(true);
}

/* An evaluation ends in another era than it began in. */
VST_COLD static void leave_late(uint64_t era, uint32_t value, bool raises)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t now = vpy_frames_era ? vpy_frames_era : paused.era;

    if (now == 0 || t->era != now || era < t->since)
        return;
    t->depth--;
    if (value)
        vst_record_end_of_call(raises ? VST_RAISE : VST_EXIT, VPY_ID(value));
    if (paused.era && paused.thread == t &&
        (stack_pointer() > paused.ends_above || t->depth == 0))
        come_back(t, PyThreadState_Get());
}

/* ---- the hook ------------------------------------------------------------ */

/* Nothing is recorded: this is a test, or somebody calls our hook although it
 * was removed. */
VST_COLD static PyObject *evaluate_unrecorded(PyThreadState *tstate,
                                              vpy_iframe *frame, int throwing)
{
    if (vpy_frames_tested == tstate && !vpy_iframe_makes_generator(frame))
        return vpy_frames_test(tstate, frame, throwing, next_evaluate);
    if (vpy_frames_tested == NULL && !paused.era && in_place() == evaluate)
        place(next_evaluate);
    return next_evaluate(tstate, frame, throwing);
}

/* A function that wants more than an enter and an exit. */
VST_COLD static PyObject *evaluate_special(PyThreadState *tstate,
                                           vpy_iframe *frame, int throwing,
                                           uint32_t value)
{
    vpy_frames_thread *t = &vpy_frames_this;
    PyObject *code = (PyObject *)vpy_iframe_code(frame), *result;
    uint64_t era = vpy_frames_era;
    vst_id id;

    Py_INCREF(code);
    t->depth++;
    vpy_hook_enter(tstate);
    id = vpy_code_entered(value, code, frame);
    vpy_hook_leave(tstate);
    result = next_evaluate(tstate, frame, throwing);
    if (vpy_frames_era == era) {
        t->depth--;
        vpy_hook_enter(tstate);
        vpy_code_returns(value, id, code, result, frame,
                         value & VPY_COROUTINE && vpy_iframe_waits(frame));
        vpy_hook_leave(tstate);
    } else {
        leave_late(era, id, result == NULL);
    }
    Py_DECREF(code);
    return result;
}

/* An evaluation has ended, and its record takes more than a store. */
VST_NOINLINE static PyObject *end_slowly(PyObject *result, uint32_t value,
                                         vst_ticks now)
{
    vst_record_end_of_call_at(result != NULL ? VST_EXIT : VST_RAISE, value,
                              now);
    return result;
}

VST_COLD static PyObject *end_by_other_clock(PyObject *result, uint32_t value)
{
    return end_slowly(result, value, vst_clock_ticks());
}

VST_COLD static PyObject *end_late(PyObject *result, uint64_t began)
{
    leave_late(BEGAN_IN(began), BEGAN_WITH(began), result == NULL);
    return result;
}

/* An evaluation has ended. It is a function of its own, which is jumped to:
 * what it needs takes no stack while the frame is evaluated. It jumps, too, to
 * what it leaves to others, and so has no registers to save. */
__attribute__((hot, noinline)) static PyObject *end(PyObject *result,
                                                    uint64_t began)
{
    uint32_t value = BEGAN_WITH(began);
    vst_ticks now;

    if (!VST_LIKELY(BEGAN_IN(began) == vpy_frames_era))
        return end_late(result, began);
    vpy_frames_this.depth--;
    if (!vst_clock_is_at_hand())
        return end_by_other_clock(result, value);
    now = vst_clock_ticks();
    if (!VST_LIKELY(vst_record_end_of_call_at_once(
            result != NULL ? VST_EXIT : VST_RAISE, value, now)))
        return end_slowly(result, value, now);
    return result;
}

/* The call that is a task's step ends. */
VST_NOINLINE static PyObject *end_step(PyObject *result,
                                       const vpy_iframe *frame, uint64_t began)
{
    vpy_coroutine_left(BEGAN_WITH(began), frame, result,
                       vpy_iframe_waits(frame));
    return end(result, began);
}

/* A coroutine ran up to where it waits, or ended. As end(). */
__attribute__((hot, noinline)) static PyObject *
end_coroutine(PyObject *result, const vpy_iframe *frame, uint64_t began)
{
    if (vpy_steps_now.top.marked == frame && BEGAN_IN(began) == vpy_frames_era)
        return end_step(result, frame, began);
    if (vpy_steps_now.waits == 0 && vpy_iframe_waits(frame))
        vpy_steps_now.waits = BEGAN_WITH(began);
    return end(result, began);
}

/* With value 0 it is only counted. */
VST_COLD static PyObject *evaluate_counted(PyThreadState *tstate,
                                           vpy_iframe *frame, int throwing,
                                           uint32_t value)
{
    uint64_t began = BEGAN(vpy_frames_era, value);
    PyObject *result;

    vpy_frames_this.depth++;
    if (value)
        vst_record(VST_ENTER, value);
    result = next_evaluate(tstate, frame, throwing);
    if (value || BEGAN_IN(began) != vpy_frames_era)
        return end(result, began);
    vpy_frames_this.depth--;
    return result;
}

/* Whatever is not the common case. */
VST_NOINLINE static PyObject *evaluate_slowly(PyThreadState *tstate,
                                              vpy_iframe *frame, int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_frames_era;
    uint32_t value;

    if (era == 0)
        return evaluate_unrecorded(tstate, frame, throwing);
    if (t->era != era)
        join_era(t, tstate);
    if (stack_is_low(t))
        return evaluate_without(tstate, frame, throwing);
    if (t->depth == t->open_depth)
        vpy_open_calls_settle(t, tstate);
    if (vpy_iframe_makes_generator(frame) || vpy_frame_will_be_refused(tstate))
        return next_evaluate(tstate, frame, throwing);
    value = tstate->tracing ? 0 : vpy_frame_value(frame);
    if (value & VPY_LEFT_OUT)
        return next_evaluate(tstate, frame, throwing);
    if (value >= VPY_COROUTINE)
        return evaluate_special(tstate, frame, throwing, value);
    return evaluate_counted(tstate, frame, throwing, value);
}

/* A coroutine that may begin a step. */
VST_NOINLINE static PyObject *evaluate_step(PyThreadState *tstate,
                                            vpy_iframe *frame, int throwing,
                                            uint64_t began)
{
    vpy_coroutine_begins(BEGAN_WITH(began), frame, NULL);
    return end_coroutine(next_evaluate(tstate, frame, throwing), frame, began);
}

/* A coroutine, or a function that a budget leaves out, of which evaluate()
 * knows that nothing stands in the way. */
__attribute__((hot, noinline)) static PyObject *
evaluate_coroutine(PyThreadState *tstate, vpy_iframe *frame, int throwing,
                   uint32_t value)
{
    uint64_t began = BEGAN(vpy_frames_era, VPY_ID(value));

    if (value & VPY_LEFT_OUT) /* the shortest way out */
        return next_evaluate(tstate, frame, throwing);
    if (!(vpy_is_plain_coroutine(value) &&
          vst_record_at_once(VST_ENTER, VPY_ID(value))))
        return evaluate_slowly(tstate, frame, throwing);
    vpy_frames_this.depth++;
    if (!vpy_coroutine_goes_on(frame, vpy_iframe_innermost(tstate)))
        return evaluate_step(tstate, frame, throwing, began);
    return end_coroutine(next_evaluate(tstate, frame, throwing), frame, began);
}

/* Its C frame is on the stack once for each Python call that is open: it keeps
 * one word over the evaluation, and calls nothing else that it comes back
 * from. */
__attribute__((hot, aligned(64))) static PyObject *
evaluate(PyThreadState *tstate, vpy_iframe *frame, int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_frames_era;
    uintptr_t extra = vpy_code_get_extra((PyObject *)vpy_iframe_code(frame),
                                         vpy_code_extra_index);
    uint32_t value = (uint32_t)extra;

    if (!VST_LIKELY(t->era == era && stack_pointer() >= t->limit &&
                    t->depth != t->open_depth && extra >> 32 == vpy_round &&
                    !vpy_iframe_makes_generator(frame) &&
                    !vpy_frame_will_be_refused(tstate) && !tstate->tracing))
        return evaluate_slowly(tstate, frame, throwing);
    if (!VST_LIKELY(vpy_is_plain(value)))
        return evaluate_coroutine(tstate, frame, throwing, value);
    if (!VST_LIKELY(vst_record_at_once(VST_ENTER, value)))
        return evaluate_slowly(tstate, frame, throwing);
    t->depth++;
    return end(next_evaluate(tstate, frame, throwing), BEGAN(era, value));
}

/* ---- start and stop ------------------------------------------------------ */

/* With the default evaluation function in place nobody calls ours. */
bool vpy_frames_in_place(void)
{
    if (interpreter == NULL)
        return false;
    if (in_place() == _PyEval_EvalFrameDefault)
        buried = false;
    return in_place() == evaluate || buried;
}

size_t vpy_frames_pauses(void)
{
    return pauses;
}

static void take_out(void)
{
    if (in_place() == evaluate)
        place(next_evaluate);
    buried =
        in_place() != next_evaluate && in_place() != _PyEval_EvalFrameDefault;
}

/* Whether the hook on top of ours calls ours. If it does, installing ours again
 * would make the two call each other for ever. */
static bool is_reached(void)
{
    PyObject *code, *globals, *result = NULL;
    bool reached;

    if (!vpy_frames_in_place() || in_place() == evaluate)
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

void vpy_frames_unhook(void)
{
    take_out();
}

/* Calls that began before go on to be seen, and calls that begin meanwhile are
 * not. */
static bool is_resting;
uint32_t vpy_frames_returns;

bool vpy_frames_rest(bool rests)
{
    if (rests && in_place() != evaluate)
        return false; /* somebody is on top of us */
    vpy_frames_returns += is_resting && !rests;
    is_resting = rests;
    if (in_place() == (rests ? evaluate : next_evaluate))
        place(rests ? next_evaluate : evaluate);
    return true;
}

/* Only if the default function is in place is it certain that nobody calls our
 * hook. */
void vpy_frames_check(void)
{
    if (!vpy_frames_era || is_resting || in_place() != _PyEval_EvalFrameDefault)
        return;
    vpy_open_calls_forget(NULL);
    if (!vpy_open_calls_note_all(NULL, true))
        return;
    put_in_place();
    vpy_frames_era = ++last_era;
}

bool vpy_frames_start(vpy_tracer *tracer)
{
    (void)tracer;
    pauses = vpy_frames_returns = 0;
    vpy_frames_hook();
    if (!vpy_open_calls_note_all(NULL, false)) {
        vpy_open_calls_forget(NULL);
        take_out();
        return false;
    }
    vpy_getitems_hide();
    vpy_frames_era = ++last_era;
    return true;
}

void vpy_frames_stop(void)
{
    vpy_frames_era = 0;
    paused.era = 0;
    is_resting = false;
    take_out();
    vpy_getitems_show();
    vpy_open_calls_forget(NULL);
}
#endif
