/* What functions and imports are called: for those who lay reports out. With
 * the GIL held. */
#include "read/trace.h"

#include "read/report.h"

PyObject *vpy_trace_function(const vst_definition *d)
{
    return Py_BuildValue(
        "(iNNNi)", (int)d->kind, vpy_trace_text(d->name, d->name_len),
        vpy_trace_text(d->file, d->file_len),
        vpy_trace_text(d->file + d->file_skip, d->file_len - d->file_skip),
        (int)d->line);
}

/* By id: kind, name, file, what is shown of that, line. */
PyObject *vpy_trace_functions(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_trace_by_id(object, vpy_trace_function);
}

/* Of the last item of a row of the tree, which is not 0. */
PyObject *vpy_trace_import_name(PyObject *object, PyObject *args)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *text, *shown;
    char name[VST_IMPORT_NAME_MAX];
    unsigned key;
    size_t length;

    if (!PyArg_ParseTuple(args, "I:import_name", &key) ||
        !vpy_trace_is_usable(self))
        return NULL;
    length = vst_import_name(self->handle, (vst_import)(key & VPY_IMPORT_MASK),
                             key >> VPY_IMPORT_BITS, name);
    text = vpy_trace_text(name, length);
    shown = text != NULL ? PyUnicode_FromFormat("import %U", text) : NULL;
    Py_XDECREF(text);
    return shown;
}
