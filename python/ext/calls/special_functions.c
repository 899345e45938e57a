/* Functions that need more than an enter and an exit: functions whose arguments
 * and results are recorded, functions that a trigger watches, the function
 * through which a framework calls its modules, the code that importing the
 * framework runs, the function in which a new thread gets its name, the
 * function that imports a module, the functions by which a thread pool gets and
 * runs work, and coroutines, whose calls may be steps of tasks. */
#include "calls/ids.h"

#include "base/inside.h"
#include "base/json.h"
#include "program/exceptions.h"
#include "program/program.h"
#include "program/tasks.h"
#include "program/triggers.h"
#include "record/tasks.h"

#include <string.h>

enum { VALUE_MAX = 200 };

/* Writes repr() of a value, which runs code of the program. If that fails,
 * writes a text that says so. */
static void put_repr(vpy_json *json, PyObject *value)
{
    PyObject *repr = PyObject_Repr(value);
    const char *bytes = "<repr failed>";
    uint32_t length = (uint32_t)strlen(bytes);
    PyObject *encoded = repr != NULL ? vpy_text(repr, &bytes, &length) : NULL;

    PyErr_Clear();
    vpy_json_string(json, bytes, length, VALUE_MAX);
    Py_XDECREF(encoded);
    Py_XDECREF(repr);
}

static void put_arguments(vpy_json *json, PyCodeObject *code,
                          const vpy_iframe *frame)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)code, "co_varnames");
    Py_ssize_t count = code->co_argcount + code->co_kwonlyargcount +
                       !!(code->co_flags & CO_VARARGS) +
                       !!(code->co_flags & CO_VARKEYWORDS);

    for (Py_ssize_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        PyObject *value =
            name != NULL ? vpy_iframe_argument(frame, (int)i) : NULL;
        const char *bytes;
        uint32_t length;
        PyObject *key;
        Py_XINCREF(value);
        key = value != NULL ? vpy_text(name, &bytes, &length) : NULL;
        PyErr_Clear();
        if (key != NULL) {
            vpy_json_key(json, bytes, length);
            put_repr(json, value);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    Py_XDECREF(names);
    PyErr_Clear();
}

static bool is_called(const PyCodeObject *code, const char *name)
{
    return PyUnicode_CompareWithASCIIString(code->co_name, name) == 0;
}

static bool is_thread_start(PyCodeObject *code)
{
    return is_called(code, "_bootstrap_inner");
}

/* Returns whether the code is a module's. Such code is special if it imports
 * the framework, or if arguments of all functions are recorded; it has no
 * arguments itself. */
static bool is_module(const PyCodeObject *code)
{
    return is_called(code, "<module>");
}

static void module_is_imported(const PyCodeObject *code)
{
    const char *file;
    uint32_t length;
    PyObject *text = vpy_text(code->co_filename, &file, &length);

    if (text != NULL && vpy_imports_framework(file, length, code->co_name))
        vpy_framework_imported();
    Py_XDECREF(text);
}

/* Records work of a thread pool: its object is made where the work is
 * submitted, and its method `run` runs the work in another thread. */
static void record_work(PyCodeObject *code, const vpy_iframe *frame)
{
    PyObject *self =
        code->co_argcount > 0 ? vpy_iframe_argument(frame, 0) : NULL;
    bool runs = is_called(code, "run");

    if (self != NULL && strcmp(Py_TYPE(self)->tp_name, "_WorkItem") == 0)
        vst__record_task((uint64_t[]){runs ? VST_TASK_RUNS : VST_TASK_SUBMITS,
                                      (uint64_t)(uintptr_t)self},
                         2);
}

/* Returns whether the arguments of this special function are recorded. */
static bool has_arguments(PyObject *code)
{
    return !is_thread_start((PyCodeObject *)code) &&
           !is_module((PyCodeObject *)code) &&
           vpy_code_wants_arguments((PyCodeObject *)code);
}

static VST_COLD void look_into(PyObject *code, const vpy_iframe *frame)
{
    PyObject *type, *error, *traceback;
    vpy_json json = {.length = 0};

    if (!vpy_base.inside.works[VPY_PART_ARGUMENTS])
        return;
    PyErr_Fetch(&type, &error, &traceback);
    if (frame == NULL)
        frame = vpy_iframe_running(PyThreadState_Get());
    if (frame != NULL && is_thread_start((PyCodeObject *)code)) {
        vpy_threads_name_from_frame(frame);
    } else if (frame != NULL && !has_arguments(code)) {
        if (vpy_is_import(((PyCodeObject *)code)->co_name))
            vpy_module_imported(frame);
        record_work((PyCodeObject *)code, frame);
    } else if (frame != NULL) {
        vpy_json_begin(&json, "arguments");
        put_arguments(&json, (PyCodeObject *)code, frame);
        vpy_json_end(&json);
        vst_record_args(json.bytes, json.length);
    }
    PyErr_Restore(type, error, traceback);
}

vst_id vpy_code_entered(uint32_t value, PyObject *code, const vpy_iframe *frame)
{
    if (value & VPY_SPECIAL && vpy_is_framework_code(code))
        return vpy_framework_entered(VPY_ID(value), code, frame);
    vst_record(VST_ENTER, VPY_ID(value));
    if (value & VPY_TIMED)
        vpy_triggers_entered(VPY_ID(value));
    if (value & VPY_COROUTINE)
        vpy_step_after_enter(
            VPY_ID(value),
            frame != NULL ? frame : vpy_iframe_running(vpy_thread_state()));
    if (value & VPY_SPECIAL)
        look_into(code, frame);
    return VPY_ID(value);
}

static VST_COLD void record_result(PyObject *result)
{
    PyObject *type, *error, *traceback;
    vpy_json json = {.length = 0};

    PyErr_Fetch(&type, &error, &traceback);
    vpy_json_key(&json, "return", 6);
    put_repr(&json, result);
    vst_record_args(json.bytes, json.length);
    PyErr_Restore(type, error, traceback);
}

void vpy_code_returns(uint32_t value, vst_id entered, PyObject *code,
                      PyObject *result, const vpy_iframe *frame, bool waits)
{
    if (value & VPY_MARKED && result == NULL)
        vpy_exception_set_leaves();
    if (value & VPY_SPECIAL && vpy_is_framework_code(code)) {
        vpy_framework_left(result != NULL ? VST_EXIT : VST_RAISE, VPY_ID(value),
                           entered, code);
        return;
    }
    if (value & VPY_COROUTINE)
        vpy_step_before_exit(
            VPY_ID(value),
            frame != NULL ? frame : vpy_iframe_running(vpy_thread_state()),
            result, waits);
    if (value & VPY_SPECIAL && result != NULL &&
        is_module((PyCodeObject *)code)) {
        module_is_imported((PyCodeObject *)code);
    } else if (value & VPY_SPECIAL && result != NULL && has_arguments(code)) {
        record_result(result);
        /* repr() may have forked, and the child gives other ids. */
        value = vpy_code_value(code);
        if (value == 0)
            return;
    }
    vst_record_end_of_call(result != NULL ? VST_EXIT : VST_RAISE,
                           VPY_ID(value));
    if (value & VPY_TIMED)
        vpy_triggers_left(VPY_ID(value));
}
