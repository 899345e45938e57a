/* Methods of vestige._core.View that answer questions about a range of time.
 * They work without the GIL; several threads may ask at the same time. */
#include "read/view.h"

#include "read/rows.h"

#include "tables/pass.h"

#include <stdlib.h>
#include <string.h>

/* The arguments that most questions share. */
typedef struct question {
    vst_view_range range;
    uint32_t *threads;
    vst_id *ids;
    size_t id_count;
} question;

/* Converters for PyArg_ParseTuple's "O&": a time, and a question's threads, ids
 * and progress. */
static int to_time(PyObject *object, void *time_ns)
{
    long long number = PyLong_AsLongLong(object);

    *(int64_t *)time_ns = number;
    return number != -1 || PyErr_Occurred() == NULL;
}

static int to_threads(PyObject *threads, void *to)
{
    question *q = to;

    if (threads == Py_None)
        return 1;
    q->threads = vpy_to_numbers(threads, &q->range.thread_count);
    q->range.threads = q->threads;
    return q->threads != NULL;
}

static int to_ids(PyObject *ids, void *to)
{
    question *q = to;
    PyObject *list = PySequence_List(ids);

    if (list != NULL)
        q->ids = vpy_to_numbers(list, &q->id_count);
    Py_XDECREF(list);
    return q->ids != NULL;
}

static int to_progress(PyObject *progress, void *to)
{
    question *q = to;

    if (progress != Py_None) {
        q->range.progress = vpy_report_progress;
        q->range.progress_ctx = progress;
    }
    return 1;
}

/* Checks a question. Returns false with an exception set if it cannot be
 * answered. */
static bool view_check(const vpy_view *self, const question *q, bool pixels)
{
    if (!vpy_view_is_usable(self))
        return false;
    if (q->range.to_ns <= q->range.from_ns) {
        PyErr_SetString(PyExc_ValueError,
                        "the range must end after its beginning");
        return false;
    }
    if (pixels &&
        (q->range.pixels == 0 || q->range.pixels > VST_VIEW_PIXELS_MAX)) {
        PyErr_Format(PyExc_ValueError, "pixels must be from 1 to %u, not %u",
                     VST_VIEW_PIXELS_MAX, q->range.pixels);
        return false;
    }
    return true;
}

static void question_free(question *q)
{
    free(q->threads);
    free(q->ids);
}

/* ---- questions ----------------------------------------------------------- */

PyObject *vpy_view_window(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"from_ns", "to_ns",     "pixels",
                            "threads", "max_depth", NULL};
    vpy_view *self = (vpy_view *)object;
    PyObject *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    question q = {0};

    if (PyArg_ParseTupleAndKeywords(args, kw, "O&O&I|$O&I:window", names,
                                    to_time, &q.range.from_ns, to_time,
                                    &q.range.to_ns, &q.range.pixels, to_threads,
                                    &q, &q.range.max_depth) &&
        view_check(self, &q, true)) {
        void *bytes = NULL;
        size_t count = 0;
        PyThreadState *saved = vpy_view_begin(self);
        vst_status status =
            vst__view_window(self->handle, &q.range, &bytes, &count, &error);

        vpy_view_end(self, saved);
        result = status == VST_OK
                     ? PyBytes_FromStringAndSize(bytes, (Py_ssize_t)count)
                     : vpy_raise(status, &error, self->path);
        free(bytes);
    }
    question_free(&q);
    return result;
}

static PyObject *text_or_none(const char *text, size_t length)
{
    if (text == NULL)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
}

static PyObject *to_parents(const vst_view_span *span)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < span->parent_count; i++) {
        const vst_view_parent *parent = &span->parents[i];
        if (!vpy_append(list,
                        Py_BuildValue("{s:I,s:L,s:L}", "id", parent->id,
                                      "start_ns", (long long)parent->start_ns,
                                      "end_ns", (long long)parent->end_ns)))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *vpy_view_span_at(PyObject *object, PyObject *args)
{
    vpy_view *self = (vpy_view *)object;
    vst_error error = {VST_OK, 0, 0};
    vst_view_span span = {0};
    unsigned thread, depth;
    int64_t time_ns;
    PyThreadState *saved;
    vst_status status;
    PyObject *result;

    if (!PyArg_ParseTuple(args, "IIO&:span_at", &thread, &depth, to_time,
                          &time_ns) ||
        !vpy_view_is_usable(self))
        return NULL;
    saved = vpy_view_begin(self);
    status =
        vst__view_span_at(self->handle, thread, depth, time_ns, &span, &error);
    vpy_view_end(self, saved);
    if (status == VST_E_ARGUMENT)
        Py_RETURN_NONE;
    if (status != VST_OK)
        return vpy_raise(status, &error, self->path);
    result = Py_BuildValue(
        "{s:I,s:I,s:L,s:L,s:L,s:I,s:I,s:N,s:N,s:K,s:K,s:N}", "id", span.id,
        "thread", span.thread, "start_ns", (long long)span.start_ns, "end_ns",
        (long long)span.end_ns, "self_ns", (long long)span.self_ns, "depth",
        span.depth, "flags", span.flags, "args",
        text_or_none(span.args, span.args_len), "self_bytes",
        span.self_bytes == UINT64_MAX
            ? Py_NewRef(Py_None)
            : PyLong_FromUnsignedLongLong(span.self_bytes),
        "total_bytes", (unsigned long long)span.total_bytes, "allocations",
        (unsigned long long)span.allocations, "parents", to_parents(&span));
    vst__view_span_free(&span);
    return result;
}

/* ---- flame graphs -------------------------------------------------------- */

#define CALLS_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, parent, rows[i].parent)                                        \
    COLUMN(I64, id, rows[i].id)                                                \
    COLUMN(I64, calls, rows[i].count)                                          \
    COLUMN(I64, self_ns, rows[i].self_ns)                                      \
    COLUMN(I64, total_ns, rows[i].total_ns)                                    \
    COLUMN(I64, self_bytes, rows[i].self_bytes)

static const vst__table view_calls = {.name = "view_calls",
                                      VST_COLUMNS(CALLS_COLUMNS)};

static int compare_totals(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

/* Moves the `limit` rows with the largest totals to the front, in their order.
 * A parent comes before its children and its total is not less than theirs, so
 * a parent is kept if a child is. Returns false if memory ran out. */
static bool keep_largest(vst_view_flame_row *rows, size_t count, size_t limit)
{
    int64_t *totals = malloc(count * sizeof *totals);
    int64_t *moved = malloc(count * sizeof *moved);
    size_t equal = limit,
           to = 0; /* how many rows with the least total are kept */
    int64_t least;

    if (totals == NULL || moved == NULL) {
        free(totals);
        free(moved);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        totals[i] = rows[i].total_ns;
    qsort(totals, count, sizeof *totals, compare_totals);
    least = totals[limit - 1];
    for (size_t i = 0; i < limit && totals[i] > least; i++)
        equal--;
    for (size_t i = 0; i < count; i++) {
        vst_view_flame_row row = rows[i];
        if (row.total_ns < least || (row.total_ns == least && equal == 0))
            continue;
        equal -= row.total_ns == least;
        row.parent = row.parent < 0 ? -1 : moved[row.parent];
        moved[i] = (int64_t)to;
        rows[to++] = row;
    }
    free(totals);
    free(moved);
    return true;
}

/* Returns (rows as a table, how many were left out). Keeps the `limit` largest
 * rows, because a page shows some thousands and a long range may have a
 * million; 0: all. */
static PyObject *view_flame_rows(vst_view_flame_row *rows, size_t count,
                                 size_t limit)
{
    vst__batch batch = {.specs = view_calls.columns,
                        .column_count = view_calls.column_count};
    size_t kept = limit && limit < count ? limit : count;
    bool failed = kept < count && !keep_largest(rows, count, limit);
    PyObject *table = NULL;

    for (size_t i = 0; !failed && i < kept; i++)
        VST_PUT_ROW(&batch, CALLS_COLUMNS);
    if (failed || batch.status != VST_OK)
        PyErr_NoMemory();
    else
        table = vpy_rows(view_calls.name, &batch, NULL, false);
    vst__batch_free(&batch);
    return table != NULL
               ? Py_BuildValue("(Nn)", table, (Py_ssize_t)(count - kept))
               : NULL;
}

PyObject *vpy_view_flame(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"from_ns", "to_ns",    "threads",
                            "limit",   "progress", NULL};
    vpy_view *self = (vpy_view *)object;
    PyObject *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    unsigned limit = 0;
    question q = {0};

    if (PyArg_ParseTupleAndKeywords(
            args, kw, "O&O&|$O&IO&:flame", names, to_time, &q.range.from_ns,
            to_time, &q.range.to_ns, to_threads, &q, &limit, to_progress, &q) &&
        view_check(self, &q, false)) {
        vst_view_flame_row *rows = NULL;
        size_t count = 0;
        PyThreadState *saved = vpy_view_begin(self);
        vst_status status =
            vst__view_flame(self->handle, &q.range, &rows, &count, &error);

        vpy_view_end(self, saved);
        result = status == VST_OK ? view_flame_rows(rows, count, limit)
                                  : vpy_raise(status, &error, self->path);
        free(rows);
    }
    question_free(&q);
    return result;
}

/* ---- search -------------------------------------------------------------- */

PyObject *vpy_view_find(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"ids",     "from_ns",  "to_ns", "pixels",
                            "threads", "progress", NULL};
    vpy_view *self = (vpy_view *)object;
    PyObject *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    question q = {0};

    if (PyArg_ParseTupleAndKeywords(args, kw, "O&O&O&I|$O&O&:find", names,
                                    to_ids, &q, to_time, &q.range.from_ns,
                                    to_time, &q.range.to_ns, &q.range.pixels,
                                    to_threads, &q, to_progress, &q) &&
        view_check(self, &q, true))
        result = PyBytes_FromStringAndSize(
            NULL, (Py_ssize_t)(q.range.pixels * sizeof(uint32_t)));
    if (result != NULL) {
        uint32_t *counts = (uint32_t *)(void *)PyBytes_AS_STRING(result);
        vst_view_ids wanted = {q.ids, q.id_count};
        PyThreadState *saved = vpy_view_begin(self);
        vst_status status =
            vst__view_find(self->handle, &q.range, &wanted, counts, &error);

        vpy_view_end(self, saved);
        if (status != VST_OK) {
            Py_CLEAR(result);
            vpy_raise(status, &error, self->path);
        }
    }
    question_free(&q);
    return result;
}

/* Converts a single thread, or None. */
static int to_thread(PyObject *thread, void *to)
{
    PyObject *one = thread != Py_None ? PyTuple_Pack(1, thread) : NULL;
    int done = one != NULL ? to_threads(one, to) : thread == Py_None;

    Py_XDECREF(one);
    return done;
}

PyObject *vpy_view_next(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"ids",  "thread",   "after_ns",
                            "back", "progress", NULL};
    vpy_view *self = (vpy_view *)object;
    PyObject *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    question q = {0};
    int back = 0;

    if (PyArg_ParseTupleAndKeywords(args, kw, "O&O&O&|$pO&:next", names, to_ids,
                                    &q, to_thread, &q, to_time,
                                    &q.range.from_ns, &back, to_progress, &q) &&
        vpy_view_is_usable(self)) {
        vst_view_ids wanted = {q.ids, q.id_count};
        vst_view_span span = {0};
        PyThreadState *saved = vpy_view_begin(self);
        vst_status status = vst__view_next(self->handle, &q.range, &wanted,
                                           back, &span, &error);

        vpy_view_end(self, saved);
        if (status == VST_OK)
            result = Py_BuildValue("{s:I,s:I,s:L,s:L,s:I}", "thread",
                                   span.thread, "depth", span.depth, "start_ns",
                                   (long long)span.start_ns, "end_ns",
                                   (long long)span.end_ns, "id", span.id);
        else if (status == VST_E_ARGUMENT)
            result = Py_NewRef(Py_None);
        else
            vpy_raise(status, &error, self->path);
    }
    question_free(&q);
    return result;
}
