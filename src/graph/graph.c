/* Nodes of the execution trace: which are open, who is whose parent, and which
 * id comes next. Ids are as torch's observer gives them: 1 is the process, then
 * one counter for the roots of threads, nodes, tensors and storages, in the
 * order in which they appear.
 *
 * A node begins with its inputs, and ends with its outputs or where its span
 * ends. Its parent is the innermost node open on its thread; the innermost node
 * of the forward thread is its forward parent. A node without an end is
 * delivered with what is known of it; a node without a beginning is not
 * delivered. One thread at a time. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum {
    /* A node that is not the last one is searched this far down the list. */
    LOOK_MAX = 1024,
    TEXT_KEPT = 64 * 1024
};

/* Limit for the values of one node; the others are cut. */
#define BYTES_MAX ((size_t)16 << 20)

/* ---- ids ----------------------------------------------------------------- */

static vst_status graph_identify(vst__graph *graph, uint64_t key, uint64_t *id)
{
    uint64_t *known = vst__map64_put(&graph->identities, key);

    if (known == NULL)
        return VST_E_NOMEM;
    if (*known == 0)
        *known = ++graph->last_id;
    *id = *known;
    return VST_OK;
}

/* Gives ids to all tensors and storages. A bit that no address has
 * distinguishes the two. */
static vst_status identify_all(vst__graph *graph, vst__graph_values *values)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < values->count && status == VST_OK; i++) {
        vst__graph_value *value = &values->items[i];
        vst__graph_tensor *tensor = &value->tensor;

        if (value->tag == VST_VALUE_TENSOR_UNDEFINED) {
            status = graph_identify(graph, UINT64_MAX, &tensor->id);
            continue;
        }
        if (value->tag != VST_VALUE_TENSOR &&
            value->tag != VST_VALUE_TENSOR_NESTED)
            continue;
        status = graph_identify(graph, tensor->identity << 1 | 1, &tensor->id);
        if (status == VST_OK && tensor->storage << 1 != 0)
            status = graph_identify(graph, tensor->storage << 1,
                                    &tensor->storage_id);
    }
    return status;
}

static vst_status read_values(vst__graph *graph, const void *bytes,
                              size_t count)
{
    vst_status status = vst__graph_values_read(&graph->values, bytes, count);

    return status == VST_OK ? identify_all(graph, &graph->values) : status;
}

/* ---- nodes --------------------------------------------------------------- */

static vst__graph_node *make_node(vst__graph *graph)
{
    vst__graph_node *node;
    vst__text text;

    if (graph->unused_count == 0)
        return calloc(1, sizeof *node);
    node = graph->unused[--graph->unused_count];
    text = node->text;
    text.count = 0;
    memset(node, 0, sizeof *node);
    node->text = text;
    return node;
}

static void free_node(vst__graph_node *node)
{
    if (node != NULL)
        free(node->text.bytes);
    free(node);
}

/* Keeps the node and its memory for reuse. */
static void drop_node(vst__graph *graph, vst__graph_node *node)
{
    if (node->text.capacity > TEXT_KEPT ||
        !VST_RESERVE(graph->unused, graph->unused_count + 1,
                     graph->unused_capacity))
        free_node(node);
    else
        graph->unused[graph->unused_count++] = node;
}

static vst_status end_node(vst__graph *graph, vst__graph_node *node,
                           const vst__graph_values *outputs)
{
    static const vst__graph_values none = {
        .backend = {"", 0}, .file = {"", 0}, .range = {"", 0}};
    vst_status status = VST_OK;

    if (!node->has_inputs)
        status = graph->sink.begin(graph->sink.ctx, node, &none);
    if (status == VST_OK)
        status = graph->sink.end(graph->sink.ctx, node, outputs);
    drop_node(graph, node);
    return status;
}

/* ---- threads ------------------------------------------------------------- */

/* Returns the id of the lane's innermost open node. If none is open, returns
 * the innermost node of the thread for which this lane works (gloo's threads
 * work for the thread that asked them), else the thread's root. Nodes of such a
 * lane may outlast the other thread's node, and are never its parents. */
static uint64_t graph_innermost(const vst__graph_thread *thread,
                                const vst__graph_lane *lane)
{
    uint64_t outer = 0;
    size_t count = thread->open_count;

    for (size_t i = count; i-- != 0 && count - i <= LOOK_MAX;) {
        const vst__graph_node *node = thread->open[i];

        if (node->lane == lane)
            return node->id;
        if (outer == 0 && node->system_tid == thread->home)
            outer = node->id;
    }
    if (lane != NULL && lane->system_tid == thread->home)
        outer = 0;
    return outer != 0 ? outer : thread->root;
}

static void graph_take_out(vst__graph_thread *thread, size_t index)
{
    memmove(thread->open + index, thread->open + index + 1,
            (thread->open_count - index - 1) * sizeof(vst__graph_node *));
    thread->open_count--;
}

/* ---- records of a lane --------------------------------------------------- */

static vst_status graph_begin_node(vst__graph_lane *lane, const vst_node *seen)
{
    vst__graph *graph = lane->graph;
    vst_status status = vst__graph_choose_thread(lane, seen);
    const vst__graph_thread *forward = NULL;
    vst__graph_thread *thread = lane->thread;
    vst__graph_node *node;

    if (status != VST_OK)
        return status;
    if (!VST_RESERVE(thread->open, thread->open_count + 1,
                     thread->open_capacity) ||
        (node = make_node(graph)) == NULL)
        return VST_E_NOMEM;
    node->kind = VST_GRAPH_NODE;
    node->id = ++graph->last_id;
    if (thread->home == 0 && seen->op != NULL &&
        seen->op->scope != VST_SCOPE_USER)
        thread->home = lane->system_tid;
    node->parent = graph_innermost(thread, lane);
    node->record = vst_node_record(seen->payload[0]);
    node->observer = vst_node_observer(seen->payload[0]);
    node->thread = thread->number;
    node->sequence = -1;
    if (seen->op != NULL) {
        node->sequence = seen->op->sequence;
        node->scope = seen->op->scope;
        node->forward_thread = seen->op->forward_thread;
        if (node->forward_thread != 0)
            forward = vst__graph_find_thread(graph, node->forward_thread);
        if (forward != NULL)
            node->forward_parent =
                graph_innermost(forward, forward == thread ? lane : NULL);
    }
    node->trace = graph->trace;
    node->definition = seen->id;
    node->serial = seen->serial;
    node->lane = lane;
    node->system_tid = lane->system_tid;
    thread->open[thread->open_count++] = node;
    graph->nodes++;
    return VST_OK;
}

static vst_status graph_deliver_inputs(vst__graph *graph, vst__graph_node *node,
                                       const void *bytes, size_t count)
{
    vst_status status = read_values(graph, bytes, count);

    node->has_inputs = true;
    node->schema = graph->values.schema;
    return status == VST_OK
               ? graph->sink.begin(graph->sink.ctx, node, &graph->values)
               : status;
}

static vst_status graph_deliver_outputs(vst__graph *graph,
                                        vst__graph_node *node,
                                        const void *bytes, size_t count)
{
    vst_status status = read_values(graph, bytes, count);

    if (status == VST_OK)
        return end_node(graph, node, &graph->values);
    drop_node(graph, node);
    return status;
}

/* Returns the index of the node with this number among the last of a list, or
 * `count`. */
static size_t find_record(vst__graph_node *const *nodes, size_t count,
                          uint64_t record)
{
    for (size_t i = count; i-- != 0 && count - i <= LOOK_MAX;)
        if (nodes[i]->record == record)
            return i;
    return count;
}

/* Reads the bytes of a node's values, as far as the trace has them. */
static vst_status graph_read_values(vst__graph_lane *lane, const void *bytes,
                                    size_t count, uint64_t record, bool outputs)
{
    vst__graph *graph = lane->graph;
    vst__graph_thread *thread = lane->thread;
    size_t index = thread != NULL
                       ? find_record(thread->open, thread->open_count, record)
                       : 0;
    vst__graph_node *node;

    if (thread != NULL && index != thread->open_count) {
        node = thread->open[index];
        if (!outputs)
            return node->has_inputs
                       ? VST_OK
                       : graph_deliver_inputs(graph, node, bytes, count);
        graph_take_out(thread, index);
        return graph_deliver_outputs(graph, node, bytes, count);
    }
    index = find_record(graph->left, graph->left_count, record);
    if (!outputs || index == graph->left_count)
        return VST_OK;
    node = graph->left[index];
    memmove(graph->left + index, graph->left + index + 1,
            (graph->left_count - index - 1) * sizeof(vst__graph_node *));
    graph->left_count--;
    return graph_deliver_outputs(graph, node, bytes, count);
}

/* Uses values that were kept for the next escape, which never came. */
static vst_status graph_flush(vst__graph_lane *lane)
{
    uint64_t record = lane->record;

    lane->record = 0;
    return record != 0 ? graph_read_values(lane, lane->bytes, lane->count,
                                           record, lane->outputs)
                       : VST_OK;
}

/* Keeps bytes that continue in the next escape. */
static vst_status graph_keep(vst__graph_lane *lane, const void *bytes,
                             size_t count, uint64_t record, bool outputs)
{
    if (lane->record == 0)
        lane->count = 0;
    if (count > BYTES_MAX - lane->count)
        count = BYTES_MAX - lane->count;
    if (!VST_RESERVE(lane->bytes, lane->count + count + 1, lane->capacity))
        return VST_E_NOMEM;
    memcpy(lane->bytes + lane->count, bytes, count);
    lane->count += count;
    lane->record = record;
    lane->outputs = outputs;
    return VST_OK;
}

static vst_status on_node(void *ctx, const vst_node *seen)
{
    vst__graph_lane *lane = ctx;
    const void *bytes = seen->payload + 1;
    size_t count = (seen->words - 1) * sizeof(uint64_t);
    unsigned flags = vst_node_flags(seen->payload[0]);
    uint64_t record = vst_node_record(seen->payload[0]);
    bool outputs = (flags & VST_NODE_OUTPUTS) != 0;
    bool goes_on = lane->record == record && lane->outputs == outputs;
    vst_status status = VST_OK;

    if (record == 0 ||
        (lane->graph->observer != 0 &&
         lane->graph->observer != vst_node_observer(seen->payload[0])))
        return VST_OK;
    if (!goes_on) {
        status = graph_flush(lane);
        if (status == VST_OK && !outputs)
            status = graph_begin_node(lane, seen);
    }
    if (status != VST_OK)
        return status;
    if (!(flags & VST_NODE_MORE) && !goes_on)
        return graph_read_values(lane, bytes, count, record, outputs);
    status = graph_keep(lane, bytes, count, record, outputs);
    if (status != VST_OK || flags & VST_NODE_MORE)
        return status;
    return graph_flush(lane);
}

static vst_status leave_open(vst__graph *graph, vst__graph_node *node)
{
    if (!VST_RESERVE(graph->left, graph->left_count + 1,
                     graph->left_capacity)) {
        free_node(node);
        return VST_E_NOMEM;
    }
    graph->left[graph->left_count++] = node;
    return VST_OK;
}

/* Serials grow from the outermost to the innermost node. */
static vst_status graph_on_span(void *ctx, const vst_span *span)
{
    vst__graph_lane *lane = ctx;
    vst__graph_thread *thread = lane->thread;
    size_t count = thread != NULL ? thread->open_count : 0;
    vst_status status;

    if (thread == NULL || span->flags & VST_SPAN_SUSPENDED)
        return VST_OK;
    for (size_t i = count; i-- != 0 && count - i <= LOOK_MAX;) {
        vst__graph_node *node = thread->open[i];

        if (node->lane != lane || node->serial > span->serial)
            continue;
        if (node->serial < span->serial)
            break;
        status = graph_flush(lane);
        /* the values that were flushed may have been its outputs */
        if (status != VST_OK || i >= thread->open_count ||
            thread->open[i] != node)
            return status;
        graph_take_out(thread, i);
        return span->flags & VST_SPAN_OPEN_AT_END
                   ? leave_open(lane->graph, node)
                   : end_node(lane->graph, node, NULL);
    }
    return VST_OK;
}

const vst_sink vst__graph_lane_sink = {
    .no_args = true,
    .span = graph_on_span,
    .node = on_node,
};

/* Nodes whose span did not end lie on a stack that was switched away. */
vst_status vst__graph_lane_finish(vst__graph_lane *lane)
{
    vst__graph_thread *thread = lane->thread;
    vst_status status = graph_flush(lane);

    if (thread == NULL)
        return status;
    for (size_t i = thread->open_count; status == VST_OK && i-- != 0;) {
        vst__graph_node *node = thread->open[i];

        if (node->lane != lane)
            continue;
        graph_take_out(thread, i);
        status = leave_open(lane->graph, node);
    }
    return status;
}

void vst__graph_lane_free(vst__graph_lane *lane)
{
    free(lane->bytes);
    memset(lane, 0, sizeof *lane);
}

/* ---- the end ------------------------------------------------------------- */

vst_status vst__graph_finish(vst__graph *graph)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < graph->left_count; i++)
        if (status == VST_OK)
            status = end_node(graph, graph->left[i], NULL);
        else
            free_node(graph->left[i]);
    graph->left_count = 0;
    if (status == VST_OK)
        status = vst__graph_deliver_root(graph, VST_GRAPH_PROCESS,
                                         VST_GRAPH_PROCESS_ID, 0);
    return status;
}

void vst__graph_free(vst__graph *graph)
{
    for (size_t i = 0; i < graph->thread_count; i++) {
        vst__graph_thread *thread = graph->threads[i];

        for (size_t k = 0; k < thread->open_count; k++)
            free_node(thread->open[k]);
        free(thread->open);
        free(thread);
    }
    for (size_t i = 0; i < graph->left_count; i++)
        free_node(graph->left[i]);
    for (size_t i = 0; i < graph->unused_count; i++)
        free_node(graph->unused[i]);
    free(graph->threads);
    free(graph->left);
    free(graph->unused);
    vst__map64_free(&graph->thread_of);
    vst__map64_free(&graph->identities);
    vst__graph_values_free(&graph->values);
}
