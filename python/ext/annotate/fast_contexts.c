/* Calls torch's _RecordFunctionFast with our profiler in place.
 * _RecordFunctionFast is a context manager that looks for a profiler on its
 * thread twice: if there is a profiler on __enter__ it begins a span; if there
 * is one on __exit__ it ends the span, and raises if it began none. A recording
 * may start, and put its profiler on a thread, while such contexts are open. So
 * we intercept both methods, and put our profiler on the thread before they
 * look. If torch then raises, we repeat the call with our profiler hidden, so
 * that the result is the one without us. Called with the GIL held. */
#include "annotate/annotate.h"

#include "thunks/watched_methods.h"

#include <string.h>

static struct vpy_fast_contexts_state *const state =
    &vpy_annotate.fast_contexts;

typedef struct repeated {
    PyCFunction original;
    PyObject *self, *args, *result;
} repeated;

static void fast_context_repeat(void *ctx)
{
    repeated *r = ctx;

    PyErr_Clear();
    r->result = r->original(r->self, r->args);
}

/* Makes a call with our profiler in place. A thread may keep our profiler after
 * the recording has ended. We intercept calls until all such threads have
 * ended, and one call more. */
static PyObject *fast_context_call(PyCFunction original, PyObject *self,
                                   PyObject *args)
{
    repeated r = {original, self, args, NULL};

    state->attend();
    r.result = original(self, args);
    if (r.result == NULL)
        state->call_without(fast_context_repeat, &r);
    if (!vpy_is_recording() && !state->is_watched())
        vpy_fast_contexts_unwatch();
    return r.result;
}

static PyObject *through_enter(PyObject *self, PyObject *unused)
{
    return fast_context_call(state->enter.original, self, unused);
}

static PyObject *through_exit(PyObject *self, PyObject *args)
{
    return fast_context_call(state->exit.original, self, args);
}

static void watch_type(PyTypeObject *type)
{
    for (PyMethodDef *m = type->tp_methods; m != NULL && m->ml_name != NULL;
         m++) {
        if (strcmp(m->ml_name, "__enter__") == 0)
            vpy_watch(&state->enter, m, METH_NOARGS, through_enter);
        else if (strcmp(m->ml_name, "__exit__") == 0)
            vpy_watch(&state->exit, m, METH_VARARGS, through_exit);
    }
}

void vpy_fast_contexts_unwatch(void)
{
    vpy_unwatch(&state->enter);
    vpy_unwatch(&state->exit);
}

static PyObject *watch_fast_contexts(PyObject *module, PyObject *args)
{
    PyObject *type;
    unsigned long long attend_at, without_at, watched_at;

    (void)module;
    if (!PyArg_ParseTuple(args, "OKKK:watch_fast_contexts", &type, &attend_at,
                          &without_at, &watched_at))
        return NULL;
    if (!PyType_Check(type) || !attend_at || !without_at || !watched_at) {
        vpy_fast_contexts_unwatch();
        Py_RETURN_NONE;
    }
    state->attend = (void (*)(void))(uintptr_t)attend_at;
    state->call_without =
        (void (*)(void (*)(void *), void *))(uintptr_t)without_at;
    state->is_watched = (int (*)(void))(uintptr_t)watched_at;
    watch_type((PyTypeObject *)type);
    Py_RETURN_NONE;
}

PyMethodDef vpy_fast_contexts_functions[] = {
    {"watch_fast_contexts", watch_fast_contexts, METH_VARARGS,
     PyDoc_STR("watch_fast_contexts(type, attend, without, "
               "is_watched)\n--\n\nIntercept the "
               "framework's fast annotations, with functions of its adapter, "
               "given by address. None: stop that.")},
    {NULL, NULL, 0, NULL},
};
