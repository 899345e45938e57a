/* Rows of memory in use over time: from a flow that was classified, or, without
 * a flow, from allocations and frees alone. One thread at a time. */
#include "graph/categories.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

#include "base/grow.h"
#include "base/map64.h"

static vst_status memory_add(vst__memory_rows *rows, int64_t time_ns,
                             vst__memory_action action, int64_t bytes,
                             uint8_t category)
{
    if (!VST_RESERVE(rows->rows, rows->count + 1, rows->capacity))
        return VST_E_NOMEM;
    rows->rows[rows->count++] =
        (vst__memory_row){time_ns, bytes, (uint8_t)action, category};
    return VST_OK;
}

/* Limits a size, because a damaged file may claim any. */
static int64_t memory_size_of(uint64_t bytes)
{
    return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

/* ---- rows of a flow ------------------------------------------------------ */

static vst_status add_key(vst__memory_rows *rows, const vst__flow *flow,
                          const uint8_t *categories, uint32_t number)
{
    const vst__flow_key *key = &flow->keys[number];
    int64_t bytes = memory_size_of(key->bytes);
    uint8_t category = vst__category_of(flow, categories, number, 0);
    vst_status status = VST_OK;

    if (key->found && !key->is_tensor)
        return VST_OK;
    if (key->created_ns != VST_FLOW_NEVER)
        status = memory_add(rows, key->created_ns, VST_ACTION_CREATE, bytes,
                            category);
    else if (key->has_edges || key->noted != 0 ||
             (!key->is_tensor && key->bytes != 0))
        status = memory_add(rows, VST_TIME_BEFORE, VST_ACTION_PREEXISTING,
                            bytes, category);
    else /* unknown, or never used by a node */
        return VST_OK;
    if (status == VST_OK && key->destroyed_ns != VST_FLOW_NEVER)
        status = memory_add(
            rows, key->destroyed_ns, VST_ACTION_DESTROY, -bytes,
            vst__category_of(flow, categories, number, key->versions - 1));
    return status;
}

static vst_status add_version(vst__memory_rows *rows, const vst__flow *flow,
                              const uint8_t *categories,
                              const vst__flow_edge *edge)
{
    int64_t time_ns = flow->nodes[edge->node].start_ns;
    int64_t bytes = memory_size_of(flow->keys[edge->key].bytes);
    vst_status status = memory_add(
        rows, time_ns, VST_ACTION_INCREMENT_VERSION, -bytes,
        vst__category_of(flow, categories, edge->key, edge->version));

    if (status != VST_OK)
        return status;
    return memory_add(
        rows, time_ns, VST_ACTION_INCREMENT_VERSION, bytes,
        vst__category_of(flow, categories, edge->key, edge->version + 1));
}

static vst_status add_flow(vst__memory_rows *rows, vst__flow *flow)
{
    uint8_t *categories;
    vst_status status = vst__flow_link(flow);

    if (status != VST_OK)
        return status;
    categories = vst__flow_classify(flow);
    if (categories == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < flow->key_count && status == VST_OK; i++)
        status = add_key(rows, flow, categories, (uint32_t)i);
    for (size_t i = 0; i < flow->edge_count && status == VST_OK; i++)
        if (vst__edge_writes(&flow->edges[i]) &&
            !vst__edge_creates(&flow->edges[i]))
            status = add_version(rows, flow, categories, &flow->edges[i]);
    free(categories);
    return status;
}

/* ---- rows without a flow ------------------------------------------------- */

typedef struct plain {
    vst__memory_rows *rows;
    vst__map64 live; /* serial of an allocation -> its row + 1 */
    bool framework;  /* only blocks of the framework's allocator count */
} plain;

static vst_status take_plain(void *ctx, const vst_memory_event *event)
{
    plain *self = ctx;
    uint64_t *place;
    vst_status status;

    if (vst_memory_is_framework(event->kind) != self->framework)
        return VST_OK;
    if (event->flags & VST_MEMORY_FREES) {
        place = vst__map64_find(&self->live, event->serial);
        if (place == NULL)
            return VST_OK;
        /* munmap may free a part of it */
        self->rows->rows[*place - 1].category = VST_CATEGORY_TEMPORARY;
        if (memory_size_of(event->size) == self->rows->rows[*place - 1].bytes)
            vst__map64_remove(&self->live, event->serial);
        return memory_add(self->rows, event->time_ns, VST_ACTION_DESTROY,
                          -memory_size_of(event->size), VST_CATEGORY_TEMPORARY);
    }
    place = vst__map64_put(&self->live, event->serial);
    if (place == NULL)
        return VST_E_NOMEM;
    status = memory_add(self->rows, event->time_ns, VST_ACTION_CREATE,
                        memory_size_of(event->size), VST_CATEGORY_UNKNOWN);
    *place = self->rows->count;
    return status;
}

/* ---- sorting rows -------------------------------------------------------- */

static int memory_by_time(const void *a, const void *b)
{
    const vst__memory_row *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->action != y->action)
        return x->action - y->action;
    /* the old version's row comes before the new one's; other orders do not
     * matter */
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

vst_status vst__memory_rows_read(vst__memory_rows *rows, vst_trace *trace,
                                 int window, vst_error *error)
{
    vst__flow flow = {0};
    vst_status status = vst__flow_read(&flow, trace, window, error);
    plain self = {.rows = rows, .framework = flow.has_memory};
    const vst_memory_sink sink = {.ctx = &self, .event = take_plain};

    if (status == VST_OK && flow.has_tensors && flow.has_memory) {
        status = add_flow(rows, &flow);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
        vst__flow_free(&flow);
        if (status == VST_OK && rows->count != 0)
            qsort(rows->rows, rows->count, sizeof *rows->rows, memory_by_time);
        return status;
    }
    vst__flow_free(&flow);
    if (status == VST_OK)
        status = vst_trace_replay_memory(trace, window, &sink, error);
    vst__map64_free(&self.live);
    return status;
}

void vst__memory_rows_free(vst__memory_rows *rows)
{
    free(rows->rows);
    memset(rows, 0, sizeof *rows);
}
