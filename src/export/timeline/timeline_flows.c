/* Arrows of a timeline from operators to those that compute their gradients:
 * two ends, "fwdbwd", whose times are exactly those at
 * which the two spans begin.
 *
 * The two have a sequence number in common, which counts on each thread of
 * forward operators. Operators that call others have the number of the one
 * within: the last to begin is meant. Both are noted while a process is
 * replayed, and written when it is done. Those of a recording in
 * torch.profiler's place are numbered as torch numbers them, in the order in
 * which gradients were computed, and it may want none. One thread at a time. */
#include <stdlib.h>

#include <vestige/operator.h>

#include "base/grow.h"
#include "export/timeline/timeline.h"

/* More are not noted: 400 MB. */
#define FLOWS_MAX ((size_t)1 << 23)

static uint64_t key_of(uint32_t thread, int64_t sequence)
{
    return (uint64_t)thread << 40 ^ (uint64_t)sequence;
}

static vst__timeline_flow *find_flow(vst__timeline *timeline, uint64_t key)
{
    uint64_t *number = vst__map64_put(&timeline->flow_of, key);
    vst__timeline_flow *flows;

    if (number == NULL)
        return NULL;
    if (*number != 0)
        return &timeline->flows[*number - 1];
    flows = vst__grow(timeline->flows, &timeline->flow_capacity,
                      timeline->flow_count + 1, sizeof *flows);
    if (flows == NULL)
        return NULL;
    timeline->flows = flows;
    *number = ++timeline->flow_count;
    flows[*number - 1] = (vst__timeline_flow){.forward_tid = 0};
    return &flows[*number - 1];
}

vst_status vst__timeline_note_operator(vst__timeline *timeline,
                                       const vst_span *span, uint32_t tid)
{
    const vst_operator *op = span->op;
    bool backward = op->scope == VST_SCOPE_BACKWARD && op->forward_thread != 0;
    vst__timeline_flow *flow;

    if (op->sequence < 0 || op->scope > VST_SCOPE_BACKWARD ||
        (!backward && op->forward_thread != 0) ||
        timeline->flow_count >= FLOWS_MAX)
        return VST_OK;
    flow =
        find_flow(timeline, key_of(backward ? op->forward_thread : op->thread,
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

static int by_gradient(const void *a, const void *b)
{
    const vst__timeline_flow *x = a, *y = b;

    if (x->backward_ns != y->backward_ns)
        return x->backward_ns < y->backward_ns ? -1 : 1;
    return x->forward_ns < y->forward_ns ? -1 : x->forward_ns > y->forward_ns;
}

void vst__timeline_put_flows(vst__timeline *timeline)
{
    const vst_trace *trace = timeline->trace;
    size_t count = timeline->flow_count;

    if (vst_trace_metadata(trace, VST_TIMELINE_INTERNAL "no_gradient_arrows") !=
        NULL)
        count = 0;
    if (count != 0 &&
        vst_trace_metadata(trace, VST_TIMELINE_INTERNAL "profiler") != NULL)
        qsort(timeline->flows, count, sizeof *timeline->flows, by_gradient);
    for (size_t i = 0; i < count; i++) {
        const vst__timeline_flow *flow = &timeline->flows[i];
        vst__arrow_end end;

        if (flow->forward_tid == 0 || flow->backward_tid == 0 ||
            flow->forward_ns > flow->backward_ns)
            continue;
        timeline->last_flow++;
        end = (vst__arrow_end){
            .process = timeline->process,
            .tid = flow->forward_tid,
            .time_ns = flow->forward_ns,
            .category = "fwdbwd",
            .name = "fwdbwd",
            .id = timeline->last_flow,
        };
        timeline->drawing->end(timeline, &end);
        end.tid = flow->backward_tid;
        end.time_ns = flow->backward_ns;
        end.is_head = true;
        timeline->drawing->end(timeline, &end);
    }
    vst__timeline_put_work(timeline);
    vst__timeline_forget_flows(timeline);
}

void vst__timeline_forget_flows(vst__timeline *timeline)
{
    free(timeline->flows);
    timeline->flows = NULL;
    timeline->flow_count = timeline->flow_capacity = 0;
    vst__map64_free(&timeline->flow_of);
}
