/* See draw_lanes.h. With the GIL. */
#include "read/draw_lanes.h"

#include <stdlib.h>

#include <vestige/view.h>

#include "read/numbers.h"

PyObject *vpy_refuse_picture(void)
{
    PyErr_SetString(PyExc_ValueError, "no such picture can be drawn");
    return NULL;
}

PyObject *vpy_draw_lanes(const void *handle, PyObject *args,
                         vpy_draw_lanes_fn *draw)
{
    PyObject *list, *result = NULL;
    long long from_ns, to_ns;
    unsigned pixels;
    size_t count, size = 0;
    uint32_t *lanes;
    void *bytes = NULL;
    vst_status status;

    if (!PyArg_ParseTuple(args, "LLIO:draw", &from_ns, &to_ns, &pixels, &list))
        return NULL;
    if (pixels == 0 || pixels > VST_VIEW_PIXELS_MAX)
        return vpy_refuse_picture();
    lanes = vpy_to_numbers(list, &count);
    if (lanes == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = draw(handle, from_ns, to_ns, pixels, lanes, count, &bytes, &size);
    Py_END_ALLOW_THREADS;
    free(lanes);
    if (status == VST_OK)
        result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    else if (status == VST_E_NOMEM)
        PyErr_NoMemory();
    else
        vpy_refuse_picture();
    free(bytes);
    return result;
}
