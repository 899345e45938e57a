/* Trace.device_sums(): what devices did, added up
 * (replay/device_sums.h). The replay runs without the GIL. */
#include "read/trace.h"

#include "replay/device_sums.h"

static PyObject *named_at(const vst_device_sums *sums, size_t i)
{
    const vst_device_named *n = vst__device_sums_named_at(sums, i);

    return Py_BuildValue(
        "(IsIKLLK)", n->device, vst_activity_kind_name(n->kind), n->id,
        (unsigned long long)n->count, (long long)n->total_ns,
        (long long)n->longest_ns, (unsigned long long)n->bytes);
}

static PyObject *use_at(const vst_device_sums *sums, size_t i)
{
    const vst_device_use *u = vst__device_sums_use_at(sums, i);

    return Py_BuildValue(
        "{sIsNsKsLsLsLsLsLsKsLsLsKsLsKsK}", "device", u->device, "stream",
        u->is_stream ? PyLong_FromUnsignedLong(u->stream) : Py_NewRef(Py_None),
        "works", (unsigned long long)u->works, "start_ns",
        (long long)u->start_ns, "end_ns", (long long)u->end_ns, "span_ns",
        (long long)u->span_ns, "busy_ns", (long long)u->busy_ns, "idle_ns",
        (long long)u->idle_ns, "gaps", (unsigned long long)u->gaps,
        "longest_gap_ns", (long long)u->longest_gap_ns, "unlaunched_ns",
        (long long)u->unlaunched_ns, "launched",
        (unsigned long long)u->launched, "delay_ns", (long long)u->delay_ns,
        "queue_max", (unsigned long long)u->queue_max, "queue_sum",
        (unsigned long long)u->queue_sum);
}

static PyObject *gap_at(const vst_device_sums *sums, size_t i)
{
    const vst_device_gap *g = vst__device_sums_gap_at(sums, i);

    return Py_BuildValue("(ILLLIIIII)", g->device, (long long)g->start_ns,
                         (long long)g->end_ns, (long long)g->unlaunched_ns,
                         g->stream, g->id, g->thread, g->op, g->annotation);
}

static PyObject *list_of(const vst_device_sums *sums, size_t count,
                         PyObject *(*item_of)(const vst_device_sums *, size_t))
{
    PyObject *result = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *item = item_of(sums, i);

        if (item == NULL)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, (Py_ssize_t)i, item);
    }
    return result;
}

static PyObject *build(const vst_device_sums *sums)
{
    PyObject *named =
        list_of(sums, vst__device_sums_named_count(sums), named_at);
    PyObject *uses = list_of(sums, vst__device_sums_use_count(sums), use_at);
    PyObject *gaps = list_of(sums, vst__device_sums_gap_count(sums), gap_at);

    if (named != NULL && uses != NULL && gaps != NULL)
        return Py_BuildValue("{sNsNsN}", "named", named, "uses", uses, "gaps",
                             gaps);
    Py_XDECREF(named);
    Py_XDECREF(uses);
    Py_XDECREF(gaps);
    return NULL;
}

PyObject *vpy_trace_device_sums(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"progress", NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *progress = NULL, *result;
    vst_error error = {VST_OK, 0, 0};
    vst_device_sums *sums = NULL;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$O:device_sums", names,
                                     &progress) ||
        !vpy_trace_is_usable(self))
        return NULL;
    vpy_trace_begin(self, progress);
    Py_BEGIN_ALLOW_THREADS
    status =
        vst__device_sums_create(self->handle, VST_WINDOW_ALL, &sums, &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    result =
        status == VST_OK ? build(sums) : vpy_raise(status, &error, self->path);
    vst__device_sums_destroy(sums);
    return result;
}
