/* Growable arrays: one function, for arrays whose size is not known in advance.
 * The caller keeps pointer, count and capacity in its own struct. */
#ifndef VST_BASE_GROW_H
#define VST_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

static inline void *vst__grow_with(void *items, size_t *capacity, size_t wanted,
                                   size_t item, void *(*resize)(void *, size_t))
{
    size_t next = *capacity != 0 ? *capacity : 16;
    void *moved;

    if (wanted <= *capacity && items != NULL)
        return items;
    while (next < wanted) {
        if (next > SIZE_MAX / 2)
            return NULL;
        next *= 2;
    }
    if (next > SIZE_MAX / item)
        return NULL;
    moved = resize(items, next * item);
    if (moved != NULL)
        *capacity = next;
    return moved;
}

/* Makes room for `wanted` items of `item` bytes. Returns the new address, or
 * NULL if memory runs out; the old array stays valid then. */
static inline void *vst__grow(void *items, size_t *capacity, size_t wanted,
                              size_t item)
{
    return vst__grow_with(items, capacity, wanted, item, realloc);
}

/* `place` points to the pointer to the items. */
static inline bool vst__reserve(void *place, size_t *capacity, size_t wanted,
                                size_t item)
{
    void *items;

    memcpy(&items, place, sizeof items);
    items = vst__grow(items, capacity, wanted, item);
    if (items != NULL)
        memcpy(place, &items, sizeof items);
    return items != NULL;
}

/* Makes room for `wanted` items in an array: a pointer to items, and their
 * capacity. Returns false if memory runs out; the array stays valid then. */
#define VST_RESERVE(items, wanted, capacity)                                   \
    vst__reserve(&(items), &(capacity), (wanted), sizeof *(items))

/* Like vst__grow, with memory of the core's own heap, which vst__free
 * releases. */
static inline void *vst__grow_own(void *items, size_t *capacity, size_t wanted,
                                  size_t item)
{
    return vst__grow_with(items, capacity, wanted, item, vst__realloc);
}

#endif
