/* Reads asyncio's objects for tasks.c: which task runs, its name, its
 * coroutine, and the kind of object for which a coroutine waits. Also
 * intercepts Task.set_name, and the methods of a Future that end a wait, while
 * tasks are recorded. No code of the program is called.
 *
 * asyncio is never imported: we look for it when a coroutine is resumed. Called
 * with the GIL held. */
#include "program/tasks.h"

#include "program/state.h"
#include "record/tasks.h"

#include <string.h>

static struct vpy_task_objects_state *const state = &vpy_program.task_objects;

/* ---- reading asyncio's objects ------------------------------------------- */

/* Returns the type of that name in a module, or NULL; borrowed from the module,
 * which keeps it. */
static PyTypeObject *find_type(PyObject *module, const char *name)
{
    PyObject *type = PyObject_GetAttrString(module, name);

    PyErr_Clear();
    Py_XDECREF(type);
    return type != NULL && PyType_Check(type) ? (PyTypeObject *)type : NULL;
}

static void watch_all(void);

static bool take_functions(PyObject *events, PyObject *tasks, PyObject *futures)
{
    state->asyncio.running_loop =
        PyObject_GetAttrString(events, "_get_running_loop");
    state->asyncio.current_task = PyObject_GetAttrString(tasks, "current_task");
    state->asyncio.task = find_type(tasks, "_CTask");
    state->asyncio.future = find_type(futures, "_CFuture");
    if (state->asyncio.task != NULL)
        state->asyncio.get_name =
            PyObject_GetAttrString((PyObject *)state->asyncio.task, "get_name");
    /* Where awaits are not inlined, current_task is a Python function, so we
     * read the dictionary that it reads. */
    if (!VPY_AWAITS_INLINE)
        state->asyncio.current_tasks =
            PyObject_GetAttrString(tasks, "_current_tasks");
    if (state->asyncio.current_tasks != NULL &&
        !PyDict_CheckExact(state->asyncio.current_tasks))
        Py_CLEAR(state->asyncio.current_tasks);
    PyErr_Clear();
    /* A module that is still being imported does not have these yet. */
    if (state->asyncio.running_loop == NULL ||
        state->asyncio.current_task == NULL) {
        Py_CLEAR(state->asyncio.running_loop);
        Py_CLEAR(state->asyncio.current_task);
        return false;
    }
    watch_all();
    return true;
}

/* Call with the state lock. */
static bool find_asyncio(void)
{
    PyObject *events, *tasks, *futures;
    bool is_found;

    if (state->asyncio.current_task != NULL)
        return true;
    events = vpy_loaded_module("asyncio.events");
    tasks = vpy_loaded_module("asyncio.tasks");
    futures = vpy_loaded_module("asyncio.futures");
    is_found = events != NULL && tasks != NULL && futures != NULL &&
               take_functions(events, tasks, futures);
    Py_XDECREF(events);
    Py_XDECREF(tasks);
    Py_XDECREF(futures);
    return is_found;
}

/* Returns the task that runs on this thread: a new reference, or NULL. */
PyObject *vpy_task_running(void)
{
    PyObject *running_loop = NULL, *current_task = NULL, *current_tasks = NULL;
    PyObject *loop = NULL, *task = NULL;

    vpy_state_take();
    if (find_asyncio()) {
        running_loop = Py_NewRef(state->asyncio.running_loop);
        current_task = Py_NewRef(state->asyncio.current_task);
        current_tasks = Py_XNewRef(state->asyncio.current_tasks);
    }
    vpy_state_give();
    if (running_loop != NULL)
        loop = PyObject_CallNoArgs(running_loop);
    if (loop != NULL && loop != Py_None)
        task = current_tasks != NULL ? vpy_dict_get(current_tasks, loop)
                                     : PyObject_CallOneArg(current_task, loop);
    PyErr_Clear();
    Py_XDECREF(running_loop);
    Py_XDECREF(current_task);
    Py_XDECREF(current_tasks);
    Py_XDECREF(loop);
    if (task == Py_None)
        Py_CLEAR(task);
    return task;
}

/* Returns the frame of a task's coroutine, or NULL. Sets *is_other if the task
 * has no coroutine, or one that is not Python's own. Runs no code of the
 * program. */
const void *vpy_task_frame(PyObject *task, bool *is_other)
{
    PyObject *coroutine = PyObject_GenericGetAttr(task, state->coro_name);
    const void *frame = NULL;

    PyErr_Clear();
    *is_other = coroutine == NULL ||
                (!PyCoro_CheckExact(coroutine) && !PyGen_CheckExact(coroutine));
    if (!*is_other)
        frame = vpy_iframe_of_coroutine(coroutine);
    Py_XDECREF(coroutine);
    return frame;
}

/* The two types are borrowed; they exist as long as their module is loaded. */
static void get_types(PyTypeObject **task, PyTypeObject **future)
{
    vpy_state_take();
    *task = state->asyncio.task;
    *future = state->asyncio.future;
    vpy_state_give();
}

static bool is_of(PyObject *object, PyTypeObject *type)
{
    return type != NULL && PyObject_TypeCheck(object, type);
}

bool vpy_task_is_c(PyObject *task)
{
    PyTypeObject *in_c, *future;

    get_types(&in_c, &future);
    return is_of(task, in_c);
}

/* Returns the task's name: a new reference to a str, or NULL. Runs no code of
 * the program. */
static PyObject *task_name_of(PyObject *task)
{
    PyObject *get_name, *name;

    vpy_state_take();
    get_name = Py_XNewRef(state->asyncio.get_name);
    vpy_state_give();
    name = vpy_task_is_c(task) && get_name != NULL
               ? PyObject_CallOneArg(get_name, task)
               : PyObject_GenericGetAttr(task, state->plain_name);
    Py_XDECREF(get_name);
    PyErr_Clear();
    if (name != NULL && !PyUnicode_Check(name))
        Py_CLEAR(name);
    return name;
}

/* Combines address and name: a later task may have an earlier one's address,
 * but not its name, unless the program names its tasks. */
uint64_t vpy_task_identity(PyObject *task)
{
    PyObject *name = task_name_of(task);
    uint64_t hash = name != NULL ? (uint64_t)PyUnicode_Type.tp_hash(name) : 0;

    Py_XDECREF(name);
    return hash ^ (uintptr_t)task;
}

void vpy_task_record_name(vst_task_what what, uint32_t number, PyObject *task)
{
    PyObject *name = task_name_of(task), *encoded = NULL;
    const char *bytes = "";
    uint32_t length = 0;

    if (name != NULL)
        encoded = vpy_text(name, &bytes, &length);
    PyErr_Clear();
    vst__record_task_name(what, number, bytes, encoded != NULL ? length : 0);
    Py_XDECREF(encoded);
    Py_XDECREF(name);
}

static VST_NOINLINE vst_task_awaits awaits_by_name(PyObject *object,
                                                   PyTypeObject *task_in_c,
                                                   PyTypeObject *future_in_c)
{
    const char *name = strrchr(Py_TYPE(object)->tp_name, '.');

    name = name != NULL ? name + 1 : Py_TYPE(object)->tp_name;
    if (strcmp(name, "_GatheringFuture") == 0)
        return VST_AWAITS_GATHER;
    if (is_of(object, task_in_c) || strcmp(name, "Task") == 0)
        return VST_AWAITS_TASK;
    if (is_of(object, future_in_c) || strcmp(name, "Future") == 0)
        return VST_AWAITS_FUTURE;
    return VST_AWAITS_OTHER;
}

vst_task_awaits vpy_task_awaits(PyObject *object)
{
    PyTypeObject *task_in_c, *future_in_c;

    get_types(&task_in_c, &future_in_c);
    if (Py_TYPE(object) == future_in_c)
        return VST_AWAITS_FUTURE;
    if (Py_TYPE(object) == task_in_c)
        return VST_AWAITS_TASK;
    if (object == Py_None)
        return VST_AWAITS_NOTHING;
    return awaits_by_name(object, task_in_c, future_in_c);
}

/* ---- watched methods ----------------------------------------------------- */

typedef PyObject *(*five_words)(PyObject *, PyObject *, PyObject *, PyObject *,
                                PyObject *);

/* Calls the original C function. It receives its arguments in up to five words,
 * by one of several conventions; we pass all five on unchanged. */
static PyObject *task_pass_on(const vpy_watched *w, PyObject *self, PyObject *b,
                              PyObject *c, PyObject *d, PyObject *e)
{
    return ((five_words)(void (*)(void))w->original)(self, b, c, d, e);
}

/* Call before the original function, which may immediately run the code that
 * waits. */
VST_INLINE void record_waking(PyObject *future)
{
    uint64_t address = (uint64_t)(uintptr_t)future;

    if (vpy_is_active() && vpy_thread_state()->tracing == 0 &&
        !vst__record_task_wakes_at_once(address))
        vst__record_task_wakes(address);
}

static VST_HOT PyObject *on_set_result(PyObject *self, PyObject *b, PyObject *c,
                                       PyObject *d, PyObject *e)
{
    record_waking(self);
    return task_pass_on(&state->set_result, self, b, c, d, e);
}

static PyObject *on_set_exception(PyObject *self, PyObject *b, PyObject *c,
                                  PyObject *d, PyObject *e)
{
    record_waking(self);
    return task_pass_on(&state->set_exception, self, b, c, d, e);
}

static PyObject *on_cancel(PyObject *self, PyObject *b, PyObject *c,
                           PyObject *d, PyObject *e)
{
    record_waking(self);
    return task_pass_on(&state->cancel, self, b, c, d, e);
}

static PyObject *on_set_name(PyObject *self, PyObject *b, PyObject *c,
                             PyObject *d, PyObject *e)
{
    PyObject *result = task_pass_on(&state->set_name, self, b, c, d, e);
    bool is_other;
    uint32_t number;

    if (result == NULL || !vpy_is_active())
        return result;
    number = vpy_task_number(vpy_task_frame(self, &is_other));
    if (number != 0) {
        PyThreadState *tstate = PyThreadState_Get();
        vpy_hook_enter(tstate);
        vpy_task_record_name(VST_TASK_NAMED, number, self);
        vpy_hook_leave(tstate);
    }
    return result;
}

static void task_watch(vpy_watched *w, PyTypeObject *type, const char *name,
                       five_words through_us)
{
    PyObject *method =
        type != NULL ? PyObject_GetAttrString((PyObject *)type, name) : NULL;

    if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
        vpy_watch(w, definition, definition->ml_flags & ~METH_STATIC,
                  (PyCFunction)(void (*)(void))through_us);
    }
    PyErr_Clear();
    Py_XDECREF(method);
}

static void watch_all(void)
{
    task_watch(&state->set_name, state->asyncio.task, "set_name", on_set_name);
    task_watch(&state->set_result, state->asyncio.future, "set_result",
               on_set_result);
    task_watch(&state->set_exception, state->asyncio.future, "set_exception",
               on_set_exception);
    task_watch(&state->cancel, state->asyncio.future, "cancel", on_cancel);
}

/* ---- start and stop ------------------------------------------------------ */

int vpy_tasks_init(void)
{
    if (state->coro_name == NULL)
        state->coro_name = PyUnicode_InternFromString("_coro");
    if (state->plain_name == NULL)
        state->plain_name = PyUnicode_InternFromString("_name");
    return state->coro_name != NULL && state->plain_name != NULL ? 0 : -1;
}

void vpy_task_objects_end(void)
{
    vpy_unwatch(&state->set_name);
    vpy_unwatch(&state->set_result);
    vpy_unwatch(&state->set_exception);
    vpy_unwatch(&state->cancel);
    vpy_state_take();
    Py_CLEAR(state->asyncio.running_loop);
    Py_CLEAR(state->asyncio.current_task);
    Py_CLEAR(state->asyncio.get_name);
    Py_CLEAR(state->asyncio.current_tasks);
    state->asyncio.task = state->asyncio.future = NULL;
    vpy_state_give();
}
