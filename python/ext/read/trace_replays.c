/* Methods of vestige._core.Trace that replay it, and the spans with one name.
 * Replays run without the GIL, and the trace is busy meanwhile. */
#include "read/rows.h"
#include "read/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- replays ------------------------------------------------------------- */

void vpy_trace_begin(vpy_trace *self, PyObject *progress)
{
    __atomic_store_n(&self->busy, true, __ATOMIC_RELAXED);
    if (progress != NULL && progress != Py_None)
        vst_trace_set_progress(self->handle, vpy_report_progress, progress);
}

void vpy_trace_end(vpy_trace *self)
{
    vst_trace_set_progress(self->handle, NULL, NULL);
    __atomic_store_n(&self->busy, false, __ATOMIC_RELEASE);
}

vst_status vpy_trace_replay(vpy_trace *self, int window, PyObject *progress,
                            const vst_sink *sink, vst_error *error)
{
    vst_status status;

    vpy_trace_begin(self, progress);
    Py_BEGIN_ALLOW_THREADS
    status = vst_trace_replay(self->handle, window, NULL, sink, error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    return status;
}

int vpy_trace_window(int all, int since)
{
    if (since >= 0)
        return VST_WINDOW_SINCE(since);
    return all ? VST_WINDOW_ALL : VST_WINDOW_LAST;
}

PyObject *vpy_trace_name(const vst_definition *d)
{
    PyObject *name = vpy_trace_text(d->name, d->name_len);
    PyObject *file, *full;

    if (name == NULL || d->kind != VST_DEF_PYTHON)
        return name;
    file = vpy_trace_text(d->file + d->file_skip, d->file_len - d->file_skip);
    full = file != NULL
               ? PyUnicode_FromFormat("%U(%d): %U", file, (int)d->line, name)
               : NULL;
    Py_XDECREF(file);
    Py_DECREF(name);
    return full;
}

static const char *const moment_fields[] = {"start_ns", "end_ns", NULL};
static const vpy_record moment_record = {"vestige._core.Moment", moment_fields,
                                         &vpy_reading.trace_replays.moment, 0};

int vpy_trace_replays_init(PyObject *module)
{
    return vpy_record_add(module, &moment_record);
}

/* ---- spans of one name --------------------------------------------------- */

enum { SPANS_MAX = 100000 };

typedef struct moment {
    int64_t start_ns, end_ns;
} moment;

/* The first `limit` spans of the marked ids, by end time. `found` has room for
 * twice as many; when it is full, the later half is dropped. */
typedef struct search {
    unsigned char *wanted; /* by definition id */
    vst_id max;
    moment *found;
    size_t count, limit;
} search;

static int by_end(const void *a, const void *b)
{
    const moment *x = a, *y = b;

    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void keep_first(search *s)
{
    qsort(s->found, s->count, sizeof *s->found, by_end);
    if (s->count > s->limit)
        s->count = s->limit;
}

/* Skips spans whose end was not recorded: their duration is unknown. */
static vst_status find_span(void *ctx, const vst_span *span)
{
    search *s = ctx;
    uint32_t no_end = VST_SPAN_OPEN_AT_END | VST_SPAN_CUT | VST_SPAN_SUSPENDED;

    if (span->id > s->max || !s->wanted[span->id] || span->flags & no_end)
        return VST_OK;
    if (s->count == 2 * s->limit)
        keep_first(s);
    s->found[s->count++] = (moment){span->start_ns, span->end_ns};
    return VST_OK;
}

static bool replay_is_text(const char *bytes, size_t length, const char *name,
                           size_t name_len)
{
    return length == name_len && memcmp(bytes, name, name_len) == 0;
}

/* Returns the plain name: `append` for `<built-in method append of list
 * object>`, `f` for `C.f`. */
static void plain_name(const vst_definition *d, const char **bytes,
                       size_t *length)
{
    static const char *const heads[] = {"<built-in function ",
                                        "<built-in method "};
    const char *at = d->name, *stop = d->name + d->name_len;

    for (size_t i = 0; i < 2 && d->kind == VST_DEF_NATIVE; i++) {
        size_t head = strlen(heads[i]);
        if (d->name_len <= head || memcmp(d->name, heads[i], head) != 0)
            continue;
        at += head;
        for (stop = at; stop < d->name + d->name_len; stop++)
            if (*stop == ' ' || *stop == '>')
                break;
    }
    if (d->kind == VST_DEF_PYTHON)
        for (const char *c = at; c != stop; c++)
            if (*c == '.')
                at = c + 1;
    *bytes = at;
    *length = (size_t)(stop - at);
}

/* Returns how well a name matches a definition: 3 if it is the shown name, 2
 * the qualified name, 1 the last part of the qualified name, 0 not at all.
 * Returns -1 with an exception set on failure. */
static int replay_fit(const vst_definition *d, const char *name,
                      size_t name_len)
{
    const char *plain;
    size_t length;
    int level = 0;

    if (d->kind == VST_DEF_INSTANT || d->kind == VST_DEF_COUNTER)
        return 0;
    plain_name(d, &plain, &length);
    if (replay_is_text(plain, length, name, name_len))
        level = 1;
    if (replay_is_text(d->name, d->name_len, name, name_len))
        level = d->kind == VST_DEF_PYTHON ? 2 : 3;
    if (level == 0 && d->kind == VST_DEF_PYTHON && name_len > d->name_len &&
        replay_is_text(d->name, d->name_len, name + name_len - d->name_len,
                       d->name_len)) {
        PyObject *shown = vpy_trace_name(d);
        Py_ssize_t size;
        const char *text =
            shown != NULL ? PyUnicode_AsUTF8AndSize(shown, &size) : NULL;
        if (text == NULL) /* surrogates do not come out of "replace" */
            level = -1;
        else if (replay_is_text(text, (size_t)size, name, name_len))
            level = 3;
        Py_XDECREF(shown);
    }
    return level;
}

/* Marks the definitions that match the name best. */
static bool replay_mark(vpy_trace *self, search *s, const char *name,
                        size_t name_len)
{
    int best = 1;

    for (vst_id id = 1; id <= s->max; id++) {
        const vst_definition *d = vst_trace_definition(self->handle, id);
        int level = d != NULL ? replay_fit(d, name, name_len) : 0;
        if (level < 0)
            return false;
        s->wanted[id] = (unsigned char)level;
        if (level > best)
            best = level;
    }
    for (vst_id id = 1; id <= s->max; id++)
        s->wanted[id] = s->wanted[id] == best;
    return true;
}

static PyObject *list_found(const search *s)
{
    PyObject *list = PyList_New((Py_ssize_t)s->count);

    for (size_t i = 0; list != NULL && i < s->count; i++) {
        PyObject *pair = vpy_record_new(
            &moment_record,
            Py_BuildValue("(LL)", (long long)s->found[i].start_ns,
                          (long long)s->found[i].end_ns));
        if (pair == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, pair);
    }
    return list;
}

PyObject *vpy_trace_spans(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "limit", "progress", NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *progress = NULL, *list = NULL;
    const char *name;
    Py_ssize_t name_len, limit = SPANS_MAX;
    vst_error error = {VST_OK, 0, 0};
    vst_status status = VST_OK;
    search s;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "s#|$nO:spans", names, &name,
                                     &name_len, &limit, &progress) ||
        !vpy_trace_is_usable(self))
        return NULL;
    if (limit < 1 || limit > SPANS_MAX)
        return PyErr_Format(PyExc_ValueError, "limit must be from 1 to %d",
                            SPANS_MAX);
    s = (search){.max = vst_trace_definition_max(self->handle),
                 .limit = (size_t)limit};
    s.wanted = calloc((size_t)s.max + 1, 1);
    s.found = malloc(2 * s.limit * sizeof *s.found);
    if (s.wanted == NULL || s.found == NULL) {
        PyErr_NoMemory();
    } else if (replay_mark(self, &s, name, (size_t)name_len)) {
        vst_sink sink = {.ctx = &s, .span = find_span};
        status =
            vpy_trace_replay(self, VST_WINDOW_ALL, progress, &sink, &error);
        keep_first(&s);
        list = status == VST_OK ? list_found(&s)
                                : vpy_raise(status, &error, self->path);
    }
    free(s.wanted);
    free(s.found);
    return list;
}

PyObject *vpy_trace_names(PyObject *object, PyObject *unused)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *set;
    vst_id max;

    (void)unused;
    if (!vpy_trace_is_usable(self) || (set = PySet_New(NULL)) == NULL)
        return NULL;
    max = vst_trace_definition_max(self->handle);
    for (vst_id id = 1; id <= max; id++) {
        const vst_definition *d = vst_trace_definition(self->handle, id);
        const char *plain;
        size_t length;
        PyObject *name;
        if (d == NULL || d->kind == VST_DEF_INSTANT ||
            d->kind == VST_DEF_COUNTER)
            continue;
        plain_name(d, &plain, &length);
        name = vpy_trace_text(plain, length);
        if (name == NULL || PySet_Add(set, name) < 0)
            Py_CLEAR(set);
        Py_XDECREF(name);
        if (set == NULL)
            return NULL;
    }
    return set;
}
