/* The set of intern.h, with open addressing. Each key is copied into a block of
 * its own, because definitions are rare and live as long as their recording. */
#include "base/intern.h"

#include <string.h>

#include "base/heap.h"

typedef struct slot {
    uint64_t hash;
    void *key;
    size_t size;
    uint32_t number; /* 0 if the slot is empty */
} slot;

/* A forked child makes a set that often stays small. */
enum { FIRST_SLOTS = 64 };

struct vst__intern {
    slot *slots;
    size_t mask;
    size_t used;
};

/* FNV-1a over words, then mixed, because keys are names of files and functions
 * that often differ only at the end. */
static uint64_t intern_hash_of(const void *key, size_t size)
{
    const unsigned char *bytes = key;
    uint64_t hash = 0xcbf29ce484222325u ^ size;

    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    for (; size; bytes++, size--)
        hash = (hash ^ *bytes) * 0x100000001b3u;
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static slot *intern_probe(slot *slots, size_t mask, uint64_t hash,
                          const void *key, size_t size)
{
    size_t i = (size_t)hash & mask;

    while (slots[i].number) {
        if (slots[i].hash == hash && slots[i].size == size &&
            memcmp(slots[i].key, key, size) == 0)
            break;
        i = (i + 1) & mask;
    }
    return &slots[i];
}

static vst_status intern_grow(vst__intern *set)
{
    size_t mask = set->mask * 2 + 1;
    slot *slots = vst__calloc(mask + 1, sizeof *slots);

    if (slots == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i <= set->mask; i++) {
        slot *old = &set->slots[i];
        if (old->number)
            *intern_probe(slots, mask, old->hash, old->key, old->size) = *old;
    }
    vst__free(set->slots);
    set->slots = slots;
    set->mask = mask;
    return VST_OK;
}

vst__intern *vst__intern_create(void)
{
    vst__intern *set = vst__calloc(1, sizeof *set);

    if (set == NULL)
        return NULL;
    set->mask = FIRST_SLOTS - 1;
    set->slots = vst__calloc(set->mask + 1, sizeof *set->slots);
    if (set->slots == NULL) {
        vst__free(set);
        return NULL;
    }
    return set;
}

void vst__intern_destroy(vst__intern *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i <= set->mask; i++)
        vst__free(set->slots[i].key);
    vst__free(set->slots);
    vst__free(set);
}

uint32_t vst__intern_find(const vst__intern *set, const void *key, size_t size)
{
    return intern_probe(set->slots, set->mask, intern_hash_of(key, size), key,
                        size)
        ->number;
}

vst_status vst__intern_add(vst__intern *set, const void *key, size_t size,
                           uint32_t number)
{
    uint64_t hash = intern_hash_of(key, size);
    void *copy;

    if (set->used * 4 >= set->mask * 3 && intern_grow(set) != VST_OK)
        return VST_E_NOMEM;
    copy = vst__alloc(size ? size : 1);
    if (copy == NULL)
        return VST_E_NOMEM;
    memcpy(copy, key, size);
    *intern_probe(set->slots, set->mask, hash, key, size) =
        (slot){hash, copy, size, number};
    set->used++;
    return VST_OK;
}

void vst__intern_each(const vst__intern *set,
                      void (*fn)(void *ctx, const void *key, size_t size,
                                 uint32_t number),
                      void *ctx)
{
    for (size_t i = 0; i <= set->mask; i++)
        if (set->slots[i].number)
            fn(ctx, set->slots[i].key, set->slots[i].size,
               set->slots[i].number);
}
