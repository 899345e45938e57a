/* Garbage collections as spans: a callback in gc.callbacks, called in the
 * thread that collects, before and after. */
#include "program/program.h"

#include "calls/engine.h"
#include "calls/ids.h"

#include <stdio.h>

/* These two change under the control lock, before the callback is in the list
 * and after it has left it. */
static vst_id gc_id;
static PyObject *callback; /* while it is in the list */
/* The generation of the span that is open. One thread collects at a time. */
static uint32_t begun_in;

static long long counted(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? vpy_dict_get_named(info, key) : NULL;
    long long number =
        value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;

    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}

static PyObject *on_gc(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    char text[128];
    int length;

    (void)self;
    if (count != 2 || !vpy_is_active() || !PyUnicode_Check(args[0]))
        Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        /* Now and then the engine checks its hooks: this is a good moment. */
        vpy_engine_check_thread();
        vst_record(VST_ENTER, gc_id);
        begun_in = vpy_generation_now();
        length = snprintf(text, sizeof text, "\"generation\": %lld",
                          counted(args[1], "generation"));
        vst_record_args(text, (size_t)length);
    } else if (begun_in == vpy_generation_now()) {
        /* False after a fork inside the collection. */
        length = snprintf(
            text, sizeof text, "\"collected\": %lld, \"uncollectable\": %lld",
            counted(args[1], "collected"), counted(args[1], "uncollectable"));
        vst_record_args(text, (size_t)length);
        vst_record(VST_EXIT, gc_id);
    }
    Py_RETURN_NONE;
}

static PyMethodDef on_gc_method = {
    "vestige_gc_callback", (PyCFunction)(void (*)(void))on_gc, METH_FASTCALL,
    "Records garbage collections while vestige is recording."};

static PyObject *gc_module; /* imported once, not inside a recording */

int vpy_gc_init(void)
{
    if (gc_module == NULL)
        gc_module = PyImport_ImportModule("gc");
    return gc_module != NULL ? 0 : -1;
}

static PyObject *callback_list(void)
{
    PyObject *list = PyObject_GetAttrString(gc_module, "callbacks");

    if (list != NULL && !PyList_Check(list))
        Py_CLEAR(list);
    PyErr_Clear();
    return list;
}

int vpy_gc_start(vpy_tracer *tracer)
{
    static const char name[] = "Python GC";
    vst_definition definition = {
        .kind = VST_DEF_GC, .name = name, .name_len = sizeof name - 1};
    PyObject *list;

    if (callback != NULL)
        return 0;
    if (vst_recording_define_id(tracer->recording, &definition, &gc_id) !=
        VST_OK)
        return -1;
    list = callback_list();
    callback = list != NULL ? PyCFunction_New(&on_gc_method, NULL) : NULL;
    if (callback != NULL && PyList_Append(list, callback) < 0)
        Py_CLEAR(callback);
    Py_XDECREF(list);
    PyErr_Clear();
    return callback != NULL ? 0 : -1;
}

/* By identity: comparing would run the program's __eq__. */
static void remove_callback(PyObject *list)
{
    for (Py_ssize_t i = PyList_GET_SIZE(list); i-- > 0;)
        if (PyList_GET_ITEM(list, i) == callback)
            PyList_SetSlice(list, i, i + 1, NULL);
}

void vpy_gc_stop(void)
{
    PyObject *list = callback != NULL ? callback_list() : NULL;

    if (list != NULL) {
        VPY_BEGIN_CRITICAL_SECTION(list);
        remove_callback(list);
        VPY_END_CRITICAL_SECTION();
    }
    Py_XDECREF(list);
    Py_CLEAR(callback);
    PyErr_Clear();
}
