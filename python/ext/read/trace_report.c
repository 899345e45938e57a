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
    bool has_pauses;    /* of threads, see add_pause */
    bool folds_imports; /* the tree has no frames of the import system */
    vpy_sums sums;      /* of functions, if they are asked for */
    vst_contexts *tree;
    vpy_pending pending;
    vpy_pending untimed; /* what has the mark for no time, below what is open */
    vpy_pending folded;  /* as pending, for the tree that folds imports */
    bool has_awaits;
    vpy_awaits awaits;
    vpy_waits waits;
    unsigned char *reasons; /* by definition id: a vst_wait_reason */
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
    bool has_notable;
    vpy_steps steps;
    vpy_repeats repeats;
    vpy_estimates estimates;
} report;

/* A thread ends, or the replay goes on with another: finds the function that it
 * spent most time in. Among equals, the one that was defined first. */
static void end_thread(report *r)
{
    int64_t top_ns = 0, missing_ns = 0;
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
    if (r->estimates.budget != NULL)
        missing_ns = vpy_estimates_end_thread(&r->estimates);
    for (size_t i = 0; top && i < r->thread_count; i++) {
        vpy_thread_sums *sums = &r->threads[i];
        if (sums->number != r->reading)
            continue;
        sums->self_ns += missing_ns;
        if (top_ns > sums->top_ns) {
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
    if (grown == NULL)
        return NULL;
    r->threads = grown;
    grown[r->thread_count] = (vpy_thread_sums){
        .number = number, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    return &grown[r->thread_count++];
}

/* Waits for locks of objects, and for a stopped world, where they are known. */
static vst_status add_pause(void *ctx, const vst_wait *wait)
{
    report *r = ctx;
    vpy_thread_sums *sums = NULL;

    if (wait->serial != 0 && vpy_chosen_has(&r->chosen, wait->thread) &&
        (wait->reason == VST_WAIT_OBJECT || wait->reason == VST_WAIT_WORLD))
        sums = sums_of_thread(r, wait->thread);
    if (sums != NULL)
        sums->waited_ns[wait->reason] += wait->end_ns - wait->start_ns;
    return VST_OK;
}

static vst_status add_to_thread(report *r, const vst_span *span,
                                unsigned char mark, int64_t self_ns)
{
    vpy_thread_sums *sums;

    sums = sums_of_thread(r, span->thread);
    if (sums == NULL)
        return VST_E_NOMEM;
    sums->calls += !(span->flags & VST_SPAN_RESUMED);
    if (!(mark & VPY_MARK_NO_TIME)) {
        spend(r, span->id, self_ns);
        sums->self_ns += self_ns;
    }
    if (span->parent == 0)
        vpy_thread_sums_add(sums, span);
    if (r->reasons[span->id] != VST_WAIT_NONE && vst_span_waiting(span) > 0)
        sums->waited_ns[r->reasons[span->id]] += vst_span_waiting(span);
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

/* A span of the tree. Imports are told apart by module. */
static vst_status add_to_tree(report *r, vst_span *own, int64_t self_ns)
{
    uint32_t key = own->flags & VST_SPAN_IMPORT
                       ? vpy_import_key(own->module, own->import)
                       : 0;

    if (r->folds_imports && own->flags & VST_SPAN_MACHINERY)
        return vst_contexts_leave(r->tree, own->depth);
    own->children_ns = own->end_ns - own->start_ns - self_ns;
    return vst_contexts_add(r->tree, own, key);
}

/* A wait of a task, at a depth of the tree. Its time is nobody's: the thread
 * did something else. */
static vst_status add_wait(report *r, const vst_span *span, uint32_t depth,
                           const vst_task_wait *wait)
{
    vst_span leaf = {.id = wait->awaiting != 0 && wait->awaiting <= r->max
                               ? wait->awaiting
                               : span->id,
                     .thread = span->thread,
                     .depth = depth,
                     .start_ns = span->start_ns,
                     .end_ns = span->start_ns + wait->ns,
                     .children_ns = wait->ns};

    return vst_contexts_add(r->tree, &leaf,
                            (uint32_t)wait->awaits << VPY_IMPORT_BITS |
                                VPY_KEY_AWAITS);
}

/* Whether a wait that ended in a call belongs inside of it. */
static bool is_inside(const report *r, const vst_span *span)
{
    return r->marks == NULL || span->flags & VST_SPAN_STEP ||
           !(r->marks[span->id] &
             (VPY_MARK_AWAITED | VPY_MARK_LEFT_OUT | VPY_MARK_NO_TIME));
}

static vst_status on_task(void *ctx, const vst_task_event *event)
{
    report *r = ctx;

    return vpy_chosen_has(&r->chosen, event->thread)
               ? vpy_awaits_event(&r->awaits, event)
               : VST_OK;
}

/* The own time of a span in a tree that folds imports: `self_ns` has it where
 * nothing is folded. */
static bool fold_time(report *r, const vst_span *span, unsigned char mark,
                      int64_t *self_ns)
{
    return !r->folds_imports ||
           vpy_pending_end(&r->folded, span,
                           !(mark & VPY_MARK_LEFT_OUT) &&
                               !(span->flags & VST_SPAN_MACHINERY),
                           self_ns);
}

/* What a call stands for that a budget left out. own: the span without what
 * counts for nobody. */
static void estimate(report *r, const vst_span *span, unsigned char mark,
                     const vst_span *own, int64_t self_ns)
{
    vpy_estimates *e = &r->estimates;
    double missing_ns;

    if (mark & (VPY_MARK_LEFT_OUT | VPY_MARK_NO_TIME)) {
        vpy_estimates_see(e, span, mark & VPY_MARK_NO_TIME ? self_ns : 0);
        return;
    }
    missing_ns = vpy_estimates_add(e, span, own->end_ns - own->start_ns,
                                   self_ns, r->pending.missing_ns);
    r->pending.levels[span->depth].missing_ns += missing_ns;
}

static vst_status add_one(report *r, const vst_span *span)
{
    unsigned char mark = 0;
    vst_span own = *span;
    vst_status status = VST_OK;
    int64_t self_ns, folded_ns;
    bool beside = span->flags & VST_SPAN_ASYNC;

    if (!beside && r->reading != span->thread) {
        end_thread(r);
        r->reading = span->thread;
    }
    if (r->marks != NULL)
        mark = r->marks[span->id];
    if (!vpy_pending_end(&r->pending, span, !(mark & VPY_MARK_LEFT_OUT),
                         &self_ns) ||
        !shorten(r, span, mark, &own))
        return VST_E_NOMEM;
    folded_ns = self_ns;
    if (!fold_time(r, span, mark, &folded_ns))
        return VST_E_NOMEM;
    if (r->estimates.budget != NULL && !beside)
        estimate(r, span, mark, &own, self_ns);
    if (r->has_threads && !beside && !(mark & VPY_MARK_LEFT_OUT))
        status = add_to_thread(r, span, mark, self_ns);
    if (status == VST_OK && mark & (VPY_MARK_LEFT_OUT | VPY_MARK_NO_TIME))
        return r->tree != NULL && !beside
                   ? vst_contexts_leave(r->tree, span->depth)
                   : VST_OK;
    if (r->has_notable && mark & VPY_MARK_STEP)
        vpy_steps_add(&r->steps, span);
    if (r->has_notable && !vpy_repeats_add(&r->repeats, span))
        return VST_E_NOMEM;
    own.children_ns = own.end_ns - own.start_ns - self_ns;
    if (r->sums.of != NULL && !beside)
        vpy_sums_add(&r->sums, &own, self_ns);
    if (r->has_gc && mark & VPY_MARK_GC)
        vpy_collections_add(&r->gc, span);
    if (r->tree != NULL && status == VST_OK)
        status = add_to_tree(r, &own, folded_ns);
    return status;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    report *r = ctx;
    vst_task_wait wait = {.ns = 0};
    vst_status status = VST_OK;

    if (span->id > r->max || !vpy_chosen_has(&r->chosen, span->thread))
        return VST_OK;
    if (r->has_awaits)
        status = vpy_awaits_span(&r->awaits, span, &wait);
    if (status == VST_OK && wait.ns > 0 && is_inside(r, span))
        status = add_wait(r, span, span->depth + 1, &wait);
    if (status == VST_OK)
        status = add_one(r, span);
    if (status == VST_OK && wait.ns > 0 && !is_inside(r, span))
        status = add_wait(r, span, span->depth, &wait);
    return status;
}

static vst_status leave(void *ctx, uint32_t depth)
{
    report *r = ctx;

    vpy_pending_leave(&r->pending, depth);
    vpy_pending_leave(&r->untimed, depth);
    vpy_pending_leave(&r->folded, depth);
    return r->tree != NULL ? vst_contexts_leave(r->tree, depth) : VST_OK;
}

/* ---- what Python gets -------------------------------------------------- */

static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool done = value != NULL && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *build(report *r, const vst_context_row *rows, size_t count,
                       long long min_ns)
{
    PyObject *dict = PyDict_New();
    bool done =
        dict != NULL &&
        (r->sums.of == NULL ||
         put(dict, "functions", vpy_sums_list(&r->sums))) &&
        (r->estimates.budget == NULL ||
         put(dict, "budget", vpy_estimates_dict(&r->estimates))) &&
        (r->tree == NULL ||
         put(dict, "tree", vpy_tree_list(rows, count, min_ns))) &&
        (!r->has_threads ||
         put(dict, "threads",
             vpy_thread_sums_list(r->threads, r->thread_count,
                                  r->has_pauses))) &&
        (!r->has_threads ||
         put(dict, "waits", vpy_waits_list(&r->waits, r->max))) &&
        (!r->has_gc || put(dict, "gc", vpy_collections_dict(&r->gc))) &&
        (!r->has_notable || put(dict, "steps", vpy_steps_tuple(&r->steps))) &&
        (!r->has_notable ||
         put(dict, "repeats", vpy_repeats_list(&r->repeats))) &&
        (!r->has_gc || r->tree == NULL ||
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
    r->reasons = vpy_wait_reasons(self->handle, r->max);
    if (r->own == NULL || r->spent == NULL || r->waits.of == NULL ||
        r->reasons == NULL)
        return false;
    if (functions && !vpy_sums_make(&r->sums, r->max, spread))
        return false;
    return !tree || vst_contexts_create(&r->tree) == VST_OK;
}

static void free_report(report *r)
{
    vst_contexts_destroy(r->tree);
    vpy_sums_free(&r->sums);
    vpy_repeats_free(&r->repeats);
    vpy_estimates_free(&r->estimates);
    vpy_awaits_free(&r->awaits);
    free(r->pending.levels);
    free(r->untimed.levels);
    free(r->folded.levels);
    free(r->waits.of);
    free(r->reasons);
    free(r->chosen.numbers);
    free(r->threads);
    free(r->own);
    free(r->spent);
}

/* Reads the records; without the GIL. */
static vst_status read_all(report *r, vpy_trace *trace,
                           const vst_context_row **rows, size_t *count,
                           vst_error *error)
{
    vst_sink sink = {.ctx = r,
                     .no_args = !r->has_gc && !r->has_notable,
                     .span = add_span,
                     .leave = leave,
                     .wait = r->has_pauses ? add_pause : NULL,
                     .task = r->has_awaits ? on_task : NULL};
    vst_status status =
        vpy_estimates_begin(&r->estimates, trace->handle, error);

    sink.recursion = r->sums.of != NULL || r->estimates.budget != NULL;
    if (status == VST_OK)
        status = vst_trace_replay(trace->handle, VST_WINDOW_ALL, trace->tracer,
                                  &sink, error);
    end_thread(r);
    if (status == VST_OK && r->estimates.budget != NULL && r->sums.of != NULL)
        vpy_estimates_put(&r->estimates, &r->sums);
    return status == VST_OK && r->tree != NULL
               ? vst_contexts_finish(r->tree, rows, count)
               : status;
}

/* All that was asked for, of all windows. */
PyObject *vpy_trace_report(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {
        "functions", "spread",       "tree",   "threads",  "gc",
        "marks",     "only_threads", "min_ns", "progress", "fold_imports",
        "notable",   "awaits",       NULL};
    vst_trace_info info;
    vpy_trace *self = (vpy_trace *)object;
    PyObject *progress = NULL, *result = NULL, *marks = NULL, *only = NULL;
    int functions = 0, spread = 0, tree = 0, threads = 0, gc = 0, fold = 0;
    int notable = 0, awaits = 0;
    long long min_ns = 0;
    report r = {.marks = NULL};
    const vst_context_row *rows = NULL;
    size_t count = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$pppppSOLOppp:report", names,
                                     &functions, &spread, &tree, &threads, &gc,
                                     &marks, &only, &min_ns, &progress, &fold,
                                     &notable, &awaits) ||
        !vpy_trace_is_usable(self) || !vpy_chosen_set(&r.chosen, only))
        return NULL;
    if (marks != NULL && (size_t)PyBytes_GET_SIZE(marks) <=
                             vst_trace_definition_max(self->handle)) {
        PyErr_SetString(PyExc_ValueError,
                        "marks has fewer items than there are definitions");
    } else if (!set_up(&r, self, functions, spread, tree)) {
        PyErr_NoMemory();
    } else {
        r.marks = marks != NULL
                      ? (const unsigned char *)PyBytes_AS_STRING(marks)
                      : NULL;
        r.has_threads = threads;
        vst_trace_get_info(self->handle, &info);
        r.has_pauses = threads && info.object_waits;
        r.has_gc = gc;
        r.folds_imports = fold && tree;
        r.has_notable = notable;
        r.has_awaits = awaits && tree;
        vpy_trace_begin(self, progress);
        Py_BEGIN_ALLOW_THREADS
        status = read_all(&r, self, &rows, &count, &error);
        Py_END_ALLOW_THREADS
        vpy_trace_end(self);
        result = status == VST_OK ? build(&r, rows, count, min_ns)
                                  : vpy_raise(status, &error, self->path);
    }
    free_report(&r);
    return result;
}
