/* Writes a fold as escapes: first the spans without a stack, then the stacks
 * that were switched away, then the current stack. Example: BEGIN[x,3]
 * SWITCH[7,1] STACK[a,b] SWITCH[0,1] STACK[a] BEGIN[y,1] STACK_MORE[c,d] means
 * that x is detached, that a and b are open on stack 7, and a, y, c, d on stack
 * 0. One thread at a time. */
#include <string.h>

#include <vestige/wire.h>

#include "base/effects.h"
#include "base/fold.h"

typedef struct emitter {
    uint64_t *words; /* NULL if the words are only counted */
    size_t count, room;
} emitter;

/* Returns false if there is no room. */
static bool fold_put(emitter *out, vst_escape type, const uint64_t *payload,
                     uint32_t words)
{
    if (out->room - out->count < 1 + (size_t)words)
        return false;
    if (out->words != NULL) {
        uint64_t *at = out->words + out->count;

        at[0] = vst_word_escape(type, words, 0);
        if (words != 0)
            memcpy(at + 1, payload, words * sizeof *payload);
    }
    out->count += 1 + (size_t)words;
    return true;
}

/* The part of a stack that goes into one STACK or STACK_MORE. */
typedef struct stack_part {
    emitter *out;
    vst_escape type; /* type of the next escape */
    uint64_t *open;  /* the escape's first word; NULL if none is open */
    uint32_t words;  /* words of its payload so far */
} stack_part;

/* Ends the escape: payload words are written as they come, the escape's first
 * word at its end. */
static void end_part(stack_part *part)
{
    if (part->open != NULL)
        *part->open = vst_word_escape(part->type, part->words, 0);
    if (part->words != 0)
        part->type = VST_ESCAPE_STACK_MORE;
    part->words = 0;
    part->open = NULL;
}

static bool fold_put_call(stack_part *part, uint64_t id)
{
    emitter *out = part->out;
    size_t need = part->words == 0 ? 2 : 1;

    if (out->room - out->count < need)
        return false;
    if (out->words != NULL) {
        uint64_t *at = out->words + out->count;

        if (part->words == 0)
            part->open = at;
        at[need - 1] = id;
    }
    out->count += need;
    if (++part->words == VST_ESCAPE_WORDS_MAX)
        end_part(part);
    return true;
}

/* Writes the frames of a stack, with its begun spans at their places, as far as
 * there is room. */
static void put_stack(emitter *out, const vst__fold *fold,
                      const vst__fold_stack *stack)
{
    stack_part part = {.out = out, .type = VST_ESCAPE_STACK};
    bool fits = true;

    for (size_t i = 0; fits && i < stack->count; i++) {
        uint32_t frame = stack->frames[i];
        const vst__fold_slot *slot;
        uint64_t payload[2];

        if (frame == VST_FOLD_DEAD)
            continue;
        if (!(frame & VST_FOLD_BEGUN)) {
            fits = fold_put_call(&part, frame);
            continue;
        }
        slot = &fold->slots[frame & ~VST_FOLD_BEGUN];
        if (slot->state == VST_FOLD_ENDED)
            continue;
        payload[0] = slot->pair;
        payload[1] = VST_BEGIN_OPEN_BEFORE;
        end_part(&part);
        if (part.type == VST_ESCAPE_STACK) {
            fits = fold_put(out, VST_ESCAPE_STACK, NULL, 0);
            part.type = VST_ESCAPE_STACK_MORE;
        }
        fits = fits && fold_put(out, VST_ESCAPE_BEGIN, payload, 2);
    }
    end_part(&part);
}

/* Writes the calls that an unfinished STACK has confirmed so far. */
static void put_confirmed(emitter *out, const vst__fold *fold)
{
    stack_part part = {.out = out, .type = VST_ESCAPE_STACK};
    bool any = false;

    for (size_t i = 0; i < fold->reconciled; i++) {
        uint32_t frame = fold->stack.frames[i];

        if (frame & VST_FOLD_BEGUN)
            continue;
        any = true;
        if (!fold_put_call(&part, frame))
            break;
    }
    end_part(&part);
    if (!any)
        fold_put(out, VST_ESCAPE_STACK, NULL, 0);
}

static void put_switch(emitter *out, uint64_t from, uint64_t to)
{
    const uint64_t payload[2] = {to, 1};

    if (from != to)
        fold_put(out, VST_ESCAPE_SWITCH, payload, 2);
}

/* Writes all stacks but the current one. `number` is then the number of the
 * stack in use. */
static void put_others(emitter *out, const vst__fold *fold, uint64_t *number)
{
    for (size_t i = 0; i < fold->slot_count; i++) {
        const uint64_t payload[2] = {
            fold->slots[i].pair, VST_BEGIN_OPEN_BEFORE | VST_BEGIN_DETACHED};

        if (fold->slots[i].state == VST_FOLD_DETACHED)
            fold_put(out, VST_ESCAPE_BEGIN, payload, 2);
    }
    for (size_t i = 0; i < fold->saved_count; i++) {
        const vst__fold_stack *stack = &fold->saved[i];

        if (stack->count == 0)
            continue;
        put_switch(out, *number, stack->number);
        *number = stack->number;
        put_stack(out, fold, stack);
    }
}

static void fold_put_all(emitter *out, const vst__fold *fold, bool others)
{
    const uint64_t gap_begins = 0;
    uint64_t number = 0;

    /* If something happened after the gap began, the gap comes first. */
    if (fold->in_gap && !fold->after_gap)
        fold_put(out, VST_ESCAPE_GAP, &gap_begins, 1);
    if (others)
        put_others(out, fold, &number);
    put_switch(out, number, fold->stack.number);
    put_stack(out, fold, &fold->stack);
    if (fold->in_gap && fold->after_gap)
        fold_put(out, VST_ESCAPE_GAP, &gap_begins, 1);
    if (fold->reconciling && others) /* otherwise there was no room */
        put_confirmed(out, fold);
}

size_t vst__fold_size(const vst__fold *fold)
{
    emitter out = {.room = SIZE_MAX};

    if (!fold->unknown)
        fold_put_all(&out, fold, true);
    return out.count;
}

size_t vst__fold_emit(const vst__fold *fold, uint64_t *words, size_t room)
{
    emitter out = {.words = words, .room = room};

    if (!fold->unknown)
        fold_put_all(&out, fold, vst__fold_size(fold) <= room);
    return out.count;
}
