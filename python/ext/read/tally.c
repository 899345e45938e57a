/* vestige._core.Tally: what a program is doing (view/tally.h), as a Python
 * object. Its methods run in its critical section, where there is no GIL. */
#include "read/read.h"
#include "read/trace.h"

#include "view/tally.h"

typedef struct tally {
    PyObject_HEAD
    vst_tally *handle; /* atomic: set once, see vpy_handle_set */
    PyObject *path;    /* bytes; set once, in the critical section */
    /* A thread is in next(), which reads without the GIL. It changes in the
     * critical section. */
    bool busy;
} tally;

static bool is_usable(const tally *self)
{
    bool is_open = vpy_handle_of(&self->handle) != NULL;

    if (!is_open)
        PyErr_SetString(PyExc_RuntimeError, "the tally is not open");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread is reading this trace");
    return is_open && !self->busy;
}

static int tally_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", "before_ns", NULL};
    tally *self = (tally *)object;
    PyObject *path = NULL;
    long long before_ns = 0;
    vst_tally *opened = NULL;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&|L:Tally", names,
                                     PyUnicode_FSConverter, &path, &before_ns))
        return -1;
    if (!vpy_path_set(object, &self->path, path, "the tally is open already"))
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status =
        vst__tally_open(PyBytes_AS_STRING(path), before_ns, &opened, &error);
    Py_END_ALLOW_THREADS
    if (status == VST_OK && vpy_handle_set(&self->handle, opened))
        return 0;
    vpy_raise(status, &error, path);
    return -1;
}

static void tally_dealloc(PyObject *object)
{
    tally *self = (tally *)object;
    PyTypeObject *type = Py_TYPE(object);

    vst__tally_close(self->handle);
    Py_CLEAR(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- a look -------------------------------------------------------------- */

static PyObject *functions_of(const vst_tally_look *look)
{
    PyObject *list = PyList_New((Py_ssize_t)look->function_count);

    for (size_t i = 0; list != NULL && i < look->function_count; i++) {
        const vst_tally_function *f = &look->functions[i];
        PyObject *row = Py_BuildValue(
            "(IKLLKLL)", f->id, (unsigned long long)f->calls,
            (long long)f->own_ns, (long long)f->total_ns,
            (unsigned long long)f->bytes, (long long)f->own_running_ns,
            (long long)f->total_running_ns);
        if (row == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *threads_of(const vst_trace *trace, const vst_tally_look *look)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < look->thread_count; i++) {
        const vst_tally_thread *t = &look->threads[i];
        const vst_trace_thread *of = vst_trace_thread_find(trace, t->number);
        PyObject *row = Py_BuildValue(
            "{s:I,s:K,s:N,s:K,s:L,s:I,s:I,s:L}", "number", t->number, "tid",
            of != NULL ? (unsigned long long)of->system_tid : 0, "name",
            vpy_trace_text(of != NULL ? of->name : "",
                           of != NULL ? of->name_len : 0),
            "records", (unsigned long long)t->words, "in_calls_ns",
            (long long)t->in_calls_ns, "depth", t->depth, "id", t->id,
            "since_ns", (long long)t->since_ns);
        if (!vpy_append(list, row))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *counters_of(const vst_tally_look *look)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < look->counter_count; i++)
        if (!vpy_append(list, Py_BuildValue("(Id)", look->counters[i].id,
                                            look->counters[i].value)))
            Py_CLEAR(list);
    return list;
}

static PyObject *to_dict(tally *self, const vst_tally_look *look)
{
    return Py_BuildValue(
        "{s:L,s:L,s:K,s:K,s:O,s:O,s:N,s:N,s:N}", "from_ns",
        (long long)look->from_ns, "to_ns", (long long)look->to_ns, "records",
        (unsigned long long)look->words, "lost", (unsigned long long)look->lost,
        "finished", look->finished ? Py_True : Py_False, "knows_running",
        look->knows_running ? Py_True : Py_False, "functions",
        functions_of(look), "threads",
        threads_of(vst__tally_trace(self->handle), look), "counters",
        counters_of(look));
}

PyDoc_STRVAR(next_doc,
             "next(alive)\n--\n\nWhat happened since the last look, up to now "
             "if the program is alive.");

static PyObject *tally_next(PyObject *object, PyObject *alive)
{
    tally *self = (tally *)object;
    int is_alive = PyObject_IsTrue(alive);
    vst_error error = {VST_OK, 0, 0};
    vst_tally_look look;
    vst_status status;
    PyObject *result;

    if (is_alive < 0 || !is_usable(self))
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    status = vst__tally_next(self->handle, is_alive, &look, &error);
    Py_END_ALLOW_THREADS
    result = status == VST_OK ? to_dict(self, &look)
                              : vpy_raise(status, &error, self->path);
    self->busy = false; /* the look is the tally's own memory */
    return result;
}

PyDoc_STRVAR(function_doc,
             "function(id)\n--\n\nkind, name, file, what is shown of that, "
             "line; None if the trace does not define it.");

static PyObject *tally_function(PyObject *object, PyObject *number)
{
    tally *self = (tally *)object;
    unsigned long id = PyLong_AsUnsignedLong(number);
    const vst_definition *d;

    if ((id == (unsigned long)-1 && PyErr_Occurred() != NULL) ||
        !is_usable(self))
        return NULL;
    d = id <= VST_ID_MAX
            ? vst_trace_definition(vst__tally_trace(self->handle), (vst_id)id)
            : NULL;
    if (d == NULL)
        Py_RETURN_NONE;
    return vpy_trace_function(d);
}

PyDoc_STRVAR(info_doc, "info()\n--\n\nFacts of the file, as they are now.");

static PyObject *tally_info(PyObject *object, PyObject *unused)
{
    tally *self = (tally *)object;
    vst_trace_info info;

    (void)unused;
    if (!is_usable(self))
        return NULL;
    vst_trace_get_info(vst__tally_trace(self->handle), &info);
    return Py_BuildValue(
        "{s:I,s:K,s:K,s:K,s:K,s:O,s:L,s:L,s:K}", "pid", info.pid, "bytes",
        (unsigned long long)info.bytes, "records",
        (unsigned long long)info.words, "lost", (unsigned long long)info.lost,
        "dropped", (unsigned long long)info.dropped, "clean",
        info.clean ? Py_True : Py_False, "start_ns", (long long)info.start_ns,
        "end_ns", (long long)info.end_ns, "damaged_at",
        (unsigned long long)info.damaged_at);
}

VPY_DEFINE_LOCKED(tally_next)
VPY_DEFINE_LOCKED(tally_function)
VPY_DEFINE_LOCKED(tally_info)

static PyMethodDef methods[] = {
    {"next", VPY_LOCKED(tally_next), METH_O, next_doc},
    {"function", VPY_LOCKED(tally_function), METH_O, function_doc},
    {"info", VPY_LOCKED(tally_info), METH_NOARGS, info_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(tally_doc, "Tally(path, before_ns=0)\n--\n\n"
                        "A trace that is read while it is recorded.");

static const vpy_class described = {
    .name = "vestige._core.Tally",
    .doc = tally_doc,
    .size = sizeof(tally),
    .init = tally_init,
    .dealloc = tally_dealloc,
    .methods = methods,
};

int vpy_tally_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
