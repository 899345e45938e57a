/* The hooks of Python 3.12 and later: sys.monitoring, for every thread of the
 * interpreter at once. Callbacks are objects with a vectorcall of their own,
 * which costs less than a built-in function does.
 *
 * What the events do not say, and what is done about it:
 *  - Calls that are open when recording starts only end: vpy_threads_announce
 * has recorded them as open. Calls in C that are open then end unseen.
 *  - A generator resumed by throw() gives PY_THROW and no PY_RESUME.
 *  - CALL fires for every callable; only C functions are recorded. For a bound
 * method around a C function, CALL names the method and C_RETURN the function.
 *  - Frames of a suspended greenlet keep their events after set_events(0):
 *    callbacks are unregistered too. */
#include "calls/engine.h"

#include "calls/budget.h"
#include "calls/monitoring_callback.h"
#include "calls/monitoring_tool.h"
#include "program/exceptions.h"
#include "program/tasks.h"
#include "program/triggers.h"

#include <opcode.h>
#include <stdio.h>
#include <string.h>

/* ---- the hooks --------------------------------------------------------- */

/* What a hook returns at a place in code that is not recorded: None, or
 * sys.monitoring.DISABLE, so that the interpreter does not call it there again.
 * Borrowed. Atomic: hooks read it. */
static PyObject *at_unrecorded = Py_None;

static PyObject *answer_unrecorded(void)
{
    return Py_NewRef(__atomic_load_n(&at_unrecorded, __ATOMIC_RELAXED));
}

static PyObject *on_enter(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    uint32_t value = vpy_code_value(args[0]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(vpy_is_plain(value)))
        vst_record(VST_ENTER, value);
    else if (vpy_is_plain_coroutine(value))
        vpy_coroutine_enter_at(VPY_ID(value), args);
    else if (!vpy_is_left_out(value))
        vpy_code_entered(value, args[0], NULL);
    else if (value == 0 || vpy_left_out_enter(value, args))
        return answer_unrecorded();
    Py_RETURN_NONE;
}

/* A throw and an unwinding belong to no place: they cannot be disabled there.
 * See "code that is left out" about unwinding. */
static PyObject *on_throw(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    Py_DECREF(on_enter(self, args, nargsf, kwnames));
    Py_RETURN_NONE;
}

/* result: NULL if an exception leaves the function; waits: it yields. False: no
 * call is recorded that would end here. */
VST_INLINE bool leave(PyObject *code, PyObject *result, bool waits)
{
    uint32_t value = vpy_code_value(code);
    vst_kind kind = result != NULL ? VST_EXIT : VST_RAISE;

    if (VST_LIKELY(vpy_is_plain(value)))
        vst_record_end_of_call(kind, value);
    else if (vpy_is_plain_coroutine(value))
        vpy_coroutine_leave_from(kind, VPY_ID(value), result, waits);
    else if (!vpy_is_left_out(value))
        vpy_code_returns(value, 0, code, result, NULL, waits);
    else
        return value != 0 && !vpy_left_out_leave(value, code, result, waits);
    return true;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return leave(args[0], args[2], false) ? Py_NewRef(Py_None)
                                          : answer_unrecorded();
}

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    return leave(args[0], args[2], true) ? Py_NewRef(Py_None)
                                         : answer_unrecorded();
}

static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    (void)self, (void)nargsf, (void)kwnames;
    leave(args[0], NULL, false);
    Py_RETURN_NONE;
}

/* In place of on_unwind while exceptions are recorded. */
static PyObject *on_marked_unwind(PyObject *self, PyObject *const *args,
                                  size_t nargsf, PyObject *kwnames)
{
    PyObject *traceback = PyException_GetTraceback(args[2]);

    vpy_exception_leaves(vpy_code_value(args[0]) != 0 ? traceback : NULL);
    Py_XDECREF(traceback);
    return on_unwind(self, args, nargsf, kwnames);
}

/* Only while a trigger waits for an exception, or they are recorded. */
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

/* A bound method around a C function that is called with *args has no end
 * event. */
static bool will_end(PyObject *const *args)
{
    Py_ssize_t offset = PyLong_AsSsize_t(args[1]);
    const char *code = ((PyCodeObject *)args[0])->co_code_adaptive;

    return IS_PLAIN_CALL((unsigned char)code[offset]);
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (!vpy_caller_is_recorded(args[0]))
        return answer_unrecorded(); /* disables the call's end, too */
    if (!VST_LIKELY(id < VPY_LEFT_OUT))
        return answer_unrecorded();
    if (id && (!PyMethod_Check(args[2]) || will_end(args)))
        vst_record(VST_ENTER, id);
    Py_RETURN_NONE;
}

/* One that is left out, and ends here, began before it was: a place that is
 * disabled tells of no end. */
static PyObject *on_c_return(PyObject *self, PyObject *const *args,
                             size_t nargsf, PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (id && vpy_caller_is_recorded(args[0]))
        vst_record_end_of_call(VST_EXIT, VPY_ID(id));
    Py_RETURN_NONE;
}

static PyObject *on_c_raise(PyObject *self, PyObject *const *args,
                            size_t nargsf, PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (id && vpy_caller_is_recorded(args[0]))
        vst_record_end_of_call(VST_RAISE, VPY_ID(id));
    Py_RETURN_NONE;
}

/* ---- which there are ----------------------------------------------------- */

typedef enum want { CALLS, NATIVE_CALLS, EXCEPTIONS, MARKS } want;

static const struct hook {
    const char *event;
    vpy_callback_fn function;
    want with; /* only set with these */
    char mark; /* in the self test */
} hooks[] = {
    {"PY_START", on_enter, CALLS, '('},
    {"PY_RESUME", on_enter, CALLS, '['},
    {"PY_THROW", on_throw, CALLS, '{'},
    {"PY_RETURN", on_return, CALLS, ')'},
    {"PY_YIELD", on_yield, CALLS, ']'},
    {"PY_UNWIND", on_unwind, CALLS, '!'},
    {"CALL", on_call, NATIVE_CALLS, 0},
    {"C_RETURN", on_c_return, NATIVE_CALLS, 0},
    {"C_RAISE", on_c_raise, NATIVE_CALLS, 0},
    {"RAISE", on_raise, EXCEPTIONS, 0},
    {"PY_UNWIND", on_marked_unwind, MARKS, 0}, /* after the other: it stays */
};

enum { HOOKS = sizeof hooks / sizeof hooks[0], UNWIND = 5 };

/* ---- placing them ------------------------------------------------------ */

static PyObject *callbacks[HOOKS];
static PyObject *test_callbacks[HOOKS];
static long event_numbers[HOOKS];

static bool find_events(void)
{
    PyObject *module = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *events =
        module != NULL ? PyObject_GetAttrString(module, "events") : NULL;
    bool found = events != NULL;

    for (size_t i = 0; found && i < HOOKS; i++) {
        PyObject *number = PyObject_GetAttrString(events, hooks[i].event);
        event_numbers[i] = number != NULL ? PyLong_AsLong(number) : -1;
        found = event_numbers[i] >= 0;
        Py_XDECREF(number);
    }
    Py_XDECREF(events);
    if (!found && PyErr_Occurred() == NULL)
        PyErr_SetString(PyExc_ImportError, "sys.monitoring is not there");
    return found;
}

static int init(PyObject *module)
{
    PyTypeObject *type = find_events() ? vpy_callback_type(module) : NULL;
    bool made = type != NULL;

    for (size_t i = 0; made && i < HOOKS; i++) {
        Py_XSETREF(callbacks[i], vpy_callback_new(type, hooks[i].function, 0));
        Py_XSETREF(
            test_callbacks[i],
            vpy_callback_new(type, vpy_monitoring_on_test, hooks[i].mark));
        made = callbacks[i] != NULL && test_callbacks[i] != NULL;
    }
    Py_XDECREF(type);
    return made ? 0 : -1;
}

static bool set_callback(size_t i, PyObject *function)
{
    PyObject *result = vpy_tool_register(event_numbers[i], function);
    bool set = result != NULL;

    Py_XDECREF(result);
    return set;
}

static bool is_ours(const PyObject *callback)
{
    for (size_t i = 0; i < HOOKS; i++)
        if (callback == callbacks[i] || callback == test_callbacks[i])
            return true;
    return false;
}

/* Leaves the callback of another tool, which has our id now, where it is. */
static void drop_callback(size_t i)
{
    PyObject *old = vpy_tool_register(event_numbers[i], Py_None);

    if (old != NULL && old != Py_None && !is_ours(old))
        set_callback(i, old);
    Py_XDECREF(old);
}

static void explain(const char *what)
{
    PyErr_Clear();
    snprintf(vpy_tracer_message, sizeof vpy_tracer_message, "%s", what);
}

static bool unwinds_locally; /* see "code that is left out"; atomic */

static bool place(PyObject *const functions[HOOKS], bool native,
                  bool exceptions)
{
    unsigned long events = 0;

    if (!vpy_tool_take()) {
        explain("no monitoring tool id is free: other tools of this program "
                "hold them (see sys.monitoring.get_tool)");
        return false;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        if ((hooks[i].with == NATIVE_CALLS && !native) ||
            (hooks[i].with == EXCEPTIONS && !exceptions) ||
            (hooks[i].with == MARKS &&
             !(exceptions && vpy_exceptions_are_wanted)))
            continue;
        if (!set_callback(i, functions[i])) {
            explain("sys.monitoring refused a callback");
            vpy_monitoring_stop(NULL);
            return false;
        }
        if (!(unwinds_locally && event_numbers[i] == event_numbers[UNWIND]))
            events |= (unsigned long)event_numbers[i];
    }
    if (!vpy_tool_set_events(events)) {
        explain("sys.monitoring refused the events");
        vpy_monitoring_stop(NULL);
        return false;
    }
    return true;
}

/* ---- code that is left out -----------------------------------------------
 *
 * It is not worth a call for each of its events. Events of a place are disabled
 * when they first come. PY_UNWIND belongs to no place: from 3.15 on it is set
 * for each function that is recorded instead of for all. The code of our own,
 * which is never recorded, runs too seldom for any of that. */

static PyObject *live_answer = Py_None; /* once functions have their ids */

static void choose_answer(const vpy_options *options)
{
    bool leaves_out = VPY_DISABLES_EVENTS &&
                      (options->include != NULL || options->exclude != NULL);
    PyObject *module = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *disable = NULL;

    if ((leaves_out || options->budget > 0) && module != NULL)
        disable = PyObject_GetAttrString(module, "DISABLE");
    if (disable == NULL)
        PyErr_Clear();
    live_answer = disable != NULL ? disable : Py_None;
    __atomic_store_n(&unwinds_locally, VPY_UNWINDS_LOCALLY && disable != NULL,
                     __ATOMIC_RELAXED);
    Py_XDECREF(disable); /* sys.monitoring keeps it */
}

void vpy_monitoring_go_live(void)
{
    __atomic_store_n(&at_unrecorded, live_answer, __ATOMIC_RELAXED);
}

/* Another tool that gets our id would miss the events that we disabled. */
static void enable_again(void)
{
    if (live_answer != Py_None)
        vpy_tool_enable_all();
    live_answer = Py_None;
    __atomic_store_n(&unwinds_locally, false, __ATOMIC_RELAXED);
}

#if VPY_UNWINDS_LOCALLY
void vpy_monitoring_code_defined(PyObject *code)
{
    if (__atomic_load_n(&unwinds_locally, __ATOMIC_RELAXED) &&
        vpy_tool_is_taken())
        vpy_tool_set_local_events(code, (unsigned long)event_numbers[UNWIND]);
}

/* Functions that are open got their ids before the hooks were placed; without
 * the GIL they get them after that. */
static void watch_open_calls(void)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(
        PyThreadState_GetInterpreter(PyThreadState_Get()));

    for (; !VPY_FREE_THREADED && unwinds_locally && tstate != NULL;
         tstate = PyThreadState_Next(tstate)) {
        PyFrameObject *frame = PyThreadState_GetFrame(tstate);
        while (frame != NULL) {
            PyFrameObject *back = PyFrame_GetBack(frame);
            if (vpy_code_value(vpy_frame_code(frame)) != 0)
                vpy_monitoring_code_defined(vpy_frame_code(frame));
            Py_DECREF(frame);
            frame = back;
        }
    }
}
#else
static void watch_open_calls(void)
{
}
#endif

bool vpy_monitoring_start(vpy_tracer *tracer, bool native)
{
    vpy_monitoring_test_drop();
    choose_answer(&tracer->options);
    if (!place(callbacks, native,
               vpy_triggers_want_exceptions() || vpy_exceptions_are_wanted)) {
        enable_again();
        return false;
    }
    watch_open_calls();
    return true;
}

static bool start(vpy_tracer *tracer)
{
    return vpy_monitoring_start(tracer, tracer->options.native);
}

void vpy_monitoring_stop(vpy_tracer *tracer)
{
    bool ours;

    (void)tracer;
    if (!vpy_tool_is_taken())
        return;
    __atomic_store_n(&at_unrecorded, Py_None, __ATOMIC_RELAXED);
    ours = vpy_tool_hold();
    if (ours)
        vpy_tool_set_events(0);
    if (!ours || !VPY_FREED_TOOL_IS_CLEARED)
        for (size_t i = 0; i < HOOKS; i++)
            drop_callback(i); /* without the GIL each stops the world */
    enable_again();           /* no hook disables a place any more */
    vpy_tool_give_back(ours);
}

/* ---- the self test ------------------------------------------------------- */

bool vpy_monitoring_test_begin(void)
{
    if (vpy_tool_is_taken())
        return false;
    vpy_monitoring_test.length = 0;
    vpy_monitoring_test.thread = PyThreadState_Get();
    if (!place(test_callbacks, false, false)) {
        vpy_tracer_message[0] = 0; /* starting will report it again */
        vpy_monitoring_test.thread = NULL;
    }
    return vpy_monitoring_test.thread != NULL;
}

const char *vpy_monitoring_test_end(void)
{
    if (vpy_monitoring_test.thread != PyThreadState_Get())
        return NULL;
    vpy_monitoring_test_drop();
    vpy_monitoring_test.seen[vpy_monitoring_test.length] = 0;
    return vpy_monitoring_test.seen;
}

void vpy_monitoring_test_drop(void)
{
    if (vpy_monitoring_test.thread != NULL)
        vpy_monitoring_stop(NULL);
    vpy_monitoring_test.thread = NULL;
}

static size_t hooks_in_place(void)
{
    return vpy_tool_is_taken();
}

const vpy_engine vpy_engine_monitoring = {
    .name = "monitoring",
    .init = init,
    .start = start,
    .stop = vpy_monitoring_stop,
    .hooks_in_place = hooks_in_place,
};
