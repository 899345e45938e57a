/* vestige._core.Growing: sums of a trace that is being recorded
 * (src/tables/growing.h), as a Python object. On builds without the GIL its
 * methods run in its critical section. */
#include "read/read.h"
#include "read/rows.h"
#include "read/trace.h"

#include "tables/growing.h"

typedef struct growing {
    PyObject_HEAD
    vst__growing *handle; /* atomic: set once, see vpy_handle_set */
    PyObject *path;       /* bytes; set once, in the critical section */
    /* A thread is in read(), which runs without the GIL. Changed in the
     * critical section. */
    bool busy;
} growing;

static bool is_usable(const growing *self)
{
    bool is_open = vpy_handle_of(&self->handle) != NULL;

    if (!is_open)
        PyErr_SetString(PyExc_RuntimeError, "the trace is not open");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread is reading this trace");
    return is_open && !self->busy;
}

static int growing_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", "before_ns", NULL};
    growing *self = (growing *)object;
    PyObject *path = NULL;
    long long before_ns = 0;
    vst__growing *opened = NULL;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&|L:Growing", names,
                                     PyUnicode_FSConverter, &path, &before_ns))
        return -1;
    if (!vpy_path_set(object, &self->path, path, "the trace is open already"))
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status =
        vst__growing_open(PyBytes_AS_STRING(path), before_ns, &opened, &error);
    Py_END_ALLOW_THREADS
    if (status == VST_OK && vpy_handle_set(&self->handle, opened))
        return 0;
    vpy_raise(status, &error, path);
    return -1;
}

static void growing_dealloc(PyObject *object)
{
    growing *self = (growing *)object;
    PyTypeObject *type = Py_TYPE(object);

    vst__growing_close(self->handle);
    Py_CLEAR(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- methods ------------------------------------------------------------- */

static PyObject *to_dict(const vst__growth *growth)
{
    PyObject *functions = vpy_rows("functions", growth->functions, NULL, false);
    PyObject *threads = vpy_rows("threads_now", growth->threads, NULL, false);

    if (functions == NULL || threads == NULL) {
        Py_XDECREF(functions);
        Py_XDECREF(threads);
        return NULL;
    }
    return Py_BuildValue("{s:L,s:L,s:K,s:K,s:O,s:O,s:N,s:N}", "from_ns",
                         (long long)growth->from_ns, "to_ns",
                         (long long)growth->to_ns, "records",
                         (unsigned long long)growth->words, "lost",
                         (unsigned long long)growth->lost, "finished",
                         growth->finished ? Py_True : Py_False, "knows_running",
                         growth->knows_running ? Py_True : Py_False,
                         "functions", functions, "threads", threads);
}

PyDoc_STRVAR(read_doc,
             "read(alive)\n--\n\nRead the new records. If the program is "
             "alive, open calls count up to now.");

static PyObject *growing_read(PyObject *object, PyObject *alive)
{
    growing *self = (growing *)object;
    int is_alive = PyObject_IsTrue(alive);
    vst_error error = {VST_OK, 0, 0};
    vst__growth growth;
    vst_status status;
    PyObject *result;

    if (is_alive < 0 || !is_usable(self))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    status = vst__growing_read(self->handle, is_alive, &growth, &error);
    Py_END_ALLOW_THREADS
    result = status == VST_OK ? to_dict(&growth)
                              : vpy_raise(status, &error, self->path);
    self->busy = false; /* the rows use the sums' memory until here */
    return result;
}

PyDoc_STRVAR(function_doc,
             "function(id)\n--\n\nThe function with this id: kind, name, "
             "file, shown part of file, line; None if not defined.");

static PyObject *growing_function(PyObject *object, PyObject *number)
{
    growing *self = (growing *)object;
    unsigned long id = PyLong_AsUnsignedLong(number);
    const vst_definition *d;

    if ((id == (unsigned long)-1 && PyErr_Occurred() != NULL) ||
        !is_usable(self))
        return NULL;
    d = id <= VST_ID_MAX
            ? vst_trace_definition(vst__growing_trace(self->handle), (vst_id)id)
            : NULL;
    if (d == NULL)
        Py_RETURN_NONE;
    return vpy_trace_function(vst__growing_trace(self->handle), d);
}

PyDoc_STRVAR(info_doc, "info()\n--\n\nCurrent facts about the file.");

static PyObject *growing_info(PyObject *object, PyObject *unused)
{
    growing *self = (growing *)object;
    vst_trace_info info;

    (void)unused;
    if (!is_usable(self))
        return NULL;
    vst_trace_get_info(vst__growing_trace(self->handle), &info);
    return Py_BuildValue(
        "{s:I,s:K,s:K,s:K,s:K,s:O,s:L,s:L,s:K}", "pid", info.pid, "bytes",
        (unsigned long long)info.bytes, "records",
        (unsigned long long)info.words, "lost", (unsigned long long)info.lost,
        "dropped", (unsigned long long)info.dropped, "clean",
        info.clean ? Py_True : Py_False, "start_ns", (long long)info.start_ns,
        "end_ns", (long long)info.end_ns, "damaged_at",
        (unsigned long long)info.damaged_at);
}

VPY_DEFINE_LOCKED(growing_read)
VPY_DEFINE_LOCKED(growing_function)
VPY_DEFINE_LOCKED(growing_info)

static PyMethodDef methods[] = {
    {"read", VPY_LOCKED(growing_read), METH_O, read_doc},
    {"function", VPY_LOCKED(growing_function), METH_O, function_doc},
    {"info", VPY_LOCKED(growing_info), METH_NOARGS, info_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(growing_doc, "Growing(path, before_ns=0)\n--\n\n"
                          "Sums of a trace that is read while it is recorded.");

static const vpy_class described = {
    .name = "vestige._core.Growing",
    .doc = growing_doc,
    .size = sizeof(growing),
    .init = growing_init,
    .dealloc = growing_dealloc,
    .methods = methods,
};

int vpy_growing_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
