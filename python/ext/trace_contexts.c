/* Trace.contexts(): the spans by where they were called from: a tree in which
 * calls of one function from the same place are one node. Spans come in the
 * order of their ends, so a node gathers the nodes of its children when it ends
 * itself, and no more is kept than the tree. The replay runs without the GIL.
 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    vst_id id;
    uint32_t shapes;      /* number of a text, 0: none */
    uint32_t first, next; /* child, sibling: indexes, 0: none */
    uint64_t count;
    int64_t self_ns, total_ns;
    int64_t self_bytes, total_bytes;
    int64_t first_ns; /* the first to begin, and its serial */
    uint64_t serial;
} node;

/* Nodes whose enclosing span is still open, as in vpy_pending. */
typedef struct level {
    uint32_t list;
    uint64_t owner;
} level;

typedef struct task {
    uint32_t *into;
    uint32_t from;
} task;

typedef struct contexts {
    node *nodes; /* 0 is none */
    uint32_t count, capacity, unused;
    level *levels;
    size_t top, level_capacity;
    task *tasks;
    size_t task_capacity;
    uint32_t roots;
    uint32_t thread;
    bool by_shapes;
    bool framework; /* bytes are those of a framework's allocator */
    vpy_texts texts;
    vpy_deadline deadline;
} contexts;

/* ---- lists of nodes ---------------------------------------------------- */

static uint32_t make_node(contexts *c)
{
    uint32_t index = c->unused;

    if (index) {
        c->unused = c->nodes[index].next;
        return index;
    }
    if (c->count + 1 >= c->capacity) {
        uint32_t capacity = c->capacity ? c->capacity * 2 : 1024;
        node *nodes = capacity > c->capacity
                          ? realloc(c->nodes, capacity * sizeof *nodes)
                          : NULL;
        if (!nodes)
            return 0;
        c->nodes = nodes;
        c->capacity = capacity;
    }
    return ++c->count;
}

/* The node of the same function in a list, which comes to its front. */
static uint32_t find(contexts *c, uint32_t *list, const node *key)
{
    uint32_t *link = list;

    for (uint32_t at = *list; at; at = *link) {
        node *n = &c->nodes[at];
        if (n->id == key->id && n->shapes == key->shapes) {
            *link = n->next;
            n->next = *list;
            *list = at;
            return at;
        }
        link = &n->next;
    }
    return 0;
}

static void add_to(node *sum, const node *n)
{
    sum->count += n->count;
    sum->self_ns += n->self_ns;
    sum->total_ns += n->total_ns;
    sum->self_bytes += n->self_bytes;
    sum->total_bytes += n->total_bytes;
    if (n->first_ns < sum->first_ns) {
        sum->first_ns = n->first_ns;
        sum->serial = n->serial;
    }
}

static bool push_task(contexts *c, size_t count, uint32_t *into, uint32_t from)
{
    if (count == c->task_capacity) {
        size_t capacity = count ? count * 2 : 64;
        task *tasks = realloc(c->tasks, capacity * sizeof *tasks);
        if (!tasks)
            return false;
        c->tasks = tasks;
        c->task_capacity = capacity;
    }
    c->tasks[count] = (task){into, from};
    return true;
}

/* Moves a list into another, with all that hangs on it. Makes no nodes, so
 * that pointers into them hold. */
static bool merge(contexts *c, uint32_t *into, uint32_t from)
{
    size_t count = 0;

    if (!*into) {
        *into = from;
        return true;
    }
    if (!push_task(c, count++, into, from))
        return false;
    while (count) {
        task now = c->tasks[--count];
        while (now.from) {
            uint32_t at = now.from;
            node *n = &c->nodes[at];
            uint32_t same = *now.into ? find(c, now.into, n) : 0;
            now.from = n->next;
            if (!same) {
                n->next = *now.into;
                *now.into = at;
                continue;
            }
            add_to(&c->nodes[same], n);
            if (n->first &&
                !push_task(c, count++, &c->nodes[same].first, n->first))
                return false;
            n->next = c->unused;
            c->unused = at;
        }
    }
    return true;
}

/* ---- spans ------------------------------------------------------------- */

static bool reserve_level(contexts *c, size_t depth)
{
    size_t capacity = c->level_capacity ? c->level_capacity : 64;
    level *levels;

    if (depth < c->level_capacity)
        return true;
    while (capacity <= depth)
        capacity *= 2;
    levels = realloc(c->levels, capacity * sizeof *levels);
    if (!levels)
        return false;
    memset(levels + c->level_capacity, 0,
           (capacity - c->level_capacity) * sizeof *levels);
    c->levels = levels;
    c->level_capacity = capacity;
    return true;
}

/* A list of children of `owner`, which lies a level further out. */
static bool add_list(contexts *c, size_t depth, uint32_t list, uint64_t owner)
{
    level *l = &c->levels[depth];

    if (depth >= c->top)
        c->top = depth + 1;
    while (l->list && l->owner < owner) {
        level stale = *l;
        *l = (level){list, owner};
        if (depth == 0)
            return merge(c, &c->roots, stale.list);
        l = &c->levels[--depth];
        list = stale.list;
        owner = stale.owner;
    }
    l->owner = owner;
    return merge(c, &l->list, list);
}

/* All that is waiting has no more to wait for. */
static bool close_levels(contexts *c)
{
    while (c->top) {
        level *l = &c->levels[--c->top];
        uint32_t list = l->list;
        l->list = 0;
        if (list && !merge(c, &c->roots, list))
            return false;
    }
    return true;
}

/* A node for a span with what waits for it. 0: out of memory. */
static uint32_t node_of(contexts *c, const vst_span *span)
{
    int64_t duration = span->end_ns - span->start_ns;
    uint32_t shapes = 0, index;

    if (c->by_shapes && span->args_len &&
        !vpy_texts_number(&c->texts,
                          vpy_member(span->args, span->args_len, "Input Dims"),
                          &shapes))
        return 0;
    index = make_node(c);
    if (!index)
        return 0;
    c->nodes[index] = (node){
        .id = span->id,
        .shapes = shapes,
        .count = !(span->flags & VST_SPAN_RESUMED),
        .total_ns = duration,
        .self_ns =
            duration > span->children_ns ? duration - span->children_ns : 0,
        .self_bytes = vpy_self_bytes(span, c->framework),
        .total_bytes = vpy_total_bytes(span, c->framework),
        .first_ns = span->start_ns,
        .serial = span->serial,
    };
    return index;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    contexts *c = ctx;
    uint32_t index;

    if (vpy_deadline_is_over(&c->deadline))
        return VST_E_CANCELLED;
    if (c->thread != span->thread) {
        c->thread = span->thread;
        if (!close_levels(c))
            return VST_E_NOMEM;
    }
    index = node_of(c, span);
    if (!index)
        return VST_E_NOMEM;
    if (span->flags & VST_SPAN_ASYNC) {
        c->nodes[index].self_ns = 0;
        return merge(c, &c->roots, index) ? VST_OK : VST_E_NOMEM;
    }
    if (!reserve_level(c, span->depth))
        return VST_E_NOMEM;
    while (c->top > (size_t)span->depth + 1) {
        level l = c->levels[--c->top];
        c->levels[c->top].list = 0;
        if (l.list && l.owner >= span->serial) {
            if (!merge(c, &c->nodes[index].first, l.list))
                return VST_E_NOMEM;
        } else if (l.list && !add_list(c, span->depth, l.list, span->parent)) {
            return VST_E_NOMEM;
        }
    }
    return add_list(c, span->depth, index, span->parent) ? VST_OK : VST_E_NOMEM;
}

/* ---- the method -------------------------------------------------------- */

static PyObject *entry_of(const node *n, long long parent, PyObject *texts)
{
    return Py_BuildValue("(LIOKLKLLLL)", parent, (unsigned)n->id,
                         n->shapes ? PyList_GET_ITEM(texts, n->shapes - 1)
                                   : Py_None,
                         (unsigned long long)n->serial, (long long)n->first_ns,
                         (unsigned long long)n->count, (long long)n->self_ns,
                         (long long)n->total_ns, (long long)n->self_bytes,
                         (long long)n->total_bytes);
}

/* Parents before their children. A node that is in the list keeps its place
 * there in its `count`, which is not needed any more. */
static PyObject *list_of(contexts *c)
{
    PyObject *texts = vpy_texts_list(&c->texts);
    PyObject *list = texts ? PyList_New(0) : NULL;
    size_t waiting = 0;

    if (list && c->roots && !push_task(c, waiting++, NULL, c->roots))
        Py_CLEAR(list);
    while (list && waiting) {
        task *now = &c->tasks[waiting - 1];
        node *n = now->from ? &c->nodes[now->from] : NULL;
        if (!n) {
            waiting--;
            continue;
        }
        /* into: the parent's node, whose count is its place. */
        const node *parent = (const node *)(const void *)now->into;
        PyObject *entry =
            entry_of(n, parent ? (long long)parent->count : -1, texts);
        now->from = n->next;
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
        n->count = list ? (uint64_t)PyList_GET_SIZE(list) - 1 : 0;
        if (list && n->first &&
            !push_task(c, waiting++, (uint32_t *)(void *)n, n->first))
            Py_CLEAR(list);
    }
    Py_XDECREF(texts);
    if (!list && !PyErr_Occurred())
        PyErr_NoMemory();
    return list;
}

PyObject *vpy_trace_contexts(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"all_windows", "since",     "shapes",
                            "timeout",     "framework", NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *timeout = NULL, *list = NULL;
    int all = 0, since = -1, shapes = 0, framework = 0;
    contexts c = {.count = 0};
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$pipOp:contexts", names, &all,
                                     &since, &shapes, &timeout, &framework) ||
        !vpy_trace_is_usable(self) || !vpy_deadline_set(&c.deadline, timeout))
        return NULL;
    c.by_shapes = shapes;
    c.framework = framework;
    vst_sink sink = {.ctx = &c, .span = add_span};
    vpy_trace_begin(self, NULL, 0);
    Py_BEGIN_ALLOW_THREADS status =
        vst_trace_replay(self->handle, vpy_trace_window(all, since),
                         self->tracer, &sink, &error);
    if ((status == VST_OK || c.deadline.passed) && !close_levels(&c))
        status = VST_E_NOMEM;
    else if (c.deadline.passed)
        status = VST_OK;
    Py_END_ALLOW_THREADS vpy_trace_end(self);
    if (status == VST_OK)
        list = list_of(&c);
    else
        vpy_raise(status, &error, self->path);
    free(c.nodes);
    free(c.levels);
    free(c.tasks);
    vpy_texts_free(&c.texts);
    return list;
}
