/* Records garbage collections as spans: a callback in gc.callbacks, which the
 * interpreter calls before and after a collection, in the thread that
 * collects. */
#include "program/program.h"

#include "base/inside.h"
#include "calls/engine.h"
#include "calls/ids.h"
#include "thunks/thunks.h"

#include <stdio.h>

enum { FULL = 2 }; /* the generation of a full collection */

static struct vpy_gc_state *const state = &vpy_program.gc;

static long long gc_counted(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? vpy_dict_get_named(info, key) : NULL;
    long long number =
        value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;

    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}

/* Writes what a collection freed; of a full one also how many objects it looked
 * at, if we know where the collector counts those that stay. */
static int gc_describe_end(PyObject *info, char *text, size_t room)
{
    const Py_ssize_t *survivors = vpy_base.inside.survivors;
    long long collected = gc_counted(info, "collected");
    int length =
        snprintf(text, room, "\"collected\": %lld, \"uncollectable\": %lld",
                 collected, gc_counted(info, "uncollectable"));

    if (survivors != NULL && collected >= 0 &&
        gc_counted(info, "generation") == FULL)
        length +=
            snprintf(text + length, room - (size_t)length,
                     ", \"examined\": %lld", (long long)*survivors + collected);
    return length;
}

static PyObject *on_gc(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    char text[128];
    int length;

    (void)self;
    if (count != 2 || !vpy_is_active() || !PyUnicode_Check(args[0]))
        Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        /* The engine checks its hooks now and then: this is a good moment. */
        vpy_engine_check_thread();
        if (state->id_since != vpy_generation_now())
            Py_RETURN_NONE; /* a call for the previous recording */
        vst_record(VST_ENTER, state->id);
        state->begun_in = vpy_generation_now();
        length = snprintf(text, sizeof text, "\"generation\": %lld",
                          gc_counted(args[1], "generation"));
        vst_record_args(text, (size_t)length);
    } else if (state->begun_in == vpy_generation_now()) {
        /* The condition is false after a fork inside the collection. */
        length = gc_describe_end(args[1], text, sizeof text);
        vst_record_args(text, (size_t)length);
        vst_record(VST_EXIT, state->id);
    }
    Py_RETURN_NONE;
}

static PyMethodDef on_gc_method = {
    "vestige_gc_callback", (PyCFunction)(void (*)(void))on_gc, METH_FASTCALL,
    "Records garbage collections while vestige is recording."};

int vpy_gc_init(void)
{
    if (state->module == NULL)
        state->module = PyImport_ImportModule("gc");
    return state->module != NULL ? 0 : -1;
}

static PyObject *callback_list(void)
{
    PyObject *list = PyObject_GetAttrString(state->module, "callbacks");

    if (list != NULL && !PyList_Check(list))
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

/* Returns a copy of the list with our callback as the last item, or without our
 * callback. Compares by identity, as == would run the program's __eq__. */
static PyObject *copy_changed(PyObject *seen, bool is_in)
{
    PyObject *copy = PyList_New(0);
    int result = copy != NULL ? 0 : -1;

    for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(seen); i++)
        if (PyList_GET_ITEM(seen, i) != state->callback)
            result = PyList_Append(copy, PyList_GET_ITEM(seen, i));
    if (result == 0 && is_in)
        result = PyList_Append(copy, state->callback);
    if (result < 0)
        Py_CLEAR(copy);
    return copy;
}

static bool have_same_items(PyObject *one, PyObject *other)
{
    Py_ssize_t count = PyList_GET_SIZE(one);

    if (count != PyList_GET_SIZE(other))
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_GET_ITEM(one, i) != PyList_GET_ITEM(other, i))
            return false;
    return true;
}

static void gc_swap_items(PyListObject *one, PyListObject *other)
{
    PyObject **items = one->ob_item;
    Py_ssize_t allocated = one->allocated, count = Py_SIZE(one);

    one->ob_item = other->ob_item;
    one->allocated = other->allocated;
    Py_SET_SIZE(one, Py_SIZE(other));
    other->ob_item = items;
    other->allocated = allocated;
    Py_SET_SIZE(other, count);
}

/* Puts the items of `wanted` into the list, and returns false if the list has
 * changed since it was copied to `seen`. A thread that collects reads the list
 * without a lock, so the list changes in a stopped world. Nothing may be
 * allocated or freed there, so the two lists swap their items. */
static bool gc_replace_items(PyObject *list, PyObject *seen, PyObject *wanted,
                             vst_id id)
{
    bool is_as_seen;

    vpy_world_stop();
    is_as_seen = have_same_items(list, seen);
    if (is_as_seen) {
        gc_swap_items((PyListObject *)list, (PyListObject *)wanted);
        state->id = id;
        state->id_since = vpy_generation_now();
    }
    vpy_world_start();
    return is_as_seen;
}

/* Adds our callback, which records this id, as the last item of the list, or
 * removes it. */
static int change_list(PyObject *list, bool is_in, vst_id id)
{
    int were_on = vpy_collections_put_off(), result = 0;
    bool is_changed = false;

    while (result == 0 && !is_changed) {
        PyObject *seen = PyList_GetSlice(list, 0, PY_SSIZE_T_MAX);
        PyObject *wanted = seen != NULL ? copy_changed(seen, is_in) : NULL;
        if (wanted != NULL)
            is_changed = gc_replace_items(list, seen, wanted, id);
        else
            result = -1;
        Py_XDECREF(wanted);
        Py_XDECREF(seen);
    }
    vpy_collections_go_on(were_on);
    return result;
}

int vpy_gc_start(vpy_tracer *tracer)
{
    static const char name[] = "Python GC";
    vst_definition definition = {
        .kind = VST_DEF_GC, .name = name, .name_len = sizeof name - 1};
    PyObject *list;
    vst_id id;

    if (vst_recording_define_id(tracer->recording, &definition, &id) != VST_OK)
        return -1;
    if (state->callback != NULL) { /* a forked child got it from its parent */
        state->id = id;
        state->id_since = vpy_generation_now();
        return 0;
    }
    list = callback_list();
    state->callback =
        list != NULL ? PyCFunction_New(&on_gc_method, NULL) : NULL;
    if (state->callback != NULL && change_list(list, true, id) < 0)
        Py_CLEAR(state->callback);
    Py_XDECREF(list);
    PyErr_Clear();
    return state->callback != NULL ? 0 : -1;
}

void vpy_gc_stop(void)
{
    if (!vpy_thunks_are_passed_on())
        vpy_gc_give_up();
}

void vpy_gc_give_up(void)
{
    PyObject *list = state->callback != NULL ? callback_list() : NULL;

    if (list != NULL)
        change_list(list, false, state->id);
    Py_XDECREF(list);
    Py_CLEAR(state->callback);
    PyErr_Clear();
}

/* ---- callbacks of the program -------------------------------------------- */

/* Returns the code object of a Python function or method (borrowed), or
 * NULL. */
static PyObject *code_of(PyObject *callable)
{
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    return PyFunction_Check(callable) ? PyFunction_GET_CODE(callable) : NULL;
}

uint32_t vpy_gc_callback_ids(vst_id *ids, uint32_t room)
{
    PyObject *list = callback_list(), *copy = NULL;
    uint32_t count = 0;

    /* Do not copy a list that has no callback but ours. */
    if (list != NULL && PyList_GET_SIZE(list) > (state->callback != NULL))
        copy = PyList_GetSlice(list, 0, PY_SSIZE_T_MAX);
    for (Py_ssize_t i = 0; copy != NULL && i < PyList_GET_SIZE(copy); i++) {
        PyObject *code = code_of(PyList_GET_ITEM(copy, i));
        uint32_t value = code != NULL ? vpy_code_value(code) : 0;
        if (!vpy_is_left_out(value) && count < room)
            ids[count++] = VPY_ID(value);
    }
    PyErr_Clear();
    Py_XDECREF(copy);
    Py_XDECREF(list);
    return count;
}
