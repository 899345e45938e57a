/* The slots of a bounded file: which part of it is given to the next chunk of
 * records, and when an old one has to go for that. It knows places and times,
 * not the file. Called as the file's writer is: by one thread at a time.
 *
 * The file grows by slots, all of one size. A slot is a chunk, or is halved,
 * and halves halved again, so that a thread that records little takes a page
 * and not a slot: parts of a slot are powers of two long, and lie at multiples
 * of their length. Parts that were sealed side by side can be had again as one,
 * and a slot all of whose parts were sealed is whole again. */
#ifndef VST_STORE_SLOTS_H
#define VST_STORE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>
#include <vestige/wire.h>

#define VST_MAX_SIZE_LEAST ((uint64_t)1 << 20) /* smallest bound there is */
#define VST_SLOT_PART_LEAST 4096u              /* smallest part of a slot */

typedef struct vst__slot vst__slot;

typedef struct vst__slots {
    uint32_t size;     /* of a slot; 0: the file is not bounded */
    uint64_t max_size; /* of the file; 0: any */
    vst_ticks keep;    /* what was sealed longer ago may go; 0: any age stays */
    uint64_t in_use;   /* parts that are being written */
    vst__slot *slots;  /* by their place; not all hold records */
    size_t count, capacity;
    /* Numbers of slots, 1 + index; 0: none. Those that are sealed as a whole,
     * oldest first, and all others. */
    uint32_t sealed_first, sealed_last, mixed;
} vst__slots;

/* Room for a chunk: a region of the file, and of that as much as was asked for.
 */
typedef struct vst__slot_room {
    uint64_t place;       /* in the file */
    uint64_t region_size; /* what is emptied for it; it lies at its beginning */
    uint64_t words;       /* of records in the region */
    vst_ticks last;       /* when the newest of these was sealed */
    bool is_free;         /* nothing is in it */
} vst__slot_room;

/* Both bounds may be 0. */
void vst__slots_init(vst__slots *slots, uint64_t max_size, uint64_t keep_ns,
                     double ticks_per_second);
void vst__slots_free(vst__slots *slots);

/* How large a chunk shall be of which `wanted` bytes would be nice: the more
 * threads there are, the smaller, so that some is left for the next. */
uint32_t vst__slots_size_for(const vst__slots *slots, uint64_t wanted,
                             uint64_t least);
/* A free part for a chunk of that size, without dropping anything or growing.
 */
bool vst__slots_find_free(const vst__slots *slots, uint32_t size,
                          vst__slot_room *room);
/* The part that was sealed longest ago. */
bool vst__slots_find_oldest(const vst__slots *slots, uint32_t size,
                            vst__slot_room *room);
/* Whether what is oldest is to go rather than the file, which ends at `end`, to
 * be made longer. */
bool vst__slots_is_due(const vst__slots *slots, const vst__slot_room *oldest,
                       uint64_t end, vst_ticks now);
bool vst__slots_may_grow(const vst__slots *slots, uint64_t end);

/* Memory to note a slot at `place`, and that it is halved. What was noted
 * before stays as it is. */
vst_status vst__slots_prepare(vst__slots *slots, uint64_t place, uint32_t size);
/* After that: a new slot, which is free. */
void vst__slots_add(vst__slots *slots, uint64_t place);
/* A chunk of that size is being written at the beginning of the room. */
void vst__slots_take(vst__slots *slots, const vst__slot_room *room,
                     uint32_t size);
/* The slot there does not hold records any more, for good. */
void vst__slots_give_away(vst__slots *slots, uint64_t place);
void vst__slots_seal(vst__slots *slots, uint64_t place, vst_ticks last,
                     uint64_t words);
/* Where the last chunk in the slot at `place` lies. */
uint64_t vst__slots_last_chunk(const vst__slots *slots, uint64_t place);

#endif
