/* Handles forks that the interpreter reports: what is noted before a fork, and
 * what a child does first. The child drops its parent's recording, whose file
 * the core has already closed in the child. If children are followed, the child
 * then begins a recording of its own.
 *
 * vestige's Python code (the profiles) is called when somebody uses a profile,
 * which short children never do. It is called immediately if it decides how the
 * child is recorded: if there is no plan for children, or a framework's
 * observer runs.
 *
 * In a child only the thread that forked runs, and it holds the GIL; data that
 * other threads were changing stays half changed. The interpreter does not
 * report a child that C code forks (as uWSGI does). Such a child runs on
 * unrecorded: the core refuses its records, and the child drops its parent's
 * recording when it first uses vestige. */
#include "session/session.h"

#include "annotate/annotate.h"
#include "base/names.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "calls/ids.h"
#include "calls/turbo_frames.h"
#include "memory/memory.h"
#include "program/program.h"
#include "thunks/thunks.h"
#include "traceback/traceback.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct vpy_forks_state *const state = &vpy_sessions.forks;

/* Facts about the fork that this thread is about to make. */
static _Thread_local vpy_origin origin;
static _Thread_local bool is_for_exec;
/* The parent looks these up before it forks: in the child, looking up copies
 * pages. */
static _Thread_local struct {
    bool follows_plan, has_framework, has_processes;
} found;

/* Returns whether subprocess forks to run a program. Such a child is not
 * recorded: it runs Python code only if there is a preexec_fn. */
static bool executes_a_program(void)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    PyCodeObject *code = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    bool is_subprocess =
        code != NULL &&
        PyUnicode_CompareWithASCIIString(code->co_name, "_execute_child") == 0;

    if (is_subprocess) {
        PyObject *globals = PyFrame_GetGlobals(frame);
        PyObject *name = PyDict_GetItemString(globals, "__name__");
        is_subprocess =
            name != NULL && PyUnicode_Check(name) &&
            PyUnicode_CompareWithASCIIString(name, "subprocess") == 0;
        Py_DECREF(globals);
    }
    Py_XDECREF(code);
    return is_subprocess;
}

static bool is_loaded(vpy_name name)
{
    PyObject *module = vpy_loaded(name);

    Py_XDECREF(module);
    return module != NULL;
}

static PyObject *forks_before_fork(PyObject *module, PyObject *unused)
{
    struct timespec now;

    (void)module, (void)unused;
    found.has_framework = is_loaded(VPY_NAME_TORCH);
    if (state->follower != NULL) {
        clock_gettime(CLOCK_REALTIME, &now);
        origin.pid = state->process;
        origin.tid = state->process == getpid() ? vpy_thread_id() : 0;
        origin.time_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
        vpy_state_take();
        /* the parent looks, so that not every child has to */
        vpy_thunks_look();
        vpy_state_give();
        vpy_control_take();
        vpy_session_free_inherited();
        vpy_control_give();
        vpy_native_ids_before_fork();
        is_for_exec = executes_a_program();
        found.follows_plan = vpy_child_has_plan() && !found.has_framework;
        found.has_processes = is_loaded(VPY_NAME_PROCESSES_UTIL);
    }
    vpy_flight_before_fork();
    vpy_watch_before_fork();
    vpy_budget_before_fork();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_parent(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    vpy_flight_after_fork_in_parent();
    vpy_watch_after_fork_in_parent();
    vpy_budget_after_fork_in_parent();
    Py_RETURN_NONE;
}

/* Calls a function with signals blocked: a handler of the program would run
 * inside the call, and its exception would be lost. Takes over the reference to
 * the arguments. */
static void forks_call(PyObject *function, PyObject *arguments)
{
    PyObject *result = NULL;
    sigset_t before;

    vpy_signals_block(&before);
    Py_INCREF(function);
    if (arguments != NULL)
        result = PyObject_CallObject(function, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(result);
    Py_DECREF(function);
    PyErr_Clear();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Drops everything that belongs to the parent process. */
static void forks_drop_parent(void)
{
    state->process = getpid();
    state->noticed = state->forks;
    vpy_lock_after_fork(&vpy_sessions.session.control_lock);
    vpy_lock_after_fork(&vpy_shared.state_lock);
    vpy_recording_set(NULL);
    vpy_recording_session_set(NULL);
    vpy_storage_guard_after_fork();
    vpy_flight_after_fork();
    vpy_watch_after_fork();
    vpy_budget_after_fork();
    vpy_snapshots_after_fork();
    vpy_traceback_after_fork();
    vpy_memory_abandon();
    vpy_tracer_abandon();
    vpy_turbo_test_drop();
    Py_CLEAR(state->file);
    state->is_unknown_to_python = true;
}

static void call_follower(PyObject *path)
{
    forks_call(state->follower, Py_BuildValue("(llLO)", state->forked_by.pid,
                                              state->forked_by.tid,
                                              state->forked_by.time_ns, path));
}

/* Calls vestige's Python code after a fork, once. The calls are not
 * recorded. */
static void forks_notify_python(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *path;
    bool goes_on, was_notified;

    vpy_state_take();
    was_notified = !state->is_unknown_to_python;
    path = state->file;
    goes_on = !was_notified && path != NULL && state->kept != NULL;
    if (!was_notified)
        state->file = NULL;
    state->is_unknown_to_python = false;
    vpy_state_give();
    if (was_notified)
        return;
    vpy_hook_enter(tstate);
    if (state->first != NULL)
        forks_call(state->first,
                   Py_BuildValue("(O)", goes_on ? state->kept : Py_None));
    if (goes_on && state->follower != NULL)
        call_follower(path);
    vpy_hook_leave(tstate);
    Py_XDECREF(path);
}

void vpy_forks_forget(const PyObject *session)
{
    vpy_state_take();
    if (state->kept == session)
        state->kept = NULL;
    vpy_state_give();
}

/* Comparing process numbers is not enough: in a PID namespace of its own a
 * child may have its parent's number. */
void vpy_forks_notice(void)
{
    if (state->process != getpid() || state->noticed != state->forks)
        forks_drop_parent();
    forks_notify_python();
}

static void count_fork(void)
{
    state->forks++;
}

/* Called by os._exit. Returns whether it ended a recording. */
static bool forks_end_recording(int code)
{
    if (!state->is_unknown_to_python || state->file == NULL ||
        state->kept == NULL)
        return false;
    vpy_child_leave(state->kept, code);
    return true;
}

static void begin_recording(PyObject *session)
{
    sigset_t before;

    state->forked_by = origin;
    if (session == NULL) {
        forks_notify_python();
        call_follower(Py_None);
        return;
    }
    if (found.has_processes && vpy_child_expects() != NULL)
        forks_call(vpy_child_expects(), PyTuple_New(0));
    vpy_signals_block(&before);
    state->is_unknown_to_python = false; /* or starting would notify Python */
    state->kept = session;
    state->file = vpy_child_go_on(session, &origin);
    state->is_unknown_to_python = true;
    if (state->file != NULL)
        vpy_exits_watch_child(forks_end_recording);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Puts off collections: a collection would copy every page that has objects,
 * and may not run at a time at which it would not run without vestige. So our
 * objects are not counted either. */
static PyObject *forks_after_fork_in_child(PyObject *module, PyObject *unused)
{
    bool follows =
        state->follower != NULL && vpy_is_recording() && !is_for_exec;
    PyObject *session =
        follows && found.follows_plan ? vpy_sessions.session.recording : NULL;
    int were_on = vpy_collections_put_off(), young = vpy_young_objects();

    (void)module, (void)unused;
    vpy_thunks_pass_on(follows);
    forks_drop_parent();
    vpy_thunks_pass_on(false);
    if (follows)
        begin_recording(session);
    else if (found.has_framework)
        forks_notify_python();
    vpy_engine_give_up(); /* the child is not recorded */
    if (!vpy_is_active())
        vpy_gc_give_up();
    vpy_young_objects_set(young);
    vpy_collections_go_on(were_on);
    Py_RETURN_NONE;
}

static PyMethodDef before_method = {"vestige_before_fork", forks_before_fork,
                                    METH_NOARGS, NULL};
static PyMethodDef parent_method = {"vestige_after_fork_in_parent",
                                    after_fork_in_parent, METH_NOARGS, NULL};
static PyMethodDef child_method = {
    "vestige_after_fork", forks_after_fork_in_child, METH_NOARGS, NULL};

static PyObject *follow_forks(PyObject *module, PyObject *args)
{
    PyObject *function, *plan = Py_None;

    (void)module;
    if (!PyArg_ParseTuple(args, "O|O:follow_forks", &function, &plan) ||
        vpy_child_plan_set(plan) < 0)
        return NULL;
    Py_INCREF(function);
    Py_XSETREF(state->follower, function);
    if (function == Py_None)
        Py_CLEAR(state->follower);
    Py_RETURN_NONE;
}

static PyObject *call_after_fork(PyObject *module, PyObject *function)
{
    (void)module;
    Py_INCREF(function);
    Py_XSETREF(state->first, function);
    Py_RETURN_NONE;
}

static PyObject *notice_fork(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    vpy_forks_notice();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"call_after_fork", call_after_fork, METH_O,
     PyDoc_STR("call_after_fork(function)\n--\n\nCall function(session) "
               "in every forked child, before the function of follow_forks(). "
               "session is the session that goes on recording, or None.")},
    {"notice_fork", notice_fork, METH_NOARGS,
     PyDoc_STR("notice_fork()\n--\n\nDo what a forked child does first, if "
               "this process was forked without the interpreter knowing.")},
    {"follow_forks", follow_forks, METH_VARARGS,
     PyDoc_STR("follow_forks(function, plan=None)\n--\n\nCall function(pid, "
               "tid, time_ns, path) in every child forked while recording; "
               "None: call nothing. With a plan the child is recorded in the "
               "file path without calling function, which is then called when "
               "a profile is used.")},
    {NULL, NULL, 0, NULL},
};

int vpy_forks_init(PyObject *module)
{
    PyObject *os = PyImport_ImportModule("os");
    PyObject *method =
        os != NULL ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
    PyObject *before = PyCFunction_New(&before_method, NULL);
    PyObject *parent = PyCFunction_New(&parent_method, NULL);
    PyObject *child = PyCFunction_New(&child_method, NULL);
    PyObject *kwargs =
        before != NULL && parent != NULL && child != NULL
            ? Py_BuildValue("{s:O,s:O,s:O}", "before", before,
                            "after_in_parent", parent, "after_in_child", child)
            : NULL;
    PyObject *arguments = PyTuple_New(0);
    PyObject *result = method != NULL && kwargs != NULL && arguments != NULL
                           ? PyObject_Call(method, arguments, kwargs)
                           : NULL;
    int failed = result == NULL;

    state->process = getpid();
    pthread_atfork(NULL, NULL, count_fork);
    Py_XDECREF(result);
    Py_XDECREF(arguments);
    Py_XDECREF(kwargs);
    Py_XDECREF(child);
    Py_XDECREF(parent);
    Py_XDECREF(before);
    Py_XDECREF(method);
    Py_XDECREF(os);
    return failed ? -1 : PyModule_AddFunctions(module, functions);
}
