/* Python frames: a function that the interpreter calls to evaluate a
 * frame (PEP 523), in every thread of the main interpreter. It records the call
 * and passes the frame on to the evaluation function that was there before. The
 * interpreter does not report everything:
 *  - Calls that are open when the hook is installed end unseen (frame_open.c).
 * When one of them makes a call, we know which of them are still open.
 *  - Creating a generator also goes through the hook; we skip it.
 *  - The interpreter refuses a frame beyond the recursion limit only after the
 * hook saw it, so the hook checks the limit itself. It also skips frames of a
 * trace function, which other engines do not see.
 *  - The interpreter needs no C stack for Python calls, but with a hook
 * it does. When a quarter of the stack is left, the hook is removed for all
 * threads until the thread has returned some way. The thread records a gap, and
 * the others do so with their next call.
 *  - With a hook, the interpreter takes a long way to each Python function. A
 * function that the hook has seen once is from then on called through
 * call_function(), which needs no hook (made_frames.h). The caller would
 * keep the arguments until the call returns, so both ways release them.
 *  - Other code may install a hook over ours, and call ours from its hook. Then
 * our hook cannot be removed: it records nothing once recording has stopped,
 * and removes itself when it is on top again.
 *
 * An "era" is a period with the hook installed. An evaluation that ends in a
 * different era is ignored, unless its thread was there for both. frame_place.c
 * installs and removes the hook. With the GIL held. */
#include "py311/frame_hook.h"

#include "base/inside.h"
#include "calls/ids.h"
#include "program/tasks.h"
#include "py311/made_frames.h"

/* The era of an evaluation and the value of its code, in the one word that is
 * kept during the evaluation. */
#define BEGAN(era, value) ((uint64_t)(era) << 30 | (value))
#define BEGAN_IN(began) ((began) >> 30)
#define BEGAN_WITH(began) ((uint32_t)(began) & VST_ID_MAX)

static inline bool stack_is_low(const vpy_frames_thread *t)
{
    uintptr_t here = stack_pointer();

    return here < t->limit && here >= t->stack;
}

/* ---- what is rare, and ends of calls ------------------------------------- */

/* Called while nothing is recorded: in a test, or when other code calls our
 * hook after it was removed. */
VST_COLD static PyObject *evaluate_unrecorded(PyThreadState *tstate,
                                              vpy_iframe *frame, int throwing)
{
    if (vpy_py311.test.thread == tstate && !vpy_iframe_makes_generator(frame))
        return vpy_frames_test(tstate, frame, throwing,
                               vpy_py311.place.next_evaluate);
    if (vpy_py311.test.thread == NULL && !vpy_frames_are_recorded())
        vpy_frames_give_way();
    return vpy_py311.place.next_evaluate(tstate, frame, throwing);
}

/* Evaluates a function that needs more than an enter and an exit. */
VST_COLD static PyObject *evaluate_special(PyThreadState *tstate,
                                           vpy_iframe *frame, int throwing,
                                           uint32_t value)
{
    vpy_frames_thread *t = &vpy_frames_this;
    PyObject *code = (PyObject *)vpy_iframe_code(frame), *result;
    uint64_t era = vpy_py311.place.era;
    vst_id id;

    Py_INCREF(code);
    t->depth++;
    vpy_hook_enter(tstate);
    id = vpy_code_entered(value, code, frame);
    vpy_hook_leave(tstate);
    result = vpy_py311.place.next_evaluate(tstate, frame, throwing);
    if (vpy_py311.place.era == era) {
        t->depth--;
        vpy_hook_enter(tstate);
        vpy_code_returns(value, id, code, result, frame,
                         value & VPY_COROUTINE && vpy_iframe_waits(frame));
        vpy_hook_leave(tstate);
    } else {
        vpy_frames_leave_late(era, id, result == NULL);
    }
    Py_DECREF(code);
    return result;
}

/* Records the end of an evaluation if that takes more than a store. */
VST_NOINLINE static PyObject *end_slow(PyObject *result, uint32_t value,
                                       vst_ticks now)
{
    vst_record_end_of_call_at(result != NULL ? VST_EXIT : VST_RAISE, value,
                              now);
    return result;
}

VST_COLD static PyObject *end_by_other_clock(PyObject *result, uint32_t value)
{
    return end_slow(result, value, vst_clock_ticks());
}

VST_COLD static PyObject *end_late(PyObject *result, uint64_t began)
{
    vpy_frames_leave_late(BEGAN_IN(began), BEGAN_WITH(began), result == NULL);
    return result;
}

/* Records the end of an evaluation. */
VST_INLINE PyObject *end_here(PyObject *result, uint64_t began)
{
    uint32_t value = BEGAN_WITH(began);
    vst_ticks now;

    if (!VST_LIKELY(BEGAN_IN(began) == vpy_py311.place.era))
        return end_late(result, began);
    vpy_frames_this.depth--;
    if (!vst_clock_is_at_hand())
        return end_by_other_clock(result, value);
    now = vst_clock_ticks();
    if (!VST_LIKELY(vst_record_end_of_call_at_once(
            result != NULL ? VST_EXIT : VST_RAISE, value, now)))
        return end_slow(result, value, now);
    return result;
}

/* Like end_here(), as a function to jump to: then its variables take no stack
 * while the frame is evaluated. It also jumps to the functions that handle less
 * common cases, so it need not save registers. */
__attribute__((hot, noinline)) static PyObject *end(PyObject *result,
                                                    uint64_t began)
{
    return end_here(result, began);
}

/* Ends the call of a task's step. */
VST_NOINLINE static PyObject *end_step(PyObject *result,
                                       const vpy_iframe *frame, uint64_t began)
{
    vpy_step_before_exit(BEGAN_WITH(began), frame, result,
                         vpy_iframe_waits(frame));
    return end(result, began);
}

/* Like end(), for a coroutine that has ended or waits. */
__attribute__((hot, noinline)) static PyObject *
end_coroutine(PyObject *result, const vpy_iframe *frame, uint64_t began)
{
    if (vpy_steps_now.top.marked == frame &&
        BEGAN_IN(began) == vpy_py311.place.era)
        return end_step(result, frame, began);
    if (vpy_steps_now.waits == 0 && vpy_iframe_waits(frame))
        vpy_steps_now.waits = BEGAN_WITH(began);
    return end(result, began);
}

/* Evaluates a frame that counts for the depth; records it unless its value is
 * 0. */
VST_COLD static PyObject *evaluate_counted(PyThreadState *tstate,
                                           vpy_iframe *frame, int throwing,
                                           uint32_t value)
{
    uint64_t began = BEGAN(vpy_py311.place.era, value);
    PyObject *result;

    vpy_frames_this.depth++;
    if (value)
        vst_record(VST_ENTER, value);
    result = vpy_py311.place.next_evaluate(tstate, frame, throwing);
    if (value || BEGAN_IN(began) != vpy_py311.place.era)
        return end(result, began);
    vpy_frames_this.depth--;
    return result;
}

/* Handles all less common cases. */
VST_NOINLINE static PyObject *evaluate_slow(PyThreadState *tstate,
                                            vpy_iframe *frame, int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_py311.place.era;
    uint32_t value;

    if (era == 0)
        return evaluate_unrecorded(tstate, frame, throwing);
    if (t->era != era)
        vpy_frames_join_era(t, tstate);
    if (stack_is_low(t))
        return vpy_evaluate_without(tstate, frame, throwing);
    if (t->depth == t->open_depth)
        vpy_open_calls_end_inner(t, tstate);
    if (vpy_iframe_makes_generator(frame) || vpy_frame_will_be_refused(tstate))
        return vpy_py311.place.next_evaluate(tstate, frame, throwing);
    value = tstate->tracing ? 0 : vpy_frame_value(frame);
    if (value & VPY_LEFT_OUT)
        return vpy_py311.place.next_evaluate(tstate, frame, throwing);
    if (value >= VPY_COROUTINE)
        return evaluate_special(tstate, frame, throwing, value);
    return evaluate_counted(tstate, frame, throwing, value);
}

/* Evaluates a coroutine that may begin a step. */
VST_NOINLINE static PyObject *evaluate_step(PyThreadState *tstate,
                                            vpy_iframe *frame, int throwing,
                                            uint64_t began)
{
    vpy_step_begin_after_enter(BEGAN_WITH(began), frame, NULL);
    return end_coroutine(vpy_py311.place.next_evaluate(tstate, frame, throwing),
                         frame, began);
}

/* Evaluates a coroutine, or a function that a budget leaves out. Call after
 * nothing_is_in_the_way() returned true. */
__attribute__((hot, noinline)) static PyObject *
evaluate_coroutine(PyThreadState *tstate, vpy_iframe *frame, int throwing,
                   uint32_t value)
{
    uint64_t began = BEGAN(vpy_py311.place.era, VPY_ID(value));

    if (value & VPY_LEFT_OUT) /* the shortest path, so that left-out functions
                                 cost little */
        return vpy_py311.place.next_evaluate(tstate, frame, throwing);
    if (!(vpy_is_plain_coroutine(value) &&
          vst_record_at_once(VST_ENTER, VPY_ID(value))))
        return evaluate_slow(tstate, frame, throwing);
    vpy_frames_this.depth++;
    if (!vpy_step_goes_on_in(frame, vpy_iframe_innermost(tstate)))
        return evaluate_step(tstate, frame, throwing, began);
    return end_coroutine(vpy_py311.place.next_evaluate(tstate, frame, throwing),
                         frame, began);
}

/* ---- the entry of a function --------------------------------------------- */

/* Returns whether the thread may record a call of a code object whose extra
 * value is `extra`. */
VST_INLINE bool nothing_is_in_the_way(const vpy_frames_thread *t, uint64_t era,
                                      const PyThreadState *tstate,
                                      uintptr_t extra)
{
    return VST_LIKELY(t->era == era && stack_pointer() >= t->limit &&
                      t->depth != t->open_depth &&
                      extra >> 32 == vpy_calls_hooks.round &&
                      !vpy_frame_will_be_refused(tstate) && !tstate->tracing);
}

/* Returns the frame whose CALL calls the function, with the arguments on its
 * value stack; NULL if C code calls the function. */
VST_INLINE const vpy_iframe *direct_caller(PyThreadState *tstate,
                                           const PyFunctionObject *function,
                                           PyObject *const *args,
                                           Py_ssize_t given)
{
    const vpy_iframe *caller = vpy_iframe_innermost(tstate);

    return vpy_call_is_direct(caller, function, args, given) ? caller : NULL;
}

/* Calls a function while the hook is tested. */
VST_COLD static PyObject *call_tested(PyThreadState *tstate,
                                      PyFunctionObject *function,
                                      PyObject *const *args, Py_ssize_t given)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    const vpy_iframe *caller = direct_caller(tstate, function, args, given);
    vpy_iframe *frame =
        vpy_iframe_push(tstate, function, code, args, given,
                        vpy_call_missing(function, code, given), caller);
    PyObject *result =
        vpy_frames_test(tstate, frame, 0, vpy_py311.place.next_evaluate);

    vpy_iframe_pop(tstate, frame, caller != NULL);
    return result;
}

/* Calls a function in the interpreter's own way, which calls vpy_evaluate(). If
 * vpy_evaluate() is not installed, because the recording has ended or a budget
 * has removed the hook for a time, the function gets its own address back: the
 * interpreter then calls it fastest. */
VST_NOINLINE static PyObject *call_slow(PyObject *callable,
                                        PyObject *const *args, size_t given,
                                        PyObject *names)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyFunctionObject *function = (PyFunctionObject *)callable;
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    Py_ssize_t count = PyVectorcall_NARGS(given);

    if (vpy_py311.test.thread == tstate && names == NULL &&
        vpy_code_is_simple(code) && vpy_iframe_has_room(tstate, code) &&
        vpy_call_missing(function, code, count) >= 0)
        return call_tested(tstate, function, args, count);
    if (vpy_py311.test.thread == NULL &&
        (tstate->interp->eval_frame != vpy_evaluate ||
         !vpy_frames_are_recorded()))
        function->vectorcall = _PyFunction_Vectorcall;
    return _PyFunction_Vectorcall(callable, args, given, names);
}

/* Calls a function that a budget leaves out; records nothing. */
VST_NOINLINE static PyObject *
call_left_out(PyThreadState *tstate, PyFunctionObject *function,
              PyObject *const *args, Py_ssize_t given, Py_ssize_t missing)
{
    const vpy_iframe *caller = direct_caller(tstate, function, args, given);
    vpy_iframe *frame =
        vpy_iframe_push(tstate, function, (PyCodeObject *)function->func_code,
                        args, given, missing, caller);
    PyObject *result = vpy_py311.place.next_evaluate(tstate, frame, 0);

    vpy_iframe_pop(tstate, frame, caller != NULL);
    return result;
}

/* Does the rest of call_function() for a call from C code. */
VST_NOINLINE static PyObject *call_from_c(PyThreadState *tstate,
                                          PyFunctionObject *function,
                                          PyObject *const *args,
                                          Py_ssize_t given, Py_ssize_t missing,
                                          uint64_t began)
{
    vpy_iframe *frame =
        vpy_iframe_push(tstate, function, (PyCodeObject *)function->func_code,
                        args, given, missing, NULL);
    PyObject *result =
        end_here(vpy_py311.place.next_evaluate(tstate, frame, 0), began);

    vpy_iframe_pop(tstate, frame, false);
    return result;
}

/* The function at the address by which a Python function is called. It does the
 * work of vpy_evaluate(), and the interpreter's work before and after the
 * evaluation (made_frames.h). */
__attribute__((hot, aligned(64))) static PyObject *
call_function(PyObject *callable, PyObject *const *args, size_t given,
              PyObject *names)
{
    PyThreadState *tstate = vpy_thread_state();
    PyFunctionObject *function = (PyFunctionObject *)callable;
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_py311.place.era;
    uintptr_t extra =
        vpy_code_get_extra((PyObject *)code, vpy_calls_hooks.code_extra_index);
    uint32_t value = (uint32_t)extra;
    Py_ssize_t count = PyVectorcall_NARGS(given);
    Py_ssize_t missing = vpy_call_missing(function, code, count);
    const vpy_iframe *caller;
    vpy_iframe *frame;
    PyObject *result;

    if (!VST_LIKELY(tstate->interp->eval_frame == vpy_evaluate &&
                    names == NULL && missing >= 0 && vpy_code_is_simple(code) &&
                    nothing_is_in_the_way(t, era, tstate, extra) &&
                    vpy_iframe_has_room(tstate, code)))
        return call_slow(callable, args, given, names);
    if (!VST_LIKELY(vpy_is_plain(value) &&
                    vst_record_at_once(VST_ENTER, value)))
        return value & VPY_LEFT_OUT
                   ? call_left_out(tstate, function, args, count, missing)
                   : call_slow(callable, args, given, names);
    t->depth++;
    caller = vpy_iframe_innermost(tstate);
    if (!vpy_call_is_direct(caller, function, args, count))
        return call_from_c(tstate, function, args, count, missing,
                           BEGAN(era, value));
    frame =
        vpy_iframe_push(tstate, function, code, args, count, missing, caller);
    result = end_here(vpy_py311.place.next_evaluate(tstate, frame, 0),
                      BEGAN(era, value));
    vpy_iframe_pop(tstate, frame, true);
    return result;
}

/* Makes the interpreter call the function through call_function() from now on.
 * Returns whether the interpreter's CALL keeps one more reference to the
 * function than it would without a hook. */
static bool enter_function(PyThreadState *tstate, const vpy_iframe *frame)
{
    PyFunctionObject *function = frame->f_func;

    if (!vpy_base.inside.works[VPY_PART_ENTRIES])
        return false;
    if (function->vectorcall == _PyFunction_Vectorcall &&
        vpy_code_is_simple(frame->f_code))
        function->vectorcall = call_function;
    return vpy_call_release(vpy_iframe_innermost(tstate), frame);
}

/* ---- the hook ------------------------------------------------------------ */

/* The C frame of this function is on the stack once for each open Python call.
 * So it keeps one word during the evaluation, and makes no other call that
 * returns to it. */
__attribute__((hot, noinline, aligned(64))) static PyObject *
evaluate(PyThreadState *tstate, vpy_iframe *frame, int throwing)
{
    vpy_frames_thread *t = &vpy_frames_this;
    uint64_t era = vpy_py311.place.era;
    uintptr_t extra = vpy_code_get_extra((PyObject *)vpy_iframe_code(frame),
                                         vpy_calls_hooks.code_extra_index);
    uint32_t value = (uint32_t)extra;

    if (!VST_LIKELY(nothing_is_in_the_way(t, era, tstate, extra)) ||
        vpy_iframe_makes_generator(frame))
        return evaluate_slow(tstate, frame, throwing);
    if (!VST_LIKELY(vpy_is_plain(value)))
        return evaluate_coroutine(tstate, frame, throwing, value);
    if (!VST_LIKELY(vst_record_at_once(VST_ENTER, value)))
        return evaluate_slow(tstate, frame, throwing);
    t->depth++;
    return end(vpy_py311.place.next_evaluate(tstate, frame, throwing),
               BEGAN(era, value));
}

/* Evaluates a frame that the interpreter made in the long way. */
VST_NOINLINE static PyObject *evaluate_function(PyThreadState *tstate,
                                                vpy_iframe *frame, int throwing)
{
    PyFunctionObject *function = frame->f_func;
    PyObject *result;

    if (!enter_function(tstate, frame))
        return evaluate(tstate, frame, throwing);
    Py_DECREF(function);
    result = evaluate(tstate, frame, throwing);
    Py_INCREF(function);
    return result;
}

__attribute__((hot, aligned(64))) PyObject *
vpy_evaluate(PyThreadState *tstate, vpy_iframe *frame, int throwing)
{
    return vpy_code_generates(vpy_iframe_code(frame))
               ? evaluate(tstate, frame, throwing)
               : evaluate_function(tstate, frame, throwing);
}
