/* A fold holds the calls that are open after a number of words of one thread,
 * and nothing else about these words. A recorder that drops words, or a reader
 * that skips words, folds them first, and then knows which calls are open where
 * the remaining words begin.
 *
 * A fold follows the rules by which replay's matcher takes events: exits that
 * name a call further out, stacks that are listed, stacks that are switched,
 * spans that need not nest. It emits a sequence of escapes (SWITCH, STACK,
 * STACK_MORE, BEGIN, GAP) that bring an empty matcher, or an empty fold, to the
 * same state: the same calls, nested in the same way. It does not keep
 * arguments and times.
 *
 * If memory runs out, a fold forgets everything and emits nothing until it is
 * reset. Readers lose nothing else by that, because they ignore exits of calls
 * that they do not know. One thread at a time. All zero is an empty fold. */
#ifndef VST_BASE_FOLD_H
#define VST_BASE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map64.h"

/* The calls and begun spans of one stack, outermost first. A frame is an id, or
 * VST_FOLD_BEGUN and the number of a slot. */
typedef struct vst__fold_stack {
    uint32_t *frames; /* frames[-1] and frames[capacity] exist too */
    size_t count, capacity;
    size_t begun; /* how many frames are begun spans, dead ones included */
    uint64_t number;
    uint32_t next_free; /* 1 + the index of the next unused stack */
} vst__fold_stack;

typedef struct vst__fold_slot vst__fold_slot; /* a span that BEGIN opened */

typedef struct vst__fold {
    vst__fold_stack stack; /* the current stack */
    bool unknown;          /* memory ran out since the last reset */
    bool in_gap;
    bool after_gap; /* a gap began, and nothing happened since */

    bool reconciling;  /* we are between a STACK and its last STACK_MORE */
    bool matching;     /* all ids of the list so far were open already */
    size_t reconciled; /* frames that the list has confirmed */

    /* Counts how often each id is open. Used once an exit matched nothing on a
     * deep stack, so that many such exits do not search the whole stack each
     * time. */
    bool indexed;
    vst__map64 open;

    vst__map64 pairs; /* pair -> 1 + the pair's newest slot */
    vst__fold_slot *slots;
    size_t slot_count, slot_capacity;
    uint32_t free_slot; /* 1 + index */

    /* number of a stack that was switched away -> 1 + its index */
    vst__map64 stacks;
    vst__fold_stack *saved;
    size_t saved_count, saved_capacity;
    uint32_t free_saved; /* 1 + index */
} vst__fold;

/* Forgets what is open; keeps the memory. */
void vst__fold_reset(vst__fold *fold);
void vst__fold_free(vst__fold *fold);

/* Takes whole words: no escape may be cut. */
void vst__fold_words(vst__fold *fold, const uint64_t *words, size_t count);

bool vst__fold_is_empty(const vst__fold *fold);

/* Returns how many words vst__fold_emit writes if there is room for all of
 * them. */
size_t vst__fold_size(const vst__fold *fold);
/* Writes at most `room` words, and returns how many. If the room is too
 * small, other stacks are left out first, then the innermost calls. All
 * deltas are 0. */
size_t vst__fold_emit(const vst__fold *fold, uint64_t *words, size_t room);

/* ---- between fold.c, fold_switch.c and fold_emit.c ----------------------- */

#define VST_FOLD_BEGUN 0x80000000u
#define VST_FOLD_DEAD                                                          \
    0xffffffffu /* a begun span that ended below other frames */

typedef enum vst__fold_state {
    VST_FOLD_FREE,
    VST_FOLD_ON_STACK,  /* on the current stack, at frames[index] */
    VST_FOLD_DETACHED,  /* continues without a stack */
    VST_FOLD_SUSPENDED, /* on a stack that was switched away */
    VST_FOLD_ENDED      /* on such a stack, and has ended there */
} vst__fold_state;

struct vst__fold_slot {
    uint64_t pair;
    size_t index;
    /* 1 + the next slot of the same pair, or the next free slot */
    uint32_t next;
    vst__fold_state state;
};

void vst__fold_switch(vst__fold *fold, uint64_t stack);
void vst__fold_free_stack(vst__fold_stack *stack);
void vst__fold_free_slot(vst__fold *fold, uint32_t number);
/* Call when memory ran out: the fold forgets everything. */
void vst__fold_run_out(vst__fold *fold);

#endif
