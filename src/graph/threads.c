/* Threads of the execution trace, by the framework's numbers, and the nodes
 * that are roots. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "graph/graph.h"

vst_status vst__graph_deliver_root(vst__graph *graph, vst__graph_kind kind,
                                   uint64_t id, uint64_t thread)
{
    vst__graph_node root = {
        .kind = kind,
        .id = id,
        .parent = VST_GRAPH_PROCESS_ID,
        .thread = thread,
        .sequence = -1,
        .scope = VST_SCOPE_USER,
    };
    vst_status status = graph->sink.end(graph->sink.ctx, &root, NULL);

    free(root.text.bytes);
    return status;
}

static vst_status make_thread(vst__graph *graph, uint64_t number,
                              vst__graph_thread **made)
{
    vst__graph_thread *thread = calloc(1, sizeof *thread);
    uint64_t *place = vst__map64_put(&graph->thread_of, number);

    if (thread == NULL || place == NULL ||
        !VST_RESERVE(graph->threads, graph->thread_count + 1,
                     graph->thread_capacity)) {
        free(thread);
        return VST_E_NOMEM;
    }
    graph->threads[graph->thread_count++] = thread;
    *place = graph->thread_count;
    thread->number = number;
    thread->root = ++graph->last_id;
    *made = thread;
    return vst__graph_deliver_root(graph, VST_GRAPH_THREAD, thread->root,
                                   number);
}

vst__graph_thread *vst__graph_find_thread(const vst__graph *graph,
                                          uint64_t number)
{
    const uint64_t *place = vst__map64_find(&graph->thread_of, number);

    return place != NULL && *place != 0 ? graph->threads[*place - 1] : NULL;
}

/* Nodes that are no operators have the thread's number among their values. */
vst_status vst__graph_choose_thread(vst__graph_lane *lane, const vst_node *seen)
{
    uint64_t number = seen->op != NULL ? seen->op->thread : 0;
    vst__graph_values *values = &lane->graph->values;
    vst_status status;

    if (number == 0) {
        status = vst__graph_values_read(
            values, (const unsigned char *)(seen->payload + 1),
            (seen->words - 1) * sizeof(uint64_t));
        if (status != VST_OK)
            return status;
        number = values->thread;
    }
    if (lane->thread != NULL && (number == 0 || lane->thread->number == number))
        return VST_OK;
    if (number == 0)
        number = lane->system_tid;
    lane->thread = vst__graph_find_thread(lane->graph, number);
    if (lane->thread != NULL)
        return VST_OK;
    return make_thread(lane->graph, number, &lane->thread);
}
