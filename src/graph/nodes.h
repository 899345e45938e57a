/* Facts about the nodes of an execution trace for readers of a timeline,
 * without writing the execution trace. One thread at a time uses a trace. */
#ifndef VST_GRAPH_NODES_H
#define VST_GRAPH_NODES_H

#include <vestige/trace.h>

/* Counts the nodes in windows of a trace, reading only as much as that needs.
 */
vst_status vst__trace_count_nodes(vst_trace *trace, int window, uint64_t *count,
                                  vst_error *error);

/* Calls fn with the number of every node and the id that it has in the
 * execution trace that vst_traces_export writes of the same traces, window and
 * observer. A status other than VST_OK ends the calls. */
typedef vst_status (*vst_node_id_fn)(void *ctx, uint64_t record, uint64_t id);
vst_status vst__traces_node_ids(vst_trace *const *traces, size_t count,
                                int window, unsigned observer,
                                vst_node_id_fn fn, void *ctx, vst_error *error);

#endif
