/* file_pack() and file_unpack(): compress a finished trace, and decompress it.
 * They run without the GIL, and take it for each report of progress. */
#include "read/read.h"

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
