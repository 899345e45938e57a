/* vestige._core.View: pictures of a trace (view/view.h) as a Python object, and
 * its facts. view_questions.c has the other methods. */
#include "read/view.h"

#include "read/read.h"
#include "read/trace.h"

bool vpy_view_is_usable(const vpy_view *self)
{
    bool is_open = vpy_handle_of(&self->handle) != NULL;

    if (!is_open)
        PyErr_SetString(PyExc_RuntimeError, "the view is not open");
    return is_open;
}

PyThreadState *vpy_view_begin(vpy_view *self)
{
    PyThreadState *saved = PyEval_SaveThread();

    pthread_rwlock_rdlock(&self->growth);
    return saved;
}

void vpy_view_end(vpy_view *self, PyThreadState *saved)
{
    pthread_rwlock_unlock(&self->growth);
    PyEval_RestoreThread(saved);
}

/* ---- the object ---------------------------------------------------------- */

static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *object = PyType_GenericNew(type, args, kw);

    if (object != NULL)
        pthread_rwlock_init(&((vpy_view *)object)->growth, NULL);
    return object;
}

static int view_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path",    "index",        "keep",   "progress",
                            "workers", "fold_imports", "follow", NULL};
    vpy_view *self = (vpy_view *)object;
    PyObject *path = NULL, *index = NULL, *index_bytes = NULL;
    PyObject *progress = NULL;
    vst_view *opened = NULL;
    int keep = 1, fold = 0, follow = 0;
    unsigned workers = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    vst_view_options options;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O&|$OpOIpp:View", names, PyUnicode_FSConverter, &path,
            &index, &keep, &progress, &workers, &fold, &follow))
        return -1;
    if (index != NULL && index != Py_None &&
        !PyUnicode_FSConverter(index, &index_bytes)) {
        Py_DECREF(path);
        return -1;
    }
    if (!vpy_path_set(object, &self->path, path, "the view is open already")) {
        Py_XDECREF(index_bytes);
        return -1;
    }
    options = (vst_view_options){
        .index = index_bytes != NULL ? PyBytes_AS_STRING(index_bytes) : NULL,
        .no_file = !keep,
        .workers = workers,
        .fold_imports = fold,
        .follow = follow,
    };
    if (progress != NULL && progress != Py_None) {
        options.progress = vpy_report_progress;
        options.progress_ctx = progress;
    }
    Py_BEGIN_ALLOW_THREADS
    status = vst__view_open(PyBytes_AS_STRING(path), &options, &opened, &error);
    Py_END_ALLOW_THREADS
    Py_XDECREF(index_bytes);
    if (status == VST_OK && vpy_handle_set(&self->handle, opened))
        return 0;
    vpy_raise(status, &error, path);
    return -1;
}

static void view_dealloc(PyObject *object)
{
    vpy_view *self = (vpy_view *)object;
    PyTypeObject *type = Py_TYPE(object);

    if (self->handle != NULL)
        vst__view_close(self->handle);
    pthread_rwlock_destroy(&self->growth);
    Py_CLEAR(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- a trace that grows -------------------------------------------------- */

static PyObject *view_refresh(PyObject *object, PyObject *unused)
{
    vpy_view *self = (vpy_view *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    (void)unused;
    if (!vpy_view_is_usable(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    pthread_rwlock_wrlock(&self->growth);
    status = vst__view_refresh(self->handle, &error);
    pthread_rwlock_unlock(&self->growth);
    Py_END_ALLOW_THREADS
    if (status != VST_OK)
        return vpy_raise(status, &error, self->path);
    Py_RETURN_NONE;
}

/* Returns a list by definition id: (kind, name, file, shown part of file,
 * line), or None if not defined. */
static PyObject *view_functions(PyObject *object, PyObject *first)
{
    vpy_view *self = (vpy_view *)object;
    unsigned long id = PyLong_AsUnsignedLong(first);
    PyObject *list;

    if ((id == (unsigned long)-1 && PyErr_Occurred() != NULL) ||
        !vpy_view_is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    pthread_rwlock_rdlock(&self->growth);
    for (; list != NULL &&
           id <= vst_trace_definition_max(vst__view_trace(self->handle));
         id++) {
        const vst_trace *trace = vst__view_trace(self->handle);
        const vst_definition *d = vst_trace_definition(trace, (vst_id)id);
        if (!vpy_append(list, d != NULL ? vpy_trace_function(trace, d)
                                        : Py_NewRef(Py_None)))
            Py_CLEAR(list);
    }
    pthread_rwlock_unlock(&self->growth);
    return list;
}

static PyObject *view_info(PyObject *object, PyObject *unused)
{
    vpy_view *self = (vpy_view *)object;
    vst_view_info info;

    (void)unused;
    if (!vpy_view_is_usable(self))
        return NULL;
    pthread_rwlock_rdlock(&self->growth);
    vst__view_get_info(self->handle, &info);
    pthread_rwlock_unlock(&self->growth);
    return Py_BuildValue(
        "{s:L,s:L,s:K,s:K,s:O,s:K,s:N,s:O,s:O,s:K,s:K,s:K,s:I}", "start_ns",
        (long long)info.start_ns, "end_ns", (long long)info.end_ns, "records",
        (unsigned long long)info.records, "spans",
        (unsigned long long)info.spans, "has_tasks",
        info.has_tasks ? Py_True : Py_False, "index_bytes",
        (unsigned long long)info.index_bytes, "index_path",
        info.index_path != NULL ? PyUnicode_DecodeFSDefault(info.index_path)
                                : Py_NewRef(Py_None),
        "built", info.built ? Py_True : Py_False, "clean",
        info.trace.clean ? Py_True : Py_False, "damaged_at",
        (unsigned long long)info.trace.damaged_at, "lost",
        (unsigned long long)info.trace.lost, "dropped",
        (unsigned long long)info.trace.dropped, "pid", info.trace.pid);
}

static PyObject *view_threads(PyObject *object, PyObject *unused)
{
    vpy_view *self = (vpy_view *)object;
    PyObject *list;

    (void)unused;
    if (!vpy_view_is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    pthread_rwlock_rdlock(&self->growth);
    for (size_t i = 0; list != NULL && i < vst__view_thread_count(self->handle);
         i++) {
        vst_view_thread t;
        vst__view_get_thread(self->handle, i, &t);
        if (!vpy_append(
                list,
                Py_BuildValue(
                    "{s:I,s:K,s:N,s:I,s:I,s:L,s:L,s:K,s:K}", "number", t.number,
                    "tid", (unsigned long long)t.system_tid, "name",
                    PyUnicode_DecodeUTF8(t.name, (Py_ssize_t)t.name_len,
                                         "replace"),
                    "depth", t.levels + t.off_stack, "levels", t.levels,
                    "start_ns", (long long)t.start_ns, "end_ns",
                    (long long)t.end_ns, "spans", (unsigned long long)t.spans,
                    "records", (unsigned long long)t.records)))
            Py_CLEAR(list);
    }
    pthread_rwlock_unlock(&self->growth);
    return list;
}

static PyObject *view_set_offset(PyObject *object, PyObject *ns)
{
    vpy_view *self = (vpy_view *)object;
    long long offset = PyLong_AsLongLong(ns);
    vst_status status;

    if ((offset == -1 && PyErr_Occurred() != NULL) || !vpy_view_is_usable(self))
        return NULL;
    if (pthread_rwlock_trywrlock(&self->growth) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this view");
        return NULL;
    }
    status = vst__view_set_offset(self->handle, offset);
    pthread_rwlock_unlock(&self->growth);
    if (status != VST_OK)
        return vpy_raise(status, NULL, self->path);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(window_doc,
             "window(from_ns, to_ns, pixels, *, threads=None, max_depth=0)\n"
             "--\n\nThe picture of a window of time: see view/view.h.");

PyDoc_STRVAR(
    span_at_doc,
    "span_at(thread, depth, time_ns)\n--\n\nThe span at this place, or None.");

PyDoc_STRVAR(
    flame_doc,
    "flame(from_ns, to_ns, *, threads=None, limit=0, progress=None)\n"
    "--\n\n"
    "The tree of calls of a range as rows (parent row or -1, id, count, "
    "self_ns, total_ns, self_bytes), at most the `limit` rows with the "
    "largest totals; and how many rows were left out.");

PyDoc_STRVAR(find_doc,
             "find(ids, from_ns, to_ns, pixels, *, threads=None, "
             "progress=None)\n--\n\n"
             "How many spans with these ids begin in each pixel, as uint32.");

PyDoc_STRVAR(
    next_doc,
    "next(ids, thread, after_ns, *, back=False, progress=None)\n"
    "--\n\nThe next span with one of these ids in order of time, or None.");

PyDoc_STRVAR(refresh_doc, "refresh()\n--\n\n"
                          "Read the records that were written since. Only "
                          "for a view with follow=True.");

PyDoc_STRVAR(
    functions_doc,
    "functions(first)\n--\n\nThe functions whose id is `first` or later.");

#define KEYWORDS(function)                                                     \
    (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"refresh", view_refresh, METH_NOARGS, refresh_doc},
    {"functions", view_functions, METH_O, functions_doc},
    {"info", view_info, METH_NOARGS, NULL},
    {"threads", view_threads, METH_NOARGS, NULL},
    {"set_offset", view_set_offset, METH_O, NULL},
    {"window", KEYWORDS(vpy_view_window), window_doc},
    {"span_at", vpy_view_span_at, METH_VARARGS, span_at_doc},
    {"flame", KEYWORDS(vpy_view_flame), flame_doc},
    {"find", KEYWORDS(vpy_view_find), find_doc},
    {"next", KEYWORDS(vpy_view_next), next_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(view_doc,
             "View(path, *, index=None, keep=True, progress=None, workers=0)\n"
             "--\n\nPictures of a trace, from an index that is kept.");

static const vpy_class described = {
    .name = "vestige._core.View",
    .doc = view_doc,
    .size = sizeof(vpy_view),
    .make = view_new,
    .init = view_init,
    .dealloc = view_dealloc,
    .methods = methods,
};

int vpy_view_init(PyObject *module)
{
    if (vpy_class_add(module, &described) < 0)
        return -1;
    vpy_reading.view.type =
        (PyTypeObject *)PyObject_GetAttrString(module, "View");
    return vpy_reading.view.type != NULL ? 0 : -1;
}
