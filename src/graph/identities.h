/* Ids of tensors and storages by address. Addresses are never forgotten, as in
 * torch's observer: a new tensor at the address of a freed tensor gets the same
 * id. A hash map with 16 bytes an entry, at most three quarters full: between
 * 22 and 43 bytes for each address, and half as much again while the map grows.
 * One thread at a time. */
#ifndef VST_GRAPH_IDENTITIES_H
#define VST_GRAPH_IDENTITIES_H

#include <stddef.h>
#include <stdint.h>

typedef struct vst__identity {
    uint64_t key; /* 0 if the entry is free */
    uint64_t id;
} vst__identity;

/* All zero is an empty table. */
typedef struct vst__identities {
    vst__identity *entries;
    size_t capacity, count;
} vst__identities;

/* Returns the place of the id of a key; the id is 0 if the key is new. Returns
 * NULL if memory ran out. The key must not be 0. */
uint64_t *vst__identities_put(vst__identities *identities, uint64_t key);
void vst__identities_free(vst__identities *identities);

#endif
