/* Growable arrays: one function, used wherever a count is not known ahead. The
 * caller keeps pointer, count and capacity in its own struct. */
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

/* Room for `wanted` items of `item` bytes: the new address, or NULL, which
 * leaves the old array as it was. */
static inline void *vst__grow(void *items, size_t *capacity, size_t wanted,
                              size_t item)
{
    return vst__grow_with(items, capacity, wanted, item, realloc);
}

/* The same from the core's own heap; to be freed there. */
static inline void *vst__grow_own(void *items, size_t *capacity, size_t wanted,
                                  size_t item)
{
    return vst__grow_with(items, capacity, wanted, item, vst__realloc);
}

#endif
