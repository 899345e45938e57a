/* Greenlets: with them a thread changes its call stack. greenlet.settrace
 * reports every switch of a thread. Each becomes a SWITCH record, so that
 * replay keeps one stack for each greenlet. We never import the module: we look
 * for it whenever a function gets its id, and once it is there we ask all
 * threads that record to set the trace function.
 *
 * A trace function that the program has set before is still called, and is put
 * back when recording ends. One that it sets later replaces ours, as greenlet
 * does it. */
#include "program/program.h"

#include "calls/ids.h"

static PyObject *greenlet;        /* the module, while recording */
static PyObject *switch_callback; /* what settrace gets */
static vpy_tracer *tracer;

static _Thread_local uint32_t watched_generation; /* this thread is watched */
static _Thread_local PyObject *previous;          /* the program's own */

/* A greenlet's number is its address; the main one of a thread is 0. */
static uint64_t stack_number(PyObject *object)
{
    PyObject *parent = PyObject_GetAttrString(object, "parent");
    bool is_main = parent == Py_None;

    if (parent == NULL)
        PyErr_Clear();
    Py_XDECREF(parent);
    return is_main ? 0 : (uint64_t)(uintptr_t)object;
}

/* Gives the current thread's trace function back to the program, if it is
 * ours. */
static void restore_thread(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module =
        modules != NULL ? PyDict_GetItemString(modules, "greenlet") : NULL;
    PyObject *current =
        module != NULL ? PyObject_CallMethod(module, "gettrace", NULL) : NULL;

    if (current != NULL && current == switch_callback) {
        PyObject *result = PyObject_CallMethod(
            module, "settrace", "O", previous != NULL ? previous : Py_None);
        Py_XDECREF(result);
    }
    Py_XDECREF(current);
    PyErr_Clear();
}

static PyObject *on_switch(PyObject *self, PyObject *const *args,
                           Py_ssize_t count)
{
    PyObject *called, *result;

    (void)self;
    if (vpy_active == NULL)
        restore_thread();
    if (vpy_active != NULL && count == 2 && PyTuple_Check(args[1]) &&
        PyTuple_GET_SIZE(args[1]) == 2) {
        PyObject *origin = PyTuple_GET_ITEM(args[1], 0);
        PyObject *target = PyTuple_GET_ITEM(args[1], 1);
        if (origin != target)
            vst_record_switch(stack_number(target));
    }
    /* The program's function may stop the recording, which drops our reference
     * while it runs. */
    called = previous != NULL && previous != Py_None ? previous : NULL;
    if (called == NULL)
        Py_RETURN_NONE;
    Py_INCREF(called);
    result = PyObject_Vectorcall(called, args, (size_t)count, NULL);
    Py_DECREF(called);
    return result;
}

static PyMethodDef on_switch_method = {
    "vestige_greenlet_trace", (PyCFunction)(void (*)(void))on_switch,
    METH_FASTCALL, "Records greenlet switches while vestige is recording."};

void vpy_greenlets_begin(vpy_tracer *for_tracer)
{
    tracer = for_tracer;
    vpy_greenlets_look();
}

void vpy_greenlets_look(void)
{
    PyObject *modules, *module;

    if (greenlet != NULL || tracer == NULL)
        return;
    modules = PyImport_GetModuleDict();
    module = modules != NULL ? PyDict_GetItemString(modules, "greenlet") : NULL;
    /* While it is being imported it has no settrace yet. */
    if (module == NULL || !PyObject_HasAttrString(module, "settrace"))
        return;
    if (switch_callback == NULL)
        switch_callback = PyCFunction_New(&on_switch_method, NULL);
    if (switch_callback == NULL) {
        PyErr_Clear();
        return;
    }
    Py_INCREF(module);
    greenlet = module;
    vst_recording_request_attention(tracer->recording);
}

void vpy_greenlets_watch_thread(void)
{
    PyObject *before;

    if (greenlet == NULL || watched_generation == vpy_generation)
        return;
    watched_generation = vpy_generation;
    before = PyObject_CallMethod(greenlet, "settrace", "O", switch_callback);
    if (before == NULL) {
        PyErr_Clear();
        return;
    }
    if (before == switch_callback)
        Py_DECREF(before); /* left from an earlier recording */
    else
        Py_XSETREF(previous, before);
}

/* Only this thread's trace function can be removed now. The others remove
 * theirs at their next switch. */
void vpy_greenlets_end(void)
{
    if (greenlet != NULL && watched_generation == vpy_generation) {
        restore_thread();
        Py_CLEAR(previous);
    }
    Py_CLEAR(greenlet);
    tracer = NULL;
}
