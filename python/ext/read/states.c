/* vestige._core.States: when the threads of a trace did not run, for pictures
 * and sums (<vestige/states.h>). Any thread may ask. */
#include "read/trace.h"

#include "read/read.h"

#include <vestige/states.h>

typedef struct states {
    PyObject_HEAD
    vst_states *handle; /* atomic: set once, see vpy_handle_set */
} states;

enum { PIXELS_MAX = 1 << 16 };

/* Times that a trace can have, and of which differences fit. */
static bool is_range(long long from_ns, long long to_ns)
{
    const long long most = 1ll << 62;

    return from_ns < to_ns && from_ns > -most && to_ns < most;
}

static int states_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"trace", NULL};
    states *self = (states *)object;
    vpy_trace *trace;
    vst_error error = {VST_OK, 0, 0};
    vst_states *made = NULL;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!:States", names,
                                     vpy_trace_type, &trace))
        return -1;
    if (!vpy_trace_borrow(trace, NULL))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = vst_states_create(trace->handle, &made, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(trace);
    if (status == VST_OK && vpy_handle_set(&self->handle, made))
        return 0;
    vst_states_destroy(made);
    if (status != VST_OK)
        vpy_raise(status, &error, trace->path);
    return -1;
}

static void states_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst_states_destroy(((states *)object)->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(draw_doc,
             "draw(thread, from_ns, to_ns, pixels)\n--\n\nTwo bytes objects, a "
             "byte a pixel: the part that the thread was off the processor, "
             "and that it waited for the GIL.");

static PyObject *states_draw(PyObject *object, PyObject *args)
{
    states *self = (states *)object;
    PyObject *off, *gil;
    long long from_ns, to_ns;
    unsigned thread, pixels;

    if (!PyArg_ParseTuple(args, "ILLI:draw", &thread, &from_ns, &to_ns,
                          &pixels))
        return NULL;
    if (vpy_handle_of(&self->handle) == NULL || pixels > PIXELS_MAX ||
        !is_range(from_ns, to_ns)) {
        PyErr_SetString(PyExc_ValueError, "no such picture can be drawn");
        return NULL;
    }
    off = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)pixels);
    gil = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)pixels);
    if (off == NULL || gil == NULL) {
        Py_XDECREF(off);
        Py_XDECREF(gil);
        return NULL;
    }
    vst_states_draw(self->handle, thread, from_ns, to_ns, pixels,
                    (uint8_t *)PyBytes_AS_STRING(off),
                    (uint8_t *)PyBytes_AS_STRING(gil));
    return Py_BuildValue("(NN)", off, gil);
}

PyDoc_STRVAR(sums_doc,
             "sums(thread, from_ns, to_ns)\n--\n\nFor how long the thread "
             "waited off the processor, was preempted, waited for the GIL.");

static PyObject *states_sums(PyObject *object, PyObject *args)
{
    states *self = (states *)object;
    vst_states_sums sums;
    long long from_ns, to_ns;
    unsigned thread;

    if (!PyArg_ParseTuple(args, "ILL:sums", &thread, &from_ns, &to_ns))
        return NULL;
    if (vpy_handle_of(&self->handle) == NULL ||
        (from_ns != to_ns && !is_range(from_ns, to_ns))) {
        PyErr_SetString(PyExc_ValueError, "there are no states then");
        return NULL;
    }
    vst_states_add_up(self->handle, thread, from_ns, to_ns, &sums);
    return Py_BuildValue("(LLL)", (long long)sums.waiting_ns,
                         (long long)sums.preempted_ns, (long long)sums.gil_ns);
}

PyDoc_STRVAR(stretches_doc,
             "stretches(state)\n--\n\nAll stretches in which threads waited "
             "off the processor (0), were preempted (1) or waited for the GIL "
             "(2): `<qqI4x` each, start_ns, end_ns and thread, by thread, then "
             "time.");

static PyObject *states_stretches(PyObject *object, PyObject *args)
{
    states *self = (states *)object;
    const vst_state_stretch *all;
    unsigned state;
    size_t count;

    if (!PyArg_ParseTuple(args, "I:stretches", &state))
        return NULL;
    if (vpy_handle_of(&self->handle) == NULL || state >= VST_STATES) {
        PyErr_SetString(PyExc_ValueError, "there is no such state");
        return NULL;
    }
    all = vst_states_all(self->handle, (vst_state)state, &count);
    return PyBytes_FromStringAndSize((const char *)all,
                                     (Py_ssize_t)(count * sizeof *all));
}

static PyMethodDef methods[] = {
    {"stretches", states_stretches, METH_VARARGS, stretches_doc},
    {"draw", states_draw, METH_VARARGS, draw_doc},
    {"sums", states_sums, METH_VARARGS, sums_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(states_doc, "States(trace)\n--\n\nWhen the threads of a trace did "
                         "not run.");

static const vpy_class described = {
    .name = "vestige._core.States",
    .doc = states_doc,
    .size = sizeof(states),
    .init = states_init,
    .dealloc = states_dealloc,
    .methods = methods,
};

int vpy_states_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
