/* The tree of places, see places.h. */
#include "replay/places.h"

#include <stdlib.h>

#include "base/grow.h"

/* Returns whether the function is among the callers. Recursive callers are
 * skipped, because their function appears again further out; so a walk is at
 * most as long as there are functions, however deep the stack is. */
static bool is_around(const vst_places *places, uint32_t at, vst_id id)
{
    for (; at != 0; at = places->items[at].outer)
        if (places->items[at].id == id)
            return true;
    return false;
}

static bool places_add(vst_places *places, uint32_t parent, vst_id id)
{
    uint32_t outer = parent;

    if (!VST_RESERVE(places->items, places->count + 2, places->capacity) ||
        places->count >= UINT32_MAX - 2)
        return false;
    if (places->count == 0)
        places->items[places->count++] = (vst__place_item){0};
    if (places->items[parent].recursive)
        outer = places->items[parent].outer;
    places->items[places->count] = (vst__place_item){
        .id = id,
        .parent = parent,
        .depth = parent != 0 ? places->items[parent].depth + 1 : 0,
        .outer = outer,
        .recursive = is_around(places, outer, id),
    };
    places->count++;
    return true;
}

uint32_t vst__places_find(vst_places *places, uint32_t parent, vst_id id)
{
    uint64_t *number =
        vst__map64_put(&places->children, (uint64_t)parent << 32 | id);

    if (number == NULL)
        return 0;
    if (*number == 0) {
        if (!places_add(places, parent, id))
            return 0;
        *number = places->count - 1;
    }
    places->items[parent].recent = (uint32_t)*number;
    return (uint32_t)*number;
}

void vst__places_clear(vst_places *places)
{
    places->count = 0;
    vst__map64_clear(&places->children);
}

void vst__places_free(vst_places *places)
{
    free(places->items);
    vst__map64_free(&places->children);
    *places = (vst_places){0};
}
