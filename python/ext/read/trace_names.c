/* What functions and imports are called: for those who lay reports out. With
 * the GIL held. */
#include "read/trace.h"

#include "replay/imports.h"

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

/* Of an import, by what was imported and the id of its code, 0: not known. */
PyObject *vpy_trace_import_name(PyObject *object, PyObject *args)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *text, *shown;
    char name[VST_IMPORT_NAME_MAX];
    unsigned imported, module = 0;
    size_t length;

    if (!PyArg_ParseTuple(args, "I|I:import_name", &imported, &module) ||
        !vpy_trace_is_usable(self))
        return NULL;
    length = vst__import_name(self->handle, (vst_import)imported, module, name);
    text = vpy_trace_text(name, length);
    shown = text != NULL ? PyUnicode_FromFormat("import %U", text) : NULL;
    Py_XDECREF(text);
    return shown;
}
