/* Lists single allocations and frees of a trace as Python objects.
 * trace_memory.c has summaries. */
#include "read/read.h"

#include "read/trace.h"

typedef struct wanted {
    PyObject *list;
    uint64_t min_size;
} wanted;

static vst_status append_event(void *ctx, const vst_memory_event *event)
{
    const wanted *w = ctx;
    PyObject *item;

    if (event->size < w->min_size)
        return VST_OK;
    item = Py_BuildValue("(sKKLIIIKKd)", vst_memory_kind_name(event->kind),
                         event->address, event->size, event->time_ns,
                         event->thread, event->flags, event->stack,
                         event->serial, event->live_bytes, event->weight);
    return vpy_append(w->list, item) ? VST_OK : VST_E_NOMEM;
}

static PyObject *memory_events(PyObject *module, PyObject *args)
{
    vpy_trace *trace;
    unsigned long long min_size = 0;
    PyObject *list;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    wanted w;
    vst_memory_sink sink;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!|K:memory_events", vpy_reading.trace.type,
                          &trace, &min_size))
        return NULL;
    list = PyList_New(0);
    if (list == NULL || !vpy_trace_borrow(trace, NULL)) {
        Py_XDECREF(list);
        return NULL;
    }
    w = (wanted){list, min_size};
    sink = (vst_memory_sink){.ctx = &w, .event = append_event};
    status =
        vst_trace_replay_memory(trace->handle, VST_WINDOW_ALL, &sink, &error);
    vpy_trace_end(trace);
    if (status == VST_OK)
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() != NULL ? NULL
                                    : vpy_raise(status, &error, trace->path);
}

static PyObject *describe_stack(const vst_trace *trace, vst_stack_id id)
{
    const vst_stack *stack = vst_trace_stack(trace, id);
    const vst_definition *function;

    if (stack == NULL)
        Py_RETURN_NONE;
    function = stack->kind == VST_STACK_LANGUAGE
                   ? vst_trace_definition(trace, stack->function)
                   : NULL;
    if (function == NULL)
        return Py_BuildValue("(IIIOOiK)", stack->kind, stack->flags,
                             stack->parent, Py_None, Py_None, stack->line,
                             stack->address);
    return Py_BuildValue("(IIINNiK)", stack->kind, stack->flags, stack->parent,
                         vpy_trace_text(function->name, function->name_len),
                         vpy_trace_text(function->file, function->file_len),
                         stack->line, stack->address);
}

static PyObject *memory_stacks(PyObject *module, PyObject *object)
{
    vpy_trace *trace = (vpy_trace *)object;
    PyObject *list;

    (void)module;
    if (!PyObject_TypeCheck(object, vpy_reading.trace.type)) {
        PyErr_SetString(PyExc_TypeError, "the argument is not a Trace");
        return NULL;
    }
    list = PyList_New(0);
    if (list == NULL || !vpy_trace_borrow(trace, NULL)) {
        Py_XDECREF(list);
        return NULL;
    }
    for (vst_stack_id id = 0;
         list != NULL && id <= vst_trace_stack_max(trace->handle); id++)
        if (!vpy_append(list, describe_stack(trace->handle, id)))
            Py_CLEAR(list);
    vpy_trace_end(trace);
    return list;
}

static PyMethodDef functions[] = {
    {"memory_events", memory_events, METH_VARARGS,
     PyDoc_STR("memory_events(trace, min_size=0)\n--\n\nEach allocation and "
               "free of at least min_size bytes: (kind, address, size, "
               "time_ns, thread, "
               "flags, stack, serial, live_bytes, weight).")},
    {"memory_stacks", memory_stacks, METH_O,
     PyDoc_STR("memory_stacks(trace)\n--\n\nThe stacks by number: (kind, "
               "flags, parent, function, file, line, address).")},
    {NULL, NULL, 0, NULL},
};

int vpy_memory_events_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
