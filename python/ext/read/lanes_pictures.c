/* Methods of vestige._core.Lanes: pictures, sums, search. Any thread may call
 * them. */
#include "read/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "read/numbers.h"

static PyObject *pictures_refuse(vst_status status)
{
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    PyErr_SetString(
        PyExc_ValueError,
        "the picture's range, pixels, lanes or parts are not valid");
    return NULL;
}

/* Returns whether these are times that a trace can have and whose difference
 * fits in 64 bits. */
static bool is_range(long long from_ns, long long to_ns, unsigned pixels)
{
    const long long most = 1ll << 62;

    if (from_ns < to_ns && from_ns > -most && to_ns < most && pixels != 0 &&
        pixels <= VST_VIEW_PIXELS_MAX)
        return true;
    pictures_refuse(VST_E_ARGUMENT);
    return false;
}

const char vpy_lanes_busy_doc[] =
    PyDoc_STR("busy(lane, from_ns, to_ns)\n--\n\nHow much of a "
              "range the items of each row of a lane cover.");

PyObject *vpy_lanes_busy(PyObject *object, PyObject *args)
{
    const vpy_lanes *self = (vpy_lanes *)object;
    long long from_ns, to_ns;
    vst__lane lane;
    unsigned number;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "ILL:busy", &number, &from_ns, &to_ns) ||
        !vpy_lanes_is_usable(self) ||
        (from_ns != to_ns && !is_range(from_ns, to_ns, 1)) ||
        (list = PyList_New(0)) == NULL)
        return NULL;
    vst__lanes_get(self->handle, number, &lane);
    for (uint32_t i = 0; list != NULL && i < lane.rows; i++)
        if (!vpy_append(list, PyLong_FromLongLong(vst__lanes_busy(
                                  self->handle, number, i, from_ns, to_ns))))
            Py_CLEAR(list);
    return list;
}

/* ---- pictures ------------------------------------------------------------ */

const char vpy_lanes_draw_doc[] =
    PyDoc_STR("draw(from_ns, to_ns, pixels, lanes)\n--\n\nA picture in "
              "the format of View.window(), where `thread` is the lane.");

PyObject *vpy_lanes_draw(PyObject *object, PyObject *args)
{
    const vpy_lanes *self = (vpy_lanes *)object;
    PyObject *list, *result;
    long long from_ns, to_ns;
    unsigned pixels;
    size_t count, size = 0;
    uint32_t *numbers;
    void *bytes = NULL;
    vst_status status;

    if (!PyArg_ParseTuple(args, "LLIO:draw", &from_ns, &to_ns, &pixels,
                          &list) ||
        !vpy_lanes_is_usable(self) || !is_range(from_ns, to_ns, pixels) ||
        (numbers = vpy_to_numbers(list, &count)) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_draw(self->handle, from_ns, to_ns, pixels, numbers,
                             count, &bytes, &size);
    Py_END_ALLOW_THREADS;
    free(numbers);
    result = status == VST_OK
                 ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size)
                 : pictures_refuse(status);
    free(bytes);
    return result;
}

const char vpy_lanes_pack_doc[] = PyDoc_STR(
    "pack(lane, row, base_ns, before_ns, width_ns=0)\n--\n\nThe items "
    "of a row that begin up to a time, for a page without a server: the "
    "number of the first, how many there are, and varints "
    "(src/view/lanes.h).");

PyObject *vpy_lanes_pack(PyObject *object, PyObject *args)
{
    const vpy_lanes *self = (vpy_lanes *)object;
    long long base_ns, before_ns, width_ns = 0;
    unsigned lane, row;
    PyObject *result;
    uint8_t *bytes = NULL;
    size_t size = 0, count = 0;
    uint32_t first = 0;
    vst_status status;

    if (!PyArg_ParseTuple(args, "IILL|L:pack", &lane, &row, &base_ns,
                          &before_ns, &width_ns) ||
        !vpy_lanes_is_usable(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_pack(self->handle, lane, row, base_ns, before_ns,
                             width_ns, &bytes, &size, &first, &count);
    Py_END_ALLOW_THREADS;
    if (status != VST_OK)
        return pictures_refuse(status);
    result = Py_BuildValue("(Iny#)", first, (Py_ssize_t)count,
                           bytes != NULL ? (const char *)bytes : "",
                           (Py_ssize_t)size);
    free(bytes);
    return result;
}

/* ---- search -------------------------------------------------------------- */

const char vpy_lanes_find_doc[] =
    PyDoc_STR("find(ids, from_ns, to_ns, parts)\n--\n\nHow many items with "
              "these ids begin in each part of a range: `<I` each.");

PyObject *vpy_lanes_find(PyObject *object, PyObject *args)
{
    const vpy_lanes *self = (vpy_lanes *)object;
    PyObject *list, *result;
    long long from_ns, to_ns;
    unsigned parts;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst_status status = VST_E_NOMEM;

    if (!PyArg_ParseTuple(args, "OLLI:find", &list, &from_ns, &to_ns, &parts) ||
        !vpy_lanes_is_usable(self) || !is_range(from_ns, to_ns, parts) ||
        (numbers = vpy_to_numbers(list, &ids.count)) == NULL)
        return NULL;
    ids.ids = numbers;
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)parts * 4);
    if (result != NULL) {
        uint32_t *counts = (uint32_t *)(void *)PyBytes_AS_STRING(result);

        memset(counts, 0, (size_t)parts * 4);
        Py_BEGIN_ALLOW_THREADS;
        status =
            vst__lanes_find(self->handle, &ids, from_ns, to_ns, parts, counts);
        Py_END_ALLOW_THREADS;
        if (status != VST_OK)
            Py_SETREF(result, pictures_refuse(status));
    }
    free(numbers);
    return result;
}

const char vpy_lanes_next_doc[] = PyDoc_STR(
    "next(ids, time_ns, back)\n--\n\nThe first item with one of these "
    "ids that begins after a time, or the last before it, or None.");

PyObject *vpy_lanes_next(PyObject *object, PyObject *args)
{
    const vpy_lanes *self = (vpy_lanes *)object;
    PyObject *list;
    long long time_ns;
    int back;
    vst_view_ids ids = {NULL, 0};
    uint32_t *numbers;
    vst__lane_item found;
    vst_status status;

    if (!PyArg_ParseTuple(args, "OLp:next", &list, &time_ns, &back) ||
        !vpy_lanes_is_usable(self) ||
        (numbers = vpy_to_numbers(list, &ids.count)) == NULL)
        return NULL;
    ids.ids = numbers;
    Py_BEGIN_ALLOW_THREADS;
    status = vst__lanes_next(self->handle, &ids, time_ns, back != 0, &found);
    Py_END_ALLOW_THREADS;
    free(numbers);
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    if (status != VST_OK)
        Py_RETURN_NONE;
    return vpy_lanes_to_dict(self, &found);
}
