/* A thread with several stacks (greenlets). A switch closes every open span of
 * one stack and opens the spans of the other again, piece by piece, so that the
 * spans of a thread always nest. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "replay/matcher_stack.h"

/* Returns 1 + the index of an empty saved stack, 0 if memory ran out. */
static uint32_t new_saved(vst_matcher *matcher, size_t frames)
{
    vst__saved *saved;
    vst__frame *room;
    uint32_t number = matcher->free_saved;

    if (number == 0) {
        saved = vst__grow(matcher->saved, &matcher->saved_capacity,
                          matcher->saved_count + 1, sizeof *saved);
        if (saved == NULL || matcher->saved_count >= UINT32_MAX - 1)
            return 0;
        matcher->saved = saved;
        memset(&saved[matcher->saved_count], 0, sizeof *saved);
        number = (uint32_t)++matcher->saved_count;
    } else {
        matcher->free_saved = matcher->saved[number - 1].next_free;
    }
    saved = &matcher->saved[number - 1];
    saved->count = 0;
    saved->next_free = 0;
    if (frames > saved->capacity) {
        /* allocates exactly that many, because there may be a stack for every
         * few records */
        room = realloc(saved->frames, frames * sizeof *room);
        if (room == NULL)
            return 0;
        saved->frames = room;
        saved->capacity = frames;
    }
    return number;
}

/* Keeps the current stack under its number, unless it is empty. */
static vst_status switch_save(vst_matcher *matcher, bool before)
{
    uint64_t *place;
    uint32_t number;
    vst__saved *saved;

    if (matcher->count == 0)
        return VST_OK;
    number = new_saved(matcher, matcher->count);
    place = vst__map64_put(&matcher->stacks, matcher->stack);
    if (number == 0 || place == NULL)
        return VST_E_NOMEM;
    *place = number;
    saved = &matcher->saved[number - 1];
    for (size_t i = 0; i < matcher->count; i++) {
        const vst__frame *frame = &matcher->frames[i];

        if (frame->flags & VST_FRAME_DEAD)
            continue;
        if (frame->flags & VST_FRAME_BEGIN) {
            matcher->slots[frame->slot].state = VST_SLOT_SUSPENDED;
            matcher->slots[frame->slot].frame.serial = frame->serial;
        }
        saved->frames[saved->count] = *frame;
        if (before)
            saved->frames[saved->count].flags |= VST_FRAME_UNSEEN;
        saved->count++;
    }
    return VST_OK;
}

/* If no piece of a call was delivered yet, the reader sees the call as open at
 * the start, not as resumed. */
static vst_status resume_frame(vst_matcher *matcher, const vst__frame *frame)
{
    uint32_t flags = frame->flags & VST_FRAME_UNSEEN ? VST_SPAN_OPEN_AT_START
                                                     : VST_SPAN_RESUMED;
    vst_status status;
    vst__slot *slot;

    flags |= frame->flags & (uint32_t)VST_SPAN_STEP;
    if (!(frame->flags & VST_FRAME_BEGIN)) {
        status = vst__matcher_push(matcher, frame->id, flags);
        if (status == VST_OK) {
            vst__frame *top = &matcher->frames[matcher->count - 1];
            top->import = frame->import;
            top->module = frame->module;
            top->task = frame->task;
        }
        return status;
    }
    slot = &matcher->slots[frame->slot];
    /* the span may have ended meanwhile, and its slot may belong to another
     * span */
    if (slot->state != VST_SLOT_SUSPENDED ||
        slot->frame.serial != frame->serial)
        return VST_OK;
    status = vst__matcher_push(matcher, frame->id, flags | VST_FRAME_BEGIN);
    if (status != VST_OK)
        return status;
    slot->state = VST_SLOT_ON_STACK;
    slot->index = matcher->count - 1;
    matcher->frames[slot->index].slot = frame->slot;
    return VST_OK;
}

vst_status vst__matcher_switch(vst_matcher *matcher, uint64_t stack,
                               bool before, int64_t previous_ns,
                               const vst_sink *sink)
{
    int64_t now_ns = matcher->last_ns;
    uint64_t *place = vst__map64_find(&matcher->stacks, stack);
    uint32_t number = place != NULL ? (uint32_t)*place : 0;
    size_t frames = number != 0 ? matcher->saved[number - 1].count : 0;
    vst_status status;

    if (stack == matcher->stack)
        return VST_OK;
    /* Only believed in a checkpoint, before any span was delivered, because
     * spans that were named as parents must be delivered too. */
    before &= matcher->counts.spans == matcher->spans_before;
    matcher->last_ns = vst__matcher_make_room(now_ns, previous_ns, frames);
    status = before ? VST_OK : vst__matcher_switch_out(matcher, sink);
    if (status == VST_OK)
        status = switch_save(matcher, before);
    if (before && status == VST_OK)
        vst__matcher_forget(matcher);
    while (status == VST_OK && matcher->count != 0)
        status = vst__matcher_close(matcher, matcher->last_ns,
                                    VST_SPAN_SUSPENDED, sink);
    for (size_t i = 0; status == VST_OK && i < frames; i++)
        status = resume_frame(matcher, &matcher->saved[number - 1].frames[i]);
    if (status != VST_OK)
        return status;
    if (number != 0) {
        vst__map64_remove(&matcher->stacks, stack);
        matcher->saved[number - 1].next_free = matcher->free_saved;
        matcher->free_saved = number;
    }
    matcher->stack = stack;
    if (matcher->last_ns < now_ns)
        matcher->last_ns = now_ns;
    return vst__matcher_switch_in(matcher, stack, sink);
}
