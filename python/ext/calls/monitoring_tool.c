/* See monitoring_tool.h. The tool id is the first free of 4 and 3, so that
 * debuggers (0), coverage (1), profilers (2) and optimizers (5) find their ids
 * free in the traced program. */
#include "calls/monitoring_tool.h"

#include "calls/engine.h"

#include <stdarg.h>

static struct vpy_tool_state *const state = &vpy_calls.tool;

static long tool_now(void)
{
    return __atomic_load_n(&state->id, __ATOMIC_RELAXED);
}

PyObject *vpy_monitoring_ask(const char *function, const char *format, ...)
{
    PyObject *module = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *callable =
        module != NULL ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *args = NULL, *result = NULL;
    va_list values;

    va_start(values, format);
    if (callable != NULL)
        args = Py_VaBuildValue(format, values);
    va_end(values);
    if (args != NULL)
        result = PyObject_CallObject(callable, args);
    if (result == NULL)
        PyErr_Clear();
    Py_XDECREF(args);
    Py_XDECREF(callable);
    return result;
}

static bool tool_take(long id, PyObject *name)
{
    PyObject *result = name != NULL
                           ? vpy_monitoring_ask("use_tool_id", "(lO)", id, name)
                           : NULL;

    if (result == NULL)
        return false;
    Py_DECREF(result);
    Py_INCREF(name);
    Py_XSETREF(state->name, name);
    __atomic_store_n(&state->id, id, __ATOMIC_RELAXED);
    return true;
}

bool vpy_tool_take(void)
{
    bool as_torch = vpy_calls.engine.torch_mode && VPY_TORCH_TAKES_TOOL_ID_2;
    PyObject *name =
        PyUnicode_FromString(as_torch ? "PyTorch Profiler" : "vestige");
    bool taken = as_torch ? tool_take(2, name)
                          : tool_take(4, name) || tool_take(3, name);

    Py_XDECREF(name);
    return taken;
}

bool vpy_tool_is_taken(void)
{
    return tool_now() >= 0;
}

/* Up to 3.13, events of an id that was freed continue until a holder of the id
 * ends them. */
bool vpy_tool_hold(void)
{
    PyObject *name = vpy_monitoring_ask("get_tool", "(l)", tool_now());
    bool ours = name == state->name;

    if (name == Py_None)
        ours = tool_take(tool_now(), state->name);
    Py_XDECREF(name);
    return ours;
}

bool vpy_tool_set_events(unsigned long events)
{
    PyObject *result =
        vpy_monitoring_ask("set_events", "(lk)", tool_now(), events);
    bool set = result != NULL;

    Py_XDECREF(result);
    return set;
}

void vpy_tool_set_local_events(PyObject *code, unsigned long events)
{
    Py_XDECREF(vpy_monitoring_ask("set_local_events", "(lOk)", tool_now(), code,
                                  events));
}

PyObject *vpy_tool_register(long event, PyObject *function)
{
    return vpy_monitoring_ask("register_callback", "(llO)", tool_now(), event,
                              function);
}

void vpy_tool_enable_all(void)
{
    Py_XDECREF(vpy_monitoring_ask("restart_events", "()"));
}

void vpy_tool_give_back(bool ours)
{
    if (ours)
        Py_XDECREF(vpy_monitoring_ask("free_tool_id", "(l)", tool_now()));
    __atomic_store_n(&state->id, -1, __ATOMIC_RELAXED);
}
