/* Operators on a timeline: arrows ("fwdbwd") from operators to those that
 * compute their gradients, between exactly the start times of the two spans.
 *
 * Both operators have one sequence number, which counts on each thread of
 * forward operators. An operator that calls others has the number of the inner
 * one; the arrow belongs to the last to begin. Both ends are noted while a
 * process is replayed, and written when it is done. If the recording replaces
 * torch.profiler, arrows are numbered like torch's, in the order in which
 * gradients were computed; such a recording may also want no arrows. One thread
 * at a time. */
#include <stdlib.h>

#include <vestige/operator.h>

#include "base/grow.h"
#include "base/map64.h"
#include "export/timeline/timeline.h"

/* Further pairs are ignored; this many take 400 MB. */
#define GRADIENTS_MAX ((size_t)1 << 23)

/* A forward operator and the backward operator with its sequence number. */
typedef struct gradient {
    int64_t forward_ns, backward_ns;
    uint32_t forward_tid, backward_tid; /* in the document; 0: not seen yet */
} gradient;

struct vst__timeline_gradients {
    gradient *items;
    size_t count, capacity;
    vst__map64 of; /* (thread, sequence number) -> 1 + index */
};

static uint64_t operators_key_of(uint32_t thread, int64_t sequence)
{
    return (uint64_t)thread << 40 ^ (uint64_t)sequence;
}

/* Returns NULL if memory ran out. */
static gradient *find_gradient(vst__timeline *timeline, uint64_t key)
{
    struct vst__timeline_gradients *all = timeline->gradients;
    uint64_t *number = vst__map64_put(&all->of, key);

    if (number == NULL)
        return NULL;
    if (*number != 0)
        return &all->items[*number - 1];
    if (!VST_RESERVE(all->items, all->count + 1, all->capacity))
        return NULL;
    *number = ++all->count;
    all->items[*number - 1] = (gradient){.forward_tid = 0};
    return &all->items[*number - 1];
}

vst_status vst__timeline_note_operator(vst__timeline *timeline,
                                       const vst_span *span, uint32_t tid)
{
    const vst_operator *op = span->op;
    bool backward = op->scope == VST_SCOPE_BACKWARD && op->forward_thread != 0;
    gradient *found;

    if (op->sequence < 0 || op->scope > VST_SCOPE_BACKWARD ||
        (!backward && op->forward_thread != 0) ||
        (timeline->gradients != NULL &&
         timeline->gradients->count >= GRADIENTS_MAX))
        return VST_OK;
    if (timeline->gradients == NULL)
        timeline->gradients = calloc(1, sizeof *timeline->gradients);
    if (timeline->gradients == NULL)
        return VST_E_NOMEM;
    found = find_gradient(
        timeline, operators_key_of(backward ? op->forward_thread : op->thread,
                                   op->sequence));
    if (found == NULL)
        return VST_E_NOMEM;
    if (!backward &&
        (found->forward_tid == 0 || span->start_ns > found->forward_ns)) {
        found->forward_ns = span->start_ns;
        found->forward_tid = tid;
    }
    if (backward &&
        (found->backward_tid == 0 || span->start_ns < found->backward_ns)) {
        found->backward_ns = span->start_ns;
        found->backward_tid = tid;
    }
    return VST_OK;
}

static int by_gradient(const void *a, const void *b)
{
    const gradient *x = a, *y = b;

    if (x->backward_ns != y->backward_ns)
        return x->backward_ns < y->backward_ns ? -1 : 1;
    return x->forward_ns < y->forward_ns ? -1 : x->forward_ns > y->forward_ns;
}

static vst_status operators_finish(vst__timeline *timeline)
{
    static const char name[] = "fwdbwd";
    const vst_trace *trace = timeline->trace;
    const struct vst__timeline_gradients *all = timeline->gradients;
    const vst__drawn_process *process = timeline->process->drawn;

    if (all == NULL || vst_trace_metadata(trace, VST_DRAWING_INTERNAL
                                          "no_gradient_arrows") != NULL)
        return VST_OK;
    if (vst_trace_metadata(trace, VST_DRAWING_INTERNAL "profiler") != NULL)
        qsort(all->items, all->count, sizeof *all->items, by_gradient);
    for (size_t i = 0; i < all->count; i++) {
        const gradient *one = &all->items[i];

        if (one->forward_tid == 0 || one->backward_tid == 0 ||
            one->forward_ns > one->backward_ns)
            continue;
        timeline->drawing->ops->arrow(
            timeline->drawing,
            &(vst__arrow){
                .category = VST_CATEGORY_GRADIENT,
                .name = name,
                .id = ++timeline->last_arrow,
                .from = {process, one->forward_tid, one->forward_ns},
                .to = {process, one->backward_tid, one->backward_ns}});
    }
    return VST_OK;
}

static void operators_forget(vst__timeline *timeline)
{
    if (timeline->gradients == NULL)
        return;
    free(timeline->gradients->items);
    vst__map64_free(&timeline->gradients->of);
    free(timeline->gradients);
    timeline->gradients = NULL;
}

const vst__timeline_part vst__timeline_operators = {NULL, operators_finish,
                                                    operators_forget};
