/* Ids of tensors and storages: which address has which. Addresses are never
 * forgotten, as in torch's observer: a new tensor at the address of a freed one
 * gets the same id.
 *
 * A hash map of 16 bytes an entry, at most three quarters full: between 22 and
 * 43 bytes for each address, a half more for a moment while it grows. One
 * thread at a time. */
#ifndef VST_GRAPH_IDENTITIES_H
#define VST_GRAPH_IDENTITIES_H

#include <stddef.h>
#include <stdint.h>

typedef struct vst__identity {
    uint64_t key; /* 0: free */
    uint64_t id;
} vst__identity;

/* All zero is empty. */
typedef struct vst__identities {
    vst__identity *entries;
    size_t capacity, count;
} vst__identities;

/* Where the id of a key is, 0 if it was not there; NULL without memory. The key
 * is not 0. */
uint64_t *vst__identities_put(vst__identities *identities, uint64_t key);
void vst__identities_free(vst__identities *identities);

#endif
