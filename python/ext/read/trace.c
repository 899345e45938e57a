/* vestige._core.Trace: a trace as a Python object, and its facts that need no
 * replay. trace_replays.c has the methods that replay. */
#include "read/trace.h"

#include "read/read.h"

#include <stdlib.h>

#include <string.h>

#include <vestige/device.h>

#include "memory/report.h"

static struct vpy_trace_state *const state = &vpy_reading.trace;

typedef vpy_trace trace;

static int trace_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"path", NULL};
    trace *self = (trace *)object;
    PyObject *path = NULL;
    vst_trace *opened = NULL;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O&:Trace", names,
                                     PyUnicode_FSConverter, &path))
        return -1;
    if (!vpy_path_set(object, &self->path, path, "the trace is open already"))
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = vst_trace_open(PyBytes_AS_STRING(path), &opened, &error);
    Py_END_ALLOW_THREADS
    if (status == VST_OK && vpy_handle_set(&self->handle, opened))
        return 0;
    vpy_raise(status, &error, path);
    return -1;
}

PyObject *vpy_trace_of_session(vst_session *handle)
{
    trace *self = (trace *)state->type->tp_alloc(state->type, 0);
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (self == NULL)
        return NULL;
    status = vst_session_open_trace(handle, &self->handle, &error);
    if (status != VST_OK) {
        self->handle = NULL;
        vpy_raise(status, &error, NULL);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void trace_dealloc(PyObject *object)
{
    trace *self = (trace *)object;
    PyTypeObject *type = Py_TYPE(object);

    if (self->handle != NULL)
        vst_trace_close(self->handle);
    Py_CLEAR(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

bool vpy_trace_is_usable(vpy_trace *self)
{
    bool is_busy = __atomic_load_n(&self->busy, __ATOMIC_ACQUIRE);

    bool is_open = vpy_handle_of(&self->handle) != NULL;

    if (!is_open)
        PyErr_SetString(PyExc_RuntimeError, "the trace is not open");
    else if (is_busy)
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread is reading this trace");
    return is_open && !is_busy;
}

/* ---- facts --------------------------------------------------------------- */

PyObject *vpy_trace_text(const char *bytes, size_t length)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "replace");
}

static PyObject *trace_info(PyObject *object, PyObject *unused)
{
    static const char *const clock_names[] = {
        [VST_CLOCK_MONOTONIC] = "monotonic",
        [VST_CLOCK_TSC] = "tsc",
        [VST_CLOCK_CNTVCT] = "cntvct",
    };
    trace *self = (trace *)object;
    vst_trace_info info;
    PyObject *facts;
    char id[33];

    (void)unused;
    if (!vpy_trace_is_usable(self))
        return NULL;
    vst_trace_get_info(self->handle, &info);
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02X", info.trace_id[i]);
    facts = Py_BuildValue(
        "{s:I,s:I,s:s,s:O,s:I,s:I,s:K,s:K,s:K,s:K,s:K,s:L,s:L,s:L,s:s,s:O,s:K,"
        "s:O,s:K,s:K,s:O,s:O}",
        "version", info.version, "pid", info.pid, "trace_id", id, "clean",
        info.clean ? Py_True : Py_False, "threads", info.threads, "windows",
        info.windows, "records", (unsigned long long)info.words, "lost",
        (unsigned long long)info.lost, "dropped",
        (unsigned long long)info.dropped, "bytes",
        (unsigned long long)info.bytes, "damaged_at",
        (unsigned long long)info.damaged_at, "start_ns",
        (long long)info.start_ns, "complete_ns", (long long)info.complete_ns,
        "end_ns", (long long)info.end_ns, "clock", clock_names[info.clock],
        "packed", info.packed ? Py_True : Py_False, "packed_bytes",
        (unsigned long long)info.packed_bytes, "memory",
        vst_trace_has_memory(self->handle) ? Py_True : Py_False,
        "min_duration_ns", (unsigned long long)info.min_duration_ns, "left_out",
        (unsigned long long)info.left_out, "switches",
        info.switches ? Py_True : Py_False, "gil_waits",
        info.gil_waits ? Py_True : Py_False);
    /* Only traces with waits for objects have this fact, because programs rely
     * on the set of facts of all other traces. */
    if (facts != NULL && info.object_waits &&
        PyDict_SetItemString(facts, "object_waits", Py_True) < 0)
        Py_CLEAR(facts);
    return vpy_trace_add_devices(facts, self->handle);
}

static PyObject *trace_threads(PyObject *object, PyObject *unused)
{
    trace *self = (trace *)object;
    PyObject *list;

    (void)unused;
    if (!vpy_trace_is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    for (size_t i = 0; i < vst_trace_thread_count(self->handle); i++) {
        const vst_trace_thread *t = vst_trace_thread_at(self->handle, i);
        PyObject *entry =
            Py_BuildValue("{s:I,s:K,s:N,s:K,s:K}", "number", t->number, "tid",
                          (unsigned long long)t->system_tid, "name",
                          vpy_trace_text(t->name, t->name_len), "records",
                          (unsigned long long)t->words, "left_out",
                          (unsigned long long)t->left_out);
        if (!vpy_append(list, entry)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *trace_metadata(PyObject *object, PyObject *unused)
{
    trace *self = (trace *)object;
    PyObject *dict;
    const char *key, *json;

    (void)unused;
    if (!vpy_trace_is_usable(self) || (dict = PyDict_New()) == NULL)
        return NULL;
    for (size_t i = 0;
         (json = vst_trace_metadata_at(self->handle, i, &key)) != NULL; i++) {
        PyObject *k = vpy_trace_text(key, strlen(key));
        PyObject *v = vpy_trace_text(json, strlen(json));
        int failed = k == NULL || v == NULL || PyDict_SetItem(dict, k, v) < 0;
        Py_XDECREF(k);
        Py_XDECREF(v);
        if (failed) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

PyDoc_STRVAR(set_offset_doc,
             "set_offset(ns)\n--\n\nMove the whole trace in time.");

static PyObject *trace_set_offset(PyObject *object, PyObject *ns)
{
    trace *self = (trace *)object;
    long long offset = PyLong_AsLongLong(ns);
    vst_status status;

    if ((offset == -1 && PyErr_Occurred() != NULL) ||
        !vpy_trace_is_usable(self))
        return NULL;
    status = vst_trace_set_offset(self->handle, offset);
    if (status != VST_OK)
        return vpy_raise(status, NULL, self->path);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_range_doc,
             "set_range(from_ns=None, to_ns=None)\n--\n\nRestrict replays "
             "and exports to [from_ns, to_ns], inclusive.");

static bool get_bound(PyObject *value, int64_t *ns)
{
    if (value == Py_None)
        return true;
    *ns = PyLong_AsLongLong(value);
    return !(*ns == -1 && PyErr_Occurred() != NULL);
}

static PyObject *trace_set_range(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"from_ns", "to_ns", NULL};
    trace *self = (trace *)object;
    PyObject *from = Py_None, *to = Py_None;
    int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|OO:set_range", names, &from,
                                     &to) ||
        !get_bound(from, &from_ns) || !get_bound(to, &to_ns) ||
        !vpy_trace_is_usable(self))
        return NULL;
    vst_trace_set_range(self->handle, from_ns, to_ns);
    Py_RETURN_NONE;
}

static PyObject *set_flag(PyObject *object, PyObject *value,
                          void (*set)(vst_trace *trace, bool value))
{
    trace *self = (trace *)object;
    int flag = PyObject_IsTrue(value);

    if (flag < 0 || !vpy_trace_is_usable(self))
        return NULL;
    set(self->handle, flag);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_by_running_doc, "set_by_running(value)\n--\n\nMeasure spans "
                                 "by the time that their thread ran.");

static PyObject *trace_set_by_running(PyObject *object, PyObject *value)
{
    return set_flag(object, value, vst_trace_set_by_running);
}

PyDoc_STRVAR(set_compensated_doc,
             "set_compensated(value)\n--\n\nSubtract the estimated cost of "
             "recording from spans.");

static PyObject *trace_set_compensated(PyObject *object, PyObject *value)
{
    return set_flag(object, value, vst_trace_set_compensated);
}

PyObject *vpy_traces_to_export(PyObject *list)
{
    PyObject *traces = PySequence_Tuple(list);

    if (traces != NULL && PyTuple_GET_SIZE(traces) == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no traces to export");
        Py_CLEAR(traces);
    }
    return traces;
}

bool vpy_trace_borrow(vpy_trace *self, PyObject *progress)
{
    bool is_usable;

    VPY_BEGIN_CRITICAL_SECTION(self);
    is_usable = vpy_trace_is_usable(self);
    if (is_usable)
        vpy_trace_begin(self, progress);
    VPY_END_CRITICAL_SECTION();
    return is_usable;
}

/* Refuses a trace that is in the tuple twice, because the trace is busy the
 * second time. */
vst_trace **vpy_traces_borrow(PyObject *traces, PyObject *progress)
{
    Py_ssize_t count = PyTuple_GET_SIZE(traces), taken = 0;
    vst_trace **handles = calloc((size_t)count + 1, sizeof *handles);

    if (handles == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; taken < count; taken++) {
        vpy_trace *each = (vpy_trace *)PyTuple_GET_ITEM(traces, taken);
        if (!PyObject_TypeCheck(each, state->type)) {
            PyErr_Format(PyExc_TypeError,
                         "the argument is not a Trace but a %.100s",
                         Py_TYPE(each)->tp_name);
            break;
        }
        if (!vpy_trace_borrow(each, taken == 0 ? progress : NULL))
            break;
        handles[taken] = each->handle;
    }
    if (taken == count)
        return handles;
    while (taken-- > 0)
        vpy_trace_end((vpy_trace *)PyTuple_GET_ITEM(traces, taken));
    free(handles);
    return NULL;
}

void vpy_traces_give_back(PyObject *traces, vst_trace **handles)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(traces); i++)
        vpy_trace_end((vpy_trace *)PyTuple_GET_ITEM(traces, i));
    free(handles);
}

/* ---- memory -------------------------------------------------------------- */

/* Raises for a failed reading. VST_E_STATE means here that no memory was
 * recorded. */
PyObject *vpy_memory_fail(vst_status status, const vst_error *error,
                          PyObject *path)
{
    if (PyErr_Occurred() != NULL || status != VST_E_STATE)
        return vpy_raise(status, error, path);
    if (path != NULL)
        PyErr_Format(vpy_shared.trace_error,
                     "%s: the trace has no memory records; record them "
                     "with `vestige memory`, memory.track() or "
                     "profile(profile_memory=True)",
                     PyBytes_AS_STRING(path));
    else
        PyErr_SetString(vpy_shared.trace_error, "no memory was recorded");
    return NULL;
}

static PyObject *trace_has_memory(PyObject *object, PyObject *unused)
{
    vpy_trace *self = (vpy_trace *)object;

    (void)unused;
    if (!vpy_trace_is_usable(self))
        return NULL;
    return PyBool_FromLong(vst_trace_has_memory(self->handle));
}

bool vpy_memory_check_temporary(int temporary)
{
    if (temporary >= 1 && temporary <= VST_MEMORY_TEMPORARY_MAX)
        return true;
    PyErr_Format(PyExc_ValueError, "temporary must be from 1 to %d, not %d",
                 VST_MEMORY_TEMPORARY_MAX, temporary);
    return false;
}

/* On builds without the GIL, only one thread at a time checks whether another
 * thread reads. */
VPY_DEFINE_LOCKED(trace_info)
VPY_DEFINE_LOCKED(trace_threads)
VPY_DEFINE_LOCKED(trace_metadata)
VPY_DEFINE_LOCKED(trace_set_offset)
VPY_DEFINE_LOCKED(vpy_trace_names)
VPY_DEFINE_LOCKED(trace_has_memory)
VPY_DEFINE_LOCKED(vpy_trace_definitions)
VPY_DEFINE_LOCKED(vpy_trace_functions)
VPY_DEFINE_LOCKED(trace_set_by_running)
VPY_DEFINE_LOCKED(trace_set_compensated)
VPY_DEFINE_LOCKED(vpy_trace_import_name)
VPY_DEFINE_LOCKED_KEYWORDS(trace_set_range)
VPY_DEFINE_LOCKED_KEYWORDS(vpy_trace_export)
VPY_DEFINE_LOCKED_KEYWORDS(vpy_trace_spans)
VPY_DEFINE_LOCKED_KEYWORDS(vpy_trace_tables)
VPY_DEFINE_LOCKED_KEYWORDS(vpy_trace_count_nodes)

static PyMethodDef trace_methods[] = {
    {"info", VPY_LOCKED(trace_info), METH_NOARGS, NULL},
    {"threads", VPY_LOCKED(trace_threads), METH_NOARGS, NULL},
    {"metadata", VPY_LOCKED(trace_metadata), METH_NOARGS, NULL},
    {"set_offset", VPY_LOCKED(trace_set_offset), METH_O, set_offset_doc},
    {"set_range", (PyCFunction)(void (*)(void))VPY_LOCKED(trace_set_range),
     METH_VARARGS | METH_KEYWORDS, set_range_doc},
    {"export", (PyCFunction)(void (*)(void))VPY_LOCKED(vpy_trace_export),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"spans", (PyCFunction)(void (*)(void))VPY_LOCKED(vpy_trace_spans),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"names", VPY_LOCKED(vpy_trace_names), METH_NOARGS, NULL},
    {"has_memory", VPY_LOCKED(trace_has_memory), METH_NOARGS, NULL},
    {"definitions", VPY_LOCKED(vpy_trace_definitions), METH_NOARGS, NULL},
    {"tables", (PyCFunction)(void (*)(void))VPY_LOCKED(vpy_trace_tables),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"functions", VPY_LOCKED(vpy_trace_functions), METH_NOARGS, NULL},
    {"set_by_running", VPY_LOCKED(trace_set_by_running), METH_O,
     set_by_running_doc},
    {"set_compensated", VPY_LOCKED(trace_set_compensated), METH_O,
     set_compensated_doc},
    {"import_name", VPY_LOCKED(vpy_trace_import_name), METH_VARARGS, NULL},
    {"count_nodes",
     (PyCFunction)(void (*)(void))VPY_LOCKED(vpy_trace_count_nodes),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(trace_doc, "Trace(path)\n--\n\nA recorded trace.");

static const vpy_class described = {
    .name = "vestige._core.Trace",
    .doc = trace_doc,
    .size = sizeof(trace),
    .init = trace_init,
    .dealloc = trace_dealloc,
    .methods = trace_methods,
};

/* ---- recovery ------------------------------------------------------------ */

PyDoc_STRVAR(recover_doc,
             "recover(source, target, *, overwrite=False)\n--\n\n"
             "Write a finished copy of a trace whose process died.");

/* A system error may concern either file, so both are named. */
static PyObject *trace_recover(PyObject *module, PyObject *args, PyObject *kw)
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
    Py_BEGIN_ALLOW_THREADS
    status = vst_trace_recover(PyBytes_AS_STRING(source),
                               PyBytes_AS_STRING(target), overwrite, &error);
    Py_END_ALLOW_THREADS
    if (status != VST_OK && error.sys_errno)
        vpy_raise_for_both(error.sys_errno, source, target);
    else if (status != VST_OK)
        vpy_raise(status, &error, source);
    Py_DECREF(source);
    Py_DECREF(target);
    if (status != VST_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"recover", (PyCFunction)(void (*)(void))trace_recover,
     METH_VARARGS | METH_KEYWORDS, recover_doc},
    {"export_traces", (PyCFunction)(void (*)(void))vpy_export_traces,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"node_ids", (PyCFunction)(void (*)(void))vpy_node_ids,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"export_memory", (PyCFunction)(void (*)(void))vpy_export_memory,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

int vpy_trace_type_init(PyObject *module)
{
    if (vpy_class_add(module, &described) < 0)
        return -1;
    state->type = (PyTypeObject *)PyObject_GetAttrString(module, "Trace");
    if (state->type == NULL || vpy_trace_names_init(module) < 0 ||
        vpy_trace_replays_init(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
