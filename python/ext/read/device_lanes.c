/* vestige._core.DeviceLanes: what the devices of a trace did as lanes of a
 * picture (<vestige/device_lanes.h>). Any thread may ask. */
#include "read/trace.h"

#include <stdlib.h>
#include <string.h>

#include "read/draw_lanes.h"
#include "read/numbers.h"
#include "read/read.h"

#include <vestige/device_lanes.h>

typedef struct device_lanes {
    PyObject_HEAD
    vst_device_lanes *handle; /* atomic: set once, see vpy_handle_set */
} device_lanes;

enum { LAUNCHED_MAX = 10000 };

static bool is_usable(const device_lanes *self)
{
    bool is_made = vpy_handle_of(&self->handle) != NULL;

    if (!is_made)
        PyErr_SetString(PyExc_ValueError, "these lanes were not made");
    return is_made;
}

static int device_lanes_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"trace", "progress", NULL};
    device_lanes *self = (device_lanes *)object;
    PyObject *progress = NULL;
    vpy_trace *trace;
    vst_error error = {VST_OK, 0, 0};
    vst_device_lanes *made = NULL;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!|$O:DeviceLanes", names,
                                     vpy_trace_type, &trace, &progress) ||
        !vpy_trace_borrow(trace, progress))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = vst_device_lanes_create(trace->handle, VST_WINDOW_ALL, NULL, &made,
                                     &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(trace);
    if (status == VST_OK && vpy_handle_set(&self->handle, made))
        return 0;
    vst_device_lanes_destroy(made);
    if (status != VST_OK)
        vpy_raise(status, &error, trace->path);
    return -1;
}

static void device_lanes_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst_device_lanes_destroy(((device_lanes *)object)->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- what there is ------------------------------------------------------- */

PyDoc_STRVAR(lanes_doc, "lanes()\n--\n\n[(device, stream, thread, rows, first, "
                        "activities, start_ns, end_ns, busy_ns, bytes)].");

static PyObject *device_lanes_lanes(PyObject *object, PyObject *unused)
{
    const device_lanes *self = (device_lanes *)object;
    PyObject *list;

    (void)unused;
    if (!is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    for (size_t i = 0; i < vst_device_lanes_count(self->handle); i++) {
        const vst_device_lane *l = vst_device_lanes_at(self->handle, i);

        if (!vpy_append(
                list, Py_BuildValue("(IIIIIILLLK)", l->device, l->stream,
                                    l->thread, l->rows, l->first, l->activities,
                                    (long long)l->start_ns,
                                    (long long)l->end_ns, (long long)l->busy_ns,
                                    (unsigned long long)l->bytes))) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

PyDoc_STRVAR(left_out_doc, "left_out()\n--\n\nActivities, and texts of their "
                           "attributes, that were not kept.");

static PyObject *device_lanes_left_out(PyObject *object, PyObject *unused)
{
    const device_lanes *self = (device_lanes *)object;

    (void)unused;
    return is_usable(self)
               ? Py_BuildValue(
                     "(KK)",
                     (unsigned long long)vst_device_lanes_left_out(
                         self->handle),
                     (unsigned long long)vst_device_lanes_texts_left_out(
                         self->handle))
               : NULL;
}

/* ---- pictures ------------------------------------------------------------ */

PyDoc_STRVAR(draw_doc, "draw(from_ns, to_ns, pixels, lanes)\n--\n\nA window as "
                       "View.window gives it; a row's thread is its lane.");

static vst_status draw(const void *handle, int64_t from_ns, int64_t to_ns,
                       uint32_t pixels, const uint32_t *lanes, size_t count,
                       void **bytes, size_t *size)
{
    return vst_device_lanes_draw(handle, from_ns, to_ns, pixels, lanes, count,
                                 bytes, size);
}

static PyObject *device_lanes_draw(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;

    return is_usable(self) ? vpy_draw_lanes(self->handle, args, draw) : NULL;
}

/* ---- one activity -------------------------------------------------------- */

static PyObject *to_dict(const vst_device_activity *a)
{
    return Py_BuildValue(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:L,s:L,s:K,s:K,s:K,s:(KI),s:(KI),s:I,"
        "s:N}",
        "number", a->number, "lane", a->lane, "row", a->row, "kind", a->kind,
        "id", a->id, "context", a->context, "device", a->device, "start_ns",
        (long long)a->start_ns, "end_ns", (long long)a->end_ns, "correlation",
        (unsigned long long)a->correlation, "external",
        (unsigned long long)a->external, "bytes", (unsigned long long)a->bytes,
        "op", (unsigned long long)a->op.serial, a->op.id, "annotation",
        (unsigned long long)a->annotation.serial, a->annotation.id, "launch",
        a->launch, "args", vpy_trace_text(a->args, a->args_len));
}

PyDoc_STRVAR(at_doc, "at(lane, row, time_ns)\n--\n\nThe activity that a row "
                     "shows at a time, or None.");

static PyObject *device_lanes_at(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;
    vst_device_activity found;
    long long time_ns;
    unsigned lane, row;

    if (!PyArg_ParseTuple(args, "IIL:at", &lane, &row, &time_ns) ||
        !is_usable(self))
        return NULL;
    if (vst_device_lanes_find(self->handle, lane, row, time_ns, &found) !=
        VST_OK)
        Py_RETURN_NONE;
    return to_dict(&found);
}

PyDoc_STRVAR(get_doc, "get(number)\n--\n\nAn activity, or None.");

static PyObject *device_lanes_get(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;
    vst_device_activity found;
    unsigned number;

    if (!PyArg_ParseTuple(args, "I:get", &number) || !is_usable(self))
        return NULL;
    if (vst_device_lanes_get(self->handle, number, &found) != VST_OK)
        Py_RETURN_NONE;
    return to_dict(&found);
}

PyDoc_STRVAR(
    launched_doc,
    "launched(call, most)\n--\n\nThe numbers of what came from a call, "
    "up to so many; and how many there are.");

static PyObject *device_lanes_launched(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;
    unsigned call, most;
    uint32_t *numbers;
    size_t found;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "II:launched", &call, &most) ||
        !is_usable(self))
        return NULL;
    most = most < LAUNCHED_MAX ? most : LAUNCHED_MAX;
    numbers = malloc(((size_t)most + 1) * sizeof *numbers);
    if (numbers == NULL)
        return PyErr_NoMemory();
    found = vst_device_lanes_launched(self->handle, call, numbers, most);
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < found && i < most; i++)
        if (!vpy_append(list, PyLong_FromUnsignedLong(numbers[i])))
            Py_CLEAR(list);
    free(numbers);
    return list != NULL ? Py_BuildValue("(Nn)", list, (Py_ssize_t)found) : NULL;
}

/* ---- search -------------------------------------------------------------- */

PyDoc_STRVAR(find_doc,
             "find(ids, from_ns, to_ns, parts)\n--\n\nHow many activities with "
             "these ids begin in each part of a range: `<I` each.");

static PyObject *device_lanes_find(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;
    PyObject *list, *result;
    long long from_ns, to_ns;
    unsigned parts;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst_status status;

    if (!PyArg_ParseTuple(args, "OLLI:find", &list, &from_ns, &to_ns, &parts) ||
        !is_usable(self))
        return NULL;
    if (parts == 0 || parts > VST_VIEW_PIXELS_MAX)
        return vpy_refuse_picture();
    numbers = vpy_to_numbers(list, &ids.count);
    if (numbers == NULL)
        return NULL;
    ids.ids = numbers;
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)parts * 4);
    if (result != NULL) {
        uint32_t *counts = (uint32_t *)(void *)PyBytes_AS_STRING(result);

        memset(counts, 0, (size_t)parts * 4);
        Py_BEGIN_ALLOW_THREADS;
        status = vst_device_lanes_search(self->handle, from_ns, to_ns, parts,
                                         &ids, counts);
        Py_END_ALLOW_THREADS;
        if (status != VST_OK) {
            Py_CLEAR(result);
            if (status == VST_E_NOMEM)
                PyErr_NoMemory();
            else
                vpy_refuse_picture();
        }
    }
    free(numbers);
    return result;
}

PyDoc_STRVAR(
    next_doc,
    "next(ids, time_ns, back, lane)\n--\n\nThe first activity with one "
    "of these ids that begins after a time, or the last before it, in "
    "a lane or, with None, in any; or None.");

static PyObject *device_lanes_next(PyObject *object, PyObject *args)
{
    const device_lanes *self = (device_lanes *)object;
    PyObject *list, *lane = Py_None;
    long long time_ns;
    unsigned long number = UINT32_MAX;
    int back;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst_device_activity found;
    vst_status status;

    if (!PyArg_ParseTuple(args, "OLp|O:next", &list, &time_ns, &back, &lane) ||
        !is_usable(self))
        return NULL;
    if (lane != Py_None) {
        number = PyLong_AsUnsignedLong(lane);
        if (number == (unsigned long)-1 && PyErr_Occurred() != NULL)
            return NULL;
    }
    numbers = vpy_to_numbers(list, &ids.count);
    if (numbers == NULL)
        return NULL;
    ids.ids = numbers;
    Py_BEGIN_ALLOW_THREADS;
    status = vst_device_lanes_next(self->handle, time_ns, back != 0,
                                   (uint32_t)number, &ids, &found);
    Py_END_ALLOW_THREADS;
    free(numbers);
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    if (status != VST_OK)
        Py_RETURN_NONE;
    return to_dict(&found);
}

static PyMethodDef methods[] = {
    {"lanes", device_lanes_lanes, METH_NOARGS, lanes_doc},
    {"left_out", device_lanes_left_out, METH_NOARGS, left_out_doc},
    {"draw", device_lanes_draw, METH_VARARGS, draw_doc},
    {"at", device_lanes_at, METH_VARARGS, at_doc},
    {"get", device_lanes_get, METH_VARARGS, get_doc},
    {"launched", device_lanes_launched, METH_VARARGS, launched_doc},
    {"find", device_lanes_find, METH_VARARGS, find_doc},
    {"next", device_lanes_next, METH_VARARGS, next_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(device_lanes_doc, "DeviceLanes(trace, *, progress=None)\n--\n\n"
                               "What the devices of a trace did, as lanes of a "
                               "picture.");

static const vpy_class described = {
    .name = "vestige._core.DeviceLanes",
    .doc = device_lanes_doc,
    .size = sizeof(device_lanes),
    .init = device_lanes_init,
    .dealloc = device_lanes_dealloc,
    .methods = methods,
};

int vpy_device_lanes_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
