/* The hooks of Python 3.12 and later, which sys.monitoring calls.
 * engine_monitoring.c places them.
 *
 * The hooks of Python functions handle the common case without calling
 * anything, so they need not save registers. For all other cases they jump to
 * another function. The events do not show everything:
 *  - Calls that are open when recording starts only end: vpy_threads_announce
 * has recorded them as open. Calls in C that are open then end unseen.
 *  - A generator resumed by throw() gives PY_THROW and no PY_RESUME.
 *  - CALL fires for every callable; Python functions have events of their own,
 * and callable_ids.c says which others are recorded; ufuncs and other objects
 * with a thunk record themselves. For a bound method around a C function, CALL
 * names the method and C_RETURN the function.
 *
 * Any thread with the GIL; where there is none, any thread. */
#include "calls/monitoring_hooks.h"

#include "calls/budget.h"
#include "calls/ids.h"
#include "program/exceptions.h"
#include "program/raise_counts.h"
#include "program/tasks.h"
#include "program/triggers.h"
#include "thunks/thunks.h"

#include <opcode.h>

static PyObject *answer_unrecorded(void)
{
    return Py_NewRef(
        __atomic_load_n(&vpy_calls.monitoring.answer, __ATOMIC_RELAXED));
}

static VST_NOINLINE PyObject *enter_slow(PyObject *const *args)
{
    uint32_t value = vpy_code_value(args[0]);

    if (vpy_is_plain(value))
        vst_record(VST_ENTER, value);
    else if (vpy_is_plain_coroutine(value))
        vpy_coroutine_record_enter_at(VPY_ID(value), args);
    else if (!vpy_is_left_out(value))
        vpy_code_entered(value, args[0], NULL);
    else if (value == 0 || vpy_left_out_enter(value, args))
        return answer_unrecorded();
    Py_RETURN_NONE;
}

static VST_NOINLINE VST_HOT PyObject *monitoring_begin_step(vst_id id,
                                                            const void *place)
{
    vpy_step_after_enter_at(id, place);
    Py_RETURN_NONE;
}

static VST_HOT PyObject *on_enter(PyObject *self, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    uint32_t value = vpy_code_value_at_once(args[0]);
    vst_id id = value & ~VPY_COROUTINE;

    (void)self, (void)nargsf, (void)kwnames;
    if (!VST_LIKELY(vpy_is_plain(id) && vst_record_at_once(VST_ENTER, id)))
        return enter_slow(args);
    if (VST_LIKELY(value == id || vpy_step_has_place(id, args)))
        Py_RETURN_NONE;
    return monitoring_begin_step(id, args);
}

/* PY_THROW and PY_UNWIND belong to no place, so a hook must not return DISABLE.
 * See "code that is left out" in engine_monitoring.c about PY_UNWIND. */
static PyObject *on_throw(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    Py_DECREF(on_enter(self, args, nargsf, kwnames));
    Py_RETURN_NONE;
}

/* Handles all less common ends of calls. result: NULL if an exception leaves
 * the function; waits: the call yields. */
static VST_NOINLINE PyObject *leave_slow(PyObject *code, PyObject *result,
                                         bool waits)
{
    uint32_t value = vpy_code_value(code);
    vst_kind kind = result != NULL ? VST_EXIT : VST_RAISE;

    if (vpy_is_plain(value))
        vst_record_end_of_call(kind, value);
    else if (vpy_is_plain_coroutine(value))
        vpy_coroutine_record_exit_of_running(kind, VPY_ID(value), result,
                                             waits);
    else if (!vpy_is_left_out(value))
        vpy_code_returns(value, 0, code, result, NULL, waits);
    else if (value == 0 || vpy_left_out_leave(value, code, result, waits))
        return answer_unrecorded(); /* no recorded call ends here */
    Py_RETURN_NONE;
}

static VST_NOINLINE VST_HOT PyObject *leave_step(vst_id id, PyObject *result,
                                                 bool waits)
{
    vpy_step_before_exit_of_running(id, result, waits);
    vst_record_end_of_call(result != NULL ? VST_EXIT : VST_RAISE, id);
    Py_RETURN_NONE;
}

VST_INLINE PyObject *leave(PyObject *code, PyObject *result, bool waits)
{
    uint32_t value = vpy_code_value_at_once(code);
    vst_kind kind = result != NULL ? VST_EXIT : VST_RAISE;

    if (vpy_is_plain_coroutine(value)) {
        value = VPY_ID(value);
        if (vpy_step_may_end_with(value))
            return leave_step(value, result, waits);
        vpy_step_before_exit_inside(value, waits);
    }
    if (VST_LIKELY(
            vpy_is_plain(value) && vst_clock_is_at_hand() &&
            vst_record_end_of_call_at_once(kind, value, vst_clock_ticks())))
        Py_RETURN_NONE;
    return leave_slow(code, result, waits);
}

static VST_HOT PyObject *on_return(PyObject *self, PyObject *const *args,
                                   size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return leave(args[0], args[2], false);
}

static VST_HOT PyObject *on_yield(PyObject *self, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return leave(args[0], args[2], true);
}

static VST_HOT PyObject *on_unwind(PyObject *self, PyObject *const *args,
                                   size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    Py_DECREF(leave(args[0], NULL, false));
    Py_RETURN_NONE;
}

/* Replaces on_unwind while exceptions are recorded. */
static PyObject *on_marked_unwind(PyObject *self, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    PyObject *traceback = PyException_GetTraceback(args[2]);

    vpy_exception_leaves(vpy_code_value(args[0]) != 0 ? traceback : NULL);
    Py_XDECREF(traceback);
    return on_unwind(self, args, nargsf, kwnames);
}

/* Placed while exceptions are counted. The code has a value if calls of it are
 * recorded. */
static PyObject *on_counted_raise(PyObject *self, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    vpy_raise_count(vpy_code_value_at_once(args[0]), args[2]);
    Py_RETURN_NONE;
}

/* Placed only while a trigger waits for an exception, or exceptions are
 * recorded. */
static PyObject *on_raise(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    PyObject *traceback = PyException_GetTraceback(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    vpy_triggers_raised(args[2], traceback);
    vpy_exception_seen(args[2], traceback);
    Py_XDECREF(traceback);
    Py_RETURN_NONE;
}

#ifdef INSTRUMENTED_CALL_KW
#define IS_PLAIN_CALL(op)                                                      \
    ((op) == INSTRUMENTED_CALL || (op) == INSTRUMENTED_CALL_KW)
#else
#define IS_PLAIN_CALL(op) ((op) == INSTRUMENTED_CALL)
#endif

/* Returns whether the call has an end event. A bound method around a C function
 * that is called with *args has none. */
static bool will_end(PyObject *const *args)
{
    Py_ssize_t offset = PyLong_AsSsize_t(args[1]);
    const char *code = ((PyCodeObject *)args[0])->co_code_adaptive;

    return IS_PLAIN_CALL((unsigned char)code[offset]);
}

static VST_NOINLINE PyObject *call_slow(PyObject *const *args)
{
    vst_id id = vpy_native_id(args[2]);

    if (!vpy_caller_is_recorded(args[0]))
        return answer_unrecorded(); /* disables the call's end, too */
    if (!VST_LIKELY(id < VPY_LEFT_OUT))
        return answer_unrecorded();
    if (id && (!PyMethod_Check(args[2]) || will_end(args)))
        vst_record(VST_ENTER, id);
    Py_RETURN_NONE;
}

/* Handles calls of classes and of objects that are no functions, made by a
 * function that is recorded. A thunk records the call itself. */
static VST_NOINLINE VST_HOT PyObject *call_object(PyObject *const *args)
{
    vst_id id;

    if (vpy_object_has_thunk(args[2]))
        Py_RETURN_NONE;
    id = vpy_callable_id_at_once(args[2]);
    if (id == 0)
        Py_RETURN_NONE;
    if (VST_LIKELY(vpy_is_plain(id) && vst_record_at_once(VST_ENTER, id)))
        Py_RETURN_NONE;
    return call_slow(args);
}

static VST_HOT PyObject *on_call(PyObject *self, PyObject *const *args,
                                 size_t nargsf, PyObject *kwnames)
{
    vst_id id = vpy_native_id_at_once(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(vpy_caller_is_recorded_at_once(args[0]))) {
        if (VST_LIKELY(vpy_is_plain(id))) {
            if (VST_LIKELY(vst_record_at_once(VST_ENTER, id)))
                Py_RETURN_NONE;
        } else if (Py_IS_TYPE(args[2], &PyFunction_Type)) {
            Py_RETURN_NONE;
        } else if (id == VPY_NO_SLOT) {
            return call_object(args);
        }
    }
    return call_slow(args);
}

/* Handles all less common ends of calls in C. If the function is left out, its
 * call began before that, because a disabled place has no end event. */
static VST_NOINLINE PyObject *c_end_slow(PyObject *const *args, vst_kind kind)
{
    vst_id id = vpy_native_id(args[2]);

    if (id && vpy_caller_is_recorded(args[0]))
        vst_record_end_of_call(kind, VPY_ID(id));
    Py_RETURN_NONE;
}

static VST_NOINLINE VST_HOT PyObject *c_end_object(PyObject *const *args,
                                                   vst_kind kind)
{
    vst_id id;

    if (vpy_object_has_thunk(args[2]))
        Py_RETURN_NONE;
    id = vpy_callable_id_at_once(args[2]);
    if (id == 0)
        Py_RETURN_NONE;
    if (VST_LIKELY(vpy_is_plain(id) &&
                   vpy_caller_is_recorded_at_once(args[0]) &&
                   vst_clock_is_at_hand() &&
                   vst_record_end_of_call_at_once(kind, id, vst_clock_ticks())))
        Py_RETURN_NONE;
    return c_end_slow(args, kind);
}

VST_INLINE PyObject *c_end(PyObject *const *args, vst_kind kind)
{
    vst_id id = vpy_native_id_at_once(args[2]);

    if (VST_LIKELY(vpy_is_plain(id) &&
                   vpy_caller_is_recorded_at_once(args[0]) &&
                   vst_clock_is_at_hand() &&
                   vst_record_end_of_call_at_once(kind, id, vst_clock_ticks())))
        Py_RETURN_NONE;
    return id == VPY_NO_SLOT ? c_end_object(args, kind)
                             : c_end_slow(args, kind);
}

static VST_HOT PyObject *on_c_return(PyObject *self, PyObject *const *args,
                                     size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return c_end(args, VST_EXIT);
}

static PyObject *on_c_raise(PyObject *self, PyObject *const *args,
                            size_t nargsf, PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return c_end(args, VST_RAISE);
}

/* ---- which there are ----------------------------------------------------- */

const vpy_monitoring_hook vpy_monitoring_hooks[] = {
    {"PY_START", on_enter, VPY_WITH_CALLS, '('},
    {"PY_RESUME", on_enter, VPY_WITH_CALLS, '['},
    {"PY_THROW", on_throw, VPY_WITH_CALLS, '{'},
    {"PY_RETURN", on_return, VPY_WITH_CALLS, ')'},
    {"PY_YIELD", on_yield, VPY_WITH_CALLS, ']'},
    {"PY_UNWIND", on_unwind, VPY_WITH_CALLS, '!'},
    {"CALL", on_call, VPY_WITH_NATIVE_CALLS, 0},
    {"C_RETURN", on_c_return, VPY_WITH_NATIVE_CALLS, 0},
    {"C_RAISE", on_c_raise, VPY_WITH_NATIVE_CALLS, 0},
    {"RAISE", on_counted_raise, VPY_WITH_COUNTS, 0},
    {"RAISE", on_raise, VPY_WITH_EXCEPTIONS, 0}, /* replaces the one before */
    {"PY_UNWIND", on_marked_unwind, VPY_WITH_MARKS,
     0}, /* placed after on_unwind, which it replaces */
};
