/* A thread of vestige's that sleeps until a descriptor can be read, or until a
 * deadline, and then calls a Python function. Other processes use it to ask
 * this process to record. While nobody asks, the thread takes no lock, not even
 * the GIL, and costs the program nothing.
 *
 * The function returns the seconds until its next call at the latest, a
 * negative number for no deadline, or None to end the watch.
 *
 * Everything below is guarded by the GIL, or the state lock on builds without
 * the GIL, except what the thread reads while it sleeps: these fields do not
 * change while the thread runs. */
#include "base/own_code.h"
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static struct vpy_descriptor_watch_state *const state = &vpy_sessions.watch;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the timeout for poll(), rounded up so that the deadline has passed
 * when poll() returns. */
static int timeout_ms(void)
{
    const double longest_s = 3600;
    double left_s = state->deadline_s - now_s();

    if (state->deadline_s < 0)
        return -1;
    if (left_s <= 0)
        return 0;
    return (int)((left_s < longest_s ? left_s : longest_s) * 1000) + 1;
}

/* Closes the bell, unless a thread may still poll it. */
static void close_bell(void)
{
    if (state->function != NULL || state->is_joined || state->bell < 0)
        return;
    close(state->bell);
    state->bell = -1;
}

/* Returns the function. The caller releases it without holding a lock, since
 * its destructor may run any code. */
static PyObject *descriptors_forget(void)
{
    PyObject *old = state->function;

    state->function = NULL;
    state->paused = false;
    close_bell();
    return old;
}

/* Calls the function. Returns false if the watch is over. */
static bool descriptors_call(void)
{
    PyObject *callable, *result = NULL;
    bool goes_on;

    vpy_state_take();
    callable = Py_XNewRef(state->function);
    vpy_state_give();
    if (callable != NULL)
        result = PyObject_CallNoArgs(callable);
    goes_on = callable == NULL || (result != NULL && result != Py_None);
    if (result != NULL && goes_on) {
        double seconds = PyFloat_AsDouble(result);
        state->deadline_s = seconds < 0 ? -1 : now_s() + seconds;
    }
    Py_XDECREF(callable);
    Py_XDECREF(result);
    PyErr_Clear();
    return goes_on;
}

/* Called by the thread before it ends by itself; nobody joins it then. */
static void descriptors_retire(void)
{
    PyObject *old;

    vpy_state_take();
    if (state->is_there)
        pthread_detach(pthread_self());
    state->is_there = false;
    old = descriptors_forget();
    vpy_state_give();
    Py_XDECREF(old);
}

static void *descriptors_watch(void *unused)
{
    bool goes_on = true;

    (void)unused;
    vpy_thread_is_ours = true;
    state->thread_id = vpy_thread_id();
    while (goes_on) {
        struct pollfd both[] = {{.fd = state->descriptor, .events = POLLIN},
                                {.fd = state->bell, .events = POLLIN}};
        PyGILState_STATE gil;
        if (poll(both, 2, timeout_ms()) < 0 && errno != EINTR)
            break;
        if (both[1].revents)
            break;
        gil = PyGILState_Ensure();
        goes_on = descriptors_call();
        if (!goes_on)
            descriptors_retire();
        PyGILState_Release(gil);
    }
    return NULL;
}

/* Starts the thread with all signals blocked, so that no handler of the program
 * runs in it, except signals that the kernel sends to the thread that caused
 * them. */
static bool descriptors_start(void)
{
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t most, before;

    sigfillset(&most);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&most, own[i]);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    state->is_there =
        pthread_create(&state->thread, NULL, descriptors_watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (state->is_there)
        pthread_setname_np(state->thread, "vestige");
    return state->is_there;
}

/* Ends the thread and waits for its end, unless there is none or it is the
 * calling thread. for_fork: the thread is started again after the fork. */
static void descriptors_end_thread(bool for_fork)
{
    const uint64_t one = 1;
    pthread_t ending;
    ssize_t written;
    bool ends;

    vpy_state_take();
    ends = state->is_there && !pthread_equal(state->thread, pthread_self());
    ending = state->thread;
    if (ends) {
        state->is_there = false;
        state->is_joined = true;
        state->paused = for_fork;
        written = write(state->bell, &one, sizeof one);
        (void)written;
    }
    vpy_state_give();
    if (!ends)
        return;
    vpy_join(ending, &state->thread_id);
    vpy_state_take();
    state->is_joined = false;
    close_bell();
    vpy_state_give();
}

/* ---- around a fork ------------------------------------------------------- */

/* Since 3.12 Python warns of a fork in a process with several threads. Our
 * thread must not cause that warning, so it is stopped for the fork. */
void vpy_watch_before_fork(void)
{
    descriptors_end_thread(true);
}

static int descriptors_resume(void *unused)
{
    uint64_t rung;
    ssize_t got;

    (void)unused;
    vpy_state_take();
    if (state->paused && state->function != NULL) {
        got = read(state->bell, &rung, sizeof rung);
        (void)got;
        descriptors_start();
    }
    state->paused = false;
    vpy_state_give();
    return 0;
}

/* Since 3.13 Python counts threads after it has called this function, so a
 * pending call in the main thread restarts the thread, as in flight.c. */
void vpy_watch_after_fork_in_parent(void)
{
    bool was_paused;

    vpy_state_take();
    was_paused = state->paused;
    vpy_state_give();
    if (was_paused && (vpy_thread_id() != getpid() ||
                       Py_AddPendingCall(descriptors_resume, NULL) < 0))
        descriptors_resume(NULL);
}

/* The child does not have the thread, and does not answer requests to its
 * parent. */
void vpy_watch_after_fork(void)
{
    PyObject *old;

    vpy_state_take();
    state->is_there = state->is_joined = false;
    old = descriptors_forget();
    vpy_state_give();
    Py_XDECREF(old);
}

/* ---- functions of the module --------------------------------------------- */

/* Call with the state lock. Returns false with errno set if the system refused,
 * or errno 0 if no thread could be started. */
static bool descriptors_begin(int watched, PyObject *callable)
{
    state->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (state->bell < 0)
        return false;
    errno = 0;
    state->descriptor = watched;
    state->deadline_s = -1;
    state->function = Py_NewRef(callable);
    return descriptors_start();
}

static PyObject *watch_descriptor(PyObject *module, PyObject *args)
{
    PyObject *callable, *old = NULL;
    bool is_free, begun = false;
    int watched, error;

    (void)module;
    if (!PyArg_ParseTuple(args, "iO:watch_descriptor", &watched, &callable))
        return NULL;
    vpy_state_take();
    is_free = state->function == NULL && !state->is_joined;
    if (is_free)
        begun = descriptors_begin(watched, callable);
    error = errno;
    if (is_free && !begun)
        old = descriptors_forget();
    vpy_state_give();
    Py_XDECREF(old);
    if (begun || !is_free)
        return PyBool_FromLong(begun);
    errno = error;
    if (error != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    PyErr_SetString(PyExc_RuntimeError, "no thread could be started");
    return NULL;
}

static PyObject *unwatch_descriptor(PyObject *module, PyObject *unused)
{
    PyObject *old;

    (void)module, (void)unused;
    descriptors_end_thread(false);
    vpy_state_take();
    old = descriptors_forget();
    vpy_state_give();
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef vpy_watch_functions[] = {
    {"watch_descriptor", watch_descriptor, METH_VARARGS,
     PyDoc_STR("watch_descriptor(fd, function, /)\n--\n\nHave a thread call "
               "function() whenever fd can be read. function() returns the "
               "seconds until its next call at the latest, a negative number "
               "for no deadline, or None to end the watch. Returns False if "
               "another watch is not over yet.")},
    {"unwatch_descriptor", unwatch_descriptor, METH_NOARGS,
     PyDoc_STR("unwatch_descriptor()\n--\n\nEnd the watch, if there is one. "
               "Do not call this from the watch's function.")},
    {NULL, NULL, 0, NULL},
};
