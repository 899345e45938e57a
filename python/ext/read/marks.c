/* vestige._core.Marks: the instants of a trace as marks of a picture
 * (<vestige/marks.h>). Any thread may ask. */
#include "read/trace.h"

#include <stdlib.h>

#include "read/numbers.h"
#include "read/read.h"

#include <vestige/marks.h>

typedef struct marks {
    PyObject_HEAD
    vst_marks *handle; /* atomic: set once, see vpy_handle_set */
} marks;

static bool is_usable(const marks *self)
{
    bool is_made = vpy_handle_of(&self->handle) != NULL;

    if (!is_made)
        PyErr_SetString(PyExc_ValueError, "these marks were not made");
    return is_made;
}

/* Times that a trace can have, and of which differences fit. */
static bool is_range(long long from_ns, long long to_ns, unsigned parts)
{
    const long long most = 1ll << 62;

    if (from_ns < to_ns && from_ns > -most && to_ns < most && parts != 0 &&
        parts <= VST_VIEW_PIXELS_MAX)
        return true;
    PyErr_SetString(PyExc_ValueError, "no such picture can be drawn");
    return false;
}

static int marks_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"trace", "progress", NULL};
    marks *self = (marks *)object;
    PyObject *progress = NULL;
    vpy_trace *trace;
    vst_error error = {VST_OK, 0, 0};
    vst_marks *made = NULL;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!|$O:Marks", names,
                                     vpy_trace_type, &trace, &progress))
        return -1;
    if (!vpy_trace_borrow(trace, progress))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = vst_marks_create(trace->handle, &made, &error);
    Py_END_ALLOW_THREADS;
    vpy_trace_end(trace);
    if (status == VST_OK && vpy_handle_set(&self->handle, made))
        return 0;
    vst_marks_destroy(made);
    if (status != VST_OK)
        vpy_raise(status, &error, trace->path);
    return -1;
}

static void marks_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst_marks_destroy(((marks *)object)->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- what there is ------------------------------------------------------- */

/* A row of threads(), of the marks from one on; how many they are. */
static size_t count_thread(const vst_mark *all, size_t count, PyObject **row)
{
    uint32_t thread = all->thread;
    size_t at = 0, exceptions = 0, not_caught = 0;

    for (; at < count && all[at].thread == thread; at++) {
        exceptions += all[at].end != VST_NO_EXCEPTION;
        not_caught += all[at].end == VST_EXCEPTION_NOT_CAUGHT;
    }
    *row = Py_BuildValue("(Innn)", thread, (Py_ssize_t)at,
                         (Py_ssize_t)exceptions, (Py_ssize_t)not_caught);
    return at;
}

PyDoc_STRVAR(threads_doc,
             "threads()\n--\n\n[(thread, marks, exceptions, not caught)] of "
             "the threads that have any.");

static PyObject *marks_threads(PyObject *object, PyObject *unused)
{
    const marks *self = (marks *)object;
    const vst_mark *all;
    PyObject *list, *row;
    size_t count;

    (void)unused;
    if (!is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    all = vst_marks_all(self->handle, &count);
    for (size_t at = 0; at < count;) {
        at += count_thread(all + at, count - at, &row);
        if (!vpy_append(list, row)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *marks_left_out(PyObject *object, PyObject *unused)
{
    const marks *self = (marks *)object;

    (void)unused;
    return is_usable(self)
               ? PyLong_FromUnsignedLongLong(vst_marks_left_out(self->handle))
               : NULL;
}

static PyObject *to_tuple(const marks *self, const vst_mark *mark)
{
    static const char *const ends[] = {"", "caught", "not caught", "unknown"};
    PyObject *args = Py_NewRef(Py_None);

    if (mark->args_len != 0) {
        Py_DECREF(args);
        args = vpy_trace_text(vst_marks_text(self->handle) + mark->args,
                              mark->args_len);
    }
    return Py_BuildValue("(ILIsIIN)", mark->thread, (long long)mark->time_ns,
                         mark->id, ends[mark->end], mark->raised_in,
                         mark->caught_in, args);
}

PyDoc_STRVAR(between_doc,
             "between(thread, from_ns, to_ns, most)\n--\n\nThe marks of a "
             "thread in a range: how many there are, and [(thread, time_ns, "
             "id, end, raised_in, caught_in, args)] of the first of them.");

static PyObject *marks_between(PyObject *object, PyObject *args)
{
    const marks *self = (marks *)object;
    const vst_mark *all;
    long long from_ns, to_ns;
    unsigned thread, most;
    size_t first, count, every;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "ILLI:between", &thread, &from_ns, &to_ns,
                          &most) ||
        !is_usable(self) || (list = PyList_New(0)) == NULL)
        return NULL;
    count = vst_marks_between(self->handle, thread, from_ns, to_ns, &first);
    all = vst_marks_all(self->handle, &every);
    for (size_t i = 0; i < count && i < most; i++)
        if (!vpy_append(list, to_tuple(self, &all[first + i]))) {
            Py_DECREF(list);
            return NULL;
        }
    return Py_BuildValue("(nN)", (Py_ssize_t)count, list);
}

/* ---- pictures and search ------------------------------------------------- */

PyDoc_STRVAR(draw_doc,
             "draw(thread, from_ns, to_ns, parts)\n--\n\nOf those equal parts "
             "of a range that have marks: [(part, marks, exceptions, not "
             "caught, id of the first)].");

static PyObject *marks_draw(PyObject *object, PyObject *args)
{
    const marks *self = (marks *)object;
    long long from_ns, to_ns;
    unsigned thread, parts;
    vst_mark_cell *cells;
    PyObject *list;
    size_t count;

    if (!PyArg_ParseTuple(args, "ILLI:draw", &thread, &from_ns, &to_ns,
                          &parts) ||
        !is_usable(self) || !is_range(from_ns, to_ns, parts))
        return NULL;
    cells = calloc(parts, sizeof *cells);
    list = cells != NULL ? PyList_New(0) : PyErr_NoMemory();
    if (list == NULL) {
        free(cells);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    count = vst_marks_draw(self->handle, thread, from_ns, to_ns, parts, cells);
    Py_END_ALLOW_THREADS;
    for (size_t i = 0; list != NULL && i < count; i++) {
        const vst_mark_cell *c = &cells[i];
        PyObject *row = Py_BuildValue("(IIIII)", c->part, c->marks,
                                      c->exceptions, c->not_caught, c->id);
        if (!vpy_append(list, row))
            Py_CLEAR(list);
    }
    free(cells);
    return list;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* To be freed. */
static bool to_ids(PyObject *list, vst_view_ids *ids)
{
    uint32_t *numbers = vpy_to_numbers(list, &ids->count);

    if (numbers != NULL && ids->count != 0)
        qsort(numbers, ids->count, sizeof *numbers, by_number);
    ids->ids = numbers;
    return numbers != NULL;
}

PyDoc_STRVAR(find_doc, "find(ids, from_ns, to_ns, parts)\n--\n\nHow many marks "
                       "with these ids are in each part of a range.");

static PyObject *marks_find(PyObject *object, PyObject *args)
{
    const marks *self = (marks *)object;
    long long from_ns, to_ns;
    PyObject *list, *result = NULL;
    vst_view_ids ids;
    uint32_t *counts;
    unsigned parts;

    if (!PyArg_ParseTuple(args, "OLLI:find", &list, &from_ns, &to_ns, &parts) ||
        !is_usable(self) || !is_range(from_ns, to_ns, parts) ||
        !to_ids(list, &ids))
        return NULL;
    counts = calloc(parts, sizeof *counts);
    if (counts != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        vst_marks_find(self->handle, &ids, from_ns, to_ns, parts, counts);
        Py_END_ALLOW_THREADS;
        result = PyBytes_FromStringAndSize(
            (const char *)counts, (Py_ssize_t)(parts * sizeof *counts));
    } else {
        PyErr_NoMemory();
    }
    free(counts);
    free((void *)ids.ids);
    return result;
}

PyDoc_STRVAR(next_doc,
             "next(ids, time_ns, back)\n--\n\nThe first mark with one of these "
             "ids after a time, or the last before it, as between() has them; "
             "or None.");

static PyObject *marks_next(PyObject *object, PyObject *args)
{
    const marks *self = (marks *)object;
    const vst_mark *found;
    vst_view_ids ids;
    long long time_ns;
    PyObject *list;
    int back;

    if (!PyArg_ParseTuple(args, "OLp:next", &list, &time_ns, &back) ||
        !is_usable(self) || !to_ids(list, &ids))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    found = vst_marks_next(self->handle, &ids, time_ns, back);
    Py_END_ALLOW_THREADS;
    free((void *)ids.ids);
    return found != NULL ? to_tuple(self, found) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"threads", marks_threads, METH_NOARGS, threads_doc},
    {"left_out", marks_left_out, METH_NOARGS, NULL},
    {"between", marks_between, METH_VARARGS, between_doc},
    {"draw", marks_draw, METH_VARARGS, draw_doc},
    {"find", marks_find, METH_VARARGS, find_doc},
    {"next", marks_next, METH_VARARGS, next_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(marks_doc, "Marks(trace, *, progress=None)\n--\n\nThe instants of "
                        "a trace, as marks of a picture.");

static const vpy_class described = {
    .name = "vestige._core.Marks",
    .doc = marks_doc,
    .size = sizeof(marks),
    .init = marks_init,
    .dealloc = marks_dealloc,
    .methods = methods,
};

int vpy_marks_init(PyObject *module)
{
    return vpy_class_add(module, &described);
}
