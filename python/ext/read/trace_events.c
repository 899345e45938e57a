/* Trace.events(): every span as a row of one block of memory. Python reads it
 * through memoryviews and makes objects only on demand. Rows are in order of
 * time, and a row refers to its parent and children by their rows. The replay
 * runs without the GIL. */
#include "read/trace.h"

#include "read/spans.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* Eleven words of eight bytes; events.py knows this. */
typedef struct row {
    int64_t start_ns, end_ns;
    int64_t self_ns;
    uint64_t args_at; /* in the texts; of a block, its address */
    int64_t self_bytes, total_bytes;
    uint32_t serial, id;
    int32_t parent, first, next; /* rows, -1: none */
    uint32_t thread, flags, args_length;
    int64_t compensated_ns; /* as a span's */
} row;

enum {
    ROWS_MAX = INT32_MAX,
    SCOPE_SHIFT = 24 /* of an operator, above the flags of its span */
};

/* Rows whose parent is still open, linked by `next`. */
typedef struct waiting {
    int32_t first, last;
} waiting;

typedef struct events {
    row *rows;
    size_t count, capacity;
    waiting *waiting; /* by depth; none from `top` on */
    size_t top, depths;
    uint32_t thread; /* that they are of */
    char *text;
    size_t text_length, text_capacity;
    unsigned char *is_call; /* by definition id */
    vst_id max;
    vpy_reading wish;
    vst__own_times pending;
} events;

/* ---- blocks ------------------------------------------------------------ */

/* Memory that was allocated without the GIL, as a Python object. */
typedef struct block {
    PyObject_HEAD
    void *bytes;
    Py_ssize_t length;
} block;

static PyTypeObject *block_type;

static int block_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    block *self = (block *)object;

    return PyBuffer_FillInfo(view, object, self->bytes, self->length, 1, flags);
}

static void block_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    free(((block *)object)->bytes);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot block_slots[] = {
    {Py_bf_getbuffer, block_get_buffer},
    {Py_tp_dealloc, block_dealloc},
    {0, NULL},
};

static PyType_Spec block_spec = {
    .name = "vestige._core.Block",
    .basicsize = sizeof(block),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = block_slots,
};

int vpy_trace_events_init(void)
{
    block_type = (PyTypeObject *)PyType_FromSpec(&block_spec);
    return block_type != NULL ? 0 : -1;
}

PyObject *vpy_view_of(void **bytes, size_t length)
{
    block *self = (block *)block_type->tp_alloc(block_type, 0);
    PyObject *view = NULL;

    if (self == NULL)
        return NULL;
    self->bytes = *bytes != NULL ? *bytes : malloc(1);
    self->length = (Py_ssize_t)length;
    *bytes = NULL;
    if (self->bytes != NULL)
        view = PyMemoryView_FromObject((PyObject *)self);
    else
        PyErr_NoMemory();
    Py_DECREF(self);
    return view;
}

/* ---- gathering --------------------------------------------------------- */

static bool reserve_row(events *e)
{
    size_t capacity = e->capacity ? e->capacity + e->capacity / 2 : 4096;
    row *rows;

    if (e->count < e->capacity)
        return true;
    rows = realloc(e->rows, capacity * sizeof *rows);
    if (rows == NULL)
        return false;
    e->rows = rows;
    e->capacity = capacity;
    return true;
}

static bool reserve_depth(events *e, size_t depth)
{
    size_t depths = e->depths ? e->depths : 64;
    waiting *grown;

    if (depth < e->depths)
        return true;
    while (depths <= depth)
        depths *= 2;
    grown = realloc(e->waiting, depths * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + e->depths, 0xff, (depths - e->depths) * sizeof *grown);
    e->waiting = grown;
    e->depths = depths;
    return true;
}

static bool keep_args(events *e, row *r, const vst_span *span)
{
    if (span->args_len == 0)
        return true;
    if (e->text_capacity - e->text_length < span->args_len) {
        size_t capacity = 2 * (e->text_capacity + span->args_len);
        char *text = realloc(e->text, capacity);
        if (text == NULL)
            return false;
        e->text = text;
        e->text_capacity = capacity;
    }
    memcpy(e->text + e->text_length, span->args, span->args_len);
    r->args_at = e->text_length;
    r->args_length = (uint32_t)span->args_len;
    e->text_length += span->args_len;
    return true;
}

/* Rows that wait deeper than `depth` become children of this row. */
static void adopt(events *e, size_t depth, int32_t parent)
{
    while (e->top > depth + 1) {
        waiting *deeper = &e->waiting[--e->top];
        for (int32_t i = deeper->first; i >= 0; i = e->rows[i].next)
            e->rows[i].parent = parent;
        *deeper = (waiting){-1, -1};
    }
}

static void append(events *e, size_t depth, waiting more)
{
    waiting *list = &e->waiting[depth];

    if (depth >= e->top)
        e->top = depth + 1;
    if (list->first < 0)
        list->first = more.first;
    else
        e->rows[list->last].next = more.first;
    list->last = more.last;
}

static vst_status leave(void *ctx, uint32_t depth)
{
    events *e = ctx;

    vst__own_times_leave(&e->pending, depth);
    while (e->top > (size_t)depth + 1) {
        waiting list = e->waiting[--e->top];
        e->waiting[e->top] = (waiting){-1, -1};
        if (list.first >= 0)
            append(e, depth, list);
    }
    return VST_OK;
}

/* Whether there is room for rows at this depth of the thread's stack. */
static bool reach(events *e, uint32_t thread, uint32_t depth)
{
    if (!reserve_depth(e, depth))
        return false;
    if (e->thread != thread) {
        e->thread = thread;
        memset(e->waiting, 0xff, e->depths * sizeof *e->waiting);
        e->top = 0;
    }
    return true;
}

/* Spans beside the stack have no parent and no children. */
static bool place(events *e, const vst_span *span, int32_t at)
{
    if (span->flags & VST_SPAN_ASYNC)
        return true;
    if (!reach(e, span->thread, span->depth))
        return false;
    adopt(e, span->depth, at);
    append(e, span->depth, (waiting){at, at});
    return true;
}

static vst_id id_of(const events *e, const vst_span *span)
{
    if (!e->wish.folds || !(span->flags & VST_SPAN_IMPORT))
        return span->id;
    return vst_view_import_id(e->max, span->import, span->module);
}

static vst_status take_span(void *ctx, const vst_span *span)
{
    events *e = ctx;
    bool shown = e->wish.calls || span->id > e->max || !e->is_call[span->id];
    int64_t self_ns;
    row *r;

    if (vpy_deadline_is_over(&e->wish.deadline))
        return VST_E_CANCELLED;
    if (!vst__own_times_end(&e->pending, span, shown, &self_ns))
        return VST_E_NOMEM;
    if (e->count == ROWS_MAX || span->serial > UINT32_MAX)
        return VST_E_NOMEM;
    if (!reserve_row(e))
        return VST_E_NOMEM;
    r = &e->rows[e->count];
    *r = (row){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .self_ns = span->flags & VST_SPAN_ASYNC ? 0 : self_ns,
        .self_bytes = vpy_self_bytes(span, e->wish.framework),
        .total_bytes = vpy_total_bytes(span, e->wish.framework),
        .serial = (uint32_t)span->serial,
        .id = id_of(e, span),
        .parent = -1,
        .first = (int32_t)e->count, /* where it stands, until it is sorted */
        .next = -1,
        .thread = span->thread,
        .flags = span->flags |
                 (span->op != NULL ? span->op->scope << SCOPE_SHIFT : 0),
        .compensated_ns = span->compensated_ns,
    };
    if (!place(e, span, (int32_t)e->count++))
        return VST_E_NOMEM;
    return keep_args(e, r, span) ? VST_OK : VST_E_NOMEM;
}

/* Allocations outside of all spans become a span of no length and no id. For
 * the tree, those inside do, too. */
static vst_status take_loose(void *ctx, const vst_loose_bytes *loose)
{
    events *e = ctx;

    if (!e->wish.framework)
        return VST_OK;
    if (e->count == ROWS_MAX || !reserve_row(e))
        return VST_E_NOMEM;
    e->rows[e->count] = (row){
        .start_ns = loose->time_ns,
        .end_ns = loose->time_ns,
        .args_at = e->wish.tree ? loose->address : 0,
        .self_bytes = loose->bytes,
        .total_bytes = loose->bytes,
        .parent = -1,
        .first = (int32_t)e->count,
        .next = -1,
        .thread = loose->thread,
        .compensated_ns = VST_RUNNING_UNKNOWN,
    };
    if (loose->depth != 0) {
        if (!reach(e, loose->thread, loose->depth))
            return VST_E_NOMEM;
        append(e, loose->depth,
               (waiting){(int32_t)e->count, (int32_t)e->count});
    }
    e->count++;
    return VST_OK;
}

/* ---- the tree ---------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const row *x = a, *y = b;

    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    if (x->serial != y->serial)
        return x->serial < y->serial ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts the rows and renumbers their parents. */
static bool link_rows(events *e)
{
    int32_t *moved = malloc((e->count + 1) * sizeof *moved);

    if (moved == NULL)
        return false;
    if (e->count)
        qsort(e->rows, e->count, sizeof *e->rows, by_time);
    for (size_t i = 0; i < e->count; i++) {
        moved[e->rows[i].first] = (int32_t)i;
        e->rows[i].first = e->rows[i].next = -1;
    }
    for (size_t i = e->count; i-- > 0;) {
        row *r = &e->rows[i];
        if (r->parent < 0)
            continue;
        r->parent = moved[r->parent];
        r->next = e->rows[r->parent].first;
        e->rows[r->parent].first = (int32_t)i;
    }
    free(moved);
    return true;
}

/* ---- the method -------------------------------------------------------- */

static bool mark_calls(vpy_trace *self, events *e)
{
    e->max = vst_trace_definition_max(self->handle);
    e->is_call = calloc((size_t)e->max + 1, 1);
    for (vst_id id = 1; e->is_call != NULL && id <= e->max; id++) {
        const vst_definition *d = vst_trace_definition(self->handle, id);
        e->is_call[id] = d != NULL && vpy_is_call(d->kind);
    }
    return e->is_call != NULL;
}

static vst_status gather(vpy_trace *self, events *e, int window,
                         vst_error *error)
{
    vst_sink sink = {.ctx = e,
                     .no_imports = !e->wish.folds,
                     .span = take_span,
                     .leave = leave,
                     .loose = take_loose,
                     .every_block = e->wish.tree,
                     .tensors = e->wish.tree,
                     .keywords = true};
    vst_status status =
        vst_trace_replay(self->handle, window, self->tracer, &sink, error);

    if (status == VST_E_CANCELLED && e->wish.deadline.passed)
        status = VST_OK;
    if (status == VST_OK && !link_rows(e))
        status = VST_E_NOMEM;
    return status;
}

static PyObject *give(events *e)
{
    void *rows = realloc(e->rows, e->count ? e->count * sizeof *e->rows : 1);
    void *text = e->text;
    PyObject *first, *second, *result = NULL;

    if (rows == NULL)
        rows = e->rows;
    e->rows = NULL;
    e->text = NULL;
    first = vpy_view_of(&rows, e->count * sizeof *e->rows);
    second = first != NULL ? vpy_view_of(&text, e->text_length) : NULL;
    free(text);
    if (second != NULL)
        result = Py_BuildValue("(OOO)", first, second,
                               e->wish.deadline.passed ? Py_True : Py_False);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

PyObject *vpy_trace_events(PyObject *object, PyObject *args, PyObject *kw)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *result = NULL;
    events e = {.count = 0};
    vst_error error = {VST_OK, 0, 0};
    vst_status status;

    if (!vpy_reading_parse(&e.wish, self, args, kw, "|$pippppOpp:events"))
        return NULL;
    if (!mark_calls(self, &e))
        return PyErr_NoMemory();
    vpy_trace_begin(self, NULL);
    Py_BEGIN_ALLOW_THREADS
    status = gather(self, &e, vpy_reading_window(&e.wish), &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    result =
        status == VST_OK ? give(&e) : vpy_raise(status, &error, self->path);
    free(e.rows);
    free(e.waiting);
    free(e.text);
    free(e.is_call);
    free(e.pending.levels);
    return result;
}

PyObject *vpy_trace_by_id(PyObject *object,
                          PyObject *(*entry_of)(const vst_definition *))
{
    vpy_trace *self = (vpy_trace *)object;
    vst_id max;
    PyObject *list;

    if (!vpy_trace_is_usable(self))
        return NULL;
    max = vst_trace_definition_max(self->handle);
    list = PyList_New((Py_ssize_t)max + 1);
    for (vst_id id = 0; list != NULL && id <= max; id++) {
        const vst_definition *d =
            id ? vst_trace_definition(self->handle, id) : NULL;
        PyObject *entry = d != NULL ? entry_of(d) : Py_NewRef(Py_None);
        if (entry != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)id, entry);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *kind_and_name(const vst_definition *d)
{
    return Py_BuildValue("(iN)", (int)d->kind, vpy_trace_name(d));
}

/* Kind, name as it is shown, by definition id. */
PyObject *vpy_trace_definitions(PyObject *object, PyObject *unused)
{
    (void)unused;
    return vpy_trace_by_id(object, kind_and_name);
}
