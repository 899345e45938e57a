/* Trace.devices() and activities(): what devices did. Read without
 * the GIL, by the lanes that the viewer draws. */
#include "read/trace.h"

#include <stdlib.h>

#include "view/lanes_devices.h"

/* ---- what is known of devices -------------------------------------------- */

/* Sets a new reference, which may be NULL with an exception set. */
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

/* Those that were declared. */
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

PyObject *vpy_trace_add_devices(PyObject *told, const vst_trace *handle)
{
    PyObject *list;

    if (told == NULL || vst_trace_device_count(handle) == 0)
        return told;
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < vst_trace_device_count(handle); i++)
        if (!vpy_append(list,
                        device_of(handle, vst_trace_device_at(handle, i))))
            Py_CLEAR(list);
    if (!set_item(told, "devices", list))
        Py_CLEAR(told);
    return told;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct windows {
    int all, since;
    PyObject *progress;
} windows;

/* The lanes of the windows that are asked for; NULL with an exception set. */
static vst__lanes *read_lanes(vpy_trace *self, const windows *asked)
{
    const vst__lanes_options options = {
        .window = vpy_trace_window(asked->all, asked->since),
        .tracer = self->tracer,
    };
    vst__lanes *lanes = NULL;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!vpy_trace_is_usable(self))
        return NULL;
    vpy_trace_begin(self, asked->progress);
    Py_BEGIN_ALLOW_THREADS;
    status =
        vst__lanes_create(self->handle, "devices", &options, &lanes, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(self);
    if (status != VST_OK)
        vpy_raise(status, &error, self->path);
    return lanes;
}

/* ---- devices() ----------------------------------------------------------- */

/* A stream that did something, with its sums. */
static PyObject *summed_stream(const vst_trace *trace, const vst__lane *lane)
{
    const vst_trace_stream plain = {.number = lane->stream, .name = ""};
    const vst_trace_stream *known =
        vst_trace_stream_find(trace, lane->device, lane->stream);
    PyObject *made = stream_of(known != NULL ? known : &plain);

    if (made != NULL &&
        (!set_item(made, "activities",
                   PyLong_FromUnsignedLongLong(lane->items)) ||
         !set_item(made, "start_ns", PyLong_FromLongLong(lane->start_ns)) ||
         !set_item(made, "end_ns", PyLong_FromLongLong(lane->end_ns)) ||
         !set_item(made, "busy_ns", PyLong_FromLongLong(lane->busy_ns)) ||
         !set_item(made, "bytes", PyLong_FromUnsignedLongLong(lane->bytes))))
        Py_CLEAR(made);
    return made;
}

static PyObject *streams_of(const vst_trace *trace, const vst__lanes *lanes,
                            uint32_t device)
{
    PyObject *list = PyList_New(0);
    vst__lane lane;

    for (uint32_t i = 0; list != NULL && vst__lanes_get(lanes, i, &lane); i++)
        if (lane.device == device && device != 0 &&
            !vpy_append(list, summed_stream(trace, &lane)))
            Py_CLEAR(list);
    return list;
}

PyObject *vpy_trace_devices(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", "since", "progress", NULL};
    vpy_trace *self = (vpy_trace *)object;
    windows asked = {0, -1, NULL};
    vst__lanes *lanes;
    PyObject *list;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$piO:devices", names,
                                     &asked.all, &asked.since, &asked.progress))
        return NULL;
    lanes = read_lanes(self, &asked);
    list = lanes != NULL ? PyList_New(0) : NULL;
    for (size_t i = 0; list != NULL && i < vst_trace_device_count(self->handle);
         i++) {
        const vst_trace_device *d = vst_trace_device_at(self->handle, i);
        PyObject *item = device_of(self->handle, d);

        if (item != NULL &&
            !set_item(item, "streams",
                      streams_of(self->handle, lanes, d->number)))
            Py_CLEAR(item);
        if (!vpy_append(list, item))
            Py_CLEAR(list);
    }
    vst__lanes_destroy(lanes);
    return list;
}

/* ---- activities() -------------------------------------------------------- */

/* Fourteen words of eight bytes; reading/activities.py knows this. */
typedef struct row {
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    uint64_t op, annotation; /* serials, 0: none */
    uint64_t args_at;        /* in the texts */
    uint32_t kind, id;
    uint32_t device, stream; /* stream of a call: 0 */
    uint32_t thread;         /* of a call, 0: the trace does not have it */
    uint32_t context;
    uint32_t args_length;
    uint32_t launch; /* 1 + the row of the call it came from; 0: none */
    uint32_t op_id, annotation_id;
    uint32_t lane, row; /* of src/view/lanes_devices.c */
} row;

static size_t count_all(const vst__lanes *lanes)
{
    vst__lane lane;
    size_t count = 0;

    for (uint32_t i = 0; vst__lanes_get(lanes, i, &lane); i++)
        count += (size_t)lane.items;
    return count;
}

static row row_of(const vst__lanes *lanes, const vst__lane *lane,
                  const vst__lane_item *item, const char *text)
{
    uint64_t facts[VST_LANE_FACTS_MAX];
    size_t length;
    const char *args;

    vst__lanes_facts_of(lanes, item->number, facts);
    args = vst__lanes_text(lanes, facts[VST_DEVICE_ARGS], &length);
    return (row){
        .start_ns = item->start_ns,
        .end_ns = item->end_ns,
        .correlation = facts[VST_DEVICE_CORRELATION],
        .external = facts[VST_DEVICE_EXTERNAL],
        .bytes = facts[VST_DEVICE_BYTES],
        .op = facts[VST_DEVICE_OP_SERIAL],
        .annotation = facts[VST_DEVICE_ANNOTATION_SERIAL],
        .args_at = length != 0 ? (uint64_t)(args - text) : 0,
        .kind = (uint32_t)facts[VST_DEVICE_KIND],
        .id = item->id,
        .device = (uint32_t)facts[VST_DEVICE_DEVICE],
        .stream = lane->stream,
        .thread = lane->thread,
        .context = (uint32_t)facts[VST_DEVICE_CONTEXT],
        .args_length = (uint32_t)length,
        .launch = (uint32_t)facts[VST_DEVICE_LAUNCH],
        .op_id = (uint32_t)facts[VST_DEVICE_OP],
        .annotation_id = (uint32_t)facts[VST_DEVICE_ANNOTATION],
        .lane = item->lane,
        .row = item->row,
    };
}

/* All texts lie one behind the other. */
static size_t length_of_texts(const vst__lanes *lanes)
{
    size_t sum = 0, length;

    for (uint64_t i = 0; vst__lanes_text(lanes, i, &length) != NULL; i++)
        sum += length;
    return sum;
}

static PyObject *rows_of(const vst__lanes *lanes)
{
    size_t count = count_all(lanes), length = 0;
    row *rows = malloc((count + 1) * sizeof *rows);
    const char *text = vst__lanes_text(lanes, 1, &length);
    void *block = rows;
    uint32_t number = 0;
    vst__lane_item item;
    vst__lane lane;
    PyObject *first, *result = NULL;

    if (rows == NULL)
        return PyErr_NoMemory();
    for (uint32_t i = 0; vst__lanes_get(lanes, i, &lane); i++)
        for (uint64_t left = lane.items; left != 0; left--, number++)
            if (vst__lanes_item(lanes, number, &item))
                rows[number] = row_of(lanes, &lane, &item, text);
    first = vpy_view_of(&block, count * sizeof *rows);
    if (first != NULL)
        result = Py_BuildValue("(Ny#)", first, text != NULL ? text : "",
                               (Py_ssize_t)length_of_texts(lanes));
    return result;
}

PyObject *vpy_trace_activities(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", "since", "progress", NULL};
    windows asked = {0, -1, NULL};
    vst__lanes *lanes;
    PyObject *result;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$piO:activities", names,
                                     &asked.all, &asked.since, &asked.progress))
        return NULL;
    lanes = read_lanes((vpy_trace *)object, &asked);
    result = lanes != NULL ? rows_of(lanes) : NULL;
    vst__lanes_destroy(lanes);
    return result;
}
