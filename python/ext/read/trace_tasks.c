/* Trace.tasks(): what asyncio's tasks and greenlets did, from one reading of
 * the records: the tasks, what they waited for, each step if that is asked for,
 * and the steps that took long, with the calls that took most of them. The
 * replay runs without the GIL. */
#include "read/trace.h"

#include <stdlib.h>
#include <vestige/tasks.h>

enum { ENDED = -1, GOES_ON = -2 };

/* A step, or a part of one that has several calls. */
typedef struct step {
    uint32_t task;
    vst_id id;
    int64_t start_ns, end_ns;
    int awaits; /* vst_task_awaits, or one of the two below */
    vst_id awaiting;
    vst_task_waker waker;
} step;

/* A call that took long, and the longest that it made. */
typedef struct call {
    vst_id id;
    int64_t ns;
    size_t longest;    /* 1 + index, 0: none took long */
    uint32_t imported; /* a vst_import; 0: nothing */
    vst_id module;     /* of that: the id of its code; 0: not known */
    bool is_machinery; /* of the import system */
} call;

typedef struct blocked {
    uint32_t task, thread;
    int64_t start_ns, ns;
    size_t call; /* 1 + index */
} blocked;

typedef struct list {
    void *items;
    size_t count, capacity;
} list;

typedef struct reading {
    vst_tasks *tasks;
    bool wants_steps;
    int64_t blocked_ns; /* less than 0: not wanted */
    list steps, calls, blocked;
    list longest; /* by depth: 1 + index of the longest call there, size_t */
    uint32_t thread;
    vst_task_event last; /* the last AWAITS or ENDS */
} reading;

/* A new item at the end; NULL without memory. */
static void *add(list *l, size_t size)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity != 0 ? 2 * l->capacity : 64;
        void *grown = realloc(l->items, capacity * size);
        if (grown == NULL)
            return NULL;
        l->items = grown;
        l->capacity = capacity;
    }
    return (char *)l->items + l->count++ * size;
}

/* ---- calls that take long -------------------------------------------------
 */

static size_t *longest_at(reading *r, size_t depth)
{
    while (r->longest.count <= depth) {
        size_t *item = add(&r->longest, sizeof *item);
        if (item == NULL)
            return NULL;
        *item = 0;
    }
    return (size_t *)r->longest.items + depth;
}

/* A call of at least half the time that a step must take to be of interest: one
 * that is shorter did not block the loop. Those that it made and that took as
 * long have ended before. */
static vst_status add_long_call(reading *r, const vst_span *span)
{
    int64_t ns = span->end_ns - span->start_ns;
    size_t *inner = longest_at(r, (size_t)span->depth + 1), *outer;
    call *made = inner != NULL ? add(&r->calls, sizeof *made) : NULL;
    const vst_task *task;
    blocked *found;

    if (made == NULL)
        return VST_E_NOMEM;
    *made = (call){.id = span->id,
                   .ns = ns,
                   .longest = *inner,
                   .is_machinery = (span->flags & VST_SPAN_MACHINERY) != 0};
    if (span->flags & VST_SPAN_IMPORT) {
        made->imported = (uint32_t)span->import;
        made->module = span->module;
    }
    *inner = 0;
    outer = longest_at(r, span->depth);
    if (*outer == 0 || ((call *)r->calls.items)[*outer - 1].ns < ns)
        *outer = r->calls.count;
    if (!(span->flags & VST_SPAN_STEP) || ns < r->blocked_ns)
        return VST_OK;
    /* A hub waits in its steps, and greenlets need not have a loop. */
    task = vst_tasks_find(r->tasks, span->task);
    if (task == NULL || task->kind != VST_TASK_OF_LOOP)
        return VST_OK;
    found = add(&r->blocked, sizeof *found);
    if (found == NULL)
        return VST_E_NOMEM;
    *found =
        (blocked){span->task, span->thread, span->start_ns, ns, r->calls.count};
    return VST_OK;
}

/* ---- the replay ---------------------------------------------------------- */

static vst_status on_task(void *ctx, const vst_task_event *event)
{
    reading *r = ctx;
    vst_status status = vst_tasks_event(r->tasks, event);
    step *s;

    if (status != VST_OK || !r->wants_steps)
        return status;
    if (event->what == VST_TASK_AWAITS || event->what == VST_TASK_ENDS)
        r->last = *event;
    if (event->what != VST_TASK_STEP || event->goes_on)
        return VST_OK;
    s = add(&r->steps, sizeof *s);
    if (s == NULL)
        return VST_E_NOMEM;
    *s = (step){.task = event->task,
                .id = event->id,
                .start_ns = event->time_ns,
                .end_ns = event->time_ns,
                .awaits = GOES_ON,
                .waker = vst_tasks_waker(r->tasks)};
    return VST_OK;
}

/* Eager tasks begin inside steps of others: it is not always the last one. */
static void end_step(reading *r, const vst_span *span)
{
    step *steps = r->steps.items;

    for (size_t i = r->steps.count; i-- != 0;) {
        step *s = &steps[i];
        if (s->task != span->task || s->start_ns != span->start_ns)
            continue;
        s->end_ns = span->end_ns;
        if (r->last.task == s->task) {
            s->awaits =
                r->last.what == VST_TASK_ENDS ? ENDED : (int)r->last.awaits;
            s->awaiting = r->last.awaiting;
        }
        r->last.task = 0;
        return;
    }
}

static vst_status on_span(void *ctx, const vst_span *span)
{
    reading *r = ctx;

    if (span->task == 0)
        return VST_OK;
    if (r->thread != span->thread)
        r->longest.count = 0;
    r->thread = span->thread;
    if (r->wants_steps && span->flags & VST_SPAN_STEP)
        end_step(r, span);
    if (r->blocked_ns >= 0 && !(span->flags & VST_SPAN_ASYNC) &&
        span->end_ns - span->start_ns >= r->blocked_ns / 2) {
        vst_status status = add_long_call(r, span);
        if (status != VST_OK)
            return status;
    }
    return vst_tasks_span(r->tasks, span);
}

/* ---- what Python gets -----------------------------------------------------
 */

static PyObject *list_of(size_t count,
                         PyObject *(*item_of)(const reading *, size_t),
                         const reading *r)
{
    PyObject *result = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *item = item_of(r, i);
        if (item == NULL)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, (Py_ssize_t)i, item);
    }
    return result;
}

static PyObject *task_at(const reading *r, size_t i)
{
    const vst_task *t = vst_tasks_at(r->tasks, i);

    return Py_BuildValue("(IIINLLKLLLLss)", t->number, t->thread, t->id,
                         vpy_trace_text(t->name, t->name_len),
                         (long long)t->start_ns, (long long)t->end_ns,
                         (unsigned long long)t->steps, (long long)t->running_ns,
                         (long long)t->awaiting_ns, (long long)t->longest_ns,
                         (long long)t->longest_at_ns, vst_task_end_name(t->end),
                         vst_task_kind_name(t->kind));
}

static PyObject *await_at(const reading *r, size_t i)
{
    const vst_task_await *a = vst_tasks_await_at(r->tasks, i);

    return Py_BuildValue("(IiIKL)", a->id, (int)a->awaits, a->awaiting,
                         (unsigned long long)a->count, (long long)a->ns);
}

static PyObject *step_at(const reading *r, size_t i)
{
    const step *s = (const step *)r->steps.items + i;
    long long waker = s->waker.is_known ? (long long)s->waker.task : -1;

    return Py_BuildValue("(IILLiILI)", s->task, s->id, (long long)s->start_ns,
                         (long long)s->end_ns, s->awaits, s->awaiting, waker,
                         s->waker.id);
}

static PyObject *blocked_at(const reading *r, size_t i)
{
    const blocked *b = (const blocked *)r->blocked.items + i;
    PyObject *stack = PyList_New(0);

    for (size_t at = b->call; stack != NULL && at != 0;) {
        const call *c = (const call *)r->calls.items + at - 1;
        PyObject *item =
            Py_BuildValue("(ILIIN)", c->id, (long long)c->ns, c->imported,
                          c->module, PyBool_FromLong(c->is_machinery));
        if (!vpy_append(stack, item))
            Py_CLEAR(stack);
        at = c->longest;
    }
    if (stack == NULL)
        return NULL;
    return Py_BuildValue("(IILLN)", b->task, b->thread, (long long)b->start_ns,
                         (long long)b->ns, stack);
}

static PyObject *build(const reading *r)
{
    PyObject *tasks = list_of(vst_tasks_count(r->tasks), task_at, r);
    PyObject *awaits = list_of(vst_tasks_await_count(r->tasks), await_at, r);
    PyObject *steps = list_of(r->steps.count, step_at, r);
    PyObject *long_steps = list_of(r->blocked.count, blocked_at, r);

    if (tasks != NULL && awaits != NULL && steps != NULL && long_steps != NULL)
        return Py_BuildValue("{sNsNsNsN}", "tasks", tasks, "awaits", awaits,
                             "steps", steps, "blocked", long_steps);
    Py_XDECREF(tasks);
    Py_XDECREF(awaits);
    Py_XDECREF(steps);
    Py_XDECREF(long_steps);
    return NULL;
}

PyObject *vpy_trace_tasks(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"steps", "blocked_ns", "progress", NULL};
    vpy_trace *self = (vpy_trace *)object;
    reading r = {.blocked_ns = -1};
    PyObject *progress = NULL, *result = NULL;
    vst_error error = {VST_OK, 0, 0};
    long long blocked_ns = -1;
    int steps = 0;
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$pLO:tasks", names, &steps,
                                     &blocked_ns, &progress) ||
        !vpy_trace_is_usable(self))
        return NULL;
    r.wants_steps = steps;
    r.blocked_ns = blocked_ns;
    status = vst_tasks_create(&r.tasks);
    if (status == VST_OK) {
        vst_sink sink = {
            .ctx = &r, .no_args = true, .span = on_span, .task = on_task};
        status =
            vpy_trace_replay(self, VST_WINDOW_ALL, progress, &sink, &error);
    }
    result =
        status == VST_OK ? build(&r) : vpy_raise(status, &error, self->path);
    vst_tasks_destroy(r.tasks);
    free(r.steps.items);
    free(r.calls.items);
    free(r.blocked.items);
    free(r.longest.items);
    return result;
}
