/* Strings that live as long as the owner of the arena, in blocks: the allocator
 * is called rarely, and strings never move. One thread at a time. */
#ifndef VST_TRACEBACK_ARENA_H
#define VST_TRACEBACK_ARENA_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct vst__arena_block {
    struct vst__arena_block *next;
    char bytes[];
} vst__arena_block;

/* All zero is an empty arena. */
typedef struct vst__arena {
    vst__arena_block *blocks;
    char *at;
    size_t left;
} vst__arena;

enum { VST_ARENA_BLOCK = 16 << 10 };

/* Returns a copy that ends in NUL; NULL if memory ran out. */
static inline const char *vst__arena_copy(vst__arena *arena, const char *bytes,
                                          size_t count)
{
    char *copy;

    if (arena->left < count + 1) {
        size_t size = count + 1 > VST_ARENA_BLOCK ? count + 1 : VST_ARENA_BLOCK;
        vst__arena_block *block = malloc(sizeof *block + size);
        if (block == NULL)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->at = block->bytes;
        arena->left = size;
    }
    copy = arena->at;
    if (count != 0)
        memcpy(copy, bytes, count);
    copy[count] = '\0';
    arena->at += count + 1;
    arena->left -= count + 1;
    return copy;
}

static inline void vst__arena_free(vst__arena *arena)
{
    while (arena->blocks != NULL) {
        vst__arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (vst__arena){0};
}

#endif
