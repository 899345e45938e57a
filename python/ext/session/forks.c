/* Forks, as the interpreter reports them: what is noted before a fork, and what
 * a child does first. The child drops its parent's recording, whose file the
 * core has closed in it already, and calls the function that starts a recording
 * of its own, if there is one.
 *
 * Only the thread that forked runs in a child, and it holds the GIL; what other
 * threads were in the middle of stays as it was. The interpreter does not
 * report a child that C code forks (as uWSGI does). It runs on unrecorded: the
 * core refuses its records, and it drops what belongs to its parent when it
 * first uses us. */
#include "session/session.h"

#include "annotate/annotate.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "calls/turbo_frames.h"
#include "memory/memory.h"
#include "thunks/thunks.h"
#include "traceback/traceback.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static PyObject *follower; /* called in a child of a recording, or NULL */
static PyObject *first;    /* called in every child before, NULL: not set */
static pid_t process;      /* the process that our state belongs to */
static unsigned forks, noticed; /* seen by atfork, and dealt with */

/* Of the fork this thread is about to make. */
static _Thread_local struct {
    long pid, tid;
    long long time_ns;
} origin;

static PyObject *before_fork(PyObject *module, PyObject *unused)
{
    struct timespec now;

    (void)module, (void)unused;
    if (follower != NULL) {
        clock_gettime(CLOCK_REALTIME, &now);
        origin.pid = getpid();
        origin.tid = vpy_thread_id();
        origin.time_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
        vpy_state_take();
        vpy_thunks_look(); /* or every child would have to */
        vpy_state_give();
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

/* Calls a function with signals blocked: a handler of the program's would run
 * inside the call, and an exception from it would be lost. Takes over the
 * arguments. */
static void call(PyObject *function, PyObject *arguments)
{
    PyObject *result = NULL;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    Py_INCREF(function);
    if (arguments != NULL)
        result = PyObject_CallObject(function, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(result);
    Py_DECREF(function);
    PyErr_Clear();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Drops all that belongs to the parent. */
static void let_go(void)
{
    process = getpid();
    noticed = forks;
    vpy_lock_after_fork(&vpy_control_lock);
    vpy_lock_after_fork(&vpy_state_lock);
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
    if (first != NULL)
        call(first, PyTuple_New(0));
}

/* The number of the process is not enough: in a namespace of its own a child
 * may have its parent's. */
void vpy_forks_notice(void)
{
    if (process != getpid() || noticed != forks)
        let_go();
}

static void count_fork(void)
{
    forks++;
}

/* A collection would copy every page that has objects, and come when none comes
 * without us: it is put off, and our objects are not counted. */
static PyObject *after_fork_in_child(PyObject *module, PyObject *unused)
{
    bool follows = follower != NULL && vpy_is_recording();
    int were_on = vpy_collections_put_off(), young = vpy_young_objects();

    (void)module, (void)unused;
    vpy_thunks_pass_on(follows);
    let_go();
    vpy_thunks_pass_on(false);
    if (follows)
        call(follower,
             Py_BuildValue("(llL)", origin.pid, origin.tid, origin.time_ns));
    vpy_engine_give_up(); /* the child is not recorded */
    vpy_young_objects_set(young);
    vpy_collections_go_on(were_on);
    Py_RETURN_NONE;
}

static PyMethodDef before_method = {"vestige_before_fork", before_fork,
                                    METH_NOARGS, NULL};
static PyMethodDef parent_method = {"vestige_after_fork_in_parent",
                                    after_fork_in_parent, METH_NOARGS, NULL};
static PyMethodDef child_method = {"vestige_after_fork", after_fork_in_child,
                                   METH_NOARGS, NULL};

static PyObject *follow_forks(PyObject *module, PyObject *function)
{
    (void)module;
    Py_INCREF(function);
    Py_XSETREF(follower, function);
    if (function == Py_None)
        Py_CLEAR(follower);
    Py_RETURN_NONE;
}

static PyObject *call_after_fork(PyObject *module, PyObject *function)
{
    (void)module;
    Py_INCREF(function);
    Py_XSETREF(first, function);
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
     PyDoc_STR("call_after_fork(function)\n--\n\nCall function() in every "
               "forked child, before what follow_forks() names.")},
    {"notice_fork", notice_fork, METH_NOARGS,
     PyDoc_STR("notice_fork()\n--\n\nDoes what a forked child does first, if "
               "this is one and nobody said so.")},
    {"follow_forks", follow_forks, METH_O,
     PyDoc_STR("follow_forks(function)\n--\n\nCall function(pid, tid, time_ns) "
               "in every child forked while recording; None: nothing.")},
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

    process = getpid();
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
