/* Growable arrays: one function, used wherever a count is not known ahead. The
 * caller keeps pointer, count and capacity in its own struct. */
#ifndef VST_BASE_GROW_H
#define VST_BASE_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Room for `wanted` items of `item` bytes: the new address, or NULL, which
 * leaves the old array as it was. */
static inline void *vst__grow(void *items, size_t *capacity, size_t wanted,
                              size_t item)
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
    moved = realloc(items, next * item);
    if (moved != NULL)
        *capacity = next;
    return moved;
}

#endif
