/* Garbage collections as spans: two callbacks in gc.callbacks, called in the
 * thread that collects. The first of the list begins the span and the last ends
 * it, so that what the program's own callbacks call lies inside. */
#include "program/program.h"

#include "calls/engine.h"
#include "calls/ids.h"

#include <stdio.h>

/* These change under the control lock, before the callbacks are in the list and
 * after they have left it. */
static vst_id gc_id;
static PyObject *first, *last; /* while they are in the list */
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

static bool is_phase(PyObject *const *args, Py_ssize_t count, const char *name)
{
    return count == 2 && vpy_is_active() && PyUnicode_Check(args[0]) &&
           PyUnicode_CompareWithASCIIString(args[0], name) == 0;
}

static PyObject *begin_span(PyObject *self, PyObject *const *args,
                            Py_ssize_t count)
{
    char text[128];
    int length;

    (void)self;
    if (!is_phase(args, count, "start"))
        Py_RETURN_NONE;
    /* Now and then the engine checks its hooks: this is a good moment. */
    vpy_engine_check_thread();
    vst_record(VST_ENTER, gc_id);
    begun_in = vpy_generation_now();
    length = snprintf(text, sizeof text, "\"generation\": %lld",
                      counted(args[1], "generation"));
    vst_record_args(text, (size_t)length);
    Py_RETURN_NONE;
}

static PyObject *end_span(PyObject *self, PyObject *const *args,
                          Py_ssize_t count)
{
    char text[128];
    int length;

    (void)self;
    /* Another generation: the program forked inside the collection. */
    if (!is_phase(args, count, "stop") || begun_in != vpy_generation_now())
        Py_RETURN_NONE;
    length = snprintf(
        text, sizeof text, "\"collected\": %lld, \"uncollectable\": %lld",
        counted(args[1], "collected"), counted(args[1], "uncollectable"));
    vst_record_args(text, (size_t)length);
    vst_record(VST_EXIT, gc_id);
    Py_RETURN_NONE;
}

static PyMethodDef begin_span_method = {
    "vestige_gc_callback", (PyCFunction)(void (*)(void))begin_span,
    METH_FASTCALL, "Records that a garbage collection begins."};
static PyMethodDef end_span_method = {
    "vestige_gc_callback", (PyCFunction)(void (*)(void))end_span, METH_FASTCALL,
    "Records that a garbage collection ends."};

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

/* By identity: comparing would run the program's __eq__. */
static void remove_callbacks(PyObject *list)
{
    for (Py_ssize_t i = PyList_GET_SIZE(list); i-- > 0;)
        if (PyList_GET_ITEM(list, i) == first ||
            PyList_GET_ITEM(list, i) == last)
            PyList_SetSlice(list, i, i + 1, NULL);
}

void vpy_gc_stop(void)
{
    PyObject *list = first != NULL ? callback_list() : NULL;

    if (list != NULL) {
        VPY_BEGIN_CRITICAL_SECTION(list);
        remove_callbacks(list);
        VPY_END_CRITICAL_SECTION();
    }
    Py_XDECREF(list);
    Py_CLEAR(first);
    Py_CLEAR(last);
    PyErr_Clear();
}

/* Where one of them does not get in, neither stays. */
static void add_callbacks(void)
{
    PyObject *list = callback_list();

    first = PyCFunction_New(&begin_span_method, NULL);
    last = PyCFunction_New(&end_span_method, NULL);
    if (list == NULL || first == NULL || last == NULL ||
        PyList_Insert(list, 0, first) < 0 || PyList_Append(list, last) < 0)
        vpy_gc_stop();
    Py_XDECREF(list);
    PyErr_Clear();
}

int vpy_gc_start(vpy_tracer *tracer)
{
    static const char name[] = "Python GC";
    vst_definition definition = {
        .kind = VST_DEF_GC, .name = name, .name_len = sizeof name - 1};

    if (first != NULL)
        return 0;
    if (vst_recording_define_id(tracer->recording, &definition, &gc_id) !=
        VST_OK)
        return -1;
    add_callbacks();
    return first != NULL ? 0 : -1;
}
