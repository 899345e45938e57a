/* Answers questions about nodes for graph.h and <vestige/graph.h>, without
 * writing the nodes. One thread at a time. */
#include "graph/nodes.h"
#include "graph/graph.h"
#include "store/reader.h"

vst_status vst__graph_check(vst_trace *const *traces, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (traces[i]->header.pid != traces[0]->header.pid)
            return VST_E_PROCESSES;
    return VST_OK;
}

/* In a damaged file, times may be further apart than 64 bits can hold. */
int64_t vst__graph_monotonic(vst_trace *trace, vst_ticks ticks)
{
    const vst_clock_sample *start = &trace->header.start;

    return (int64_t)((uint64_t)vst__clockmap_to_ns(&trace->clock, ticks) -
                     (uint64_t)trace->clock.offset_ns -
                     (uint64_t)start->realtime_ns +
                     (uint64_t)start->monotonic_ns);
}

vst_status vst__trace_count_nodes(vst_trace *trace, int window, uint64_t *count,
                                  vst_error *error)
{
    return vst__graph_count(trace, window, false, count, error);
}

/* ---- ids ----------------------------------------------------------------- */

typedef struct listing {
    vst_node_id_fn fn;
    void *ctx;
} listing;

static vst_status nodes_pass(void *ctx, vst__graph_node *node,
                             const vst__graph_values *inputs)
{
    (void)ctx;
    (void)node;
    (void)inputs;
    return VST_OK;
}

static vst_status nodes_on_end(void *ctx, vst__graph_node *node,
                               const vst__graph_values *outputs)
{
    const listing *to = ctx;

    (void)outputs;
    return node->kind == VST_GRAPH_NODE
               ? to->fn(to->ctx, node->record, node->id)
               : VST_OK;
}

vst_status vst__traces_node_ids(vst_trace *const *traces, size_t count,
                                int window, unsigned observer,
                                vst_node_id_fn fn, void *ctx, vst_error *error)
{
    listing to = {fn, ctx};
    vst__graph_sink sink = {
        .ctx = &to, .begin = nodes_pass, .end = nodes_on_end};
    vst_status status = vst__graph_check(traces, count);

    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    return vst__graph_read(traces, count, window, observer, &sink, error);
}
