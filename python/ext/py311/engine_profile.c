/* The safe engine: a C profile function on every thread state.
 *
 * Such a hook belongs to one thread. A thread that Python makes gets the hook
 * before it runs: its state is in the interpreter's list when the call that
 * made it returns, and our hook sees that return. A thread that C makes appears
 * in the list at any time, and gets the hook at the next event of any thread.
 *
 * The program may set profile hooks of its own. sys.setprofile and cProfile's
 * enable and disable are watched while recording (their method definitions call
 * through us), so while the program has a hook on a thread our hook is not set:
 * a gap is recorded, and our hook is set again afterwards. A hook that was
 * there before the recording is put back when it stops. */
#include "calls/engine.h"

#include "calls/ids.h"
#include "calls/setprofile.h"
#include "program/exceptions.h"
#include "program/program.h"
#include "program/tasks.h"
#include "program/triggers.h"
#include "py311/frame_hook.h"
#include "record/language.h"
#include "thunks/thunks.h"

#include <opcode.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_profile_state *const state = &vpy_py311.profile;

/* The hook that a thread had before the recording. */
typedef struct vpy_displaced_hook {
    uint64_t thread; /* tstate->id: never reused */
    Py_tracefunc function;
    struct vpy_displaced_hook *next;
} displaced;

static _Thread_local bool
    in_gap; /* the program has its own hook on this thread */

static int profile_hook(PyObject *object, PyFrameObject *frame, int what,
                        PyObject *argument);

/* ---- hooks of a thread -------------------------------------------------- */

/* Sets a thread's profile function. The interpreter's own function would call
 * the program's audit hooks, and it fails while another thread is inside one of
 * these hooks. */
static void set_profile(PyThreadState *tstate, Py_tracefunc function,
                        PyObject *object)
{
    PyObject *old = tstate->c_profileobj;
    bool active = function != NULL || tstate->c_tracefunc != NULL;

    Py_XINCREF(object);
    tstate->c_profileobj = object;
    tstate->c_profilefunc = function;
    vpy_use_tracing(tstate, active);
    Py_XDECREF(old);
}

/* Sets a thread's trace function, without an object. */
static void set_trace(PyThreadState *tstate, Py_tracefunc function)
{
    bool active = function != NULL || tstate->c_profilefunc != NULL;

    tstate->c_tracefunc = function;
    vpy_use_tracing(tstate, active);
}

/* ---- taking threads and giving them back ------------------------------- */

/* Puts our hook in place of the program's. The object of the hook stays the
 * program's, so that sys.getprofile() returns what it would return without
 * us. */
static void profile_take(PyThreadState *tstate)
{
    if (tstate->c_profilefunc == profile_hook)
        return;
    if (tstate->c_profilefunc != NULL) {
        displaced *entry = malloc(sizeof *entry);
        if (entry == NULL)
            return; /* without memory, the program keeps its hook */
        *entry =
            (displaced){tstate->id, tstate->c_profilefunc, state->displaced};
        state->displaced = entry;
    }
    set_profile(tstate, profile_hook, tstate->c_profileobj);
}

static Py_tracefunc forget_displaced(PyThreadState *tstate)
{
    for (displaced **link = &state->displaced; *link != NULL;
         link = &(*link)->next) {
        displaced *entry = *link;
        if (entry->thread == tstate->id) {
            Py_tracefunc function = entry->function;
            *link = entry->next;
            free(entry);
            return function;
        }
    }
    return NULL;
}

/* A trace function, set only while a trigger waits for exceptions or exceptions
 * are recorded: the interpreter reports an exception that is caught where it
 * was raised to a trace function, but not to a profile function. It ignores all
 * other events. A thread that has a trace function of the program keeps that
 * function. */
static int on_trace(PyObject *object, PyFrameObject *frame, int what,
                    PyObject *argument)
{
    (void)object;
    if (what == PyTrace_EXCEPTION && argument != NULL &&
        PyTuple_Check(argument) && PyTuple_GET_SIZE(argument) == 3) {
        vpy_triggers_raised(PyTuple_GET_ITEM(argument, 1),
                            PyTuple_GET_ITEM(argument, 2));
        vpy_exception_seen(PyTuple_GET_ITEM(argument, 1),
                           PyTuple_GET_ITEM(argument, 2));
    } else if (what == PyTrace_RETURN && argument == NULL) {
        vpy_exception_leaves_frame(
            vpy_code_value(vpy_frame_code(frame)) != 0 ? frame : NULL);
    }
    return 0;
}

static void watch_exceptions(PyThreadState *tstate)
{
    if ((vpy_triggers_want_exceptions() || vpy_program.exceptions.are_wanted) &&
        tstate->c_tracefunc == NULL)
        set_trace(tstate, on_trace);
}

static void profile_give_back(PyThreadState *tstate)
{
    Py_tracefunc function;

    if (tstate->c_tracefunc == on_trace)
        set_trace(tstate, NULL);
    if (tstate->c_profilefunc != profile_hook)
        return;
    function = forget_displaced(tstate);
    set_profile(tstate, function,
                function != NULL ? tstate->c_profileobj : NULL);
}

/* Gives the hook to new threads. Thread states are added at the head of the
 * list. C makes them without the GIL, so a thread state that is counted may not
 * be in the list yet, or may be gone. So the newest thread is looked for a
 * limited number of times. */
VST_COLD static void adopt_new_threads(void)
{
    uint64_t made = vpy_threads_made(state->interpreter);
    PyThreadState *t = PyInterpreterState_ThreadHead(state->interpreter);
    bool found_newest = t != NULL && t->id == made;

    for (; t != NULL && t->id > state->threads_seen; t = PyThreadState_Next(t))
        if (t->c_profilefunc == NULL) {
            profile_take(t);
            watch_exceptions(t);
        }
    if (found_newest || ++state->looks > 1000) {
        state->threads_seen = made;
        state->looks = 0;
    }
}

static inline void look_for_new_threads(void)
{
    if (!VST_LIKELY(vpy_threads_made(state->interpreter) ==
                    state->threads_seen))
        adopt_new_threads();
}

/* ---- the hook ---------------------------------------------------------- */

static void profile_enter(PyObject *code, PyFrameObject *frame)
{
    uint32_t value = vpy_code_value(code);

    if (VST_LIKELY(vpy_is_plain(value)))
        vst_record(VST_ENTER, value);
    else if (vpy_is_plain_coroutine(value))
        vpy_coroutine_record_enter(VPY_ID(value), vpy_iframe_of(frame));
    else if (value)
        vpy_code_entered(value, code, vpy_iframe_of(frame));
}

/* A throw() runs the innermost coroutine first. If this coroutine returns a
 * value, the interpreter resumes the one that awaits it behind the instruction
 * that reports calls: no event tells of that call, only of its end. So the call
 * begins where the awaited coroutine returns. A coroutine that is resumed in
 * this way stands at the instruction at which it was suspended; one that awaits
 * while it runs stands at SEND. */
static VST_COLD void resume_unseen(const vpy_iframe *returned)
{
    const vpy_iframe *frame = vpy_iframe_back(returned);
    PyObject *code = frame != NULL ? (PyObject *)vpy_iframe_code(frame) : NULL;
    uint32_t value = code != NULL ? vpy_code_value(code) : 0;

    if (value != 0 && vpy_is_plain_coroutine(value) &&
        _Py_OPCODE(*frame->prev_instr) == YIELD_VALUE)
        vpy_coroutine_record_enter(VPY_ID(value), frame);
}

static inline void leave_coroutine(vst_kind kind, vst_id id,
                                   const vpy_iframe *frame, PyObject *result)
{
    const vpy_step *step = &vpy_steps_now.top;
    bool waits = vpy_iframe_waits(frame);
    bool is_inner = step->marked == frame && step->outermost != frame;

    vpy_coroutine_record_exit(kind, id, frame, result, waits);
    if (is_inner && !waits && result != NULL)
        resume_unseen(frame);
}

static void profile_leave(PyObject *code, PyFrameObject *frame,
                          PyObject *result)
{
    uint32_t value = vpy_code_value(code);
    vst_kind kind = result != NULL ? VST_EXIT : VST_RAISE;
    const vpy_iframe *inside = vpy_iframe_of(frame);

    if (VST_LIKELY(vpy_is_plain(value)))
        vst_record_end_of_call(kind, value);
    else if (vpy_is_plain_coroutine(value))
        leave_coroutine(kind, VPY_ID(value), inside, result);
    else if (value)
        vpy_code_returns(value, 0, code, result, inside,
                         value & VPY_COROUTINE && vpy_iframe_waits(inside));
}

/* Records an event of a C function. `what` is PyTrace_C_CALL or one of the next
 * two. */
static inline void profile_native(int what, PyObject *code, PyObject *function)
{
    vst_id id = state->record_native ? vpy_native_id(function) : 0;

    if (!id || !vpy_caller_is_recorded(code))
        return;
    if (what == PyTrace_C_CALL)
        vst_record(VST_ENTER, id);
    else
        vst_record_end_of_call(what == PyTrace_C_RETURN ? VST_EXIT : VST_RAISE,
                               id);
}

/* Handles all less common events. Looks for new threads when a Python call
 * begins and when a C call ends, because a C call may have made a thread. */
static VST_NOINLINE int hook_slow(PyObject *object, PyFrameObject *frame,
                                  int what, PyObject *argument)
{
    PyObject *code = vpy_frame_code(frame);

    (void)object;
    if (what >= PyTrace_C_CALL && what <= PyTrace_C_RETURN) {
        profile_native(what, code, argument);
        if (what == PyTrace_C_RETURN)
            look_for_new_threads();
    } else if (what == PyTrace_CALL) {
        profile_enter(code, frame);
        look_for_new_threads();
    } else if (what == PyTrace_RETURN) {
        profile_leave(code, frame, argument);
    }
    return 0;
}

static VST_NOINLINE int look_slow(void)
{
    adopt_new_threads();
    return 0;
}

/* Only events PyTrace_CALL and PyTrace_RETURN come here, because only Python
 * functions are coroutines. */
static VST_NOINLINE VST_HOT int on_coroutine(PyFrameObject *frame, int what,
                                             PyObject *result, vst_id id)
{
    const vpy_iframe *inside = vpy_iframe_of(frame);

    if (what == PyTrace_CALL)
        vpy_coroutine_record_enter(id, inside);
    else
        leave_coroutine(result != NULL ? VST_EXIT : VST_RAISE, id, inside,
                        result);
    look_for_new_threads();
    return 0;
}

/* Records the end of a call, by an exception or not. Returns false if nothing
 * was done. */
VST_INLINE bool end_at_once(bool raised, vst_id id)
{
    return vst_clock_is_at_hand() &&
           vst_record_end_of_call_at_once(raised ? VST_RAISE : VST_EXIT, id,
                                          vst_clock_ticks());
}

/* Handles the common case without calling anything, so it need not save
 * registers. For all other cases it jumps to another function. Looks for new
 * threads after each recorded event. */
static VST_HOT int profile_hook(PyObject *object, PyFrameObject *frame,
                                int what, PyObject *argument)
{
    PyObject *code = vpy_frame_code(frame);
    bool is_native = what >= PyTrace_C_CALL, is_done = false;
    uint32_t value =
        is_native ? state->record_native ? vpy_native_id_at_once(argument) : 0
                  : vpy_code_value_at_once(code);

    if (VST_LIKELY(vpy_is_plain(value) &&
                   (!is_native || vpy_caller_is_recorded_at_once(code)))) {
        if (what == PyTrace_CALL || what == PyTrace_C_CALL)
            is_done = vst_record_at_once(VST_ENTER, value);
        else if (what == PyTrace_RETURN)
            is_done = end_at_once(argument == NULL, value);
        else if (what == PyTrace_C_RETURN)
            is_done = end_at_once(false, value);
    } else if (vpy_is_plain_coroutine(value)) {
        return on_coroutine(frame, what, argument, VPY_ID(value));
    }
    if (!VST_LIKELY(is_done))
        return hook_slow(object, frame, what, argument);
    return VST_LIKELY(vpy_threads_made(state->interpreter) ==
                      state->threads_seen)
               ? 0
               : look_slow();
}

/* ---- the program's own hooks ------------------------------------------- */

static void after_change(void)
{
    PyThreadState *tstate = PyThreadState_Get();

    if (vpy_calls.tracer.active == NULL ||
        tstate->c_profilefunc == profile_hook)
        return;
    if (tstate->c_profilefunc != NULL) {
        if (!in_gap)
            vst__record_gap(false);
        vpy_triggers_forget_thread();
        in_gap = true;
        return;
    }
    /* The program has removed its own hook, and does not want its earlier hook
     * back. */
    forget_displaced(tstate);
    set_profile(tstate, profile_hook, NULL);
    if (in_gap) {
        in_gap = false;
        vst__record_gap(true);
        vpy_threads_record_stack();
    }
}

static PyObject *through_setprofile(PyObject *self, PyObject *argument)
{
    PyThreadState *tstate = PyThreadState_Get();
    bool had_none =
        tstate->c_profilefunc == profile_hook && tstate->c_profileobj == NULL;
    PyObject *result = state->setprofile.original(self, argument);

    after_change();
    if (had_none && in_gap)
        vpy_setprofile_hide_return(tstate);
    return result;
}

static PyObject *through_enable(PyObject *self, PyObject *args, PyObject *kw)
{
    PyObject *result =
        ((PyCFunctionWithKeywords)(void (*)(void))state->enable.original)(
            self, args, kw);

    after_change();
    return result;
}

static PyObject *through_disable(PyObject *self, PyObject *unused)
{
    PyObject *result = state->disable.original(self, unused);

    after_change();
    return result;
}

static void watch_setprofile(void)
{
    PyObject *function = PySys_GetObject("setprofile");

    if (function != NULL && PyCFunction_CheckExact(function))
        vpy_watch(&state->setprofile, ((PyCFunctionObject *)function)->m_ml,
                  METH_O, through_setprofile);
}

/* Watches cProfile's methods. The class is found when the program first calls
 * one of its methods. */
static void native_defined(PyTypeObject *owner)
{
    PyTypeObject *type = owner;

    while (type != NULL && strcmp(type->tp_name, "_lsprof.Profiler") != 0)
        type = type->tp_base;
    if (type == NULL)
        return;
    for (PyMethodDef *m = type->tp_methods; m != NULL && m->ml_name != NULL;
         m++) {
        if (strcmp(m->ml_name, "enable") == 0)
            vpy_watch(&state->enable, m, METH_VARARGS | METH_KEYWORDS,
                      (PyCFunction)(void (*)(void))through_enable);
        else if (strcmp(m->ml_name, "disable") == 0)
            vpy_watch(&state->disable, m, METH_NOARGS, through_disable);
    }
}

/* Sets the hook again if other code removed it in a way that is not watched. */
static void check_thread(void)
{
    if (state->placed && PyThreadState_Get()->c_profilefunc != profile_hook)
        after_change();
}

bool vpy_profile_is_here(const PyThreadState *tstate)
{
    return state->placed && tstate->c_profilefunc == profile_hook;
}

/* ---- start and stop ---------------------------------------------------- */

static bool profile_start(vpy_tracer *tracer)
{
    state->record_native = tracer->options.c_functions;
    state->interpreter = PyThreadState_Get()->interp;
    state->placed = true;
    in_gap = false;
    state->threads_seen = vpy_threads_made(state->interpreter);
    for (PyThreadState *t = PyInterpreterState_ThreadHead(state->interpreter);
         t != NULL; t = PyThreadState_Next(t)) {
        profile_take(t);
        watch_exceptions(t);
    }
    watch_setprofile();
    vpy_safe_thunks_start(&tracer->options);
    return true;
}

static void profile_stop(vpy_tracer *tracer)
{
    PyThreadState *t;

    (void)tracer;
    if (state->interpreter == NULL)
        return;
    vpy_thunks_stop();
    vpy_unwatch(&state->setprofile);
    vpy_unwatch(&state->enable);
    vpy_unwatch(&state->disable);
    for (t = PyInterpreterState_ThreadHead(state->interpreter); t != NULL;
         t = PyThreadState_Next(t))
        profile_give_back(t);
    while (state->displaced != NULL) {
        displaced *entry = state->displaced;
        state->displaced = entry->next;
        free(entry);
    }
    state->placed = false;
}

static size_t profile_hooks_in_place(void)
{
    size_t count = (size_t)((state->setprofile.method != NULL) +
                            (state->enable.method != NULL) +
                            (state->disable.method != NULL));

    for (PyThreadState *t =
             state->interpreter != NULL
                 ? PyInterpreterState_ThreadHead(state->interpreter)
                 : NULL;
         t != NULL; t = PyThreadState_Next(t))
        count += (size_t)(t->c_profilefunc == profile_hook) +
                 (size_t)(t->c_tracefunc == on_trace);
    return count;
}

const vpy_engine vpy_engine_profile = {
    .name = "profile",
    .prepare = vpy_safe_thunks_prepare,
    .give_up = vpy_thunks_give_up,
    .start = profile_start,
    .stop = profile_stop,
    .native_defined = native_defined,
    .check_thread = check_thread,
    .hooks_in_place = profile_hooks_in_place,
};
