/* vestige._core.Trace: a trace being read, as a Python object. Replays run
 * without the GIL. */
#include "vpy.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *vpy_trace_type;
PyObject *vpy_trace_error;

typedef struct trace {
    PyObject_HEAD vst_trace *handle;
    vst_tracer *tracer; /* of a session's, NULL for a file's */
    PyObject *session;  /* keeps the tracer alive */
    PyObject *path;     /* bytes, NULL for a session's */
    bool busy;          /* a replay is running, without the GIL */
} trace;

/* An OSError where the system said why, else a TraceError. */
PyObject *vpy_raise(vst_status status, const vst_error *error, PyObject *path)
{
    PyObject *name = NULL;

    if (PyErr_Occurred())
        return NULL;
    if (path)
        name = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path));
    if (status == VST_E_NOMEM) {
        PyErr_NoMemory();
    } else if (error && error->sys_errno) {
        errno = error->sys_errno;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name);
    } else {
        PyObject *type = status == VST_E_ARGUMENT ? PyExc_ValueError
                         : status == VST_E_STATE  ? PyExc_RuntimeError
                                                  : vpy_trace_error;
        const char *text = vst_status_string(status);
        if (name && error && error->offset)
            PyErr_Format(type, "%U: %s (at byte %llu)", name, text,
                         (unsigned long long)error->offset);
        else if (name)
            PyErr_Format(type, "%U: %s", name, text);
        else
            PyErr_SetString(type, text);
    }
    Py_XDECREF(name);
    return NULL;
}

static int trace_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", NULL};
    trace *self = (trace *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (self->handle) {
        PyErr_SetString(PyExc_RuntimeError, "the trace is open already");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&:Trace", names,
                                     PyUnicode_FSConverter, &self->path))
        return -1;
    Py_BEGIN_ALLOW_THREADS status =
        vst_trace_open(PyBytes_AS_STRING(self->path), &self->handle, &error);
    Py_END_ALLOW_THREADS if (status == VST_OK) return 0;
    self->handle = NULL;
    vpy_raise(status, &error, self->path);
    return -1;
}

PyObject *vpy_trace_of_session(PyObject *session, vst_session *handle)
{
    trace *self = (trace *)vpy_trace_type->tp_alloc(vpy_trace_type, 0);
    vst_error error = {VST_OK, 0, 0};

    if (!self)
        return NULL;
    vst_status status = vst_session_open_trace(handle, &self->handle, &error);
    if (status != VST_OK) {
        self->handle = NULL;
        vpy_raise(status, &error, NULL);
        Py_DECREF(self);
        return NULL;
    }
    Py_INCREF(session);
    self->session = session;
    self->tracer = vst_session_tracer(handle);
    return (PyObject *)self;
}

static void trace_dealloc(PyObject *object)
{
    trace *self = (trace *)object;
    PyTypeObject *type = Py_TYPE(object);

    if (self->handle)
        vst_trace_close(self->handle);
    Py_CLEAR(self->session);
    Py_CLEAR(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

static bool is_usable(trace *self)
{
    if (!self->handle)
        PyErr_SetString(PyExc_RuntimeError, "the trace is not open");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread is reading this trace");
    return self->handle && !self->busy;
}

/* ---- facts ------------------------------------------------------------- */

static PyObject *text_of(const char *bytes, size_t length)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "replace");
}

static PyObject *trace_info(PyObject *object, PyObject *unused)
{
    trace *self = (trace *)object;
    vst_trace_info info;
    char id[33];

    (void)unused;
    if (!is_usable(self))
        return NULL;
    vst_trace_get_info(self->handle, &info);
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02X", info.trace_id[i]);
    return Py_BuildValue(
        "{s:I,s:I,s:s,s:O,s:I,s:I,s:K,s:K,s:K,s:K,s:K,s:L,s:L,s:L,s:s}",
        "version", info.version, "pid", info.pid, "trace_id", id, "clean",
        info.clean ? Py_True : Py_False, "threads", info.threads, "windows",
        info.windows, "records", (unsigned long long)info.words, "lost",
        (unsigned long long)info.lost, "dropped",
        (unsigned long long)info.dropped, "bytes",
        (unsigned long long)info.bytes, "damaged_at",
        (unsigned long long)info.damaged_at, "start_ns",
        (long long)info.start_ns, "complete_ns", (long long)info.complete_ns,
        "end_ns", (long long)info.end_ns, "clock",
        info.clock == VST_CLOCK_TSC ? "tsc" : "monotonic");
}

static PyObject *trace_threads(PyObject *object, PyObject *unused)
{
    trace *self = (trace *)object;
    PyObject *list;

    (void)unused;
    if (!is_usable(self) || !(list = PyList_New(0)))
        return NULL;
    for (size_t i = 0; i < vst_trace_thread_count(self->handle); i++) {
        const vst_trace_thread *t = vst_trace_thread_at(self->handle, i);
        PyObject *entry =
            Py_BuildValue("{s:I,s:K,s:N,s:K}", "number", t->number, "tid",
                          (unsigned long long)t->system_tid, "name",
                          text_of(t->name, t->name_len), "records",
                          (unsigned long long)t->words);
        if (!entry || PyList_Append(list, entry) < 0) {
            Py_XDECREF(entry);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(entry);
    }
    return list;
}

static PyObject *trace_metadata(PyObject *object, PyObject *unused)
{
    trace *self = (trace *)object;
    PyObject *dict;
    const char *key, *json;

    (void)unused;
    if (!is_usable(self) || !(dict = PyDict_New()))
        return NULL;
    for (size_t i = 0;
         (json = vst_trace_metadata_at(self->handle, i, &key)) != NULL; i++) {
        PyObject *k = text_of(key, strlen(key));
        PyObject *v = text_of(json, strlen(json));
        int failed = !k || !v || PyDict_SetItem(dict, k, v) < 0;
        Py_XDECREF(k);
        Py_XDECREF(v);
        if (failed) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

/* ---- replays ----------------------------------------------------------- */

static int report_progress(void *function, double done)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(function, "d", done);
    int failed = result == NULL;

    /* A failure stays set for whoever started the replay. */
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return failed;
}

/* last_ns: only the end of the trace, 0 for all of it. */
static void begin(trace *self, PyObject *progress, unsigned long long last_ns)
{
    vst_trace_info info;

    self->busy = true;
    if (last_ns && last_ns < INT64_MAX / 2) {
        vst_trace_get_info(self->handle, &info);
        vst_trace_set_clip(self->handle, info.end_ns - (int64_t)last_ns);
    }
    if (progress && progress != Py_None)
        vst_trace_set_progress(self->handle, report_progress, progress);
}

static void end(trace *self)
{
    vst_trace_set_progress(self->handle, NULL, NULL);
    vst_trace_set_clip(self->handle, INT64_MIN);
    self->busy = false;
}

static PyObject *trace_export(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", "all_windows", "progress", "last_ns", NULL};
    trace *self = (trace *)object;
    PyObject *path = NULL, *progress = NULL;
    int all = 0;
    unsigned long long last_ns = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&|$pOK:export", names,
                                     PyUnicode_FSConverter, &path, &all,
                                     &progress, &last_ns))
        return NULL;
    if (!is_usable(self)) {
        Py_DECREF(path);
        return NULL;
    }
    vst_export_options options = {
        .window = all ? VST_WINDOW_ALL : VST_WINDOW_LAST,
        .tracer = self->tracer,
    };
    begin(self, progress, last_ns);
    Py_BEGIN_ALLOW_THREADS status = vst_trace_export(
        self->handle, PyBytes_AS_STRING(path), &options, &error);
    Py_END_ALLOW_THREADS end(self);
    if (status == VST_E_ARGUMENT)
        PyErr_Format(PyExc_ValueError,
                     "%s: unknown format; give the file a name that ends in "
                     ".json or .json.gz",
                     PyBytes_AS_STRING(path));
    else if (status != VST_OK)
        vpy_raise(status, &error, path);
    Py_DECREF(path);
    if (status != VST_OK)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- totals ------------------------------------------------------------ */

typedef struct total {
    uint64_t calls;
    int64_t self_ns, total_ns;
} total;

typedef struct totals {
    total *of; /* by definition id */
    vst_id max;
} totals;

/* Time in a function that called itself counts once in its total. */
static vst_status add_span(void *ctx, const vst_span *span)
{
    totals *t = ctx;

    if (span->id > t->max || span->flags & VST_SPAN_ASYNC)
        return VST_OK;
    total *sum = &t->of[span->id];
    int64_t duration = span->end_ns - span->start_ns;
    sum->calls += !(span->flags & VST_SPAN_RESUMED);
    sum->self_ns += duration - span->children_ns;
    if (!(span->flags & VST_SPAN_RECURSIVE))
        sum->total_ns += duration;
    return VST_OK;
}

static PyObject *name_of(const vst_definition *d)
{
    PyObject *name = text_of(d->name, d->name_len);
    PyObject *file, *full;

    if (!name || d->kind != VST_DEF_PYTHON)
        return name;
    file = text_of(d->file + d->file_skip, d->file_len - d->file_skip);
    full = file ? PyUnicode_FromFormat("%U(%d): %U", file, (int)d->line, name)
                : NULL;
    Py_XDECREF(file);
    Py_DECREF(name);
    return full;
}

static PyObject *list_totals(trace *self, const totals *t)
{
    PyObject *list = PyList_New(0);

    for (vst_id id = 1; list && id <= t->max; id++) {
        const vst_definition *d = vst_trace_definition(self->handle, id);
        const total *sum = &t->of[id];
        if (!d || !sum->calls)
            continue;
        PyObject *entry =
            Py_BuildValue("(NKLL)", name_of(d), (unsigned long long)sum->calls,
                          (long long)sum->self_ns, (long long)sum->total_ns);
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *trace_totals(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", "progress", "last_ns", NULL};
    trace *self = (trace *)object;
    PyObject *progress = NULL, *list = NULL;
    int all = 0;
    unsigned long long last_ns = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$pOK:totals", names, &all,
                                     &progress, &last_ns) ||
        !is_usable(self))
        return NULL;
    totals t = {NULL, vst_trace_definition_max(self->handle)};
    t.of = calloc((size_t)t.max + 1, sizeof *t.of);
    if (!t.of)
        return PyErr_NoMemory();
    vst_sink sink = {.ctx = &t, .recursion = true, .span = add_span};
    begin(self, progress, last_ns);
    Py_BEGIN_ALLOW_THREADS status =
        vst_trace_replay(self->handle, all ? VST_WINDOW_ALL : VST_WINDOW_LAST,
                         self->tracer, &sink, &error);
    Py_END_ALLOW_THREADS end(self);
    if (status == VST_OK)
        list = list_totals(self, &t);
    else
        vpy_raise(status, &error, self->path);
    free(t.of);
    return list;
}

static PyMethodDef trace_methods[] = {
    {"info", trace_info, METH_NOARGS, NULL},
    {"threads", trace_threads, METH_NOARGS, NULL},
    {"metadata", trace_metadata, METH_NOARGS, NULL},
    {"export", (PyCFunction)(void (*)(void))trace_export,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"totals", (PyCFunction)(void (*)(void))trace_totals,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(trace_doc, "Trace(path)\n--\n\nA recorded trace.");

static PyType_Slot trace_slots[] = {
    {Py_tp_init, trace_init},       {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, trace_dealloc}, {Py_tp_methods, trace_methods},
    {Py_tp_doc, (void *)trace_doc}, {0, NULL},
};

static PyType_Spec trace_spec = {
    .name = "vestige._core.Trace",
    .basicsize = sizeof(trace),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = trace_slots,
};

/* ---- recovery ---------------------------------------------------------- */

PyDoc_STRVAR(recover_doc,
             "recover(source, target, *, overwrite=False)\n--\n\n"
             "Write a finished copy of a trace whose process died.");

/* Trouble with the system may be that of either file, so both are named. */
static void raise_for_both(int sys_errno, PyObject *source, PyObject *target)
{
    PyObject *first = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(source));
    PyObject *second = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(target));

    errno = sys_errno;
    if (first && second)
        PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
}

static PyObject *recover(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"source", "target", "overwrite", NULL};
    PyObject *source = NULL, *target = NULL;
    vst_error error = {VST_OK, 0, 0};
    int overwrite = 0;
    vst_status status;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O&O&|$p:recover", names, PyUnicode_FSConverter, &source,
            PyUnicode_FSConverter, &target, &overwrite))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        vst_trace_recover(PyBytes_AS_STRING(source), PyBytes_AS_STRING(target),
                          overwrite, &error);
    Py_END_ALLOW_THREADS if (status != VST_OK && error.sys_errno)
        raise_for_both(error.sys_errno, source, target);
    else if (status != VST_OK) vpy_raise(status, &error, source);
    Py_DECREF(source);
    Py_DECREF(target);
    if (status != VST_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"recover", (PyCFunction)(void (*)(void))recover,
     METH_VARARGS | METH_KEYWORDS, recover_doc},
    {NULL, NULL, 0, NULL},
};

int vpy_trace_type_init(PyObject *module)
{
    vpy_trace_error = PyErr_NewExceptionWithDoc(
        "vestige.TraceError", "A trace cannot be read or written.", NULL, NULL);
    if (!vpy_trace_error ||
        PyModule_AddObjectRef(module, "TraceError", vpy_trace_error) < 0)
        return -1;
    vpy_trace_type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &trace_spec, NULL);
    if (!vpy_trace_type)
        return -1;
    if (PyModule_AddType(module, vpy_trace_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
