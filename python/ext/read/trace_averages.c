/* Trace.averages(): the spans of each name added up, by shapes and overload if
 * asked for. Only one row for each is kept; the replay runs without the GIL.
 * The sums are computed as torch does: every call of a recursive function
 * counts, but an operator that only calls another of its own name counts as one
 * with it. */
#include "read/trace.h"

#include "read/spans.h"

#include <stdlib.h>
#include <string.h>

typedef struct average {
    vst_id id;
    uint32_t shapes, overload; /* numbers of texts, 0: none */
    bool async;
    uint64_t count;
    int64_t self_ns, total_ns;
    int64_t compensated_ns; /* of total_ns */
    uint64_t uncompensated; /* spans of which that is not known */
    int64_t self_bytes, total_bytes;
    int64_t flops;
    int64_t first_ns; /* the first to begin, and its serial */
    uint64_t serial;
    /* The span that was added last. */
    int64_t last_ns, last_compensated_ns;
    int64_t last_bytes;
    int64_t last_flops;
} average;

typedef struct averages {
    average *of;
    uint32_t count, capacity;
    uint32_t *slots; /* indexes + 1 */
    size_t mask;
    vpy_reading wish;
    unsigned char *kinds; /* by definition id */
    vst_id max;
    vpy_texts texts;
    vst__own_times pending;
} averages;

static size_t hash_key(const average *key)
{
    uint64_t hash = key->id * UINT64_C(0x9E3779B97F4A7C15);

    hash ^= (hash >> 29) + key->shapes * UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= (hash >> 32) + key->overload * UINT64_C(0x94D049BB133111EB);
    return (size_t)(hash >> 20) + key->async;
}

static bool is_key(const average *a, const average *b)
{
    return a->id == b->id && a->shapes == b->shapes &&
           a->overload == b->overload && a->async == b->async;
}

static bool grow(averages *a)
{
    uint32_t capacity = a->capacity ? a->capacity * 2 : 256;
    average *of = realloc(a->of, capacity * sizeof *of);
    uint32_t *slots;

    if (of == NULL)
        return false;
    a->of = of;
    slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    free(a->slots);
    a->slots = slots;
    a->capacity = capacity;
    a->mask = (size_t)capacity * 2 - 1;
    for (uint32_t i = 0; i < a->count; i++) {
        size_t slot = hash_key(&a->of[i]) & a->mask;
        while (slots[slot])
            slot = (slot + 1) & a->mask;
        slots[slot] = i + 1;
    }
    return true;
}

static average *find(averages *a, const average *key)
{
    size_t slot;

    if (a->count == a->capacity && !grow(a))
        return NULL;
    for (slot = hash_key(key) & a->mask; a->slots[slot];
         slot = (slot + 1) & a->mask)
        if (is_key(&a->of[a->slots[slot] - 1], key))
            return &a->of[a->slots[slot] - 1];
    a->of[a->count] = *key;
    a->slots[slot] = ++a->count;
    return &a->of[a->count - 1];
}

static int64_t flops_of(const vst_span *span)
{
    vpy_part part = vpy_member(span->args, span->args_len, "Flops");
    int64_t value = 0;

    for (size_t i = 0; i < part.length; i++) {
        if (part.at[i] < '0' || part.at[i] > '9' || value > INT64_MAX / 16)
            return value;
        value = value * 10 + (part.at[i] - '0');
    }
    return value;
}

/* Only annotations and operators have such members. */
static bool read_args(averages *a, const vst_span *span, average *key)
{
    key->flops = flops_of(span);
    if (a->wish.shapes &&
        !vpy_texts_number(&a->texts,
                          vpy_member(span->args, span->args_len, "Input Dims"),
                          &key->shapes))
        return false;
    return !a->wish.overloads ||
           vpy_texts_number(
               &a->texts,
               vpy_member(span->args, span->args_len, "Overload name"),
               &key->overload);
}

/* Takes the last span of a row out again: the span that encloses it counts for
 * both. Its own time stays, as a part of the other's. */
static void lift(average *sum)
{
    sum->count--;
    sum->total_ns -= sum->last_ns;
    sum->compensated_ns -= sum->last_compensated_ns;
    sum->total_bytes -= sum->last_bytes;
    sum->flops -= sum->last_flops;
}

static vst_status add_span(void *ctx, const vst_span *span)
{
    averages *a = ctx;
    vst_definition_kind kind =
        span->id <= a->max ? (vst_definition_kind)a->kinds[span->id] : 0;
    bool call = vpy_is_call(kind), shown = a->wish.calls || !call;
    average key = {.id = span->id, .first_ns = INT64_MAX};
    bool is_known = span->compensated_ns != VST_RUNNING_UNKNOWN;
    average *sum;
    int64_t self_ns, flops;

    if (vpy_deadline_is_over(&a->wish.deadline))
        return VST_E_CANCELLED;
    if (!vst__own_times_end(&a->pending, span, shown, &self_ns))
        return VST_E_NOMEM;
    if (!shown)
        return VST_OK;
    key.async = (span->flags & VST_SPAN_ASYNC) != 0;
    if (span->args_len && !call && !read_args(a, span, &key))
        return VST_E_NOMEM;
    flops = key.flops;
    key.flops = 0;
    if (kind == VST_DEF_OPERATOR && a->pending.children == 1 &&
        a->pending.child && a->of[a->pending.child - 1].id == span->id)
        lift(&a->of[a->pending.child - 1]);
    sum = find(a, &key);
    if (sum == NULL)
        return VST_E_NOMEM;
    vst__own_times_note(&a->pending, span, (uint32_t)(sum - a->of) + 1);
    sum->last_ns = span->end_ns - span->start_ns;
    sum->last_compensated_ns = is_known ? span->compensated_ns : 0;
    sum->last_bytes = vpy_total_bytes(span, a->wish.framework);
    sum->last_flops = flops;
    sum->count += !(span->flags & VST_SPAN_RESUMED);
    sum->self_ns += key.async ? 0 : self_ns;
    sum->total_ns += span->end_ns - span->start_ns;
    sum->compensated_ns += sum->last_compensated_ns;
    sum->uncompensated += !is_known;
    sum->self_bytes += vpy_self_bytes(span, a->wish.framework);
    sum->total_bytes += vpy_total_bytes(span, a->wish.framework);
    sum->flops += flops;
    if (span->start_ns < sum->first_ns) {
        sum->first_ns = span->start_ns;
        sum->serial = span->serial;
    }
    return VST_OK;
}

static vst_status leave(void *ctx, uint32_t depth)
{
    vst__own_times_leave(&((averages *)ctx)->pending, depth);
    return VST_OK;
}

/* Allocations of a framework outside of all spans get a row without an id. */
static vst_status add_loose(void *ctx, const vst_loose_bytes *loose)
{
    averages *a = ctx;
    average key = {.first_ns = INT64_MAX};
    average *sum;

    if (!a->wish.framework)
        return VST_OK;
    sum = find(a, &key);
    if (sum == NULL)
        return VST_E_NOMEM;
    sum->count++;
    sum->self_bytes += loose->bytes;
    sum->total_bytes += loose->bytes;
    if (loose->time_ns < sum->first_ns)
        sum->first_ns = loose->time_ns;
    return VST_OK;
}

static int by_first(const void *a, const void *b)
{
    const average *x = a, *y = b;

    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* None where it is not known of all. */
static PyObject *compensated_of(const average *sum)
{
    if (sum->uncompensated != 0)
        Py_RETURN_NONE;
    return PyLong_FromLongLong((long long)sum->compensated_ns);
}

static PyObject *list_of(averages *a)
{
    PyObject *texts = vpy_texts_list(&a->texts), *list = NULL;

    if (texts != NULL)
        list = PyList_New(0);
    if (a->count)
        qsort(a->of, a->count, sizeof *a->of, by_first);
    for (uint32_t i = 0; list != NULL && i < a->count; i++) {
        const average *sum = &a->of[i];
        PyObject *none = Py_None;
        PyObject *shapes, *overload, *entry;
        if (sum->count == 0 && sum->total_ns == 0)
            continue;
        shapes = sum->shapes ? PyList_GET_ITEM(texts, sum->shapes - 1) : none;
        overload =
            sum->overload ? PyList_GET_ITEM(texts, sum->overload - 1) : none;
        entry = Py_BuildValue(
            "(IKKLLLLLOOON)", (unsigned)sum->id,
            (unsigned long long)sum->serial, (unsigned long long)sum->count,
            (long long)sum->self_ns, (long long)sum->total_ns,
            (long long)sum->self_bytes, (long long)sum->total_bytes,
            (long long)sum->flops, shapes, overload,
            sum->async ? Py_True : Py_False, compensated_of(sum));
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    Py_XDECREF(texts);
    return list;
}

static bool note_kinds(vpy_trace *self, averages *a)
{
    a->max = vst_trace_definition_max(self->handle);
    a->kinds = calloc((size_t)a->max + 1, 1);
    for (vst_id id = 1; a->kinds != NULL && id <= a->max; id++) {
        const vst_definition *d = vst_trace_definition(self->handle, id);
        a->kinds[id] = d != NULL ? (unsigned char)d->kind : 0;
    }
    return a->kinds != NULL;
}

PyObject *vpy_trace_averages(PyObject *object, PyObject *args, PyObject *kw)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *list = NULL;
    averages a = {.count = 0};
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    vst_sink sink;

    if (!vpy_reading_parse(&a.wish, self, args, kw, "|$pippppOpp:averages"))
        return NULL;
    if (!note_kinds(self, &a))
        return PyErr_NoMemory();
    sink = (vst_sink){.ctx = &a,
                      .no_imports = true,
                      .span = add_span,
                      .leave = leave,
                      .loose = add_loose};
    status = vpy_trace_replay(self, vpy_reading_window(&a.wish), NULL, &sink,
                              &error);
    if (status == VST_OK || a.wish.deadline.passed)
        list = list_of(&a);
    else
        vpy_raise(status, &error, self->path);
    free(a.of);
    free(a.slots);
    free(a.kinds);
    free(a.pending.levels);
    vpy_texts_free(&a.texts);
    return list;
}
