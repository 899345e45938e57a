/* The nodes of execution traces: how many there are, and the id of each. Traces
 * are read without the GIL and are busy meanwhile. */
#include "read/trace.h"

#include "graph/nodes.h"

#include <stdlib.h>

#include <vestige/graph.h>

PyObject *vpy_trace_count_nodes(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", NULL};
    vpy_trace *self = (vpy_trace *)object;
    vst_error error = {VST_OK, 0, 0};
    uint64_t count = 0;
    vst_status status;
    int all = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$p:count_nodes", names,
                                     &all) ||
        !vpy_trace_is_usable(self))
        return NULL;
    vpy_trace_begin(self, NULL);
    Py_BEGIN_ALLOW_THREADS
    status = vst__trace_count_nodes(self->handle, vpy_trace_window(all, -1),
                                    &count, &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    if (status != VST_OK)
        return vpy_raise(status, &error, self->path);
    return PyLong_FromUnsignedLongLong(count);
}

/* ---- ids --------------------------------------------------------------- */

typedef struct pairs {
    uint64_t (*of)[2];
    size_t count, capacity;
} pairs;

static vst_status add_pair(void *ctx, uint64_t record, uint64_t id)
{
    pairs *list = ctx;

    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 1024;
        void *grown = realloc(list->of, capacity * sizeof *list->of);
        if (grown == NULL)
            return VST_E_NOMEM;
        list->of = grown;
        list->capacity = capacity;
    }
    list->of[list->count][0] = record;
    list->of[list->count++][1] = id;
    return VST_OK;
}

static PyObject *as_dict(const pairs *list)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict != NULL && i < list->count; i++) {
        PyObject *record = PyLong_FromUnsignedLongLong(list->of[i][0]);
        PyObject *id = PyLong_FromUnsignedLongLong(list->of[i][1]);
        if (record == NULL || id == NULL ||
            PyDict_SetItem(dict, record, id) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(record);
        Py_XDECREF(id);
    }
    return dict;
}

PyObject *vpy_node_ids(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"traces", "all_windows", "observer", NULL};
    PyObject *list, *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    unsigned observer = 0;
    pairs found = {NULL, 0, 0};
    vst_status status;
    int all = 1;
    PyObject *traces;
    vst_trace **handles;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$pI:node_ids", names, &list,
                                     &all, &observer))
        return NULL;
    traces = PySequence_Tuple(list);
    handles = traces != NULL ? vpy_traces_borrow(traces, NULL) : NULL;
    if (handles != NULL) {
        size_t count = (size_t)PyTuple_GET_SIZE(traces);
        Py_BEGIN_ALLOW_THREADS
        status = vst__traces_node_ids(handles, count, vpy_trace_window(all, -1),
                                      observer, add_pair, &found, &error);
        Py_END_ALLOW_THREADS
        vpy_traces_give_back(traces, handles);
        result = status == VST_OK ? as_dict(&found)
                                  : vpy_raise(status, &error, NULL);
    }
    free(found.of);
    Py_XDECREF(traces);
    return result;
}
