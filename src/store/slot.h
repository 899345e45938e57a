/* Slots, their parts, and the lists that the parts are in; for slots.c and
 * slot_choice.c only. */
#ifndef VST_STORE_SLOT_H
#define VST_STORE_SLOT_H

#include "store/slots.h"

typedef enum vst__part_state {
    VST_PART_FIXED, /* holds no records, and never will */
    VST_PART_FREE,
    VST_PART_IN_USE,
    VST_PART_SEALED
} vst__part_state;

/* A part of a slot, kept at the index of its first page-sized piece; the
 * entries of its other pieces are FREE or FIXED. */
typedef struct vst__part {
    union {
        vst_ticks last; /* for a sealed part: when it was sealed */
        uint64_t taken; /* for a part in use: vst__slots.taken at that time */
    };
    uint32_t words;
    uint32_t sequence;
    /* numbers of the neighbours in its list; 0: none */
    uint32_t next, previous;
    uint8_t order; /* 0: length VST_SLOT_PART_LEAST, 1: twice that … */
    uint8_t state;
    bool has_waiting;
    bool is_busy; /* a part in use that is in the list of busy parts */
} vst__part;

struct vst__slot {
    vst__part whole;
    vst__part *parts; /* if the slot is halved: its parts, by their place */
    uint16_t held;    /* how many parts are in use or fixed */
    uint16_t sealed;  /* how many parts are sealed */
    bool is_draining; /* the slot drains: its free parts are in no list */
};

static inline uint32_t vst__part_size(unsigned order)
{
    return VST_SLOT_PART_LEAST << order;
}

/* Returns the smallest order whose length is at least `size`. */
static inline uint8_t vst__part_order(uint64_t size)
{
    uint8_t order = 0;

    while (order + 1 < VST_SLOT_ORDERS && vst__part_size(order) < size)
        order++;
    return order;
}

/* Return the part with a number, and the place of a number in the file. Numbers
 * follow the places, from 1. */
vst__part *vst__part_at(const vst__slots *slots, uint32_t number);
uint64_t vst__part_place(uint32_t number);
/* Returns whether the part's slot is being emptied; meanwhile nothing is put
 * there. */
bool vst__part_is_drained(const vst__slots *slots, uint32_t number);

#endif
