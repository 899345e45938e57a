/* Trace.exceptions(): where exceptions were raised and caught, and how often.
 * Read without the GIL. */
#include "read/trace.h"

#include <stdlib.h>

/* How often one was raised in this thread and place, and became of it. */
typedef struct entry {
    vst_id id, raised_in, caught_in;
    uint32_t thread, end;
    uint64_t count; /* 0: the slot is empty */
} entry;

typedef struct exceptions {
    entry *slots;
    size_t used, size; /* size: 0, or a power of two */
} exceptions;

static size_t hash_of(const entry *e)
{
    uint64_t hash = (uint64_t)e->id << 32 | e->caught_in;

    hash ^= (uint64_t)e->raised_in << 20 ^ (uint64_t)e->thread << 8 ^ e->end;
    return (size_t)(hash * 0x9e3779b97f4a7c15u >> 20);
}

static bool is_same(const entry *a, const entry *b)
{
    return a->id == b->id && a->raised_in == b->raised_in &&
           a->caught_in == b->caught_in && a->thread == b->thread &&
           a->end == b->end;
}

static entry *find(const exceptions *self, const entry *wanted)
{
    size_t at = hash_of(wanted) & (self->size - 1);

    while (self->slots[at].count != 0 && !is_same(&self->slots[at], wanted))
        at = (at + 1) & (self->size - 1);
    return &self->slots[at];
}

static bool has_room(exceptions *self)
{
    exceptions larger = {.size = self->size != 0 ? self->size * 2 : 256};

    if (self->used * 2 < self->size)
        return true;
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < self->size; i++)
        if (self->slots[i].count != 0)
            *find(&larger, &self->slots[i]) = self->slots[i];
    larger.used = self->used;
    free(self->slots);
    *self = larger;
    return true;
}

static vst_status add(void *ctx, const vst_instant *mark)
{
    exceptions *self = ctx;
    entry wanted = {.id = mark->id,
                    .raised_in = mark->raised_in,
                    .caught_in = mark->caught_in,
                    .thread = mark->thread,
                    .end = mark->end};
    entry *found;

    if (mark->end == VST_NO_EXCEPTION)
        return VST_OK;
    if (!has_room(self))
        return VST_E_NOMEM;
    found = find(self, &wanted);
    if (found->count == 0) {
        *found = wanted;
        self->used++;
    }
    found->count++;
    return VST_OK;
}

static PyObject *list_of(const exceptions *self)
{
    static const char *const ends[] = {"", "caught", "not caught", "unknown"};
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < self->size; i++) {
        const entry *e = &self->slots[i];
        PyObject *row;
        if (e->count == 0)
            continue;
        row = Py_BuildValue("(IIIIsK)", (unsigned)e->thread, (unsigned)e->id,
                            (unsigned)e->raised_in, (unsigned)e->caught_in,
                            ends[e->end], (unsigned long long)e->count);
        if (!vpy_append(list, row))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *vpy_trace_exceptions(PyObject *object, PyObject *unused)
{
    vpy_trace *self = (vpy_trace *)object;
    exceptions found = {.slots = NULL};
    const vst_sink sink = {.ctx = &found, .no_args = true, .instant = add};
    vst_error error = {VST_OK, 0, 0};
    PyObject *result;
    vst_status status;

    (void)unused;
    if (!vpy_trace_is_usable(self))
        return NULL;
    status = vpy_trace_replay(self, VST_WINDOW_ALL, NULL, &sink, &error);
    result = status == VST_OK ? list_of(&found)
                              : vpy_raise(status, &error, self->path);
    free(found.slots);
    return result;
}
