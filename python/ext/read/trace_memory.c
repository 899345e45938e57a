/* The memory of a vestige._core.Trace: whether it was recorded, and its summary
 * as Python objects. The summary is not a set of tables: a report shows only
 * the first stacks of each view, and these share their frames. The trace is
 * read without the GIL and is busy meanwhile. */
#include "read/rows.h"
#include "read/trace.h"

#include "memory/report.h"

#include <math.h>
#include <stdlib.h>

/* Raises for a failed reading. VST_E_STATE means here that no memory was
 * recorded. */
PyObject *vpy_memory_fail(vst_status status, const vst_error *error,
                          PyObject *path)
{
    if (PyErr_Occurred() != NULL || status != VST_E_STATE)
        return vpy_raise(status, error, path);
    if (path != NULL)
        PyErr_Format(vpy_shared.trace_error,
                     "%s: the trace has no memory records; record them "
                     "with `vestige memory`, memory.track() or "
                     "profile(profile_memory=True)",
                     PyBytes_AS_STRING(path));
    else
        PyErr_SetString(vpy_shared.trace_error, "no memory was recorded");
    return NULL;
}

PyObject *vpy_trace_has_memory(PyObject *object, PyObject *unused)
{
    vpy_trace *self = (vpy_trace *)object;

    (void)unused;
    if (!vpy_trace_is_usable(self))
        return NULL;
    return PyBool_FromLong(vst_trace_has_memory(self->handle));
}

/* ---- objects ------------------------------------------------------------ */

static const char *const amount_fields[] = {"count", "bytes", "error", NULL};
static const char *const frame_fields[] = {"function", "file",   "shown_file",
                                           "line",     "native", NULL};
static const char *const size_fields[] = {"least", "count", "bytes", NULL};
static const char *const point_fields[] = {"max_ns", "max_bytes", "last_ns",
                                           "last_bytes", NULL};
static const char *const thread_fields[] = {"number",    "tid",   "name",
                                            "allocated", "freed", NULL};
static const char *const first_fields[] = {"total", "rows", NULL};

enum { AMOUNT, FRAME, SIZE, POINT, THREAD, FIRSTS, RECORDS };

static const vpy_record records[RECORDS] = {
    [AMOUNT] = {"vestige._core.Amount", amount_fields,
                &vpy_reading.trace_memory.amount},
    [FRAME] = {"vestige._core.Frame", frame_fields,
               &vpy_reading.trace_memory.frame},
    [SIZE] = {"vestige._core.BlockSize", size_fields,
              &vpy_reading.trace_memory.block_size},
    [POINT] = {"vestige._core.MemoryPoint", point_fields,
               &vpy_reading.trace_memory.point},
    [THREAD] = {"vestige._core.MemoryThread", thread_fields,
                &vpy_reading.trace_memory.thread},
    [FIRSTS] = {"vestige._core.Firsts", first_fields,
                &vpy_reading.trace_memory.firsts},
};

int vpy_trace_memory_init(PyObject *module)
{
    int result = 0;

    for (size_t i = 0; i < RECORDS && result == 0; i++)
        result = vpy_record_add(module, &records[i]);
    return result;
}

/* Sets a dict's item and takes over the reference to the value. Returns false
 * with an exception set on failure. */
static bool memory_put(PyObject *dict, const char *key, PyObject *value)
{
    bool is_put = value != NULL && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return is_put;
}

/* All numbers are rounded; the error belongs to the bytes. */
static PyObject *memory_amount(const vst_memory_amount *a)
{
    return vpy_record_new(&records[AMOUNT],
                          Py_BuildValue("(LLL)", llround(a->count),
                                        llround(a->bytes),
                                        llround(sqrt(a->variance))));
}

static PyObject *memory_amounts(const vst_memory_amount *views)
{
    PyObject *dict = PyDict_New();

    for (int i = 0; dict != NULL && i < VST_MEMORY_VIEWS; i++)
        if (!memory_put(dict, vst_memory_view_name((vst_memory_view)i),
                        memory_amount(&views[i])))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *memory_frame(const vst_memory_frame *f)
{
    return vpy_record_new(
        &records[FRAME],
        Py_BuildValue(
            "(NNNIO)", vpy_trace_text(f->name, f->name_len),
            vpy_trace_text(f->file, f->file_len),
            vpy_trace_text(f->file + f->file_skip, f->file_len - f->file_skip),
            f->line, f->is_native ? Py_True : Py_False));
}

/* Frames, and the rows of stacks and lines, as Python objects: each is made
 * once. Rows share frames, and views share rows. */
typedef struct made {
    const vst_memory_summary *summary;
    PyObject **frames; /* by number of the frame */
    PyObject **stacks,
        **lines; /* rows, by number of the node and of the line */
    PyObject *left_out;
} made;

/* A stack with more frames is shortened to this many at its two ends: otherwise
 * the lists of a recursion would grow with the square of its depth. */
enum { INNER_MAX = 192, OUTER_MAX = 64 };

static bool memory_make_room(made *m, const vst_memory_summary *s)
{
    m->summary = s;
    m->frames = calloc(s->frame_count + 1, sizeof *m->frames);
    m->stacks = calloc(s->node_count + 1, sizeof *m->stacks);
    m->lines = calloc(s->line_count + 1, sizeof *m->lines);
    m->left_out = vpy_record_new(
        &records[FRAME],
        Py_BuildValue("(sssIO)", "[frames left out]", "", "", 0u, Py_False));
    if (m->frames != NULL && m->stacks != NULL && m->lines != NULL &&
        m->left_out != NULL)
        return true;
    if (PyErr_Occurred() == NULL)
        PyErr_NoMemory();
    return false;
}

static void free_objects(PyObject **first, size_t count)
{
    for (size_t i = 0; first != NULL && i < count; i++)
        Py_XDECREF(first[i]);
    free(first);
}

static void free_made(made *m)
{
    free_objects(m->frames, m->summary->frame_count);
    free_objects(m->stacks, m->summary->node_count);
    free_objects(m->lines, m->summary->line_count);
    Py_XDECREF(m->left_out);
}

static PyObject *frame_at(made *m, uint32_t index)
{
    if (m->frames[index] == NULL)
        m->frames[index] = memory_frame(&m->summary->frames[index]);
    return Py_XNewRef(m->frames[index]);
}

static size_t depth_of(const vst_memory_summary *s, uint32_t node)
{
    size_t depth = 0;

    for (; node != 0; node = s->nodes[node].parent)
        depth++;
    return depth;
}

/* Returns a stack's frames, innermost first. */
static PyObject *memory_frames(made *m, uint32_t node)
{
    const vst_memory_summary *s = m->summary;
    PyObject *list = PyList_New(0);
    size_t left = depth_of(s, node), at = 0;
    bool cut = left > INNER_MAX + OUTER_MAX;

    for (; list != NULL && node != 0;
         node = s->nodes[node].parent, at++, left--) {
        if (cut && at >= INNER_MAX && left > OUTER_MAX) {
            if (at == INNER_MAX && PyList_Append(list, m->left_out) < 0)
                Py_CLEAR(list);
        } else if (!vpy_append(list, frame_at(m, s->nodes[node].frame))) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* Makes a row and takes over the reference to the value of the key. */
static PyObject *memory_row(const vst_memory_amount *own, const char *key,
                            PyObject *value)
{
    PyObject *dict = value != NULL ? PyDict_New() : NULL;

    if (dict != NULL && !memory_put(dict, "amounts", memory_amounts(own)))
        Py_CLEAR(dict);
    if (dict != NULL && PyDict_SetItemString(dict, key, value) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(value);
    return dict;
}

static PyObject *stack_at(made *m, uint32_t node)
{
    if (m->stacks[node] == NULL)
        m->stacks[node] = memory_row(m->summary->nodes[node].own, "frames",
                                     memory_frames(m, node));
    return Py_XNewRef(m->stacks[node]);
}

static PyObject *line_at(made *m, uint32_t index)
{
    const vst_memory_line *line = &m->summary->lines[index];

    if (m->lines[index] == NULL)
        m->lines[index] =
            memory_row(line->own, "frame", frame_at(m, line->frame));
    return Py_XNewRef(m->lines[index]);
}

/* ---- the largest stacks and lines --------------------------------------- */

typedef struct ranked {
    double bytes, count;
    uint32_t index;
} ranked;

static int by_bytes(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Returns the amounts of stack or line number i. */
typedef const vst_memory_amount *(*amounts_fn)(const vst_memory_summary *s,
                                               size_t i);

static const vst_memory_amount *of_node(const vst_memory_summary *s, size_t i)
{
    return s->nodes[i].own;
}

static const vst_memory_amount *of_line(const vst_memory_summary *s, size_t i)
{
    return s->lines[i].own;
}

static size_t memory_rank(const vst_memory_summary *s, amounts_fn of,
                          size_t count, int view, ranked *into)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const vst_memory_amount *a = &of(s, i)[view];
        if (a->count >= 0.5)
            into[found++] = (ranked){a->bytes, a->count, (uint32_t)i};
    }
    if (found)
        qsort(into, found, sizeof *into, by_bytes);
    return found;
}

/* Returns for each view how many stacks or lines there are, and the first
 * rows. */
static PyObject *memory_firsts(made *m, bool is_line, size_t rows)
{
    const vst_memory_summary *s = m->summary;
    size_t count = is_line ? s->line_count : s->node_count;
    ranked *order = malloc((count + 1) * sizeof *order);
    PyObject *dict = order != NULL ? PyDict_New() : PyErr_NoMemory();

    for (int view = 0; dict != NULL && view < VST_MEMORY_VIEWS; view++) {
        size_t found =
            memory_rank(s, is_line ? of_line : of_node, count, view, order);
        PyObject *list = PyList_New(0);

        for (size_t i = 0; list != NULL && i < found && i < rows; i++)
            if (!vpy_append(list,
                            (is_line ? line_at : stack_at)(m, order[i].index)))
                Py_CLEAR(list);
        if (list == NULL ||
            !memory_put(
                dict, vst_memory_view_name((vst_memory_view)view),
                vpy_record_new(&records[FIRSTS],
                               Py_BuildValue("(nN)", (Py_ssize_t)found, list))))
            Py_CLEAR(dict);
    }
    free(order);
    return dict;
}

/* ---- the summary -------------------------------------------------------- */

static PyObject *memory_kinds(const vst_memory_summary *s)
{
    PyObject *dict = PyDict_New();

    for (int i = 0; dict != NULL && i < VST_MEMORY_KINDS; i++)
        if (s->kinds[i].count > 0 &&
            !memory_put(dict, vst_memory_kind_name((vst_memory_kind)i),
                        memory_amount(&s->kinds[i])))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *memory_sizes(const vst_memory_summary *s)
{
    PyObject *list = PyList_New(0);

    for (int i = 0; list != NULL && i < VST_MEMORY_SIZES; i++)
        if (s->sizes[i].count > 0 &&
            !vpy_append(list, vpy_record_new(
                                  &records[SIZE],
                                  Py_BuildValue("(KLL)",
                                                i == 0 ? 0ull : 1ull << (i - 1),
                                                llround(s->sizes[i].count),
                                                llround(s->sizes[i].bytes)))))
            Py_CLEAR(list);
    return list;
}

static PyObject *memory_points(const vst_memory_point *first, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        const vst_memory_point *p = &first[i];
        if (!vpy_append(list, vpy_record_new(
                                  &records[POINT],
                                  Py_BuildValue("(LLLL)", (long long)p->max_ns,
                                                llround(p->max_bytes),
                                                (long long)p->last_ns,
                                                llround(p->last_bytes)))))
            Py_CLEAR(list);
    }
    return list;
}

/* Returns None if the resident set was not recorded. */
static PyObject *memory_resident(const vst_memory_summary *s)
{
    if (!s->resident.peak)
        Py_RETURN_NONE;
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:L,s:K,s:L,s:N}", "peak",
        (unsigned long long)s->resident.peak, "before",
        (unsigned long long)s->resident.before, "sampled",
        (unsigned long long)s->resident.sampled, "sampled_ns",
        (long long)s->resident.sampled_ns, "files",
        (unsigned long long)s->resident.sampled_files, "live",
        llround(s->resident.sampled_live), "timeline",
        memory_points(s->resident.points, s->resident.point_count));
}

static PyObject *memory_threads(const vpy_trace *self,
                                const vst_memory_summary *s)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < s->thread_count; i++) {
        const vst_memory_thread_sums *t = &s->threads[i];
        const vst_trace_thread *known =
            vst_trace_thread_find(self->handle, t->thread);
        unsigned long long tid = known != NULL ? known->system_tid : 0;
        PyObject *name = vpy_trace_text(known != NULL ? known->name : "",
                                        known != NULL ? known->name_len : 0);

        if (!vpy_append(list, vpy_record_new(
                                  &records[THREAD],
                                  Py_BuildValue("(IKNNN)", t->thread, tid, name,
                                                memory_amount(&t->allocated),
                                                memory_amount(&t->freed)))))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *memory_errors(const vst_memory_summary *s)
{
    PyObject *dict = PyDict_New();

    for (int i = 0; dict != NULL && i < VST_MEMORY_VIEWS; i++)
        if (!memory_put(
                dict, vst_memory_view_name((vst_memory_view)i),
                PyLong_FromLongLong(llround(sqrt(s->count_variance[i])))))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *memory_build(const vpy_trace *self,
                              const vst_memory_summary *s, size_t rows,
                              bool stacks)
{
    made m = {.summary = s};
    PyObject *dict = Py_BuildValue(
        "{s:O,s:O,s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:L,s:L,s:L,s:n}",
        "sampled", s->is_sampled ? Py_True : Py_False, "of_framework",
        s->of_framework ? Py_True : Py_False, "temporary_within", s->temporary,
        "records", (unsigned long long)s->records, "apart",
        (unsigned long long)s->apart, "frees", (unsigned long long)s->frees,
        "unknown_frees", (unsigned long long)s->unknown_frees, "lost_frees",
        (unsigned long long)s->lost_frees, "lost", (unsigned long long)s->lost,
        "unlocked", (unsigned long long)s->unlocked, "stale",
        (unsigned long long)s->stale, "first_ns", (long long)s->first_ns,
        "last_ns", (long long)s->last_ns, "peak_ns", (long long)s->peak_ns,
        "stack_count", (Py_ssize_t)s->node_count - 1);

    if (dict == NULL || !memory_make_room(&m, s) ||
        !memory_put(dict, "views", memory_amounts(s->views)) ||
        !memory_put(dict, "count_errors", memory_errors(s)) ||
        !memory_put(dict, "allocators", memory_kinds(s)) ||
        !memory_put(dict, "sizes", memory_sizes(s)) ||
        !memory_put(dict, "timeline",
                    memory_points(s->points, s->point_count)) ||
        !memory_put(dict, "resident", memory_resident(s)) ||
        !memory_put(dict, "threads", memory_threads(self, s)) ||
        (stacks &&
         !memory_put(dict, "stacks", memory_firsts(&m, false, rows))) ||
        !memory_put(dict, "lines", memory_firsts(&m, true, rows)))
        Py_CLEAR(dict);
    free_made(&m);
    return dict;
}

/* Checks the argument `temporary`. */
bool vpy_memory_check_temporary(int temporary)
{
    if (temporary >= 1 && temporary <= VST_MEMORY_TEMPORARY_MAX)
        return true;
    PyErr_Format(PyExc_ValueError, "temporary must be from 1 to %d, not %d",
                 VST_MEMORY_TEMPORARY_MAX, temporary);
    return false;
}

PyObject *vpy_trace_memory(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"rows", "temporary", "progress", "stacks", NULL};
    vpy_trace *self = (vpy_trace *)object;
    vst_memory_report_options options = {.window = VST_WINDOW_ALL};
    PyObject *progress = NULL, *result = NULL;
    vst_memory_summary *summary = NULL;
    vst_error error = {VST_OK, 0, 0};
    Py_ssize_t rows = 100;
    int temporary = 1, stacks = 1;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$niOp:memory", names, &rows,
                                     &temporary, &progress, &stacks) ||
        !vpy_memory_check_temporary(temporary) || !vpy_trace_is_usable(self))
        return NULL;
    options.temporary = (uint32_t)temporary;
    vpy_trace_begin(self, progress);
    Py_BEGIN_ALLOW_THREADS
    status =
        vst__trace_summarize_memory(self->handle, &options, &summary, &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    if (status != VST_OK)
        return vpy_memory_fail(status, &error, self->path);
    result =
        memory_build(self, summary, rows < 0 ? SIZE_MAX : (size_t)rows, stacks);
    vst__memory_summary_free(summary);
    return result;
}
