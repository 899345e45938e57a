/* Trace.contexts(): the spans added up by where they were called from
 * (replay/contexts.h). The replay runs without the GIL. */
#include "read/trace.h"

#include "read/spans.h"
#include "replay/contexts.h"

#include <stdlib.h>
#include <string.h>

typedef struct contexts {
    vst_contexts *tree;
    vpy_reading wish;
    vpy_texts texts;
} contexts;

static vst_status add_span(void *ctx, const vst_span *span)
{
    contexts *c = ctx;
    uint32_t shapes = 0; /* number of a text, 0: none */
    vst_span own = *span;

    if (vpy_deadline_is_over(&c->wish.deadline))
        return VST_E_CANCELLED;
    if (c->wish.shapes && span->args_len &&
        !vpy_texts_number(&c->texts,
                          vpy_member(span->args, span->args_len, "Input Dims"),
                          &shapes))
        return VST_E_NOMEM;
    own.self_bytes = (uint64_t)vpy_self_bytes(span, c->wish.framework);
    own.total_bytes = (uint64_t)vpy_total_bytes(span, c->wish.framework);
    return vst__contexts_add(c->tree, &own, shapes);
}

static vst_status leave(void *ctx, uint32_t depth)
{
    return vst__contexts_leave(((contexts *)ctx)->tree, depth);
}

static PyObject *entry_of(const vst_context_row *row, PyObject *texts)
{
    const vst_context *n = &row->node;
    PyObject *compensated =
        n->compensated_ns == VST_RUNNING_UNKNOWN
            ? Py_NewRef(Py_None)
            : PyLong_FromLongLong((long long)n->compensated_ns);

    return Py_BuildValue("(LIOKLKLLLLN)", (long long)row->parent - 1,
                         (unsigned)n->id,
                         n->key ? PyList_GET_ITEM(texts, n->key - 1) : Py_None,
                         (unsigned long long)n->serial, (long long)n->first_ns,
                         (unsigned long long)n->count, (long long)n->self_ns,
                         (long long)n->total_ns, (long long)n->self_bytes,
                         (long long)n->total_bytes, compensated);
}

/* Parents before their children. */
static PyObject *list_of(contexts *c, const vst_context_row *rows, size_t count)
{
    PyObject *texts = vpy_texts_list(&c->texts);
    PyObject *list = texts != NULL ? PyList_New((Py_ssize_t)count) : NULL;

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *entry = entry_of(&rows[i], texts);

        if (entry != NULL)
            PyList_SET_ITEM(list, (Py_ssize_t)i, entry);
        else
            Py_CLEAR(list);
    }
    Py_XDECREF(texts);
    return list;
}

PyObject *vpy_trace_contexts(PyObject *object, PyObject *args, PyObject *kw)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *list = NULL;
    contexts c = {.tree = NULL};
    const vst_context_row *rows = NULL;
    size_t count = 0;
    vst_error error = {VST_OK, 0, 0};
    vst_status status;
    vst_sink sink;

    if (!vpy_reading_parse(&c.wish, self, args, kw, "|$pippppOpp:contexts"))
        return NULL;
    sink = (vst_sink){
        .ctx = &c,
        .no_imports = true,
        .span = add_span,
        .leave = leave,
    };
    if (vst__contexts_create(&c.tree) != VST_OK)
        return PyErr_NoMemory();
    vpy_trace_begin(self, NULL);
    Py_BEGIN_ALLOW_THREADS
    status = vst_trace_replay(self->handle, vpy_reading_window(&c.wish),
                              self->tracer, &sink, &error);
    if (status == VST_OK || c.wish.deadline.passed)
        status = vst__contexts_finish(c.tree, &rows, &count);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    if (status == VST_OK)
        list = list_of(&c, rows, count);
    else
        vpy_raise(status, &error, self->path);
    vst__contexts_destroy(c.tree);
    vpy_texts_free(&c.texts);
    return list;
}
