/* The slots of a bounded file: which part of the file the next chunk of records
 * gets, and when old chunks must go for it. Slots have places and times; the
 * file itself is known to writer_chunks.c. One thread at a time, like the
 * file's writer.
 *
 * The file grows by slots of one size. A slot is one chunk, or is halved, and
 * halves are halved again, so a thread that records little takes a page instead
 * of a slot: the parts of a slot are powers of two long, and lie at multiples
 * of their length. A part is free, in use, or sealed. Two free halves become
 * one free part again.
 *
 * Invariant: sealed parts are dropped whole, in the order in which they were
 * sealed, and nothing else frees a part. A thread seals its chunk before it
 * takes the next. So the file keeps the newest records of each thread, without
 * a gap. (A part in use is not dropped. Several threads may have written to it
 * one after the other; a thread that only listed its open calls there, and
 * recorded elsewhere later, keeps these longer than needed.)
 *
 * Therefore nobody searches for room among the sealed parts. The oldest part is
 * dropped, then the next, until a free part is as long as the chunk should be,
 * or until the parts that are too short add up to a slot: then the chunk takes
 * the longest of these. So little of the file is free, wherever the parts lie
 * that threads hold. If parts are much too short, some slots drain
 * (slots.c).
 *
 * None of this costs more with more parts, except can_be_had() (slot_choice.c),
 * which is called when a long record meets a file full of threads. */
#ifndef VST_STORE_SLOTS_H
#define VST_STORE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>
#include <vestige/wire.h>

/* the smallest limit of a file's size */
#define VST_MAX_SIZE_LEAST ((uint64_t)1 << 20)
#define VST_SLOT_PART_LEAST 4096u /* smallest part of a slot */
#define VST_SLOT_ORDERS 9         /* sizes of parts: 4 KiB, 8 KiB, ... 1 MiB */

typedef struct vst__slot vst__slot;

typedef struct vst__slots {
    uint32_t size;     /* size of a slot; 0 if the file is not bounded */
    uint64_t max_size; /* limit of the file's size; 0: no limit */
    /* parts sealed longer ago may be dropped; 0: no such limit */
    vst_ticks keep;
    vst__slot *slots; /* slots by their place; not all hold records */
    size_t count, capacity;
    /* Heads of lists of parts. `free` has the first free part of each order:
     * order 0 is VST_SLOT_PART_LEAST long, order 1 twice that, and so on. */
    uint32_t free[VST_SLOT_ORDERS];
    uint64_t free_size;      /* bytes of all free parts */
    uint32_t oldest, newest; /* first and last of the sealed parts */
    /* Parts in use, except those that were taken long ago. */
    uint32_t busy_first, busy_last;
    uint64_t busy;                /* number of busy parts */
    uint64_t in_use, in_use_size; /* number and bytes of all parts in use */
    /* Bytes that were ever taken; if only time bounds the file, the time of the
     * last change. A chunk that is still not full when this has grown by
     * slow_after belongs to a thread that records little. */
    uint64_t taken, slow_after;
    uint32_t draining; /* number of slots that drain */
} vst__slots;

/* The size and conditions of a wanted chunk. */
typedef struct vst__slot_wish {
    uint32_t size;  /* from vst__slots_size_for() */
    uint32_t least; /* the smallest usable size */
    vst_ticks now;
    bool may_grow;     /* the file may grow by a slot */
    bool without_free; /* free parts have no storage behind them */
} vst__slot_wish;

typedef enum vst__slot_step {
    VST_SLOT_TAKE, /* take the room; empty it first if it is not free */
    VST_SLOT_DROP, /* empty and drop the room, then choose again */
    VST_SLOT_GROW, /* add a slot at the end of the file */
    VST_SLOT_NONE  /* the file has no room */
} vst__slot_step;

/* The oldest part, or the beginning of a free part. */
typedef struct vst__slot_room {
    uint64_t place; /* position in the file */
    uint32_t size;
    uint32_t words;   /* words of records in it */
    bool is_free;     /* nothing is in it */
    bool has_waiting; /* the chunk's vst_chunk.has_waiting */
} vst__slot_room;

/* Both bounds may be 0. */
void vst__slots_init(vst__slots *slots, uint64_t max_size, uint64_t keep_ns,
                     double ticks_per_second);
void vst__slots_free(vst__slots *slots);

/* Returns how large a chunk should be if the thread would like `wanted` bytes:
 * the more threads there are, the smaller, so that some room is left for the
 * next. */
uint32_t vst__slots_size_for(const vst__slots *slots, uint64_t wanted,
                             uint64_t least);
/* Returns the size for a chunk that is never dropped, as the length of a
 * part. */
uint32_t vst__slots_size_of_fixed(const vst__slots *slots, uint64_t size);
bool vst__slots_may_grow(const vst__slots *slots, uint64_t end);

/* Decides the next step for a chunk, and where. Changes nothing. */
vst__slot_step vst__slots_choose(const vst__slots *slots,
                                 const vst__slot_wish *wish,
                                 vst__slot_room *room);

/* Gets memory to note a slot at `place`, halved for a chunk of that size. Slots
 * that were noted before stay as they are. */
vst_status vst__slots_prepare(vst__slots *slots, uint64_t place, uint32_t size);
/* Call after vst__slots_prepare: adds a new, free slot. */
void vst__slots_add(vst__slots *slots, uint64_t place);
/* Call after vst__slots_prepare: a chunk is written in the room. The unused
 * part of a free part stays free. */
void vst__slots_take(vst__slots *slots, const vst__slot_room *room,
                     uint32_t sequence, vst_ticks now);
/* Takes the room for a chunk that holds no records and is never dropped. */
void vst__slots_take_fixed(vst__slots *slots, const vst__slot_room *room);
/* Frees the oldest part, for a chunk that wants that size. */
void vst__slots_drop_oldest(vst__slots *slots, uint32_t wanted);
/* Call when there is no other room: no slot drains any longer. Returns whether
 * any did, in which case there may be room now. */
bool vst__slots_stop_draining(vst__slots *slots);
/* Seals a part. Returns whether the part took long to fill: more than a quarter
 * of what the file may hold was taken meanwhile, or, if only time bounds the
 * file, a quarter of that time passed. */
bool vst__slots_seal(vst__slots *slots, uint64_t place, vst_ticks last,
                     uint64_t words, bool has_waiting);

/* Returns whether the chunk that was taken there is in use or sealed. */
bool vst__slots_has(const vst__slots *slots, uint64_t place, uint32_t sequence);
/* Returns the place of the last chunk in the slot at `place`. */
uint64_t vst__slots_last_chunk(const vst__slots *slots, uint64_t place);

#endif
