/* Folds a thread with several stacks (greenlets): a stack that is switched away
 * is kept whole. One thread at a time. */
#include <string.h>

#include "base/fold.h"
#include "base/grow.h"
#include "base/heap.h"

/* Keeps the current stack, without its dead frames, and leaves the fold with an
 * empty stack. */
static bool fold_save(vst__fold *fold)
{
    vst__fold_stack *stack = &fold->stack, *saved;
    uint32_t number = fold->free_saved;
    size_t kept = 0;
    uint64_t *place;

    for (size_t i = 0; stack->begun != 0 && i < stack->count; i++) {
        uint32_t frame = stack->frames[i];

        if (frame == VST_FOLD_DEAD)
            continue;
        if (frame & VST_FOLD_BEGUN)
            fold->slots[frame & ~VST_FOLD_BEGUN].state = VST_FOLD_SUSPENDED;
        stack->frames[kept++] = frame;
    }
    if (stack->begun != 0) {
        stack->begun -= stack->count - kept;
        stack->count = kept;
    }
    if (stack->count == 0)
        return true;
    place = vst__map64_put(&fold->stacks, stack->number);
    if (number == 0) {
        saved = vst__grow_own(fold->saved, &fold->saved_capacity,
                              fold->saved_count + 1, sizeof *saved);
        if (saved != NULL)
            fold->saved = saved;
        if (saved == NULL || fold->saved_count >= UINT32_MAX - 1)
            return false;
        number = (uint32_t)++fold->saved_count;
    } else {
        fold->free_saved = fold->saved[number - 1].next_free;
    }
    fold->saved[number - 1] = *stack;
    memset(stack, 0, sizeof *stack);
    if (place == NULL)
        return false;
    *place = number;
    return true;
}

/* Resumes the begun spans of a stack that comes back, except those that ended
 * meanwhile. */
static void resume_begun(vst__fold *fold)
{
    vst__fold_stack *stack = &fold->stack;
    size_t kept = 0;

    for (size_t i = 0; i < stack->count; i++) {
        uint32_t frame = stack->frames[i], slot = frame & ~VST_FOLD_BEGUN;

        if (frame & VST_FOLD_BEGUN) {
            if (fold->slots[slot].state == VST_FOLD_ENDED) {
                vst__fold_free_slot(fold, slot + 1);
                stack->begun--;
                continue;
            }
            fold->slots[slot].state = VST_FOLD_ON_STACK;
            fold->slots[slot].index = kept;
        }
        stack->frames[kept++] = frame;
    }
    stack->count = kept;
}

void vst__fold_switch(vst__fold *fold, uint64_t stack)
{
    uint64_t *place;

    if (stack == fold->stack.number)
        return;
    fold->indexed = false;
    if (!fold_save(fold)) {
        vst__fold_run_out(fold);
        return;
    }
    place = vst__map64_find(&fold->stacks, stack);
    if (place != NULL) {
        uint32_t number = (uint32_t)*place;

        vst__fold_free_stack(&fold->stack);
        fold->stack = fold->saved[number - 1];
        memset(&fold->saved[number - 1], 0, sizeof *fold->saved);
        fold->saved[number - 1].next_free = fold->free_saved;
        fold->free_saved = number;
        vst__map64_remove(&fold->stacks, stack);
        if (fold->stack.begun != 0)
            resume_begun(fold);
    }
    fold->stack.number = stack;
}
