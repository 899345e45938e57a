/* The map of identities.h: open addressing and linear probing; nothing is ever
 * removed. One thread at a time. */
#include "graph/identities.h"

#include <stdlib.h>
#include <string.h>

static vst__identity *identities_probe(const vst__identities *identities,
                                       uint64_t key)
{
    uint64_t hash = key;
    size_t mask = identities->capacity - 1, i;

    /* Every bit of the key reaches every bit. */
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53u;
    hash ^= hash >> 33;
    i = (size_t)hash & mask;
    while (identities->entries[i].key != 0 && identities->entries[i].key != key)
        i = (i + 1) & mask;
    return &identities->entries[i];
}

static int identities_widen(vst__identities *identities)
{
    vst__identities wider = {
        .capacity = identities->capacity ? identities->capacity * 2 : 256,
        .count = identities->count,
    };

    wider.entries = calloc(wider.capacity, sizeof *wider.entries);
    if (wider.entries == NULL)
        return 0;
    for (size_t i = 0; i < identities->capacity; i++)
        if (identities->entries[i].key != 0)
            *identities_probe(&wider, identities->entries[i].key) =
                identities->entries[i];
    free(identities->entries);
    *identities = wider;
    return 1;
}

uint64_t *vst__identities_put(vst__identities *identities, uint64_t key)
{
    vst__identity *entry;

    if (identities->count >= identities->capacity / 4 * 3 &&
        !identities_widen(identities))
        return NULL;
    entry = identities_probe(identities, key);
    if (entry->key == 0) {
        entry->key = key;
        identities->count++;
    }
    return &entry->id;
}

void vst__identities_free(vst__identities *identities)
{
    free(identities->entries);
    memset(identities, 0, sizeof *identities);
}
