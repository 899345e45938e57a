/* What graph.h and <vestige/graph.h> tell of nodes without writing them. One
 * thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "store/reader.h"

static int by_start(const void *a, const void *b)
{
    const vst_file_header *x = &(*(vst_trace *const *)a)->header;
    const vst_file_header *y = &(*(vst_trace *const *)b)->header;

    return (x->start.monotonic_ns > y->start.monotonic_ns) -
           (x->start.monotonic_ns < y->start.monotonic_ns);
}

vst_trace **vst__graph_sort(vst_trace *const *traces, size_t count,
                            vst_status *status)
{
    vst_trace **sorted = NULL;

    *status = VST_OK;
    for (size_t i = 1; i < count; i++)
        if (traces[i]->header.pid != traces[0]->header.pid)
            *status = VST_E_PROCESSES;
    if (*status == VST_OK) {
        sorted = malloc((count + 1) * sizeof(vst_trace *));
        if (sorted == NULL)
            *status = VST_E_NOMEM;
    }
    if (sorted != NULL) {
        memcpy(sorted, traces, count * sizeof(vst_trace *));
        qsort(sorted, count, sizeof(vst_trace *), by_start);
    }
    return sorted;
}

vst_status vst_trace_count_nodes(vst_trace *trace, int window, uint64_t *count,
                                 vst_error *error)
{
    return vst__graph_count(trace, window, false, count, error);
}

/* ---- ids ---------------------------------------------------------------- */

typedef struct listing {
    vst_node_id_fn fn;
    void *ctx;
} listing;

static vst_status pass(void *ctx, vst__graph_node *node,
                       const vst__graph_values *inputs)
{
    (void)ctx;
    (void)node;
    (void)inputs;
    return VST_OK;
}

static vst_status tell(void *ctx, vst__graph_node *node,
                       const vst__graph_values *outputs)
{
    const listing *to = ctx;

    (void)outputs;
    return node->kind == VST_GRAPH_NODE
               ? to->fn(to->ctx, node->record, node->id)
               : VST_OK;
}

vst_status vst_traces_node_ids(vst_trace *const *traces, size_t count,
                               int window, unsigned observer, vst_node_id_fn fn,
                               void *ctx, vst_error *error)
{
    listing to = {fn, ctx};
    vst__graph_sink sink = {.ctx = &to, .begin = pass, .end = tell};
    vst_status status;
    vst_trace **sorted = vst__graph_sort(traces, count, &status);
    vst__graph graph;

    if (sorted == NULL)
        return vst_error_set(error, status, 0, 0);
    vst__graph_open(&graph, &sink, observer);
    for (size_t i = 0; i < count && status == VST_OK; i++)
        status = vst__graph_read(&graph, sorted[i], window, error);
    if (status == VST_OK) {
        status = vst__graph_finish(&graph);
        vst_error_set(error, status, 0, 0);
    }
    vst__graph_close(&graph);
    free(sorted);
    return status;
}
