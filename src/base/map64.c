/* The hash map of map64.h: open addressing and linear probing, at most three
 * quarters full, because the memory that a key takes bounds how much a hostile
 * file can make replay use. Removing a key moves its followers back, so a map
 * that lives long does not fill up with removed keys. One thread at a time. */
#include "base/map64.h"

#include <string.h>

#include "base/heap.h"

/* Uses the finalizer of MurmurHash3: every bit of the key reaches every bit. */
static size_t map64_home(const vst__map64 *map, uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53u;
    key ^= key >> 33;
    return (size_t)key & (map->capacity - 1);
}

static vst__map64_entry *map64_probe(const vst__map64 *map, uint64_t key)
{
    size_t i = map64_home(map, key);

    while (map->entries[i].full && map->entries[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return &map->entries[i];
}

uint64_t *vst__map64_find(const vst__map64 *map, uint64_t key)
{
    vst__map64_entry *entry;

    if (map->count == 0)
        return NULL;
    entry = map64_probe(map, key);
    return entry->full ? &entry->value : NULL;
}

static bool map64_widen(vst__map64 *map)
{
    vst__map64 wider = {NULL, map->capacity != 0 ? map->capacity * 2 : 32, 0};

    wider.entries = vst__calloc(wider.capacity, sizeof *wider.entries);
    if (wider.entries == NULL)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].full)
            *map64_probe(&wider, map->entries[i].key) = map->entries[i];
    wider.count = map->count;
    vst__free(map->entries);
    *map = wider;
    return true;
}

uint64_t *vst__map64_put(vst__map64 *map, uint64_t key)
{
    vst__map64_entry *entry;

    if (map->count >= map->capacity / 4 * 3 && !map64_widen(map))
        return NULL;
    entry = map64_probe(map, key);
    if (!entry->full) {
        entry->key = key;
        entry->value = 0;
        entry->full = true;
        map->count++;
    }
    return &entry->value;
}

void vst__map64_remove(vst__map64 *map, uint64_t key)
{
    size_t mask = map->capacity - 1;
    size_t hole, i;

    if (map->count == 0 || !map64_probe(map, key)->full)
        return;
    hole = i = (size_t)(map64_probe(map, key) - map->entries);
    for (;;) {
        map->entries[hole].full = false;
        do {
            i = (i + 1) & mask;
            if (!map->entries[i].full) {
                map->count--;
                return;
            }
            /* An entry whose home lies behind the hole stays where it is. */
        } while (((i - map64_home(map, map->entries[i].key)) & mask) <
                 ((i - hole) & mask));
        map->entries[hole] = map->entries[i];
        hole = i;
    }
}

void vst__map64_clear(vst__map64 *map)
{
    if (map->count != 0)
        memset(map->entries, 0, map->capacity * sizeof *map->entries);
    map->count = 0;
}

void vst__map64_free(vst__map64 *map)
{
    vst__free(map->entries);
    memset(map, 0, sizeof *map);
}
