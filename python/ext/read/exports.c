/* Makes files of traces: exports them in any format, exports histories of
 * memory, compresses traces and decompresses them. Also maps records to the
 * nodes of an execution trace. Traces are read without the GIL and are busy
 * meanwhile. */
#include "read/read.h"
#include "read/trace.h"

#include "graph/nodes.h"
#include "memory/report.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/graph.h>

/* ---- any format ---------------------------------------------------------- */

/* Returns the depth below which calls were summed up, 0 if none were; raises on
 * failure. */
static PyObject *exports_result(vst_status status, const vst_error *error,
                                PyObject *path, uint32_t cut_depth)
{
    if (status == VST_OK)
        return PyLong_FromUnsignedLong(cut_depth);
    if (status != VST_E_ARGUMENT)
        return vpy_raise(status, error, path);
    PyErr_Format(PyExc_ValueError,
                 "%s: unknown format; give the file another suffix, or "
                 "name the format",
                 PyBytes_AS_STRING(path));
    return NULL;
}

PyObject *vpy_trace_export(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path",  "all_windows", "progress", "memory_events",
                            "since", "format",      "observer", NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *path = NULL, *progress = NULL;
    const char *format = NULL;
    int all = 0, memory = 1, since = -1;
    unsigned observer = 0;
    uint32_t cut_depth = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    vst_export_options options;
    PyObject *result;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O&|$pOpizI:export", names, PyUnicode_FSConverter, &path,
            &all, &progress, &memory, &since, &format, &observer))
        return NULL;
    if (!vpy_trace_is_usable(self)) {
        Py_DECREF(path);
        return NULL;
    }
    options = (vst_export_options){
        .window = vpy_trace_window(all, since),
        .no_memory_events = !memory,
        .format = format,
        .observer = observer,
        .cut_depth = &cut_depth,
    };
    vpy_trace_begin(self, progress);
    Py_BEGIN_ALLOW_THREADS
    status = vst_trace_export(self->handle, PyBytes_AS_STRING(path), &options,
                              &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    result = exports_result(status, &error, path, cut_depth);
    Py_DECREF(path);
    return result;
}

PyObject *vpy_export_traces(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {
        "traces",        "path",   "all_windows", "progress",
        "memory_events", "format", "observer",    NULL};
    PyObject *list, *path = NULL, *progress = NULL, *result = NULL;
    const char *format = NULL;
    int all = 0, memory = 1;
    unsigned observer = 0;
    uint32_t cut_depth = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    PyObject *traces;
    vst_trace **handles;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "OO&|$pOpzI:export_traces",
                                     names, &list, PyUnicode_FSConverter, &path,
                                     &all, &progress, &memory, &format,
                                     &observer))
        return NULL;
    traces = vpy_traces_to_export(list);
    handles = traces != NULL ? vpy_traces_borrow(traces, progress) : NULL;
    if (handles != NULL) {
        size_t count = (size_t)PyTuple_GET_SIZE(traces);
        vst_export_options options = {
            .window = all ? VST_WINDOW_ALL : VST_WINDOW_LAST,
            .no_memory_events = !memory,
            .format = format,
            .observer = observer,
            .cut_depth = &cut_depth,
        };
        Py_BEGIN_ALLOW_THREADS
        status = vst_traces_export(handles, count, PyBytes_AS_STRING(path),
                                   &options, &error);
        Py_END_ALLOW_THREADS
        vpy_traces_give_back(traces, handles);
        result = exports_result(status, &error, path, cut_depth);
    }
    Py_XDECREF(traces);
    Py_DECREF(path);
    return result;
}

/* ---- memory -------------------------------------------------------------- */

static int memory_view_of(const char *name)
{
    for (int i = 0; i < VST_MEMORY_VIEWS; i++)
        if (strcmp(name, vst_memory_view_name((vst_memory_view)i)) == 0)
            return i;
    PyErr_Format(PyExc_ValueError,
                 "view must be 'peak', 'leaks', 'temporary', 'reserved' or "
                 "'total', not '%s'",
                 name);
    return -1;
}

/* Returns the number of frames to which stacks were cut, 0 if they are whole;
 * raises on failure. */
static PyObject *exports_memory_result(vst_status status,
                                       const vst_error *error, PyObject *path,
                                       uint32_t cut_depth)
{
    if (status == VST_OK)
        return PyLong_FromUnsignedLong(cut_depth);
    if (status != VST_E_ARGUMENT || PyErr_Occurred() != NULL)
        return status == VST_E_STATE ? vpy_memory_fail(status, error, NULL)
                                     : vpy_raise(status, error, path);
    PyErr_Format(PyExc_ValueError,
                 "%s: unknown format; give the file a name that ends in "
                 ".pickle, .json, .csv, .html or .folded, or one of these and "
                 ".gz",
                 PyBytes_AS_STRING(path));
    return NULL;
}

PyObject *vpy_export_memory(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"traces",    "path",     "view",
                            "temporary", "progress", NULL};
    vst_memory_report_options options = {.window = VST_WINDOW_ALL};
    PyObject *list, *path = NULL, *progress = NULL, *result = NULL;
    PyObject *traces = NULL;
    const char *view = "peak";
    vst_trace **handles = NULL;
    vst_error error = {VST_OK, 0, 0};
    uint32_t cut_depth = 0;
    int temporary = 1, chosen;
    vst_status status;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "OO&|$siO:export_memory", names,
                                     &list, PyUnicode_FSConverter, &path, &view,
                                     &temporary, &progress))
        return NULL;
    chosen = memory_view_of(view);
    if (chosen >= 0 && vpy_memory_check_temporary(temporary) &&
        (traces = vpy_traces_to_export(list)) != NULL)
        handles = vpy_traces_borrow(traces, progress);
    if (handles != NULL) {
        size_t count = (size_t)PyTuple_GET_SIZE(traces);
        options.view = (vst_memory_view)chosen;
        options.temporary = (uint32_t)temporary;
        options.cut_depth = &cut_depth;
        Py_BEGIN_ALLOW_THREADS
        status = vst_traces_export_memory(
            handles, count, PyBytes_AS_STRING(path), &options, &error);
        Py_END_ALLOW_THREADS
        vpy_traces_give_back(traces, handles);
        result = exports_memory_result(status, &error, path, cut_depth);
    }
    Py_XDECREF(traces);
    Py_DECREF(path);
    return result;
}

/* ---- nodes --------------------------------------------------------------- */

PyObject *vpy_trace_count_nodes(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", NULL};
    vpy_trace *self = (vpy_trace *)object;
    vst_error error = {VST_OK, 0, 0};
    uint64_t count = 0;
    vst_status status;
    int all = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$p:count_nodes", names,
                                     &all) ||
        !vpy_trace_is_usable(self))
        return NULL;
    vpy_trace_begin(self, NULL);
    Py_BEGIN_ALLOW_THREADS
    status = vst__trace_count_nodes(self->handle, vpy_trace_window(all, -1),
                                    &count, &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    if (status != VST_OK)
        return vpy_raise(status, &error, self->path);
    return PyLong_FromUnsignedLongLong(count);
}

typedef struct pairs {
    uint64_t (*of)[2];
    size_t count, capacity;
} pairs;

static vst_status add_pair(void *ctx, uint64_t record, uint64_t id)
{
    pairs *list = ctx;

    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 1024;
        void *grown = realloc(list->of, capacity * sizeof *list->of);
        if (grown == NULL)
            return VST_E_NOMEM;
        list->of = grown;
        list->capacity = capacity;
    }
    list->of[list->count][0] = record;
    list->of[list->count++][1] = id;
    return VST_OK;
}

static PyObject *as_dict(const pairs *list)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict != NULL && i < list->count; i++) {
        PyObject *record = PyLong_FromUnsignedLongLong(list->of[i][0]);
        PyObject *id = PyLong_FromUnsignedLongLong(list->of[i][1]);
        if (record == NULL || id == NULL ||
            PyDict_SetItem(dict, record, id) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(record);
        Py_XDECREF(id);
    }
    return dict;
}

PyObject *vpy_node_ids(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"traces", "all_windows", "observer", NULL};
    PyObject *list, *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    unsigned observer = 0;
    pairs found = {NULL, 0, 0};
    vst_status status;
    int all = 1;
    PyObject *traces;
    vst_trace **handles;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$pI:node_ids", names, &list,
                                     &all, &observer))
        return NULL;
    traces = PySequence_Tuple(list);
    handles = traces != NULL ? vpy_traces_borrow(traces, NULL) : NULL;
    if (handles != NULL) {
        size_t count = (size_t)PyTuple_GET_SIZE(traces);
        Py_BEGIN_ALLOW_THREADS
        status = vst__traces_node_ids(handles, count, vpy_trace_window(all, -1),
                                      observer, add_pair, &found, &error);
        Py_END_ALLOW_THREADS
        vpy_traces_give_back(traces, handles);
        result = status == VST_OK ? as_dict(&found)
                                  : vpy_raise(status, &error, NULL);
    }
    free(found.of);
    Py_XDECREF(traces);
    return result;
}

/* ---- packed traces ------------------------------------------------------- */

typedef vst_status (*convert_fn)(const char *from, const char *to,
                                 const vst_pack_options *options,
                                 vst_error *error);

/* The caller's arguments; the paths are new references. */
typedef struct arguments {
    PyObject *source, *target, *progress;
    int overwrite, level;
} arguments;

static void raise_for(vst_status status, const vst_error *error,
                      const arguments *a, const char *state)
{
    if (PyErr_Occurred() != NULL) /* raised by the progress function */
        return;
    if (status == VST_E_STATE)
        PyErr_Format(vpy_shared.trace_error, "%s: %s",
                     PyBytes_AS_STRING(a->source), state);
    else if (error->sys_errno)
        vpy_raise_for_both(error->sys_errno, a->source, a->target);
    else
        vpy_raise(status, error, a->source);
}

static PyObject *file_convert(const arguments *a, convert_fn function,
                              const char *state)
{
    vst_pack_options options = {.level = a->level, .overwrite = a->overwrite};
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (a->progress != NULL && a->progress != Py_None) {
        options.progress = vpy_report_progress;
        options.progress_ctx = a->progress;
    }
    Py_BEGIN_ALLOW_THREADS
    status = function(PyBytes_AS_STRING(a->source),
                      PyBytes_AS_STRING(a->target), &options, &error);
    Py_END_ALLOW_THREADS
    if (status != VST_OK)
        raise_for(status, &error, a, state);
    Py_DECREF(a->source);
    Py_DECREF(a->target);
    if (status != VST_OK)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(pack_doc,
             "pack(source, target, *, overwrite=False, progress=None, "
             "level=3)\n--\n\nWrite a compressed copy of a trace.");

static PyObject *file_pack(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"source",   "target", "overwrite",
                            "progress", "level",  NULL};
    arguments a = {.level = VST_PACK_LEVEL};

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&O&|$pOi:pack", names,
                                     PyUnicode_FSConverter, &a.source,
                                     PyUnicode_FSConverter, &a.target,
                                     &a.overwrite, &a.progress, &a.level))
        return NULL;
    if (a.level < 1 || a.level > VST_PACK_LEVEL_MAX) {
        PyErr_Format(PyExc_ValueError, "level must be from 1 to %d, not %d",
                     VST_PACK_LEVEL_MAX, a.level);
        Py_DECREF(a.source);
        Py_DECREF(a.target);
        return NULL;
    }
    return file_convert(&a, vst_trace_pack, "packed already");
}

PyDoc_STRVAR(unpack_doc,
             "unpack(source, target, *, overwrite=False, progress=None)\n"
             "--\n\nWrite the original of a packed trace.");

static PyObject *file_unpack(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"source", "target", "overwrite", "progress", NULL};
    arguments a = {0};

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&O&|$pO:unpack", names,
                                     PyUnicode_FSConverter, &a.source,
                                     PyUnicode_FSConverter, &a.target,
                                     &a.overwrite, &a.progress))
        return NULL;
    return file_convert(&a, vst_trace_unpack, "not packed");
}

static PyMethodDef functions[] = {
    {"pack", (PyCFunction)(void (*)(void))file_pack,
     METH_VARARGS | METH_KEYWORDS, pack_doc},
    {"unpack", (PyCFunction)(void (*)(void))file_unpack,
     METH_VARARGS | METH_KEYWORDS, unpack_doc},
    {NULL, NULL, 0, NULL},
};

int vpy_pack_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
