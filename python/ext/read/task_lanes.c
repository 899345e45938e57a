/* vestige._core.TaskLanes: the tasks of a trace as lanes of a picture
 * (<vestige/task_lanes.h>). Any thread may ask. */
#include "read/trace.h"

#include <stdlib.h>

#include "read/draw_lanes.h"
#include "read/numbers.h"
#include "read/read.h"

#include <vestige/task_lanes.h>

typedef struct task_lanes {
    PyObject_HEAD
    vst_task_lanes *handle; /* atomic: set once, see vpy_handle_set */
} task_lanes;

enum { WAKES_MAX = 10000 };

static bool is_usable(const task_lanes *self)
{
    bool is_made = vpy_handle_of(&self->handle) != NULL;

    if (!is_made)
        PyErr_SetString(PyExc_ValueError, "these lanes were not made");
    return is_made;
}

static int task_lanes_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"trace", "wrappers", "progress", NULL};
    task_lanes *self = (task_lanes *)object;
    PyObject *progress = NULL, *list = NULL;
    vst_view_ids wrappers = {NULL, 0};
    vst_id *ids = NULL;
    vpy_trace *trace;
    vst_error error = {VST_OK, 0, 0};
    vst_task_lanes *made = NULL;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!|$OO:TaskLanes", names,
                                     vpy_trace_type, &trace, &list, &progress))
        return -1;
    if (list != NULL && (ids = vpy_to_numbers(list, &wrappers.count)) == NULL)
        return -1;
    wrappers.ids = ids;
    if (!vpy_trace_borrow(trace, progress)) {
        free(ids);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = vst_task_lanes_create(trace->handle, &wrappers, &made, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(trace);
    free(ids);
    if (status == VST_OK && vpy_handle_set(&self->handle, made))
        return 0;
    vst_task_lanes_destroy(made);
    if (status != VST_OK)
        vpy_raise(status, &error, trace->path);
    return -1;
}

static void task_lanes_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst_task_lanes_destroy(((task_lanes *)object)->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- what there is ------------------------------------------------------- */

PyDoc_STRVAR(groups_doc,
             "groups()\n--\n\n[(thread, function, first lane, tasks, steps, "
             "start_ns, end_ns, running_ns, awaiting_ns)]: the tasks of a "
             "coroutine function on a thread. A group's lane is its index.");

static PyObject *task_lanes_groups(PyObject *object, PyObject *unused)
{
    const task_lanes *self = (task_lanes *)object;
    PyObject *list;

    (void)unused;
    if (!is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    for (size_t i = 0; i < vst_task_lanes_group_count(self->handle); i++) {
        const vst_task_group *g = vst_task_lanes_group(self->handle, i);
        PyObject *item =
            Py_BuildValue("(IIIIKLLLL)", g->thread, g->id, g->first, g->tasks,
                          (unsigned long long)g->steps, (long long)g->start_ns,
                          (long long)g->end_ns, (long long)g->running_ns,
                          (long long)g->awaiting_ns);
        if (!vpy_append(list, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

PyDoc_STRVAR(
    tasks_doc,
    "tasks(first, count)\n--\n\n[(name, start_ns, end_ns, steps, "
    "running_ns, awaiting_ns, end, kind)] of so many lanes from one on.");

static PyObject *task_lanes_tasks(PyObject *object, PyObject *args)
{
    const task_lanes *self = (task_lanes *)object;
    unsigned first, count;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "II:tasks", &first, &count) ||
        !is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    for (uint64_t lane = first; lane < (uint64_t)first + count; lane++) {
        const vst_task *t =
            lane <= UINT32_MAX
                ? vst_task_lanes_task(self->handle, (uint32_t)lane)
                : NULL;
        PyObject *item;
        if (t == NULL)
            break;
        item = Py_BuildValue(
            "(NLLKLLss)", vpy_trace_text(t->name, t->name_len),
            (long long)t->start_ns, (long long)t->end_ns,
            (unsigned long long)t->steps, (long long)t->running_ns,
            (long long)t->awaiting_ns, vst_task_end_name(t->end),
            vst_task_kind_name(t->kind));
        if (!vpy_append(list, item)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *task_lanes_left_out(PyObject *object, PyObject *unused)
{
    const task_lanes *self = (task_lanes *)object;

    (void)unused;
    return is_usable(self) ? PyLong_FromUnsignedLongLong(
                                 vst_task_lanes_left_out(self->handle))
                           : NULL;
}

/* ---- what is asked ------------------------------------------------------- */

PyDoc_STRVAR(draw_doc, "draw(from_ns, to_ns, pixels, lanes)\n--\n\nA window as "
                       "View.window gives it: see <vestige/task_lanes.h>.");

static vst_status draw(const void *handle, int64_t from_ns, int64_t to_ns,
                       uint32_t pixels, const uint32_t *lanes, size_t count,
                       void **bytes, size_t *size)
{
    return vst_task_lanes_draw(handle, from_ns, to_ns, pixels, lanes, count,
                               bytes, size);
}

static PyObject *task_lanes_draw(PyObject *object, PyObject *args)
{
    const task_lanes *self = (task_lanes *)object;

    return is_usable(self) ? vpy_draw_lanes(self->handle, args, draw) : NULL;
}

static PyObject *to_dict(const vst_task_stretch *s)
{
    PyObject *waker = Py_NewRef(Py_None);

    if (s->waker.is_known) {
        Py_DECREF(waker);
        waker = Py_BuildValue("{s:I,s:I,s:I,s:L}", "lane", s->waker_lane,
                              "thread", s->waker.thread, "id", s->waker.id,
                              "time_ns", (long long)s->waker.time_ns);
    }
    return Py_BuildValue(
        "{s:I,s:O,s:O,s:O,s:O,s:L,s:L,s:I,s:i,s:I,s:I,s:N}", "lane", s->lane,
        "wait", s->is_wait ? Py_True : Py_False, "first",
        s->is_first ? Py_True : Py_False, "turn",
        s->had_turn ? Py_True : Py_False, "open",
        s->is_open ? Py_True : Py_False, "start_ns", (long long)s->start_ns,
        "end_ns", (long long)s->end_ns, "id", s->id, "awaits",
        s->awaits_known ? (int)s->awaits : -1, "awaiting", s->awaiting,
        "awaited", s->awaited, "waker", waker);
}

PyDoc_STRVAR(steps_doc,
             "steps(lane)\n--\n\n[(start_ns, end_ns, awaits, awaiting, "
             "awaited, waker)] of a task's lane, as at() tells them; waker is "
             "(lane, thread, id, time_ns) or None.");

static PyObject *task_lanes_steps(PyObject *object, PyObject *args)
{
    const task_lanes *self = (task_lanes *)object;
    vst_task_stretch s;
    unsigned lane;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "I:steps", &lane) || !is_usable(self) ||
        (list = PyList_New(0)) == NULL)
        return NULL;
    for (size_t i = 0; vst_task_lanes_step(self->handle, lane, i, &s) == VST_OK;
         i++) {
        PyObject *waker =
            s.waker.is_known
                ? Py_BuildValue("(IIIL)", s.waker_lane, s.waker.thread,
                                s.waker.id, (long long)s.waker.time_ns)
                : Py_NewRef(Py_None);
        PyObject *row = Py_BuildValue(
            "(LLiIIN)", (long long)s.start_ns, (long long)s.end_ns,
            s.awaits_known ? (int)s.awaits : -1, s.awaiting, s.awaited, waker);
        if (!vpy_append(list, row)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

PyDoc_STRVAR(at_doc, "at(lane, time_ns)\n--\n\nThe step or wait that a lane "
                     "shows at a time, or None.");

static PyObject *task_lanes_at(PyObject *object, PyObject *args)
{
    const task_lanes *self = (task_lanes *)object;
    vst_task_stretch stretch;
    long long time_ns;
    unsigned lane;

    if (!PyArg_ParseTuple(args, "IL:at", &lane, &time_ns) || !is_usable(self))
        return NULL;
    if (vst_task_lanes_at(self->handle, lane, time_ns, &stretch) != VST_OK)
        Py_RETURN_NONE;
    return to_dict(&stretch);
}

PyDoc_STRVAR(wakes_doc,
             "wakes(from_ns, to_ns, lanes, most)\n--\n\nThe steps of these "
             "lanes that begin in a range and before which the task waited for "
             "something; none if there are more than most. And how many there "
             "are.");

static PyObject *task_lanes_wakes(PyObject *object, PyObject *args)
{
    const task_lanes *self = (task_lanes *)object;
    vst_task_stretch *steps = NULL;
    PyObject *list, *result = NULL;
    long long from_ns, to_ns;
    unsigned most;
    size_t count, found;
    uint32_t *lanes;

    if (!PyArg_ParseTuple(args, "LLOI:wakes", &from_ns, &to_ns, &list, &most) ||
        !is_usable(self) || (lanes = vpy_to_numbers(list, &count)) == NULL)
        return NULL;
    most = most < WAKES_MAX ? most : WAKES_MAX;
    steps = calloc((size_t)most + 1, sizeof *steps);
    if (steps == NULL) {
        free(lanes);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS;
    found = vst_task_lanes_wakes(self->handle, from_ns, to_ns, lanes, count,
                                 steps, most);
    Py_END_ALLOW_THREADS;
    result = PyList_New(0);
    for (size_t i = 0; result != NULL && found <= most && i < found; i++) {
        PyObject *item = to_dict(&steps[i]);
        if (!vpy_append(result, item))
            Py_CLEAR(result);
    }
    free(lanes);
    free(steps);
    return result != NULL ? Py_BuildValue("(Nn)", result, (Py_ssize_t)found)
                          : NULL;
}

static PyMethodDef methods[] = {
    {"groups", task_lanes_groups, METH_NOARGS, groups_doc},
    {"tasks", task_lanes_tasks, METH_VARARGS, tasks_doc},
    {"left_out", task_lanes_left_out, METH_NOARGS, NULL},
    {"draw", task_lanes_draw, METH_VARARGS, draw_doc},
    {"steps", task_lanes_steps, METH_VARARGS, steps_doc},
    {"at", task_lanes_at, METH_VARARGS, at_doc},
    {"wakes", task_lanes_wakes, METH_VARARGS, wakes_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(task_lanes_doc,
             "TaskLanes(trace, *, wrappers=(), progress=None)\n--\n\nThe "
             "tasks of a trace, as lanes of a picture.");

static const vpy_class described = {
    .name = "vestige._core.TaskLanes",
    .doc = task_lanes_doc,
    .size = sizeof(task_lanes),
    .init = task_lanes_init,
    .dealloc = task_lanes_dealloc,
    .methods = methods,
};

int vpy_task_lanes_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
