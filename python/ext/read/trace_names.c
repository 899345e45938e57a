/* Lists the names in a trace: functions, imports, devices and their streams.
 * Called with the GIL held. */
#include "read/rows.h"
#include "read/trace.h"

#include "replay/imports.h"
#include "replay/named_waits.h"

/* ---- functions ----------------------------------------------------------- */

static const char *const function_fields[] = {"kind",       "name", "file",
                                              "shown_file", "line", "waits_for",
                                              "only_waits", NULL};
static const char *const definition_fields[] = {"kind", "name", NULL};
static const vpy_record function = {.name = "vestige._core.Function",
                                    .fields = function_fields,
                                    .hidden = 2,
                                    .type = &vpy_reading.trace_names.function};
static const vpy_record definition = {.name = "vestige._core.Definition",
                                      .fields = definition_fields,
                                      .type =
                                          &vpy_reading.trace_names.definition};

int vpy_trace_names_init(PyObject *module)
{
    return vpy_record_add(module, &function) < 0 ||
                   vpy_record_add(module, &definition) < 0
               ? -1
               : 0;
}

PyObject *vpy_trace_by_id(PyObject *object,
                          PyObject *(*entry_of)(const vst_trace *,
                                                const vst_definition *))
{
    vpy_trace *self = (vpy_trace *)object;
    vst_id max;
    PyObject *list;

    if (!vpy_trace_is_usable(self))
        return NULL;
    max = vst_trace_definition_max(self->handle);
    list = PyList_New((Py_ssize_t)max + 1);
    for (vst_id id = 0; list != NULL && id <= max; id++) {
        const vst_definition *d =
            id ? vst_trace_definition(self->handle, id) : NULL;
        PyObject *entry =
            d != NULL ? entry_of(self->handle, d) : Py_NewRef(Py_None);
        if (entry != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)id, entry);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *kind_and_name(const vst_trace *trace, const vst_definition *d)
{
    (void)trace;
    return vpy_record_new(
        &definition, Py_BuildValue("(iN)", (int)d->kind, vpy_trace_name(d)));
}

/* Returns a list by definition id: (kind, shown name). */
PyObject *vpy_trace_definitions(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_trace_by_id(object, kind_and_name);
}

PyObject *vpy_trace_function(const vst_trace *trace, const vst_definition *d)
{
    const char *more = NULL;
    size_t length = vst__named_waits_more(trace, &more);
    vst__waiter waiter = vst__waiter_of(d, more, length);

    return vpy_record_new(
        &function,
        Py_BuildValue(
            "(iNNNisO)", (int)d->kind, vpy_trace_text(d->name, d->name_len),
            vpy_trace_text(d->file, d->file_len),
            vpy_trace_text(d->file + d->file_skip, d->file_len - d->file_skip),
            (int)d->line, vst_wait_reason_name(waiter.reason),
            waiter.reason != VST_WAIT_NONE && !waiter.is_around ? Py_True
                                                                : Py_False));
}

/* Returns a list by definition id: (kind, name, file, shown part of file,
 * line). */
PyObject *vpy_trace_functions(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_trace_by_id(object, vpy_trace_function);
}

/* import_name(imported, module=0): the name of an import's span. module: the id
 * of the imported module's code; 0: not known. */
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

/* ---- devices ------------------------------------------------------------- */

/* Sets a dict's item and takes over the reference to the value, which may be
 * NULL with an exception set. */
static bool set_item(PyObject *dict, const char *key, PyObject *value)
{
    bool is_set = value != NULL && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return is_set;
}

static PyObject *stream_of(const vst_trace_stream *stream)
{
    return Py_BuildValue("{s:I,s:N,s:i}", "number", stream->number, "name",
                         vpy_trace_text(stream->name, stream->name_len),
                         "priority", (int)stream->priority);
}

/* Returns the streams that were declared for a device. */
static PyObject *declared_streams(const vst_trace *trace, uint32_t device)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < vst_trace_stream_count(trace); i++) {
        const vst_trace_stream *stream = vst_trace_stream_at(trace, i);

        if (stream->device == device && !vpy_append(list, stream_of(stream)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *device_of(const vst_trace *trace, const vst_trace_device *d)
{
    PyObject *made =
        Py_BuildValue("{s:I,s:s,s:I,s:N,s:N,s:O,s:n,s:L}", "number", d->number,
                      "platform", d->platform, "ordinal", d->ordinal, "name",
                      vpy_trace_text(d->name, d->name_len), "attributes",
                      vpy_trace_text(d->attributes, d->attributes_len),
                      "has_clock", d->has_clock ? Py_True : Py_False, "pairs",
                      (Py_ssize_t)d->pairs, "error_ns", (long long)d->error_ns);

    if (made != NULL &&
        !set_item(made, "streams", declared_streams(trace, d->number)))
        Py_CLEAR(made);
    return made;
}

PyObject *vpy_trace_add_devices(PyObject *facts, const vst_trace *handle)
{
    PyObject *list;

    if (facts == NULL || vst_trace_device_count(handle) == 0)
        return facts;
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < vst_trace_device_count(handle); i++)
        if (!vpy_append(list,
                        device_of(handle, vst_trace_device_at(handle, i))))
            Py_CLEAR(list);
    if (!set_item(facts, "devices", list))
        Py_CLEAR(facts);
    return facts;
}
