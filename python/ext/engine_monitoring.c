/* The hooks of Python 3.12 and later: sys.monitoring, for every thread of the
 * interpreter at once. Callbacks are objects with a vectorcall of their own,
 * which costs less than a built-in function does.
 *
 * What the events do not say, and what is done about it:
 *  - Calls that are open when recording starts end without having begun: they
 *    were announced as open. Calls in C that are open then end unseen.
 *  - A generator resumed by throw() gives PY_THROW and no PY_RESUME.
 *  - CALL fires for every callable; only C functions are recorded. A bound
 *    method around one is announced as the method and ends as the function.
 *  - Frames of a suspended greenlet keep their events after set_events(0):
 *    callbacks are unregistered too.
 * Tool id: the first free of 4 and 3, so that debuggers (0), coverage (1),
 * profilers (2) and optimizers (5) can come and go in the traced program. */
#include "vpy.h"

#include <opcode.h>
#include <stddef.h>
#include <stdio.h>
#include <structmember.h>

typedef struct callback {
    PyObject_HEAD vectorcallfunc vectorcall;
} callback;

typedef PyObject *(*callback_fn)(PyObject *, PyObject *const *, size_t,
                                 PyObject *);

/* ---- the hooks --------------------------------------------------------- */

static PyObject *on_enter(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    uint32_t value = vpy_code_value(args[0]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(value - 1 < VPY_SPECIAL - 1))
        vst_record(VST_ENTER, value);
    else if (value)
        vpy_code_entered(value, args[0], NULL);
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    uint32_t value = vpy_code_value(args[0]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(value - 1 < VPY_SPECIAL - 1))
        vst_record_end_of_call(VST_EXIT, value);
    else if (value)
        vpy_code_returns(value, 0, args[0], args[2]);
    Py_RETURN_NONE;
}

static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    uint32_t value = vpy_code_value(args[0]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(value - 1 < VPY_SPECIAL - 1))
        vst_record_end_of_call(VST_RAISE, value);
    else if (value)
        vpy_code_returns(value, 0, args[0], NULL);
    Py_RETURN_NONE;
}

/* Only while a trigger waits for an exception. */
static PyObject *on_raise(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    PyObject *traceback = PyException_GetTraceback(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    vpy_triggers_raised(args[2], traceback);
    Py_XDECREF(traceback);
    Py_RETURN_NONE;
}

#ifdef INSTRUMENTED_CALL_KW
#define IS_PLAIN_CALL(op)                                                      \
    ((op) == INSTRUMENTED_CALL || (op) == INSTRUMENTED_CALL_KW)
#else
#define IS_PLAIN_CALL(op) ((op) == INSTRUMENTED_CALL)
#endif

/* A method around a C function that is called with *args has no end event. */
static bool will_end(PyObject *const *args)
{
    Py_ssize_t offset = PyLong_AsSsize_t(args[1]);
    const char *code = ((PyCodeObject *)args[0])->co_code_adaptive;

    return IS_PLAIN_CALL((unsigned char)code[offset]);
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (id && vpy_caller_is_recorded(args[0]) &&
        (!PyMethod_Check(args[2]) || will_end(args)))
        vst_record(VST_ENTER, id);
    Py_RETURN_NONE;
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args,
                             size_t nargsf, PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (id && vpy_caller_is_recorded(args[0]))
        vst_record_end_of_call(VST_EXIT, id);
    Py_RETURN_NONE;
}

static PyObject *on_c_raise(PyObject *self, PyObject *const *args,
                            size_t nargsf, PyObject *kwnames)
{
    vst_id id = vpy_native_id(args[2]);

    (void)self, (void)nargsf, (void)kwnames;
    if (id && vpy_caller_is_recorded(args[0]))
        vst_record_end_of_call(VST_RAISE, id);
    Py_RETURN_NONE;
}

typedef enum want { CALLS, NATIVE_CALLS, EXCEPTIONS } want;

static const struct hook {
    const char *event;
    callback_fn function;
    want with; /* only set with these */
} hooks[] = {
    {"PY_START", on_enter, CALLS},
    {"PY_RESUME", on_enter, CALLS},
    {"PY_THROW", on_enter, CALLS},
    {"PY_RETURN", on_return, CALLS},
    {"PY_YIELD", on_return, CALLS},
    {"PY_UNWIND", on_unwind, CALLS},
    {"CALL", on_call, NATIVE_CALLS},
    {"C_RETURN", on_c_return, NATIVE_CALLS},
    {"C_RAISE", on_c_raise, NATIVE_CALLS},
    {"RAISE", on_raise, EXCEPTIONS},
};

enum { HOOKS = sizeof hooks / sizeof hooks[0] };

/* ---- placing them ------------------------------------------------------ */

static PyObject *callbacks[HOOKS];
static long tool = -1; /* our id while recording */

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(callback, vectorcall),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot callback_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callback_members},
    {Py_tp_dealloc, callback_dealloc},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "vestige._core.monitoring_callback",
    .basicsize = sizeof(callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

static int init(PyObject *module)
{
    PyTypeObject *type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &callback_spec, NULL);

    if (!type)
        return -1;
    for (size_t i = 0; i < HOOKS; i++) {
        callback *object = PyObject_New(callback, type);
        if (!object) {
            Py_DECREF(type);
            return -1;
        }
        object->vectorcall = hooks[i].function;
        Py_XSETREF(callbacks[i], (PyObject *)object);
    }
    Py_DECREF(type);
    return 0;
}

static PyObject *monitoring(void) /* borrowed */
{
    return PySys_GetObject("monitoring");
}

static long event_number(size_t i)
{
    PyObject *events = PyObject_GetAttrString(monitoring(), "events");
    PyObject *value =
        events ? PyObject_GetAttrString(events, hooks[i].event) : NULL;
    long number = value ? PyLong_AsLong(value) : -1;

    Py_XDECREF(value);
    Py_XDECREF(events);
    return number;
}

static bool take_tool(long id, const char *name)
{
    PyObject *result =
        PyObject_CallMethod(monitoring(), "use_tool_id", "ls", id, name);

    if (!result) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(result);
    tool = id;
    return true;
}

static bool take_any_tool(void)
{
    if (vpy_torch_mode && VPY_TORCH_TAKES_TOOL_ID_2)
        return take_tool(2, "PyTorch Profiler");
    return take_tool(4, "vestige") || take_tool(3, "vestige");
}

static bool set_events(unsigned long events)
{
    PyObject *result =
        PyObject_CallMethod(monitoring(), "set_events", "lk", tool, events);

    Py_XDECREF(result);
    return result != NULL;
}

static bool set_callback(size_t i, PyObject *function)
{
    PyObject *result =
        PyObject_CallMethod(monitoring(), "register_callback", "llO", tool,
                            event_number(i), function);

    Py_XDECREF(result);
    return result != NULL;
}

static void explain(const char *what)
{
    PyErr_Clear();
    snprintf(vpy_tracer_message, sizeof vpy_tracer_message, "%s", what);
}

bool vpy_monitoring_start(vpy_tracer *tracer, bool native)
{
    unsigned long events = 0;

    if (!monitoring() || !take_any_tool()) {
        explain("no monitoring tool id is free: other tools of this program "
                "hold them (see sys.monitoring.get_tool)");
        return false;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        if ((hooks[i].with == NATIVE_CALLS && !native) ||
            (hooks[i].with == EXCEPTIONS && !vpy_triggers_want_exceptions()))
            continue;
        if (!set_callback(i, callbacks[i])) {
            explain("sys.monitoring refused a callback");
            vpy_monitoring_stop(tracer);
            return false;
        }
        events |= (unsigned long)event_number(i);
    }
    if (!set_events(events)) {
        explain("sys.monitoring refused the events");
        vpy_monitoring_stop(tracer);
        return false;
    }
    return true;
}

static bool start(vpy_tracer *tracer)
{
    return vpy_monitoring_start(tracer, tracer->options.native);
}

void vpy_monitoring_stop(vpy_tracer *tracer)
{
    (void)tracer;
    if (tool < 0)
        return;
    set_events(0);
    for (size_t i = 0; i < HOOKS; i++)
        set_callback(i, Py_None);
    PyObject *result =
        PyObject_CallMethod(monitoring(), "free_tool_id", "l", tool);
    Py_XDECREF(result);
    PyErr_Clear();
    tool = -1;
}

static size_t hooks_in_place(void)
{
    return tool >= 0;
}

const vpy_engine vpy_engine_monitoring = {
    .name = "monitoring",
    .init = init,
    .start = start,
    .stop = vpy_monitoring_stop,
    .hooks_in_place = hooks_in_place,
};
