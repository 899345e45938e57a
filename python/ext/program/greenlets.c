/* Records greenlets, with which a thread switches between call stacks.
 * greenlet.settrace reports every switch of a thread. Each becomes a SWITCH
 * record, so that replay keeps one stack for each greenlet. We never import the
 * module: we look for it whenever a function gets its id, and when it is there
 * we ask all threads that record to set the trace function.
 *
 * Each greenlet is a task (tasks.h): the first switch to it in each chunk of
 * the file records its number and name. The name is the one that the program
 * gave it. gevent would make up and count a name if we asked, so we look into
 * the object's dictionary. A greenlet that begins has no frame yet, which
 * distinguishes it from an earlier greenlet at its address.
 *
 * A trace function that the program has set before is still called, and is set
 * again when recording ends. A trace function that the program sets later
 * replaces ours: greenlet keeps only one. */
#include "program/program.h"

#include <string.h>

#include "base/inside.h"
#include "base/names.h"
#include "calls/ids.h"
#include "program/tasks.h"
#include "record/language.h"
#include "record/tasks.h"

static struct vpy_greenlets_state *const state = &vpy_program.greenlets;

static _Thread_local uint32_t
    watched_generation; /* the recording for which this thread set our trace
                         * function */
static _Thread_local PyObject *previous; /* the program's trace function */

/* The number of a greenlet's stack is its address; that of a thread's main
 * greenlet is 0. */
static uint64_t stack_number(PyObject *object)
{
    PyObject *parent = PyObject_GetAttr(object, state->parent_name);
    bool is_main = parent == Py_None;

    if (parent == NULL)
        PyErr_Clear();
    Py_XDECREF(parent);
    return is_main ? 0 : (uint64_t)(uintptr_t)object;
}

/* ---- greenlets as tasks -------------------------------------------------- */

/* Returns whether the greenlet is gevent's hub, which runs the event loop. */
static bool is_hub(PyObject *object)
{
    PyObject *bases = Py_TYPE(object)->tp_mro, *module;
    bool is_gevent;

    for (Py_ssize_t i = 0; bases != NULL && i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *type = PyTuple_GET_ITEM(bases, i);
        if (strcmp(((PyTypeObject *)type)->tp_name, "Hub") != 0)
            continue;
        module = PyObject_GetAttrString(type, "__module__");
        is_gevent = module != NULL && PyUnicode_Check(module) &&
                    PyUnicode_CompareWithASCIIString(module, "gevent.hub") == 0;
        PyErr_Clear();
        Py_XDECREF(module);
        if (is_gevent)
            return true;
    }
    return false;
}

/* Returns the name that the program gave the greenlet: a new reference, or
 * NULL. */
static PyObject *given_name(PyObject *object)
{
    PyObject **place = _PyObject_GetDictPtr(object);
    PyObject *names, *name = NULL;

    if (place != NULL && *place == NULL)
        return NULL; /* without attributes; do not make a dict for it */
    names = place != NULL ? Py_NewRef(*place)
                          : PyObject_GenericGetDict(object, NULL);
    if (names != NULL && PyDict_Check(names))
        name = vpy_dict_get(names, state->name_name);
    PyErr_Clear();
    Py_XDECREF(names);
    if (name != NULL && !PyUnicode_Check(name))
        Py_CLEAR(name);
    return name;
}

/* Records the program's callbacks of the collector. A collection may begin
 * before the greenlet's first call, and the functions that it calls are not the
 * greenlet's function. */
static void record_collectors(void)
{
    enum { ROOM = 16 };
    vst_id ids[ROOM];
    uint64_t payload[1 + ROOM] = {vst_task_word(VST_TASK_COLLECTORS, 0)};
    uint32_t count = vpy_gc_callback_ids(ids, ROOM);

    for (uint32_t i = 0; i < count; i++)
        payload[1 + i] = ids[i];
    if (count != 0)
        vst__record_task(payload, 1 + count);
}

static VST_COLD void greenlets_introduce(PyObject *object, uint32_t task,
                                         bool begins)
{
    bool hub = is_hub(object);
    PyObject *name = given_name(object), *encoded = NULL;
    const char *bytes = NULL;
    uint32_t length = 0;

    if (name != NULL)
        encoded = vpy_text(name, &bytes, &length);
    PyErr_Clear();
    if (encoded == NULL) {
        bytes = hub ? "Hub" : "";
        length = (uint32_t)strlen(bytes);
    }
    if (begins)
        record_collectors();
    vst__record_task_stack(
        task, (begins ? VST_STACK_BEGINS : 0) | (hub ? VST_STACK_HUB : 0),
        bytes, length);
    Py_XDECREF(encoded);
    Py_XDECREF(name);
}

/* Records which greenlet runs from now on. */
static void record_stack(PyObject *object)
{
    /* This address is no frame's address, because frames have even
     * addresses. */
    const void *key = (const char *)object + 1;
    bool begins = vpy_iframe_running(PyThreadState_Get()) == NULL;
    vpy_known known;

    vpy_steps_now.top.place = NULL; /* the greenlet has another C stack */
    if (!vpy_base.inside.works[VPY_PART_TASKS] || !vpy_known_get(key, &known) ||
        (!begins && !known.is_fresh &&
         known.chunks == vst_thread_buffer->chunks))
        return;
    if (begins || known.is_fresh)
        known.task = vpy_task_new_number();
    known.is_fresh = false;
    known.chunks = vst_thread_buffer->chunks;
    vpy_known_set(&known);
    greenlets_introduce(object, known.task, begins);
}

/* ---- switches ------------------------------------------------------------ */

/* Restores the program's trace function in the current thread, if ours is
 * set. */
static void restore_thread(void)
{
    PyObject *module = vpy_loaded(VPY_NAME_GREENLET);
    PyObject *current =
        module != NULL ? PyObject_CallMethod(module, "gettrace", NULL) : NULL;

    if (current != NULL && current == state->switch_callback) {
        PyObject *result = PyObject_CallMethod(
            module, "settrace", "O", previous != NULL ? previous : Py_None);
        Py_XDECREF(result);
    }
    Py_XDECREF(current);
    Py_XDECREF(module);
    PyErr_Clear();
}

static PyObject *on_switch(PyObject *self, PyObject *const *args,
                           Py_ssize_t count)
{
    PyObject *called, *result;

    (void)self;
    if (!vpy_is_active())
        restore_thread();
    if (vpy_is_active() && count == 2 && PyTuple_Check(args[1]) &&
        PyTuple_GET_SIZE(args[1]) == 2) {
        PyObject *origin = PyTuple_GET_ITEM(args[1], 0);
        PyObject *target = PyTuple_GET_ITEM(args[1], 1);
        if (origin != target) {
            uint64_t stack = stack_number(target);
            vst__record_switch(stack);
            if (stack != 0)
                record_stack(target);
        }
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
    vpy_state_take();
    state->tracer = for_tracer;
    vpy_greenlets_look();
    vpy_state_give();
}

/* Call with the state lock. */
void vpy_greenlets_look(void)
{
    PyObject *module;

    if (state->greenlet != NULL || state->tracer == NULL)
        return;
    module = vpy_loaded(VPY_NAME_GREENLET);
    /* A module that is still being imported has no settrace yet. */
    if (module != NULL && PyObject_HasAttrString(module, "settrace")) {
        if (state->switch_callback == NULL)
            state->switch_callback = PyCFunction_New(&on_switch_method, NULL);
        if (state->parent_name == NULL)
            state->parent_name = PyUnicode_InternFromString("parent");
        if (state->name_name == NULL)
            state->name_name = PyUnicode_InternFromString("name");
        if (state->switch_callback != NULL && state->parent_name != NULL &&
            state->name_name != NULL) {
            state->greenlet = Py_NewRef(module);
            vst__recording_request_attention(state->tracer->recording);
        }
    }
    PyErr_Clear();
    Py_XDECREF(module);
}

void vpy_greenlets_watch_thread(void)
{
    PyObject *module, *before;

    vpy_state_take();
    module = Py_XNewRef(state->greenlet);
    vpy_state_give();
    if (module == NULL || watched_generation == vpy_generation_now()) {
        Py_XDECREF(module);
        return;
    }
    watched_generation = vpy_generation_now();
    before =
        PyObject_CallMethod(module, "settrace", "O", state->switch_callback);
    Py_DECREF(module);
    if (before == NULL) {
        PyErr_Clear();
        return;
    }
    if (before == state->switch_callback)
        Py_DECREF(before); /* ours, left from an earlier recording */
    else
        Py_XSETREF(previous, before);
}

bool vpy_greenlets_is_in_one(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *module = vpy_loaded(VPY_NAME_GREENLET);
    PyObject *current = NULL, *parent = NULL;
    bool is_in_one;

    vpy_hook_enter(tstate); /* calls made here are not the program's */
    if (module != NULL)
        current = PyObject_CallMethod(module, "getcurrent", NULL);
    if (current != NULL)
        parent = PyObject_GetAttrString(current, "parent");
    is_in_one = parent != NULL && parent != Py_None;
    PyErr_Clear();
    vpy_hook_leave(tstate);
    Py_XDECREF(parent);
    Py_XDECREF(current);
    Py_XDECREF(module);
    return is_in_one;
}

/* Restores this thread's trace function. Other threads restore theirs at their
 * next switch. */
void vpy_greenlets_end(void)
{
    if (state->greenlet != NULL && watched_generation == vpy_generation_now()) {
        restore_thread();
        Py_CLEAR(previous);
    }
    vpy_state_take();
    Py_CLEAR(state->greenlet);
    state->tracer = NULL;
    vpy_state_give();
}
