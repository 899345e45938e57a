/* Growable arrays: one function, for arrays whose size is not known in advance.
 * The caller keeps pointer, count and capacity in its own struct. */
#ifndef VST_BASE_GROW_H
#define VST_BASE_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

/* Like vst__grow, with memory of the core's own heap, which vst__free
 * releases. */
static inline void *vst__grow_own(void *items, size_t *capacity, size_t wanted,
                                  size_t item)
{
    return vst__grow_with(items, capacity, wanted, item, vst__realloc);
}

#endif
