/* A hash map from 64-bit keys to 64-bit values, for tables whose keys come
 * from a file and may have any value. Not for the record path. One thread at
 * a time. */
#ifndef VST_BASE_MAP64_H
#define VST_BASE_MAP64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vst__map64_entry {
    uint64_t key;
    uint64_t value;
    bool full;
} vst__map64_entry;

/* All zero is an empty map. */
typedef struct vst__map64 {
    vst__map64_entry *entries;
    size_t capacity; /* 0 or a power of two */
    size_t count;
} vst__map64;

/* Returns the place of the value, NULL if the key is missing; valid until the
 * next change of the map. */
uint64_t *vst__map64_find(const vst__map64 *map, uint64_t key);
/* Returns the place of the value, which is 0 if the key is new. Returns NULL if
 * memory runs out. */
uint64_t *vst__map64_put(vst__map64 *map, uint64_t key);
void vst__map64_remove(vst__map64 *map, uint64_t key);
/* Removes all keys; keeps the memory. */
void vst__map64_clear(vst__map64 *map);
void vst__map64_free(vst__map64 *map);

#endif
