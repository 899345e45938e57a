/* The slots of a bounded file: which part of it is given to the next chunk of
 * records, and when old ones have to go for that. It knows places and times,
 * not the file. Called as the file's writer is: by one thread at a time.
 *
 * The file grows by slots, all of one size. A slot is a chunk, or is halved,
 * and halves halved again, so that a thread that records little takes a page
 * and not a slot: parts of a slot are powers of two long, and lie at multiples
 * of their length. A part is free, in use, or sealed. Two halves that are both
 * free become one free part again.
 *
 * Invariant: sealed parts are dropped in the order in which they were sealed,
 * each as a whole, and nothing else makes one free. A thread seals its chunk
 * before it takes the next one. So the file keeps of each thread the newest
 * that it recorded, without a gap. (A part in use is not dropped. Threads may
 * have written to it one after the other: one that only told which calls it was
 * in, and recorded more elsewhere later, keeps that for longer than its turn.)
 *
 * Room is therefore not searched for among sealed parts. The oldest one is
 * dropped, then the next, until a free part is as long as the chunk shall be,
 * or parts that are too short have become a slot's worth: then the chunk takes
 * the longest of them. So little of the file is free, wherever the parts lie
 * that threads hold. Where parts are much too short some slots drain
 * (slot_parts.c). What this costs does not grow with the number of parts, but
 * for can_be_had() (slots.c): that is asked where a long record meets a file
 * full of threads. */
#ifndef VST_STORE_SLOTS_H
#define VST_STORE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>
#include <vestige/wire.h>

#define VST_MAX_SIZE_LEAST ((uint64_t)1 << 20) /* smallest bound there is */
#define VST_SLOT_PART_LEAST 4096u              /* smallest part of a slot */
#define VST_SLOT_ORDERS 9 /* sizes of parts: 4 KiB, 8 KiB, ... 1 MiB */

typedef struct vst__slot vst__slot;

typedef struct vst__slots {
    uint32_t size;     /* of a slot; 0: the file is not bounded */
    uint64_t max_size; /* of the file; 0: any */
    vst_ticks keep;    /* what was sealed longer ago may go; 0: any age stays */
    vst__slot *slots;  /* by their place; not all hold records */
    size_t count, capacity;
    /* Lists of parts. The first free one of each order: 0 is
     * VST_SLOT_PART_LEAST long, 1 twice that, ... */
    uint32_t free[VST_SLOT_ORDERS];
    uint64_t free_size;      /* bytes of all that are free */
    uint32_t oldest, newest; /* of the sealed ones */
    /* Those in use, without those that were taken long ago. */
    uint32_t busy_first, busy_last;
    uint64_t busy;                /* how many */
    uint64_t in_use, in_use_size; /* all that are in use; their bytes */
    /* Bytes that were ever taken; where only time bounds the file, the time of
     * the last change. A chunk that is not full when this is more by slow_after
     * is one of a thread that records little. */
    uint64_t taken, slow_after;
    uint32_t draining; /* slots that are being gathered */
} vst__slots;

/* What a chunk needs. */
typedef struct vst__slot_wish {
    uint32_t size;  /* vst__slots_size_for() */
    uint32_t least; /* less will not do */
    vst_ticks now;
    bool may_grow;     /* the file, by a slot */
    bool without_free; /* there is no storage behind what is free */
} vst__slot_wish;

typedef enum vst__slot_step {
    VST_SLOT_TAKE, /* the room: it is emptied if it is not free, and taken */
    VST_SLOT_DROP, /* the room is emptied and dropped; then choose again */
    VST_SLOT_GROW, /* a new slot goes to the end of the file */
    VST_SLOT_NONE  /* there is no room */
} vst__slot_step;

/* The oldest part, or the beginning of a free one. */
typedef struct vst__slot_room {
    uint64_t place; /* in the file */
    uint32_t size;
    uint32_t words;   /* of records in it */
    bool is_free;     /* nothing is in it */
    bool has_waiting; /* of what is in it: vst_chunk.has_waiting */
} vst__slot_room;

/* Both bounds may be 0. */
void vst__slots_init(vst__slots *slots, uint64_t max_size, uint64_t keep_ns,
                     double ticks_per_second);
void vst__slots_free(vst__slots *slots);

/* How large a chunk shall be of which `wanted` bytes would be nice: the more
 * threads there are, the smaller, so that some is left for the next. */
uint32_t vst__slots_size_for(const vst__slots *slots, uint64_t wanted,
                             uint64_t least);
/* The same for what is never dropped, in a part that is long enough. */
uint32_t vst__slots_size_of_fixed(const vst__slots *slots, uint64_t size);
bool vst__slots_may_grow(const vst__slots *slots, uint64_t end);

/* What to do for a chunk, and where. Changes nothing. */
vst__slot_step vst__slots_choose(const vst__slots *slots,
                                 const vst__slot_wish *wish,
                                 vst__slot_room *room);

/* Memory to note a slot at `place`, and that it is halved for a chunk of that
 * size. What was noted before stays as it is. */
vst_status vst__slots_prepare(vst__slots *slots, uint64_t place, uint32_t size);
/* After that: a new slot, which is free. */
void vst__slots_add(vst__slots *slots, uint64_t place);
/* After that: a chunk is being written in the room. What is left of a free part
 * stays free. */
void vst__slots_take(vst__slots *slots, const vst__slot_room *room,
                     uint32_t sequence, vst_ticks now);
/* The same; what is there is not records, and stays for good. */
void vst__slots_take_fixed(vst__slots *slots, const vst__slot_room *room);
/* The oldest part becomes free, for a chunk that wants that size. */
void vst__slots_drop_oldest(vst__slots *slots, uint32_t wanted);
/* Where there is no room else: slots are not gathered any longer. Whether there
 * were any, and with them perhaps room. */
bool vst__slots_stop_draining(vst__slots *slots);
/* Whether it took long to fill: more than a quarter of what the file may hold
 * was taken meanwhile, or where only time bounds it, a quarter of that passed.
 */
bool vst__slots_seal(vst__slots *slots, uint64_t place, vst_ticks last,
                     uint64_t words, bool has_waiting);

/* Whether the chunk that was taken there is in use or sealed. */
bool vst__slots_has(const vst__slots *slots, uint64_t place, uint32_t sequence);
/* Where the last chunk in the slot at `place` lies. */
uint64_t vst__slots_last_chunk(const vst__slots *slots, uint64_t place);

#endif
