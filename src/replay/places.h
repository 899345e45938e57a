/* Places in the tree of calls: which function was called from where, numbered
 * in the order of their first call. A matcher that has places
 * (vst_sink_inside.places) gives each span its place. The numbers of a place
 * and of its callers are known while a span is open, so nothing has to wait for
 * its end; another reading of the same records gives the same numbers. One
 * thread at a time. */
#ifndef VST_REPLAY_PLACES_H
#define VST_REPLAY_PLACES_H

#include <stdbool.h>

#include <vestige/wire.h>

#include "base/map64.h"

typedef struct vst__place_item {
    vst_id id;
    uint32_t parent; /* 0 for a root */
    uint32_t recent; /* the child that was entered last; 0 if none */
    uint32_t depth;  /* 0 for a root */
    uint32_t outer;  /* nearest caller that is not recursive; 0 if none */
    bool recursive;  /* the function also appears further out */
} vst__place_item;

/* Must be all zero before the first use. */
typedef struct vst_places {
    vst__place_item *items; /* [0] is no place */
    size_t count, capacity;
    vst__map64 children; /* parent << 32 | id -> number */
} vst_places;

/* Returns the place of a function called from another place; 0 if memory ran
 * out. */
uint32_t vst__places_find(vst_places *places, uint32_t parent, vst_id id);
/* Removes all places; keeps the memory. */
void vst__places_clear(vst_places *places);
void vst__places_free(vst_places *places);

/* Like vst__places_find, faster if a caller enters the same function again and
 * again. */
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
