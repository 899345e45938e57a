/* The engine of Python 3.12 and later: places the hooks of monitoring_hooks.c
 * by sys.monitoring, for all threads of the interpreter. Callbacks are objects
 * with a vectorcall of their own, which costs less than a built-in function.
 * Frames of a suspended greenlet keep their events after set_events(0), so we
 * also unregister the callbacks. */
#include "calls/engine.h"

#include "base/names.h"
#include "calls/ids.h"
#include "calls/monitoring_hooks.h"
#include "calls/monitoring_tool.h"
#include "calls/setprofile.h"
#include "calls/turbo_frames.h"
#include "program/exceptions.h"
#include "program/raise_counts.h"
#include "program/triggers.h"
#include "thunks/thunks.h"

#include <stdio.h>

static struct vpy_monitoring_state *const state = &vpy_calls.monitoring;

/* ---- placing them ------------------------------------------------------ */

static bool find_events(void)
{
    PyObject *module = vpy_system_object(VPY_NAME_MONITORING); /* borrowed */
    PyObject *events =
        module != NULL ? PyObject_GetAttrString(module, "events") : NULL;
    bool found = events != NULL;

    for (size_t i = 0; found && i < VPY_MONITORING_HOOKS; i++) {
        PyObject *number =
            PyObject_GetAttrString(events, vpy_monitoring_hooks[i].event);
        state->event_numbers[i] = number != NULL ? PyLong_AsLong(number) : -1;
        found = state->event_numbers[i] >= 0;
        Py_XDECREF(number);
    }
    Py_XDECREF(events);
    if (!found && PyErr_Occurred() == NULL)
        PyErr_SetString(PyExc_ImportError, "this Python has no sys.monitoring");
    return found;
}

static int monitoring_init(PyObject *module)
{
    PyTypeObject *type = find_events() ? vpy_callback_type(module) : NULL;
    bool made = type != NULL;

    for (size_t i = 0; made && i < VPY_MONITORING_HOOKS; i++) {
        Py_XSETREF(state->callbacks[i],
                   vpy_callback_new(type, vpy_monitoring_hooks[i].function, 0));
        Py_XSETREF(state->test_callbacks[i],
                   vpy_callback_new(type, vpy_monitoring_on_test,
                                    vpy_monitoring_hooks[i].mark));
        made = state->callbacks[i] != NULL && state->test_callbacks[i] != NULL;
    }
    Py_XDECREF(type);
    return made ? 0 : -1;
}

static bool set_callback(size_t i, PyObject *function)
{
    PyObject *result = vpy_tool_register(state->event_numbers[i], function);
    bool set = result != NULL;

    Py_XDECREF(result);
    return set;
}

static bool monitoring_is_ours(const PyObject *callback)
{
    for (size_t i = 0; i < VPY_MONITORING_HOOKS; i++)
        if (callback == state->callbacks[i] ||
            callback == state->test_callbacks[i])
            return true;
    return false;
}

/* Removes our callback. If another tool has our id now, its callback stays. */
static void drop_callback(size_t i)
{
    PyObject *old = vpy_tool_register(state->event_numbers[i], Py_None);

    if (old != NULL && old != Py_None && !monitoring_is_ours(old))
        set_callback(i, old);
    Py_XDECREF(old);
}

static void monitoring_explain(const char *what)
{
    PyErr_Clear();
    snprintf(vpy_calls.tracer.message, sizeof vpy_calls.tracer.message, "%s",
             what);
}

static bool monitoring_place(PyObject *const functions[VPY_MONITORING_HOOKS],
                             bool native, bool exceptions)
{
    unsigned long events = 0;

    if (!vpy_tool_take()) {
        monitoring_explain(
            "no monitoring tool id is free: other tools of this program "
            "hold them (see sys.monitoring.get_tool)");
        return false;
    }
    for (size_t i = 0; i < VPY_MONITORING_HOOKS; i++) {
        if ((vpy_monitoring_hooks[i].with == VPY_WITH_NATIVE_CALLS &&
             !native) ||
            (vpy_monitoring_hooks[i].with == VPY_WITH_COUNTS &&
             !(functions == state->callbacks &&
               vpy_raise_counts_are_wanted())) ||
            (vpy_monitoring_hooks[i].with == VPY_WITH_EXCEPTIONS &&
             !exceptions) ||
            (vpy_monitoring_hooks[i].with == VPY_WITH_MARKS &&
             !(exceptions && vpy_program.exceptions.are_wanted)))
            continue;
        if (!set_callback(i, functions[i])) {
            monitoring_explain("sys.monitoring refused a callback");
            vpy_monitoring_stop(NULL);
            return false;
        }
        if (!(state->unwinds_locally &&
              state->event_numbers[i] ==
                  state->event_numbers[VPY_MONITORING_UNWIND]))
            events |= (unsigned long)state->event_numbers[i];
    }
    if (!vpy_tool_set_events(events)) {
        monitoring_explain("sys.monitoring refused the events");
        vpy_monitoring_stop(NULL);
        return false;
    }
    return true;
}

/* ---- code that is left out ----------------------------------------------- */

/* The interpreter should not call us for every event of code that is left out,
 * so each place is disabled at its first event. PY_UNWIND belongs to no place:
 * from 3.15 on we set it for each recorded function instead of for all
 * functions. vestige's own code, which is never recorded, runs too seldom to
 * matter. */

static void choose_answer(const vpy_options *options)
{
    bool leaves_out = VPY_DISABLES_EVENTS &&
                      (options->include != NULL || options->exclude != NULL);
    PyObject *module = vpy_system_object(VPY_NAME_MONITORING); /* borrowed */
    PyObject *disable = NULL;

    if ((leaves_out || options->budget > 0) && module != NULL)
        disable = PyObject_GetAttrString(module, "DISABLE");
    if (disable == NULL)
        PyErr_Clear();
    state->live_answer = disable != NULL ? disable : Py_None;
    __atomic_store_n(&state->unwinds_locally,
                     VPY_UNWINDS_LOCALLY && disable != NULL, __ATOMIC_RELAXED);
    Py_XDECREF(disable); /* sys.monitoring keeps a reference to it */
}

void vpy_monitoring_go_live(void)
{
    __atomic_store_n(&state->answer, state->live_answer, __ATOMIC_RELAXED);
}

/* Enables events that we disabled, because another tool that gets our id would
 * miss them. */
static void enable_again(void)
{
    if (state->live_answer != Py_None)
        vpy_tool_enable_all();
    state->live_answer = Py_None;
    __atomic_store_n(&state->unwinds_locally, false, __ATOMIC_RELAXED);
}

#if VPY_UNWINDS_LOCALLY
void vpy_monitoring_code_defined(PyObject *code)
{
    if (__atomic_load_n(&state->unwinds_locally, __ATOMIC_RELAXED) &&
        vpy_tool_is_taken())
        vpy_tool_set_local_events(
            code, (unsigned long)state->event_numbers[VPY_MONITORING_UNWIND]);
}

/* Sets events for functions that are open now: they got their ids before the
 * hooks were placed. Without the GIL they get their ids later. */
static void watch_open_calls(void)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(
        PyThreadState_GetInterpreter(PyThreadState_Get()));

    for (; !VPY_FREE_THREADED && state->unwinds_locally && tstate != NULL;
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
    if (state->are_kept) {
        state->are_kept = false;
        if (state->live_answer != Py_None)
            vpy_tool_enable_all();
        return true;
    }
    vpy_turbo_test_drop();
    choose_answer(&tracer->options);
    if (!monitoring_place(state->callbacks, native,
                          vpy_triggers_want_exceptions() ||
                              vpy_program.exceptions.are_wanted)) {
        enable_again();
        return false;
    }
    /* If an earlier holder of the id disabled places, they stay disabled when
     * it gives the id back, and we would miss their calls. The interpreter does
     * not report whether there are any, and can only enable all places of all
     * tools. So another tool that disabled places is called once more at each
     * of them, which sys.monitoring allows; missing calls would be worse. */
    vpy_tool_enable_all();
    watch_open_calls();
    return true;
}

static bool monitoring_start(vpy_tracer *tracer)
{
    if (!vpy_monitoring_start(tracer, tracer->options.c_functions))
        return false;
    if (tracer->options.c_functions)
        vpy_setprofile_watch();
    vpy_safe_thunks_start(&tracer->options);
    return true;
}

static void monitoring_stop(vpy_tracer *tracer)
{
    vpy_thunks_stop();
    vpy_setprofile_unwatch();
    vpy_monitoring_stop(tracer);
}

void vpy_monitoring_stop(vpy_tracer *tracer)
{
    bool ours;

    if (!vpy_tool_is_taken())
        return;
    __atomic_store_n(&state->answer, Py_None, __ATOMIC_RELAXED);
    state->are_kept = tracer != NULL && vpy_thunks_are_passed_on();
    if (state->are_kept)
        return;
    ours = vpy_tool_hold();
    if (ours)
        vpy_tool_set_events(0);
    if (!ours || !VPY_FREED_TOOL_IS_CLEARED)
        for (size_t i = 0; i < VPY_MONITORING_HOOKS; i++)
            drop_callback(
                i); /* without the GIL, each of these calls stops the world */
    enable_again(); /* no hook disables a place from here on */
    vpy_tool_give_back(ours);
}

void vpy_monitoring_give_up(void)
{
    if (state->are_kept)
        vpy_monitoring_stop(NULL);
}

/* ---- the self test ------------------------------------------------------- */

bool vpy_turbo_test_begin(void)
{
    if (vpy_tool_is_taken())
        return false;
    vpy_calls.monitoring_test.length = 0;
    vpy_calls.monitoring_test.thread = PyThreadState_Get();
    if (!monitoring_place(state->test_callbacks, false, false)) {
        /* vpy_monitoring_start() will report the failure again */
        vpy_calls.tracer.message[0] = 0;
        vpy_calls.monitoring_test.thread = NULL;
    }
    return vpy_calls.monitoring_test.thread != NULL;
}

const char *vpy_turbo_test_end(void)
{
    if (vpy_calls.monitoring_test.thread != PyThreadState_Get())
        return NULL;
    vpy_turbo_test_drop();
    vpy_calls.monitoring_test.seen[vpy_calls.monitoring_test.length] = 0;
    return vpy_calls.monitoring_test.seen;
}

void vpy_turbo_test_drop(void)
{
    if (vpy_calls.monitoring_test.thread != NULL)
        vpy_monitoring_stop(NULL);
    vpy_calls.monitoring_test.thread = NULL;
}

static void monitoring_give_up(void)
{
    vpy_monitoring_give_up();
    vpy_thunks_give_up();
}

static size_t monitoring_hooks_in_place(void)
{
    return vpy_tool_is_taken();
}

const vpy_engine vpy_engine_monitoring = {
    .name = "monitoring",
    .init = monitoring_init,
    .prepare = vpy_safe_thunks_prepare,
    .start = monitoring_start,
    .give_up = monitoring_give_up,
    .stop = monitoring_stop,
    .hooks_in_place = monitoring_hooks_in_place,
};
