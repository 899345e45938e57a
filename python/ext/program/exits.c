/* os._exit ends the process immediately and runs nothing that was registered
 * for the end. But a function of ours runs, called from here: it finishes
 * recordings, and may name a command whose output goes to standard error, such
 * as the closing report. The command is a process of its own, because os._exit
 * may be called anywhere: in a signal handler, while another thread holds an
 * import lock, at the end of the stack. The GIL is held while the command runs,
 * or the world is stopped, so that other threads do not go on in a program that
 * has ended.
 *
 * We replace the vectorcall of the function object, which os._exit, posix._exit
 * and all other names share. Meanwhile the object also has a definition without
 * flags: otherwise the interpreter would call the C function directly when it
 * specializes a call. */
#include "program/program.h"

#include "base/inside.h"
#include "thunks/thunks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

static struct vpy_exits_state *const state = &vpy_program.exits;

enum { CHUNK = 512, PATIENCE_MS = 5000 };

static long leaving_now(void)
{
    return __atomic_load_n(&state->leaving, __ATOMIC_RELAXED);
}

/* ---- the command --------------------------------------------------------- */

/* Writes to standard error. Waits for a limited time only: the reader of a pipe
 * may be a thread of this process, which does not run. */
static bool exits_put(const char *bytes, size_t count)
{
    while (count) {
        struct pollfd ready = {.fd = 2, .events = POLLOUT};
        ssize_t written;
        if (poll(&ready, 1, PATIENCE_MS) != 1)
            return false;
        written = write(2, bytes, count < CHUNK ? count : CHUNK);
        if (written < 0 && errno != EAGAIN)
            return false;
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        }
    }
    return true;
}

static void exits_pass_on(int from)
{
    char bytes[4096];
    ssize_t count;

    while ((count = read(from, bytes, sizeof bytes)) > 0)
        if (!exits_put(bytes, (size_t)count))
            return;
}

static bool exits_spawn(char **words, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t child;
    int failed;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    failed =
        posix_spawn(&child, words[0], &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return !failed;
}

/* Runs a command. words: a list of bytes. */
static void run_command(PyObject *words)
{
    size_t count = (size_t)PyList_GET_SIZE(words);
    char **texts = calloc(count + 1, sizeof *texts);
    int ends[2];

    for (size_t i = 0; texts != NULL && i < count; i++) {
        PyObject *word = PyList_GET_ITEM(words, (Py_ssize_t)i);
        texts[i] = PyBytes_Check(word) ? PyBytes_AS_STRING(word) : "";
    }
    if (texts != NULL && count && pipe2(ends, O_CLOEXEC) == 0) {
        bool spawned = exits_spawn(texts, ends[1]);
        close(ends[1]);
        if (spawned)
            exits_pass_on(ends[0]);
        close(ends[0]);
    }
    free(texts);
}

/* ---- the call ------------------------------------------------------------ */

/* Reads the exit code. Returns false if os._exit will refuse these
 * arguments. */
static bool take_code(PyObject *const *args, size_t nargsf, PyObject *names,
                      int *code)
{
    Py_ssize_t named = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    PyObject *number;
    long value;
    int overflow;

    if (PyVectorcall_NARGS(nargsf) + named != 1 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0),
                                                   "status") != 0))
        return false;
    number = PyNumber_Index(args[0]);
    if (number == NULL) {
        PyErr_Clear();
        return false;
    }
    value = PyLong_AsLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    *code = (int)value;
    return !overflow && value >= INT_MIN && value <= INT_MAX;
}

/* Takes the follower and returns its reference, or NULL if there is none. */
static PyObject *take_follower(void)
{
    PyObject *function;

    vpy_state_take();
    function = state->follower;
    state->follower = NULL;
    vpy_state_give();
    return function;
}

static bool has_follower(void)
{
    bool has;

    vpy_state_take();
    has = state->follower != NULL;
    vpy_state_give();
    return has;
}

/* Calls the follower with the whole recursion limit, as the program may have
 * used it up. */
static void exits_call_follower(int code)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *function = take_follower(), *words = NULL;
    vpy_recursion used = {0, 0};

    if (vpy_base.inside.works[VPY_PART_BOTTOM])
        used = vpy_recursion_put_aside(tstate);
    vpy_thunks_pass_on(true); /* never undone: the process ends */
    vpy_collections_put_off();
    if (function != NULL &&
        (state->child_ends == NULL || !state->child_ends(code)))
        words = PyObject_CallFunction(function, "i", code);
    PyErr_Clear();
    if (vpy_base.inside.works[VPY_PART_BOTTOM])
        vpy_recursion_take_back(tstate, used);
    if (words != NULL && PyList_Check(words)) {
        vpy_world_stop();
        run_command(words);
        vpy_world_start();
    }
    Py_XDECREF(words);
    Py_XDECREF(function);
}

/* Waits until another thread has ended the process. Called by a thread that
 * calls os._exit meanwhile. */
static void wait_for_the_end(void)
{
    Py_BEGIN_ALLOW_THREADS;
    for (;;)
        pause();
    Py_END_ALLOW_THREADS;
}

void vpy_signals_block(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static PyObject *exits_leave(PyObject *callable, PyObject *const *args,
                             size_t nargsf, PyObject *names)
{
    PyObject *result;
    sigset_t before;
    long nobody = 0;
    int code;

    if (getpid() != state->owner || !take_code(args, nargsf, names, &code))
        return state->plain_exit(callable, args, nargsf, names);
    if (leaving_now() && leaving_now() != vpy_thread_id())
        wait_for_the_end();
    if (!has_follower())
        return state->plain_exit(callable, args, nargsf, names);
    vpy_signals_block(&before); /* never undone: no handler runs from here on */
    if (!__atomic_compare_exchange_n(&state->leaving, &nobody, vpy_thread_id(),
                                     false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) &&
        nobody != vpy_thread_id())
        wait_for_the_end();
    exits_call_follower(code);
    result = state->plain_exit(callable, args, nargsf, names);
    __atomic_store_n(&state->leaving, 0, __ATOMIC_RELAXED);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static void exits_replace(bool wanted)
{
    if (state->exit_function == NULL || leaving_now())
        return;
    vpy_world_stop();
    state->exit_function->vectorcall = wanted ? exits_leave : state->plain_exit;
    state->exit_function->m_ml =
        wanted ? &state->own_definition : state->plain_definition;
    vpy_world_start();
}

static void exits_own(void)
{
    if (state->owner !=
        getpid()) /* `leaving` was set in the parent of this process */
        __atomic_store_n(&state->leaving, 0, __ATOMIC_RELAXED);
    state->owner = getpid();
}

void vpy_exits_watch_child(bool (*ends)(int code))
{
    exits_own();
    state->child_ends = ends;
}

static PyObject *set_follower(PyObject *module, PyObject *function)
{
    (void)module;
    exits_own();
    Py_XDECREF(take_follower());
    if (function != Py_None) {
        vpy_state_take();
        state->follower = Py_NewRef(function);
        vpy_state_give();
    }
    exits_replace(function != Py_None);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"on_exit", set_follower, METH_O,
     PyDoc_STR("on_exit(function)\n--\n\nos._exit calls function(code) in this "
               "process before ending it; None: it calls nothing. The function "
               "may return a command, as a list of bytes, whose output goes to "
               "standard error.")},
    {NULL, NULL, 0, NULL},
};

/* Must run before any engine changes definitions. */
int vpy_exits_init(PyObject *module)
{
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *found =
        posix != NULL ? PyObject_GetAttrString(posix, "_exit") : NULL;
    PyCFunctionObject *function = (PyCFunctionObject *)found;

    Py_XDECREF(posix);
    PyErr_Clear();
    if (vpy_base.inside.works[VPY_PART_EXITS] && found != NULL &&
        PyCFunction_CheckExact(found) && function->vectorcall != NULL) {
        state->exit_function = function; /* kept for good */
        state->plain_exit = function->vectorcall;
        state->plain_definition = function->m_ml;
        state->own_definition = *function->m_ml;
        state->own_definition.ml_flags = 0;
    } else {
        Py_XDECREF(found);
    }
    return PyModule_AddFunctions(module, functions);
}
