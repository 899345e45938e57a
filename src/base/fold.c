/* Takes words into a fold; fold_switch.c handles several stacks, fold_emit.c
 * writes a fold out. Every rule here is also a rule of replay's matcher, and a
 * test compares the two. One thread at a time. */
#include "base/fold.h"

#include <string.h>

#include <vestige/wire.h>

#include "base/effects.h"
#include "base/grow.h"
#include "base/heap.h"

enum {
    FIRST_FRAMES =
        62, /* with the frames below and above, the memory takes 256 bytes */
    /* If an exit was searched in more frames than this without success, the
     * fold counts open ids from then on. */
    WALK_MAX = 256
};

/* lies below the outermost frame; matches no id */
#define NO_FRAME (VST_FOLD_DEAD - 1)

/* ---- memory -------------------------------------------------------------- */

void vst__fold_free_stack(vst__fold_stack *stack)
{
    if (stack->frames != NULL)
        vst__free(stack->frames - 1);
    memset(stack, 0, sizeof *stack);
}

void vst__fold_reset(vst__fold *fold)
{
    for (size_t i = 0; i < fold->saved_count; i++)
        vst__fold_free_stack(&fold->saved[i]);
    fold->saved_count = fold->slot_count = 0;
    fold->free_saved = fold->free_slot = 0;
    fold->stack.count = fold->stack.begun = 0;
    fold->stack.number = 0;
    fold->unknown = fold->in_gap = fold->after_gap = false;
    fold->reconciling = fold->indexed = false;
    vst__map64_clear(&fold->open);
    vst__map64_clear(&fold->pairs);
    vst__map64_clear(&fold->stacks);
}

void vst__fold_free(vst__fold *fold)
{
    vst__fold_reset(fold);
    vst__fold_free_stack(&fold->stack);
    vst__map64_free(&fold->open);
    vst__map64_free(&fold->pairs);
    vst__map64_free(&fold->stacks);
    vst__free(fold->slots);
    vst__free(fold->saved);
    memset(fold, 0, sizeof *fold);
}

void vst__fold_run_out(vst__fold *fold)
{
    vst__fold_free(fold);
    fold->unknown = true;
}

bool vst__fold_is_empty(const vst__fold *fold)
{
    return fold->stack.count == 0 && fold->stacks.count == 0 &&
           fold->pairs.count == 0 && !fold->in_gap;
}

/* ---- how often an id is open --------------------------------------------- */

static void count_open(vst__fold *fold, uint32_t id)
{
    uint64_t *times = vst__map64_put(&fold->open, id);

    if (times == NULL)
        fold->indexed = false; /* no memory for the index: search without it */
    else
        ++*times;
}

static void uncount_open(vst__fold *fold, uint32_t id)
{
    uint64_t *times = vst__map64_find(&fold->open, id);

    if (times != NULL && --*times == 0)
        vst__map64_remove(&fold->open, id);
}

static void build_index(vst__fold *fold)
{
    vst__map64_clear(&fold->open);
    fold->indexed = true;
    for (size_t i = 0; i < fold->stack.count && fold->indexed; i++)
        if (!(fold->stack.frames[i] & VST_FOLD_BEGUN))
            count_open(fold, fold->stack.frames[i]);
}

/* ---- the stack ----------------------------------------------------------- */

static bool fold_push(vst__fold *fold, uint32_t frame)
{
    vst__fold_stack *stack = &fold->stack;

    if (stack->count == stack->capacity) {
        size_t capacity =
            stack->capacity != 0 ? stack->capacity * 2 + 2 : FIRST_FRAMES;
        uint32_t *old = stack->frames != NULL ? stack->frames - 1 : NULL;
        uint32_t *frames =
            capacity < SIZE_MAX / 8
                ? vst__realloc(old, (capacity + 2) * sizeof *frames)
                : NULL;
        if (frames == NULL) {
            vst__fold_run_out(fold);
            return false;
        }
        frames[0] = NO_FRAME;
        stack->frames = frames + 1;
        stack->capacity = capacity;
    }
    stack->frames[stack->count++] = frame;
    if (frame & VST_FOLD_BEGUN)
        stack->begun++;
    else if (fold->indexed)
        count_open(fold, frame);
    return true;
}

static void fold_pop(vst__fold *fold)
{
    uint32_t frame = fold->stack.frames[--fold->stack.count];

    if (frame & VST_FOLD_BEGUN)
        fold->stack.begun--;
    else if (fold->indexed)
        uncount_open(fold, frame);
}

/* Removes dead frames from the top. A dead frame further down counts for
 * nothing until it is on top. */
static void pop_dead(vst__fold *fold)
{
    while (fold->stack.count != 0 &&
           fold->stack.frames[fold->stack.count - 1] == VST_FOLD_DEAD)
        fold_pop(fold);
}

/* Removes the frames above the first `count`: calls end, begun spans continue
 * detached from the stack. */
static void fold_cut(vst__fold *fold, size_t count)
{
    while (fold->stack.count > count) {
        uint32_t frame = fold->stack.frames[fold->stack.count - 1];

        if (frame & VST_FOLD_BEGUN && frame != VST_FOLD_DEAD)
            fold->slots[frame & ~VST_FOLD_BEGUN].state = VST_FOLD_DETACHED;
        fold_pop(fold);
    }
}

static void fold_leave(vst__fold *fold, uint32_t id)
{
    vst__fold_stack *stack = &fold->stack;
    size_t index;

    if (fold->indexed && vst__map64_find(&fold->open, id) == NULL)
        return;
    for (index = stack->count; index-- != 0;)
        if (stack->frames[index] == id) {
            fold_cut(fold, index);
            pop_dead(fold);
            return;
        }
    if (stack->count > WALK_MAX && !fold->indexed)
        build_index(fold);
}

/* ---- spans that need not nest -------------------------------------------- */

/* Returns 1 + the index of a new slot, 0 if memory runs out. */
static uint32_t fold_new_slot(vst__fold *fold)
{
    uint32_t number = fold->free_slot;
    vst__fold_slot *slots;

    if (number != 0) {
        fold->free_slot = fold->slots[number - 1].next;
        return number;
    }
    if (fold->slot_count >= VST_FOLD_BEGUN - 2)
        return 0;
    slots = vst__grow_own(fold->slots, &fold->slot_capacity,
                          fold->slot_count + 1, sizeof *slots);
    if (slots == NULL)
        return 0;
    fold->slots = slots;
    return (uint32_t)++fold->slot_count;
}

void vst__fold_free_slot(vst__fold *fold, uint32_t number)
{
    fold->slots[number - 1].state = VST_FOLD_FREE;
    fold->slots[number - 1].next = fold->free_slot;
    fold->free_slot = number;
}

static void fold_begin(vst__fold *fold, uint64_t pair, bool detached)
{
    uint32_t number = fold_new_slot(fold);
    uint64_t *newest = vst__map64_put(&fold->pairs, pair);

    if (number == 0 || newest == NULL) {
        vst__fold_run_out(fold);
        return;
    }
    fold->slots[number - 1] = (vst__fold_slot){
        .pair = pair,
        .index = fold->stack.count,
        .next = (uint32_t)*newest,
        .state = detached ? VST_FOLD_DETACHED : VST_FOLD_ON_STACK,
    };
    *newest = number;
    if (!detached)
        fold_push(fold, VST_FOLD_BEGUN | (number - 1));
}

static void fold_end(vst__fold *fold, uint64_t pair)
{
    uint64_t *newest = vst__map64_find(&fold->pairs, pair);
    uint32_t number;
    vst__fold_slot *slot;

    if (newest == NULL)
        return;
    number = (uint32_t)*newest;
    slot = &fold->slots[number - 1];
    if (slot->next != 0)
        *newest = slot->next;
    else
        vst__map64_remove(&fold->pairs, pair);
    if (slot->state == VST_FOLD_SUSPENDED) {
        /* the slot is freed when its stack comes back */
        slot->state = VST_FOLD_ENDED;
        return;
    }
    if (slot->state == VST_FOLD_ON_STACK) {
        fold->stack.frames[slot->index] = VST_FOLD_DEAD;
        pop_dead(fold);
    }
    vst__fold_free_slot(fold, number);
}

/* ---- STACK --------------------------------------------------------------- */

static void skip_begun(vst__fold *fold)
{
    while (fold->reconciled < fold->stack.count &&
           fold->stack.frames[fold->reconciled] & VST_FOLD_BEGUN)
        fold->reconciled++;
}

static void end_reconcile(vst__fold *fold)
{
    if (!fold->reconciling)
        return;
    fold_cut(fold, fold->reconciled);
    fold->reconciling = fold->after_gap = false;
}

static void fold_reconcile(vst__fold *fold, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)(ids[i] & VST_ID_MAX);

        if (id == 0)
            continue;
        if (fold->matching) {
            skip_begun(fold);
            if (fold->reconciled < fold->stack.count &&
                fold->stack.frames[fold->reconciled] == id) {
                fold->reconciled++;
                continue;
            }
            fold->matching = false;
            fold_cut(fold, fold->reconciled);
        }
        if (!fold_push(fold, id))
            return;
    }
    skip_begun(fold);
    if (!fold->matching)
        fold->reconciled = fold->stack.count;
}

/* ---- words --------------------------------------------------------------- */

/* Handles a BEGIN of a checkpoint, which stands between the calls of one
 * STACK. */
static void begin_in_checkpoint(vst__fold *fold, const uint64_t *payload)
{
    bool whole = fold->reconciling && fold->reconciled == fold->stack.count;

    fold_begin(fold, payload[0], payload[1] & VST_BEGIN_DETACHED);
    if (whole)
        fold->reconciled = fold->stack.count;
}

/* Applies the effect of an escape (effects.h), as far as it changes the open
 * calls. */
static void take_escape(vst__fold *fold, uint32_t type, const uint64_t *payload,
                        uint32_t words)
{
    const vst__escape_rule *rule = vst__escape_rule_of(type);

    if (fold->reconciling && !vst__escape_is_in_list(rule, payload, words))
        end_reconcile(fold);
    if (vst__escape_is_void(rule, words))
        return;
    if (rule->goes_on)
        fold->after_gap = false;
    switch ((vst__effect)rule->effect) {
    case VST_EFFECT_BEGINS:
        if ((payload[0] & VST_ID_MAX) == 0)
            break;
        if (vst__begin_before(payload, words) != 0)
            begin_in_checkpoint(fold, payload);
        else
            fold_begin(fold, payload[0], false);
        break;
    case VST_EFFECT_ENDS:
        fold_end(fold, payload[0]);
        break;
    case VST_EFFECT_LISTS:
        fold->reconciling = fold->matching = true;
        fold->reconciled = 0;
        fold_reconcile(fold, payload, words);
        break;
    case VST_EFFECT_LISTS_MORE:
        if (fold->reconciling)
            fold_reconcile(fold, payload, words);
        break;
    case VST_EFFECT_SWITCHES:
        vst__fold_switch(fold, payload[0]);
        break;
    case VST_EFFECT_PAUSES:
        fold->after_gap |= !fold->in_gap && payload[0] == 0;
        fold->in_gap = payload[0] == 0;
        break;
    case VST_EFFECT_FORGETS:
        vst__fold_reset(fold);
        break;
    case VST_EFFECT_NONE:
    case VST_EFFECT_DESCRIBES:
    case VST_EFFECT_SETTLES:
        break;
    }
}

/* Takes the word at *words, which is not one of the plain cases of
 * vst__fold_words. Returns how many words were taken. */
static size_t take_word(vst__fold *fold, const uint64_t *words, size_t count)
{
    vst_kind kind = vst_word_kind(*words);
    uint32_t id = vst_word_id(*words);

    if (kind == VST_ESCAPE) {
        size_t size = 1 + (size_t)vst_word_escape_words(*words);

        if (size > count)
            return count;
        if (!fold->unknown)
            take_escape(fold, vst_word_escape_type(*words), words + 1,
                        (uint32_t)(size - 1));
        return size;
    }
    if (id == 0 || fold->unknown)
        return 1;
    end_reconcile(fold);
    fold->after_gap = false;
    if (kind == VST_ENTER) {
        fold_push(fold, id);
    } else {
        pop_dead(fold);
        fold_leave(fold, id);
    }
    return 1;
}

/* Nearly all words enter a function, or leave the function entered last. The
 * processor cannot predict which of the two comes, so the loop uses no branch
 * for them. */
void vst__fold_words(vst__fold *fold, const uint64_t *words, size_t count)
{
    const uint64_t *end_of_words = words + count;

    while (words != end_of_words) {
        if (!fold->reconciling && !fold->indexed &&
            fold->stack.frames != NULL) {
            uint32_t *frames = fold->stack.frames;
            size_t at = fold->stack.count, limit = fold->stack.capacity;
            const uint64_t *first = words;

            for (; words != end_of_words && at != limit; words++) {
                uint32_t kind = (uint32_t)*words & 3u;
                uint32_t id = (uint32_t)*words >> 2;
                /* ENTER 0, EXIT and RAISE 1, ESCAPE 2 */
                uint32_t leaves = (kind + 1) >> 1;
                uint32_t other = frames[(ptrdiff_t)at - 1] ^ id;

                if (((other & (0u - (leaves & 1))) | (leaves & 2)) != 0 ||
                    id == 0)
                    break;
                frames[at] = id;
                at += 1 - 2 * (size_t)leaves;
            }
            fold->stack.count = at;
            fold->after_gap &= words == first;
            if (words == end_of_words)
                return;
        }
        words += take_word(fold, words, (size_t)(end_of_words - words));
    }
}
