/* For test_traceback_native.py: C functions that call Python, that capture
 * tracebacks with the GIL and without, and that drop tracebacks under a lock,
 * in signal handlers and after the interpreter's end. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <vestige/api.h>

enum { BOTH = VST_TRACEBACK_LANGUAGE | VST_TRACEBACK_NATIVE };

static const vst_api *api;

static PyObject *object_of(vst_traceback *traceback)
{
    return traceback ? api->traceback_object(traceback) : PyErr_NoMemory();
}

/* ---- C between Python and Python ----------------------------------------- */

__attribute__((noinline)) PyObject *helper_first(PyObject *m,
                                                 PyObject *callable)
{
    PyObject *result = PyObject_CallNoArgs(callable);
    __asm__ volatile("" ::: "memory"); /* prevents a tail call */
    return result;
}

__attribute__((noinline)) PyObject *helper_second(PyObject *m,
                                                  PyObject *callable)
{
    PyObject *result = PyObject_CallNoArgs(callable);
    __asm__ volatile("" ::: "memory");
    return result;
}

__attribute__((noinline)) PyObject *helper_capture(PyObject *m, PyObject *none)
{
    return object_of(api->traceback_capture(BOTH, 0));
}

/* ---- without the GIL ---------------------------------------------------- */

static PyObject *capture_without_gil(PyObject *m, PyObject *none)
{
    vst_traceback *traceback;

    Py_BEGIN_ALLOW_THREADS;
    traceback = api->traceback_capture(BOTH, 0);
    Py_END_ALLOW_THREADS;
    return object_of(traceback);
}

static void *capture_thread(void *result)
{
    *(vst_traceback **)result = api->traceback_capture(BOTH, 0);
    return NULL;
}

/* Holds the GIL all the time: the thread, which Python does not know, needs no
 * GIL. */
static PyObject *capture_in_c_thread(PyObject *m, PyObject *none)
{
    vst_traceback *traceback = NULL;
    pthread_t thread;

    pthread_create(&thread, NULL, capture_thread, &traceback);
    pthread_join(thread, NULL);
    return object_of(traceback);
}

static void *release_thread(void *traceback)
{
    api->traceback_release(traceback);
    return NULL;
}

static PyObject *release_in_c_thread(PyObject *m, PyObject *none)
{
    vst_traceback *traceback =
        api->traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
    pthread_t thread;

    pthread_create(&thread, NULL, release_thread, traceback);
    pthread_join(thread, NULL);
    Py_RETURN_NONE;
}

/* ---- GIL, then device lock; device lock, then the last release ---------- */

static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static vst_traceback *handed_over; /* device */
static atomic_bool is_over;

static void *drop_under_lock(void *released)
{
    while (!atomic_load(&is_over)) {
        pthread_mutex_lock(&device);
        if (handed_over != NULL)
            atomic_fetch_add((atomic_long *)released, 1);
        api->traceback_release(handed_over);
        handed_over = NULL;
        pthread_mutex_unlock(&device);
    }
    return NULL;
}

static PyObject *deadlock(PyObject *m, PyObject *rounds)
{
    long count = PyLong_AsLong(rounds);
    atomic_long released = 0;
    pthread_t thread;

    atomic_store(&is_over, false);
    pthread_create(&thread, NULL, drop_under_lock, &released);
    /* At least this many, and until the other thread has run. */
    for (long i = 0; i < count || atomic_load(&released) == 0; i++) {
        vst_traceback *own = api->traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
        pthread_mutex_lock(&device); /* with the GIL */
        api->traceback_release(handed_over);
        handed_over = own;
        pthread_mutex_unlock(&device);
        if (i % 16 == 0)
            sched_yield();
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    api->traceback_release(handed_over);
    handed_over = NULL;
    return PyLong_FromLong(atomic_load(&released));
}

/* ---- signals ------------------------------------------------------------ */

static uintptr_t addresses[256];
static size_t addresses_count;

static void on_signal(int number)
{
    addresses_count = api->traceback_addresses(addresses, 256, 0);
}

__attribute__((noinline)) PyObject *helper_signal(PyObject *m, PyObject *none)
{
    struct sigaction action = {.sa_handler = on_signal}, old;

    sigaction(SIGUSR2, &action, &old);
    raise(SIGUSR2);
    sigaction(SIGUSR2, &old, NULL);
    return object_of(api->traceback_of(addresses, addresses_count));
}

/* ---- the end ------------------------------------------------------------ */

static atomic_bool is_exiting;
static atomic_long taken;
static pthread_t late;

/* Called by Python in a thread that threading does not join. Never returns to
 * Python. */
static PyObject *capture_until_exit(PyObject *m, PyObject *none)
{
    late = pthread_self();
    PyEval_SaveThread();
    while (!atomic_load(&is_exiting)) {
        api->traceback_release(api->traceback_capture(BOTH, 0));
        atomic_fetch_add(&taken, 1);
    }
    pthread_exit(NULL);
}

static PyObject *captures(PyObject *m, PyObject *none)
{
    return PyLong_FromLong(atomic_load(&taken));
}

static void after_the_interpreter(void)
{
    long before = atomic_load(&taken);

    while (late && atomic_load(&taken) < before + 1000)
        sched_yield();
    atomic_store(&is_exiting, true);
    if (late)
        pthread_join(late, NULL);
    api->traceback_release(api->traceback_capture(BOTH, 0));
    api->traceback_release(handed_over);
    printf("initialized %d, captured\n", Py_IsInitialized());
    fflush(stdout);
}

static PyObject *capture_after_the_end(PyObject *m, PyObject *none)
{
    handed_over = api->traceback_capture(BOTH, 0);
    atexit(after_the_interpreter);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"first", helper_first, METH_O, NULL},
    {"second", helper_second, METH_O, NULL},
    {"capture", helper_capture, METH_NOARGS, NULL},
    {"capture_without_gil", capture_without_gil, METH_NOARGS, NULL},
    {"capture_in_c_thread", capture_in_c_thread, METH_NOARGS, NULL},
    {"release_in_c_thread", release_in_c_thread, METH_NOARGS, NULL},
    {"deadlock", deadlock, METH_O, NULL},
    {"signal", helper_signal, METH_NOARGS, NULL},
    {"capture_until_exit", capture_until_exit, METH_NOARGS, NULL},
    {"captures", captures, METH_NOARGS, NULL},
    {"capture_after_the_end", capture_after_the_end, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "traceback_helper",
                                 NULL, -1, methods};

PyMODINIT_FUNC PyInit_traceback_helper(void)
{
    PyObject *module;

    api = PyCapsule_Import(VST_API_CAPSULE, 0);
    if (!api || api->size < sizeof *api)
        return NULL;
    module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module != NULL)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
