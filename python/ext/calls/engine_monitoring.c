/* The hooks of Python 3.12 and later: sys.monitoring, for every thread of the
 * interpreter at once. Callbacks are objects with a vectorcall of their own,
 * which costs less than a built-in function does.
 *
 * What the events do not say, and what is done about it:
 *  - Calls that are open when recording starts only end: vpy_threads_announce
 * has recorded them as open. Calls in C that are open then end unseen.
 *  - A generator resumed by throw() gives PY_THROW and no PY_RESUME.
 *  - CALL fires for every callable; only C functions are recorded. For a bound
 * method around a C function, CALL names the method and C_RETURN the function.
 *  - Frames of a suspended greenlet keep their events after set_events(0):
 *    callbacks are unregistered too.
 * Tool id: the first free of 4 and 3, so that debuggers (0), coverage (1),
 * profilers (2) and optimizers (5) find theirs free in the traced program. */
#include "calls/engine.h"

#include "calls/ids.h"
#include "program/triggers.h"

#include <opcode.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <structmember.h>

typedef struct callback {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    char mark; /* of the event, for the self test */
} callback;

typedef PyObject *(*callback_fn)(PyObject *, PyObject *const *, size_t,
                                 PyObject *);

/* ---- the hooks --------------------------------------------------------- */

static PyObject *on_enter(PyObject *self, PyObject *const *args, size_t nargsf,
                          PyObject *kwnames)
{
    uint32_t value = vpy_code_value(args[0]);

    (void)self, (void)nargsf, (void)kwnames;
    if (VST_LIKELY(vpy_is_plain(value)))
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
    if (VST_LIKELY(vpy_is_plain(value)))
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
    if (VST_LIKELY(vpy_is_plain(value)))
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

/* A bound method around a C function that is called with *args has no end
 * event. */
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

/* ---- the self test's hook ------------------------------------------------ */

/* The events of the calls that the self test makes, in order. */
static struct {
    PyThreadState *thread; /* that makes them, NULL: no test is under way */
    size_t length;
    char seen[128];
} test;

static void see(Py_UCS4 mark)
{
    if (test.length < sizeof test.seen - 1)
        test.seen[test.length++] = (char)mark;
}

/* Notes the first letter of the function's name where a call begins, and the
 * event's mark. Events of other threads, and of finalizers that run meanwhile,
 * are skipped. */
static PyObject *on_test(PyObject *self, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames)
{
    const PyCodeObject *code = (PyCodeObject *)args[0];
    char mark = ((callback *)self)->mark;
    bool begins = strchr("([{", mark) != NULL;

    (void)kwnames;
    if (test.thread != PyThreadState_Get() || !PyCode_Check(args[0]) ||
        PyUnicode_CompareWithASCIIString(code->co_filename, VPY_TEST_FILE) != 0)
        Py_RETURN_NONE;
    if (begins)
        see(PyUnicode_READ_CHAR(code->co_name, 0));
    see((Py_UCS4)(PyVectorcall_NARGS(nargsf) < (begins ? 2 : 3) ? '?' : mark));
    Py_RETURN_NONE;
}

/* ---- which there are ----------------------------------------------------- */

typedef enum want { CALLS, NATIVE_CALLS, EXCEPTIONS } want;

static const struct hook {
    const char *event;
    callback_fn function;
    want with; /* only set with these */
    char mark; /* in the self test */
} hooks[] = {
    {"PY_START", on_enter, CALLS, '('},
    {"PY_RESUME", on_enter, CALLS, '['},
    {"PY_THROW", on_enter, CALLS, '{'},
    {"PY_RETURN", on_return, CALLS, ')'},
    {"PY_YIELD", on_return, CALLS, ']'},
    {"PY_UNWIND", on_unwind, CALLS, '!'},
    {"CALL", on_call, NATIVE_CALLS, 0},
    {"C_RETURN", on_c_return, NATIVE_CALLS, 0},
    {"C_RAISE", on_c_raise, NATIVE_CALLS, 0},
    {"RAISE", on_raise, EXCEPTIONS, 0},
};

enum { HOOKS = sizeof hooks / sizeof hooks[0] };

/* ---- placing them ------------------------------------------------------ */

static PyObject *callbacks[HOOKS];
static PyObject *test_callbacks[HOOKS];
static long tool = -1; /* our id while recording or testing */

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

static PyObject *new_callback(PyTypeObject *type, callback_fn function,
                              char mark)
{
    callback *object = PyObject_New(callback, type);

    if (object) {
        object->vectorcall = function;
        object->mark = mark;
    }
    return (PyObject *)object;
}

static int init(PyObject *module)
{
    PyTypeObject *type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &callback_spec, NULL);
    bool made = type != NULL;

    for (size_t i = 0; made && i < HOOKS; i++) {
        Py_XSETREF(callbacks[i], new_callback(type, hooks[i].function, 0));
        Py_XSETREF(test_callbacks[i],
                   new_callback(type, on_test, hooks[i].mark));
        made = callbacks[i] && test_callbacks[i];
    }
    Py_XDECREF(type);
    return made ? 0 : -1;
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

static bool place(PyObject *const functions[HOOKS], bool native,
                  bool exceptions)
{
    unsigned long events = 0;

    if (!monitoring() || !take_any_tool()) {
        explain("no monitoring tool id is free: other tools of this program "
                "hold them (see sys.monitoring.get_tool)");
        return false;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        if ((hooks[i].with == NATIVE_CALLS && !native) ||
            (hooks[i].with == EXCEPTIONS && !exceptions))
            continue;
        if (!set_callback(i, functions[i])) {
            explain("sys.monitoring refused a callback");
            vpy_monitoring_stop(NULL);
            return false;
        }
        events |= (unsigned long)event_number(i);
    }
    if (!set_events(events)) {
        explain("sys.monitoring refused the events");
        vpy_monitoring_stop(NULL);
        return false;
    }
    return true;
}

bool vpy_monitoring_start(vpy_tracer *tracer, bool native)
{
    (void)tracer;
    vpy_monitoring_test_drop();
    return place(callbacks, native, vpy_triggers_want_exceptions());
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

/* ---- the self test ------------------------------------------------------- */

bool vpy_monitoring_test_begin(void)
{
    if (tool >= 0)
        return false;
    test.length = 0;
    test.thread = PyThreadState_Get();
    if (!place(test_callbacks, false, false)) {
        vpy_tracer_message[0] = 0; /* starting will report it again */
        test.thread = NULL;
    }
    return test.thread != NULL;
}

const char *vpy_monitoring_test_end(void)
{
    if (test.thread != PyThreadState_Get())
        return NULL;
    vpy_monitoring_test_drop();
    test.seen[test.length] = 0;
    return test.seen;
}

void vpy_monitoring_test_drop(void)
{
    if (test.thread)
        vpy_monitoring_stop(NULL);
    test.thread = NULL;
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
