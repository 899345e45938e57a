/* The memory that is live, by address: blocks in a hash table; mappings, parts
 * of which may be given back, sorted by address. Made for millions of blocks,
 * at about 48 bytes each. One thread at a time. */
#ifndef VST_MEMORY_LIVE_H
#define VST_MEMORY_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/memory.h>

typedef struct vst__block_info {
    uint64_t address; /* 0 if the entry is free */
    uint64_t size;
    uint64_t serial;
    int64_t time_ns;
    vst_stack_id stack;
} vst__block_info;

/* All zero is an empty table. */
typedef struct vst__live {
    vst__block_info *blocks;
    size_t count, capacity; /* entries in use, and free ones between them */
    /* 1 + index of the first free entry; chained by `size` */
    uint32_t free;
    uint32_t *slots; /* 1 + index, by hash; 0 if empty */
    size_t slot_count, slot_used;
    vst__block_info *maps; /* sorted by address, without overlaps */
    size_t map_count, map_capacity;
} vst__live;

/* Removes everything; keeps the memory. */
void vst__live_clear(vst__live *live);
void vst__live_free(vst__live *live);

/* Returns NULL if the address is not live. Valid until the next change. */
const vst__block_info *vst__live_find(const vst__live *live, uint64_t address);
/* The address must not be live. */
vst_status vst__live_add(vst__live *live, const vst__block_info *block);
bool vst__live_remove(vst__live *live, uint64_t address,
                      vst__block_info *removed);

/* Nothing may be mapped in its range. */
vst_status vst__live_map(vst__live *live, const vst__block_info *map);
/* Removes the first part of a mapping that lies in the range, and leaves the
 * rest of the mapping. *found is false if no part lies there. */
vst_status vst__live_unmap(vst__live *live, uint64_t address, uint64_t size,
                           vst__block_info *part, bool *found);

#endif
