/* Trace.report(): all that the command's reports show, from one reading of the
 * records: functions with the spread of their calls, the tree of calls, threads
 * and garbage collections. Functions that are left out count as if they had not
 * been recorded: their time is their caller's. Python lays the report out. The
 * replay runs without the GIL; report_parts.c has the parts. */
#include "read/trace.h"

#include "read/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct own_time {
    int64_t ns;
    bool is_spent; /* it is in the list */
} own_time;

typedef struct report {
    const unsigned char *marks; /* by definition id, NULL: all are shown */
    vst_id max;
    bool has_gc, has_threads;
    vpy_sums sums; /* of functions, if they are asked for */
    vst_contexts *tree;
    vpy_pending pending;
    vpy_pending untimed; /* what has the mark for no time, below what is open */
    vpy_waits waits;
    vpy_chosen chosen;
    vpy_thread_sums *threads;
    size_t thread_count;
    /* Of the thread that is being read: its functions' own times, by definition
     * id, and which those are. */
    own_time *own;
    vst_id *spent;
    size_t spent_count;
    uint32_t reading;
    vpy_collections gc;
} report;

/* A thread ends, or the replay goes on with another: finds the function that it
 * spent most time in. Among equals, the one that was defined first. */
static void end_thread(report *r)
{
    int64_t top_ns = 0;
    vst_id top = 0;

    for (size_t i = 0; i < r->spent_count; i++) {
        vst_id id = r->spent[i];
        own_time *own = &r->own[id];
        if (own->ns > top_ns || (own->ns == top_ns && top && id < top)) {
            top_ns = own->ns;
            top = id;
        }
        *own = (own_time){0};
    }
    r->spent_count = 0;
    for (size_t i = 0; top && i < r->thread_count; i++) {
        vpy_thread_sums *sums = &r->threads[i];
        if (sums->number == r->reading && top_ns > sums->top_ns) {
            sums->top_ns = top_ns;
            sums->top = top;
        }
    }
}

static void spend(report *r, vst_id id, int64_t ns)
{
    own_time *own = &r->own[id];

    if (!own->is_spent)
        r->spent[r->spent_count++] = id;
    own->is_spent = true;
    own->ns += ns;
}

static vpy_thread_sums *sums_of_thread(report *r, uint32_t number)
{
    vpy_thread_sums *grown;

    if (r->thread_count && r->threads[r->thread_count - 1].number == number)
        return &r->threads[r->thread_count - 1];
    for (size_t i = 0; i < r->thread_count; i++)
        if (r->threads[i].number == number)
            return &r->threads[i];
    grown = realloc(r->threads, (r->thread_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    r->threads = grown;
    grown[r->thread_count] = (vpy_thread_sums){
        .number = number, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return &grown[r->thread_count++];
}

static vst_status add_to_thread(report *r, const vst_span *span,
                                unsigned char mark, int64_t self_ns)
{
    vpy_thread_sums *sums;

    if (r->reading != span->thread) {
        end_thread(r);
        r->reading = span->thread;
    }
    sums = sums_of_thread(r, span->thread);
    if (!sums)
        return VST_E_NOMEM;
    sums->calls += !(span->flags & VST_SPAN_RESUMED);
    if (!(mark & VPY_MARK_NO_TIME)) {
        spend(r, span->id, self_ns);
        sums->self_ns += self_ns;
    }
    if (mark & VPY_MARK_WAITS) {
        sums->waiting_ns += self_ns;
        r->waits.of[span->id].calls += !(span->flags & VST_SPAN_RESUMED);
        r->waits.of[span->id].ns += self_ns;
    }
    if (mark & VPY_MARK_GC)
        sums->gc_ns += self_ns;
    if (span->start_ns < sums->first_ns)
        sums->first_ns = span->start_ns;
    if (span->end_ns > sums->last_ns)
        sums->last_ns = span->end_ns;
    return VST_OK;
}

/* Takes the time of calls below it that count for nobody out of the span. */
static bool shorten(report *r, const vst_span *span, unsigned char mark,
                    vst_span *shorter)
{
    int64_t left;

    if (!vpy_pending_end(&r->untimed, span, mark & VPY_MARK_NO_TIME, &left))
        return false;
    if (!(mark & VPY_MARK_NO_TIME))
        shorter->end_ns = shorter->start_ns + left;
    return true;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    report *r = ctx;
    unsigned char mark = 0;
    vst_span own = *span;
    vst_status status = VST_OK;
    int64_t self_ns;
    bool beside = span->flags & VST_SPAN_ASYNC;

    if (span->id > r->max || !vpy_chosen_has(&r->chosen, span->thread))
        return VST_OK;
    if (r->marks)
        mark = r->marks[span->id];
    if (!vpy_pending_end(&r->pending, span, !(mark & VPY_MARK_LEFT_OUT),
                         &self_ns) ||
        !shorten(r, span, mark, &own))
        return VST_E_NOMEM;
    if (r->has_threads && !beside && !(mark & VPY_MARK_LEFT_OUT))
        status = add_to_thread(r, span, mark, self_ns);
    if (status == VST_OK && mark & (VPY_MARK_LEFT_OUT | VPY_MARK_NO_TIME))
        return r->tree && !beside ? vst_contexts_leave(r->tree, span->depth)
                                  : VST_OK;
    own.children_ns = own.end_ns - own.start_ns - self_ns;
    if (r->sums.of && !beside)
        vpy_sums_add(&r->sums, &own, self_ns);
    if (r->has_gc && mark & VPY_MARK_GC)
        vpy_collections_add(&r->gc, span);
    if (r->tree && status == VST_OK)
        status = vst_contexts_add(r->tree, &own, 0);
    return status;
}

static vst_status leave(void *ctx, uint32_t depth)
{
    report *r = ctx;

    vpy_pending_leave(&r->pending, depth);
    vpy_pending_leave(&r->untimed, depth);
    return r->tree ? vst_contexts_leave(r->tree, depth) : VST_OK;
}

/* ---- what Python gets -------------------------------------------------- */

static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool done = value && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *build(report *r, const vst_context_row *rows, size_t count,
                       long long min_ns)
{
    PyObject *dict = PyDict_New();
    bool done =
        dict &&
        (!r->sums.of || put(dict, "functions", vpy_sums_list(&r->sums))) &&
        (!r->tree || put(dict, "tree", vpy_tree_list(rows, count, min_ns))) &&
        (!r->has_threads ||
         put(dict, "threads",
             vpy_thread_sums_list(r->threads, r->thread_count))) &&
        (!r->has_threads ||
         put(dict, "waits", vpy_waits_list(&r->waits, r->max))) &&
        (!r->has_gc || put(dict, "gc", vpy_collections_dict(&r->gc))) &&
        (!r->has_gc || !r->tree ||
         put(dict, "gc_in", vpy_gc_callers(rows, count, r->marks)));

    if (!done)
        Py_CLEAR(dict);
    return dict;
}

static bool set_up(report *r, const vpy_trace *self, int functions, int spread,
                   int tree)
{
    r->max = vst_trace_definition_max(self->handle);
    r->own = calloc((size_t)r->max + 1, sizeof *r->own);
    r->spent = calloc((size_t)r->max + 1, sizeof *r->spent);
    r->waits.of = calloc((size_t)r->max + 1, sizeof *r->waits.of);
    if (!r->own || !r->spent || !r->waits.of)
        return false;
    if (functions && !vpy_sums_make(&r->sums, r->max, spread))
        return false;
    return !tree || vst_contexts_create(&r->tree) == VST_OK;
}

static void free_report(report *r)
{
    vst_contexts_destroy(r->tree);
    vpy_sums_free(&r->sums);
    free(r->pending.levels);
    free(r->untimed.levels);
    free(r->waits.of);
    free(r->chosen.numbers);
    free(r->threads);
    free(r->own);
    free(r->spent);
}

/* All that was asked for, of all windows. */
PyObject *vpy_trace_report(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"functions", "spread", "tree",         "threads",
                            "gc",        "marks",  "only_threads", "min_ns",
                            "progress",  NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *progress = NULL, *result = NULL, *marks = NULL, *only = NULL;
    int functions = 0, spread = 0, tree = 0, threads = 0, gc = 0;
    long long min_ns = 0;
    report r = {.marks = NULL};
    const vst_context_row *rows = NULL;
    size_t count = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$pppppSOLO:report", names,
                                     &functions, &spread, &tree, &threads, &gc,
                                     &marks, &only, &min_ns, &progress) ||
        !vpy_trace_is_usable(self) || !vpy_chosen_set(&r.chosen, only))
        return NULL;
    if (marks && (size_t)PyBytes_GET_SIZE(marks) <=
                     vst_trace_definition_max(self->handle)) {
        PyErr_SetString(PyExc_ValueError,
                        "marks has fewer items than there are definitions");
    } else if (!set_up(&r, self, functions, spread, tree)) {
        PyErr_NoMemory();
    } else {
        r.marks =
            marks ? (const unsigned char *)PyBytes_AS_STRING(marks) : NULL;
        r.has_threads = threads;
        r.has_gc = gc;
        vst_sink sink = {.ctx = &r,
                         .recursion = functions,
                         .no_args = !gc,
                         .span = add_span,
                         .leave = leave};
        vpy_trace_begin(self, progress);
        Py_BEGIN_ALLOW_THREADS
        status = vst_trace_replay(self->handle, VST_WINDOW_ALL, self->tracer,
                                  &sink, &error);
        end_thread(&r);
        if (status == VST_OK && r.tree)
            status = vst_contexts_finish(r.tree, &rows, &count);
        Py_END_ALLOW_THREADS
        vpy_trace_end(self);
        result = status == VST_OK ? build(&r, rows, count, min_ns)
                                  : vpy_raise(status, &error, self->path);
    }
    free_report(&r);
    return result;
}

static PyObject *whole_of(const vst_definition *d)
{
    return Py_BuildValue(
        "(iNNNi)", (int)d->kind, vpy_trace_text(d->name, d->name_len),
        vpy_trace_text(d->file, d->file_len),
        vpy_trace_text(d->file + d->file_skip, d->file_len - d->file_skip),
        (int)d->line);
}

/* By id: kind, name, file, what is shown of that, line. */
PyObject *vpy_trace_functions(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_trace_by_id(object, whole_of);
}
