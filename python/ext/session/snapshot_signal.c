/* Handles the signal that asks for a snapshot while a session is armed.
 *
 * Our handler stays installed while a session is armed. If the program sets its
 * own handler later, or the default (as gunicorn's workers do when they begin),
 * our handler stays in front and calls the program's. For this we intercept
 * _signal.signal. We do not touch handlers that the program installs in C by
 * sigaction().
 *
 * The handler runs in any thread, with or without the GIL. It reads only fields
 * of `state` that change while the handler is not installed, or in an order
 * that is safe at any moment. The rest runs with the GIL held. */
#include "session/session.h"

#include "thunks/watched_methods.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static struct vpy_snapshot_signal_state *const state = &vpy_sessions.signal;

static bool is_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_from_itself(const siginfo_t *info)
{
    return (info->si_code == SI_USER || info->si_code == SI_TKILL) &&
           info->si_pid == getpid();
}

/* Does the signal's default action, which ends, stops or ignores. Called if the
 * program has set the default and sends itself the signal, as programs do to
 * end by a signal. */
static void signal_do_default(int number, const struct sigaction *action)
{
    struct sigaction ours;
    sigset_t only, before;

    sigemptyset(&only);
    sigaddset(&only, number);
    sigaction(number, action, &ours);
    pthread_sigmask(SIG_UNBLOCK, &only, &before);
    raise(number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(number, &ours, NULL);
}

/* Sequentially consistent: either the handler sees that target is NULL, or
 * wait_for_handlers sees the handler. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int before = errno;
    vst_flight *asked;
    struct sigaction next;
    bool takes_default;

    __atomic_add_fetch(&state->handlers_inside, 1, __ATOMIC_SEQ_CST);
    asked = __atomic_load_n(&state->target, __ATOMIC_SEQ_CST);
    next = state->behind.action;
    takes_default = asked != NULL && state->behind.is_chosen &&
                    is_default(&next) && is_from_itself(info);
    if (asked != NULL)
        vst__flight_request(asked, state->reason);
    __atomic_sub_fetch(&state->handlers_inside, 1, __ATOMIC_SEQ_CST);
    if (takes_default)
        signal_do_default(number, &next);
    errno = before;
    if (next.sa_flags & SA_SIGINFO)
        next.sa_sigaction(number, info, context);
    else if (is_function(&next))
        next.sa_handler(number);
}

static bool signal_is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static void wait_for_handlers(void)
{
    while (__atomic_load_n(&state->handlers_inside, __ATOMIC_SEQ_CST))
        sched_yield();
}

/* Installs our handler with the flags of the program's. If the program has no
 * handler, its system calls are restarted. */
static int signal_install(int number, bool is_chosen)
{
    struct sigaction action = {.sa_flags = SA_RESTART}, before;

    if (sigaction(number, NULL, &before) != 0)
        return -1;
    /* The program may have installed our handler again after we removed it. */
    if (!signal_is_ours(&before)) {
        wait_for_handlers();
        state->behind.action = before;
        state->behind.is_chosen = is_chosen;
    }
    if (is_function(&state->behind.action)) {
        action.sa_mask = state->behind.action.sa_mask;
        action.sa_flags =
            state->behind.action.sa_flags & (SA_RESTART | SA_NODEFER);
    }
    action.sa_sigaction = on_signal;
    action.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    if (sigaction(number, &action, NULL) != 0)
        return -1;
    state->installed = number;
    return 0;
}

/* Removes our handler, unless the program has installed another in C
 * meanwhile. */
static void signal_uninstall(void)
{
    struct sigaction current;

    if (state->installed && sigaction(state->installed, NULL, &current) == 0 &&
        signal_is_ours(&current))
        sigaction(state->installed, &state->behind.action, NULL);
    state->installed = 0;
}

/* ---- signal.signal ------------------------------------------------------- */

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

/* Returns whether signal.signal is called for our signal. */
static bool is_about_ours(PyObject *const *args, Py_ssize_t count)
{
    int overflow;

    return state->installed && count > 0 && PyLong_Check(args[0]) &&
           PyLong_AsLongAndOverflow(args[0], &overflow) == state->installed;
}

/* Blocks the signal until our handler is back: the program's choice alone could
 * end the process. */
static PyObject *signal_intercepted(PyObject *module, PyObject *const *args,
                                    Py_ssize_t count)
{
    fast_function original =
        (fast_function)(void (*)(void))state->signal_method.original;
    PyObject *result;
    sigset_t only, before;

    if (!is_about_ours(args, count))
        return original(module, args, count);
    sigemptyset(&only);
    sigaddset(&only, state->installed);
    pthread_sigmask(SIG_BLOCK, &only, &before);
    result = original(module, args, count);
    if (state->installed)
        signal_install(state->installed, true);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static void watch_signal(void)
{
    PyObject *module = vpy_loaded_module("_signal");
    PyObject *dict = module != NULL && PyModule_Check(module)
                         ? PyModule_GetDict(module)
                         : NULL;
    PyObject *function =
        dict != NULL ? PyDict_GetItemString(dict, "signal") : NULL;

    if (function != NULL && PyCFunction_CheckExact(function))
        vpy_watch(&state->signal_method, ((PyCFunctionObject *)function)->m_ml,
                  METH_FASTCALL,
                  (PyCFunction)(void (*)(void))signal_intercepted);
    Py_XDECREF(module);
}

/* ---- begin and end ------------------------------------------------------- */

int vpy_snapshot_signal_begin(int number, vst_flight *flight, uint32_t why)
{
    state->reason = why;
    __atomic_store_n(&state->target, flight, __ATOMIC_SEQ_CST);
    if (signal_install(number, false) != 0)
        return -1;
    watch_signal();
    return 0;
}

static void signal_end(void)
{
    vpy_unwatch(&state->signal_method);
    signal_uninstall();
    __atomic_store_n(&state->target, NULL, __ATOMIC_SEQ_CST);
    wait_for_handlers();
}

void vpy_snapshot_signal_end(const vst_flight *flight)
{
    if (state->target == flight)
        signal_end();
}

/* Call in a forked child. Handlers that were running are in the parent. */
void vpy_snapshot_signal_after_fork(void)
{
    __atomic_store_n(&state->handlers_inside, 0, __ATOMIC_SEQ_CST);
    signal_end();
}
