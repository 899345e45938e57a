/* Places in the tree of calls: which function was called from where, numbered
 * as they are first met. A matcher that has one (sink.places) gives each span
 * its place. The numbers of a place and of those around it are known while a
 * span is open, so that nothing has to wait for its end; those of another
 * reading of the same records are the same. One thread at a time. */
#ifndef VST_REPLAY_PLACES_H
#define VST_REPLAY_PLACES_H

#include <stdbool.h>

#include <vestige/wire.h>

#include "base/map64.h"

typedef struct vst__place {
    vst_id id;
    uint32_t parent; /* 0: it is a root */
    uint32_t recent; /* the child that was entered last, 0: none */
    uint32_t depth;  /* 0 at a root */
    uint32_t outer;  /* the next further out that is not recursive, 0: none */
    bool recursive;  /* the same function is further out too */
} vst__place;

/* All zero before the first time. */
typedef struct vst_places {
    vst__place *items; /* [0] is no place */
    size_t count, capacity;
    vst__map64 children; /* parent << 32 | id -> number */
} vst_places;

/* The place of a function called from another; 0: no memory. */
uint32_t vst__places_find(vst_places *places, uint32_t parent, vst_id id);
void vst__places_clear(vst_places *places); /* keeps its memory */
void vst__places_free(vst_places *places);

/* The same, for callers that enter the same function again and again. */
static inline uint32_t vst__places_enter(vst_places *places, uint32_t parent,
                                         vst_id id)
{
    if (parent < places->count) {
        uint32_t recent = places->items[parent].recent;

        if (recent != 0 && places->items[recent].id == id)
            return recent;
    }
    return vst__places_find(places, parent, id);
}

#endif
