/* Arrows of a Chrome trace from operators to those that compute their
 * gradients: a pair of flow events, "fwdbwd", whose times are exactly those at
 * which the two spans begin.
 *
 * The two have a sequence number in common, which counts on each thread of
 * forward operators. Operators that call others have the number of the one
 * within: the last to begin is meant. Both are noted while a process is
 * replayed, and written when it is done. One thread at a time. */
#include <stdlib.h>

#include <vestige/operator.h>

#include "base/grow.h"
#include "export/timeline/chrome.h"

/* More are not noted: 400 MB. */
#define FLOWS_MAX ((size_t)1 << 23)

static uint64_t key_of(uint32_t thread, int64_t sequence)
{
    return (uint64_t)thread << 40 ^ (uint64_t)sequence;
}

static vst__chrome_flow *find_flow(vst__chrome *chrome, uint64_t key)
{
    uint64_t *number = vst__map64_put(&chrome->flow_of, key);
    vst__chrome_flow *flows;

    if (number == NULL)
        return NULL;
    if (*number != 0)
        return &chrome->flows[*number - 1];
    flows = vst__grow(chrome->flows, &chrome->flow_capacity,
                      chrome->flow_count + 1, sizeof *flows);
    if (flows == NULL)
        return NULL;
    chrome->flows = flows;
    *number = ++chrome->flow_count;
    flows[*number - 1] = (vst__chrome_flow){.forward_tid = 0};
    return &flows[*number - 1];
}

vst_status vst__chrome_note_operator(vst__chrome *chrome, const vst_span *span,
                                     uint32_t tid)
{
    const vst_operator *op = span->op;
    bool backward = op->scope == VST_SCOPE_BACKWARD && op->forward_thread != 0;
    vst__chrome_flow *flow;

    if (op->sequence < 0 || op->scope > VST_SCOPE_BACKWARD ||
        (!backward && op->forward_thread != 0) ||
        chrome->flow_count >= FLOWS_MAX)
        return VST_OK;
    flow = find_flow(chrome, key_of(backward ? op->forward_thread : op->thread,
                                    op->sequence));
    if (flow == NULL)
        return VST_E_NOMEM;
    if (!backward &&
        (flow->forward_tid == 0 || span->start_ns > flow->forward_ns)) {
        flow->forward_ns = span->start_ns;
        flow->forward_tid = tid;
    }
    if (backward &&
        (flow->backward_tid == 0 || span->start_ns < flow->backward_ns)) {
        flow->backward_ns = span->start_ns;
        flow->backward_tid = tid;
    }
    return VST_OK;
}

void vst__chrome_put_flows(vst__chrome *chrome)
{
    for (size_t i = 0; i < chrome->flow_count; i++) {
        const vst__chrome_flow *flow = &chrome->flows[i];

        if (flow->forward_tid == 0 || flow->backward_tid == 0 ||
            flow->forward_ns > flow->backward_ns)
            continue;
        chrome->last_flow++;
        vst__chrome_end end = {
            .process = chrome->process,
            .tid = flow->forward_tid,
            .time_ns = flow->forward_ns,
            .category = "fwdbwd",
            .name = "fwdbwd",
            .id = chrome->last_flow,
        };
        chrome->drawing->end(chrome, &end);
        end.tid = flow->backward_tid;
        end.time_ns = flow->backward_ns;
        end.is_head = true;
        chrome->drawing->end(chrome, &end);
    }
    vst__chrome_forget_flows(chrome);
}

void vst__chrome_forget_flows(vst__chrome *chrome)
{
    free(chrome->flows);
    chrome->flows = NULL;
    chrome->flow_count = chrome->flow_capacity = 0;
    vst__map64_free(&chrome->flow_of);
}
