/* The slots of a bounded file: which sealed chunk of records is the next to be
 * given to other records, and when. It knows places and times, not the file.
 * Called as the file's writer is: by one thread at a time. */
#ifndef VST_STORE_SLOTS_H
#define VST_STORE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>
#include <vestige/wire.h>

#define VST_MAX_SIZE_LEAST ((uint64_t)1 << 20) /* smallest bound there is */

/* A chunk of records that was sealed. */
typedef struct vst__slot_sealed {
    uint64_t place; /* in the file */
    vst_ticks last; /* when it was sealed */
    uint64_t words; /* of records in it */
} vst__slot_sealed;

typedef struct vst__slots {
    uint32_t size;     /* of a slot; 0: the file is not bounded */
    uint64_t max_size; /* of the file; 0: any */
    vst_ticks keep;    /* what was sealed longer ago may go; 0: any age stays */
    uint64_t count;    /* slots there are */
    vst__slot_sealed *sealed; /* a ring, oldest first */
    size_t first, used, capacity;
} vst__slots;

/* Both bounds may be 0. */
void vst__slots_init(vst__slots *slots, uint64_t max_size, uint64_t keep_ns,
                     double ticks_per_second);
void vst__slots_free(vst__slots *slots);

/* Makes room to seal one more slot, before it is added to the file. */
vst_status vst__slots_add(vst__slots *slots);
void vst__slots_seal(vst__slots *slots, const vst__slot_sealed *slot);

/* The slot that is to be reused rather than the file, which ends at `end`, made
 * longer; NULL: none. */
const vst__slot_sealed *vst__slots_due(const vst__slots *slots, uint64_t end,
                                       vst_ticks now);
/* The oldest there is, whether due or not; NULL: none is sealed. */
const vst__slot_sealed *vst__slots_oldest(const vst__slots *slots);
bool vst__slots_may_grow(const vst__slots *slots, uint64_t end);
void vst__slots_take_oldest(vst__slots *slots);

#endif
