/* A fold: what is open after so many words of one thread, and nothing else of
 * them. A recorder that drops words, or a reader that skips them, folds them
 * first, and then knows what is open where the rest begins.
 *
 * It takes words as replay's matcher takes events, rule by rule: exits that
 * name something further out, stacks that are told, stacks that are switched,
 * spans that need not nest. What it emits is a sequence of escapes (SWITCH,
 * STACK, STACK_MORE, BEGIN, GAP) which bring an empty matcher, or an empty
 * fold, to the same state: the same calls nested in the same way. Arguments and
 * times are not kept.
 *
 * Out of memory, a fold forgets everything and emits nothing until it is reset.
 * That does no harm: readers ignore exits of calls that they do not know.
 *
 * One thread at a time. All zero is an empty fold. */
#ifndef VST_BASE_FOLD_H
#define VST_BASE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map64.h"

/* The calls and begun spans of one stack, outermost first: an id, or
 * VST_FOLD_BEGUN and the number of a slot. */
typedef struct vst__fold_stack {
    uint32_t *frames; /* frames[-1] and frames[capacity] exist too */
    size_t count, capacity;
    size_t begun; /* how many are no calls, dead ones included */
    uint64_t number;
    uint32_t next_free; /* 1 + index, of one that is not in use */
} vst__fold_stack;

typedef struct vst__fold_slot vst__fold_slot; /* of a span that BEGIN opened */

typedef struct vst__fold {
    vst__fold_stack stack; /* the current one */
    bool unknown;          /* memory ran out since the last reset */
    bool in_gap;
    bool after_gap; /* it began, and nothing happened since */

    bool reconciling;  /* between a STACK and the last STACK_MORE */
    bool matching;     /* all ids of it so far were open already */
    size_t reconciled; /* frames that it confirmed */

    /* How often an id is open; kept after an exit matched nothing on a deep
     * stack, so that many such exits do not search the whole stack each. */
    bool indexed;
    vst__map64 open;

    vst__map64 pairs; /* pair -> 1 + the newest slot */
    vst__fold_slot *slots;
    size_t slot_count, slot_capacity;
    uint32_t free_slot; /* 1 + index */

    vst__map64 stacks; /* number -> 1 + index of one switched away */
    vst__fold_stack *saved;
    size_t saved_count, saved_capacity;
    uint32_t free_saved; /* 1 + index */
} vst__fold;

void vst__fold_reset(vst__fold *fold); /* nothing is open; keeps memory */
void vst__fold_free(vst__fold *fold);

/* Takes whole words: none of the escapes is cut. */
void vst__fold_words(vst__fold *fold, const uint64_t *words, size_t count);

bool vst__fold_is_empty(const vst__fold *fold);

/* How many words it emits if there is room for all of them. */
size_t vst__fold_size(const vst__fold *fold);
/* Writes at most `room` words; returns how many. What does not fit is left out:
 * other stacks first, then the innermost calls. All deltas are 0. */
size_t vst__fold_emit(const vst__fold *fold, uint64_t *words, size_t room);

/* ---- between fold.c, fold_switch.c and fold_emit.c ----------------------- */

#define VST_FOLD_BEGUN 0x80000000u
#define VST_FOLD_DEAD 0xffffffffu /* a begun span that ended under others */

typedef enum vst__fold_state {
    VST_FOLD_FREE,
    VST_FOLD_ON_STACK,  /* frames[index] of the current stack */
    VST_FOLD_DETACHED,  /* goes on beside it */
    VST_FOLD_SUSPENDED, /* on a stack that was switched away */
    VST_FOLD_ENDED      /* the same, and it ended there */
} vst__fold_state;

struct vst__fold_slot {
    uint64_t pair;
    size_t index;
    uint32_t next; /* 1 + the next slot of the same pair, or free one */
    vst__fold_state state;
};

void vst__fold_switch(vst__fold *fold, uint64_t stack);
void vst__fold_free_stack(vst__fold_stack *stack);
void vst__fold_free_slot(vst__fold *fold, uint32_t number);
/* Out of memory: nothing is known any more. */
void vst__fold_run_out(vst__fold *fold);

#endif
