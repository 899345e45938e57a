/* Spans that need not nest: BEGIN opens one on the stack like a call. If the
 * call around it is left first, as a coroutine's frame is at an await, the span
 * goes on without a place on the stack, and is delivered as VST_SPAN_ASYNC with
 * its true times. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/effects.h"
#include "base/grow.h"
#include "replay/far_ends.h"
#include "replay/matcher_stack.h"

/* Returns 1 + the index of a new slot, 0 if memory ran out. */
static uint32_t matcher_new_slot(vst_matcher *matcher)
{
    vst__slot *slots;
    uint32_t number = matcher->free_slot;

    if (number != 0) {
        matcher->free_slot = matcher->slots[number - 1].next;
        return number;
    }
    if (matcher->slot_count >= UINT32_MAX - 1)
        return 0;
    slots = vst__grow(matcher->slots, &matcher->slot_capacity,
                      matcher->slot_count + 1, sizeof *slots);
    if (slots == NULL)
        return 0;
    matcher->slots = slots;
    return (uint32_t)++matcher->slot_count;
}

static void matcher_detach(vst_matcher *matcher, size_t index)
{
    vst__frame *frame = &matcher->frames[index];
    vst__slot *slot = &matcher->slots[frame->slot];

    slot->state = VST_SLOT_DETACHED;
    slot->frame = *frame;
    if (frame->flags & VST_FRAME_OPERATOR)
        matcher->newest = frame->slot + 1;
    frame->flags |= VST_FRAME_DEAD;
    frame->args = 0;
}

vst_status vst__matcher_detach(vst_matcher *matcher, size_t index,
                               const vst_sink *sink)
{
    const vst_sink_inside *inside = vst__sink_inside(sink);

    matcher_detach(matcher, index);
    return inside->moved != NULL
               ? inside->moved(sink->ctx, matcher->frames[index].start_ns,
                               matcher->last_ns)
               : VST_OK;
}

vst_status vst__matcher_begin(vst_matcher *matcher, uint64_t pair,
                              uint64_t before)
{
    uint32_t flags = before != 0 ? VST_SPAN_OPEN_AT_START : 0;
    vst_status status = vst__matcher_push(matcher, (vst_id)(pair & VST_ID_MAX),
                                          VST_FRAME_BEGIN | flags);
    uint64_t *newest;
    vst__slot *slot;
    uint32_t number;

    if (status != VST_OK)
        return status;
    number = matcher_new_slot(matcher);
    newest = vst__map64_put(&matcher->pairs, pair);
    if (number == 0 || newest == NULL)
        return VST_E_NOMEM;
    slot = &matcher->slots[number - 1];
    memset(slot, 0, sizeof *slot);
    slot->state = VST_SLOT_ON_STACK;
    slot->index = matcher->count - 1;
    slot->next = (uint32_t)*newest;
    *newest = number;
    matcher->frames[slot->index].slot = number - 1;
    if (before & VST_BEGIN_DETACHED) {
        matcher_detach(matcher, slot->index);
        matcher->count--;
    }
    return VST_OK;
}

vst_status vst__matcher_begin_now(vst_matcher *matcher, uint64_t pair,
                                  const vst_sink *sink)
{
    const vst_far_ends *far_ends = vst__sink_inside(sink)->far_ends;
    vst_status status = vst__matcher_begin(matcher, pair, 0);

    if (status == VST_OK && far_ends != NULL &&
        vst__far_ends_find(far_ends, pair, &matcher->far_end_ns)) {
        matcher->begun_far = true;
        matcher->far_pair = pair;
        if (matcher->far_end_ns < matcher->last_ns)
            matcher->far_end_ns = matcher->last_ns;
    }
    return status;
}

static bool is_operator(const vst__frame *frame)
{
    const uint32_t wanted = VST_FRAME_BEGIN | VST_FRAME_OPERATOR;

    return (frame->flags & (wanted | VST_FRAME_DEAD)) == wanted;
}

static vst_status go_back(vst_matcher *matcher)
{
    uint32_t number = matcher->newest;
    vst__frame before, *frame;
    vst_status status;

    matcher->newest = 0;
    if (number == 0 || number > matcher->slot_count ||
        matcher->slots[number - 1].state != VST_SLOT_DETACHED)
        return VST_OK;
    before = matcher->slots[number - 1].frame;
    if (!is_operator(&before))
        return VST_OK;
    status = vst__matcher_push(matcher, before.id, before.flags);
    if (status != VST_OK)
        return status;
    matcher->serial--; /* the span has a serial already */
    frame = &matcher->frames[matcher->count - 1];
    frame->serial = before.serial;
    frame->args = before.args;
    frame->slot = number - 1;
    matcher->slots[number - 1].state = VST_SLOT_ON_STACK;
    matcher->slots[number - 1].index = matcher->count - 1;
    return VST_OK;
}

vst_status vst__matcher_settle(vst_matcher *matcher, bool ends,
                               const vst_sink *sink)
{
    const vst__frame *top;

    if (!ends)
        return go_back(matcher);
    if (matcher->count == 0)
        return VST_OK;
    top = &matcher->frames[matcher->count - 1];
    if (!is_operator(top))
        return VST_OK;
    /* then the END that follows has nothing left to do */
    matcher->slots[top->slot].state = VST_SLOT_SUSPENDED;
    return vst__matcher_close(matcher, matcher->last_ns, 0, sink);
}

static vst_status deliver_detached(vst_matcher *matcher, vst__slot *slot,
                                   int64_t end_ns, uint32_t flags,
                                   const vst_sink *sink)
{
    vst_span span = {.end_ns = end_ns, .flags = VST_SPAN_ASYNC | flags};

    vst_status status =
        vst__matcher_measure(matcher, &slot->frame, &span, sink);

    if (status != VST_OK)
        return status;
    return vst__matcher_deliver(matcher, &slot->frame, &span, sink);
}

/* Takes the newest slot of a pair out of the table; it stays readable until the
 * next BEGIN. Returns NULL if the pair is not open. */
static vst__slot *take_slot(vst_matcher *matcher, uint64_t pair)
{
    uint64_t *newest = vst__map64_find(&matcher->pairs, pair);
    uint32_t number;
    vst__slot *slot;

    if (newest == NULL)
        return NULL;
    number = (uint32_t)*newest;
    slot = &matcher->slots[number - 1];
    if (slot->next != 0)
        *newest = slot->next;
    else
        vst__map64_remove(&matcher->pairs, pair);
    slot->next = matcher->free_slot;
    matcher->free_slot = number;
    return slot;
}

vst_status vst__matcher_describe_pair(vst_matcher *matcher, uint64_t pair,
                                      const char *bytes, size_t count)
{
    const uint64_t *newest = vst__map64_find(&matcher->pairs, pair);
    vst__slot *slot;

    if (newest == NULL)
        return VST_OK;
    slot = &matcher->slots[*newest - 1];
    if (slot->state == VST_SLOT_ON_STACK)
        return vst__matcher_describe(matcher, &matcher->frames[slot->index],
                                     bytes, count);
    if (slot->state == VST_SLOT_DETACHED)
        return vst__matcher_describe(matcher, &slot->frame, bytes, count);
    return VST_OK; /* the span's pieces were delivered already */
}

/* A span that began before the calls in which it ends is shown as beginning
 * with the outermost of these calls. */
static void begin_inside(const vst_matcher *matcher, vst__frame *span)
{
    for (size_t i = 0; i < matcher->count; i++) {
        const vst__frame *call = &matcher->frames[i];
        if (call->start_ns > span->start_ns &&
            call->start_ns < matcher->last_ns &&
            (call->flags &
             (VST_FRAME_BEGIN | VST_FRAME_OPERATOR | VST_FRAME_DEAD)) == 0) {
            span->start_ns = call->start_ns + 1;
            return;
        }
    }
}

vst_status vst__matcher_end(vst_matcher *matcher, uint64_t pair, bool inside,
                            const vst_sink *sink)
{
    const vst_far_ends *far_ends = vst__sink_inside(sink)->far_ends;
    vst__slot *slot = take_slot(matcher, pair);
    vst__slot_state state = slot != NULL ? slot->state : VST_SLOT_FREE;
    vst_status status = VST_OK;
    int64_t end_ns;

    if (slot != NULL)
        slot->state = VST_SLOT_FREE;
    switch (state) {
    case VST_SLOT_FREE: /* an END on another thread may have come first */
        if (far_ends == NULL || !vst__far_ends_find(far_ends, pair, &end_ns))
            matcher->counts.unmatched_exits++;
        return VST_OK;
    case VST_SLOT_ON_STACK:
        if (slot->index + 1 == matcher->count)
            return vst__matcher_close(matcher, matcher->last_ns, 0, sink);
        status = vst__matcher_detach(matcher, slot->index, sink);
        slot->state = VST_SLOT_FREE;
        break;
    case VST_SLOT_DETACHED:
        break;
    case VST_SLOT_SUSPENDED: /* the span's pieces were delivered already */
        return VST_OK;
    }
    if (status != VST_OK)
        return status;
    if (inside)
        begin_inside(matcher, &slot->frame);
    return deliver_detached(matcher, slot, matcher->last_ns, 0, sink);
}

vst_status vst__matcher_end_far(vst_matcher *matcher, const vst_sink *sink)
{
    vst__slot *slot = take_slot(matcher, matcher->far_pair);
    vst_status status;

    matcher->begun_far = false;
    if (slot == NULL || slot->state != VST_SLOT_ON_STACK)
        return VST_OK;
    status = vst__matcher_detach(matcher, slot->index, sink);
    if (status != VST_OK)
        return status;
    matcher->count--;
    matcher->newest = 0;
    slot->state = VST_SLOT_FREE;
    /* another thread was running by then, so these are unknown */
    slot->frame.ran_ns = slot->frame.waited_ns = VST_RUNNING_UNKNOWN;
    return deliver_detached(matcher, slot, matcher->far_end_ns, 0, sink);
}

static int matcher_by_start(const void *a, const void *b)
{
    const vst__slot *x = a, *y = b;

    if (x->frame.start_ns != y->frame.start_ns)
        return x->frame.start_ns < y->frame.start_ns ? -1 : 1;
    return (x->frame.serial > y->frame.serial) -
           (x->frame.serial < y->frame.serial);
}

vst_status vst__matcher_close_all(vst_matcher *matcher, int64_t end_ns,
                                  uint32_t flags, const vst_sink *sink)
{
    vst_status status = VST_OK;

    while (status == VST_OK && matcher->count != 0)
        status = vst__matcher_close(matcher, end_ns, flags, sink);
    /* Oldest first, whatever their slots: views give open spans new slots and
     * serials, and must put them into the same lanes. */
    if (matcher->slot_count > 1)
        qsort(matcher->slots, matcher->slot_count, sizeof *matcher->slots,
              matcher_by_start);
    for (size_t i = 0; status == VST_OK && i < matcher->slot_count; i++)
        if (matcher->slots[i].state == VST_SLOT_DETACHED)
            status = deliver_detached(matcher, &matcher->slots[i], end_ns,
                                      flags, sink);
    return status;
}
