/* Trace.left_out(): when a budget left functions out, and which
 * (<vestige/wire.h>). Read without the GIL. */
#include "read/trace.h"

#include "replay/budget.h"

static PyObject *ids_of(const vst_budget_stretch *stretch)
{
    PyObject *ids = PyTuple_New((Py_ssize_t)stretch->count);

    for (size_t i = 0; ids != NULL && i < stretch->count; i++) {
        PyObject *id = PyLong_FromUnsignedLong(stretch->ids[i]);
        if (id == NULL)
            Py_CLEAR(ids);
        else
            PyTuple_SET_ITEM(ids, (Py_ssize_t)i, id);
    }
    return ids;
}

static PyObject *row_of(const vst_budget_stretch *stretch, int64_t end_ns)
{
    PyObject *ids = ids_of(stretch);
    bool all = stretch->flags & VST_LEFT_OUT_PYTHON;

    if (ids == NULL)
        return NULL;
    if (stretch->end_ns < end_ns)
        end_ns = stretch->end_ns;
    return Py_BuildValue("(LLNN)", (long long)stretch->start_ns,
                         (long long)end_ns, PyBool_FromLong(all), ids);
}

static PyObject *list_of(const vst_budget *budget, int64_t end_ns)
{
    PyObject *list = PyList_New(0);
    vst_budget_info info = {.changes = 0};

    if (budget != NULL)
        vst__budget_get_info(budget, &info);
    for (size_t i = 0; list != NULL && i < info.changes; i++) {
        vst_budget_stretch stretch;
        vst__budget_get_stretch(budget, i, &stretch);
        if (stretch.start_ns >= end_ns ||
            (stretch.count == 0 && !(stretch.flags & VST_LEFT_OUT_PYTHON)))
            continue;
        if (!vpy_append(list, row_of(&stretch, end_ns)))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *vpy_trace_left_out(PyObject *object, PyObject *end_ns)
{
    vpy_trace *self = (vpy_trace *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_budget *budget;
    PyObject *result;
    vst_status status;
    int64_t end = PyLong_AsLongLong(end_ns);

    if (PyErr_Occurred() != NULL || !vpy_trace_is_usable(self))
        return NULL;
    vpy_trace_begin(self, NULL);
    Py_BEGIN_ALLOW_THREADS;
    status = vst__budget_read(self->handle, &budget, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(self);
    result = status == VST_OK ? list_of(budget, end)
                              : vpy_raise(status, &error, self->path);
    vst__budget_free(budget);
    return result;
}
