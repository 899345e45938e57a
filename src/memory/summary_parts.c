/* Usage over time, a thread's last allocations, sets of serials: see
 * summary_parts.h. One thread at a time. */
#include "memory/summary_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { FIRST_WIDTH_NS = 1000 };

bool vst__curve_begin(vst__curve *t)
{
    *t = (vst__curve){.width_ns = FIRST_WIDTH_NS};
    t->points = calloc(VST_MEMORY_POINTS_MAX, sizeof *t->points);
    return t->points != NULL;
}

static int64_t parts_place_of(const vst__curve *t, int64_t now)
{
    return now > t->first_ns ? (now - t->first_ns) / t->width_ns : 0;
}

void vst__curve_widen(vst__curve *t)
{
    size_t kept = 0;

    t->width_ns *= 2;
    for (size_t i = 0; i < t->count; i++) {
        vst_memory_point *from = &t->points[i], *to = &t->points[kept];

        if (kept == 0 || parts_place_of(t, from->last_ns) !=
                             parts_place_of(t, t->points[kept - 1].last_ns)) {
            *to = *from;
            kept++;
            continue;
        }
        to--;
        if (from->max_bytes > to->max_bytes) {
            to->max_bytes = from->max_bytes;
            to->max_ns = from->max_ns;
        }
        to->last_ns = from->last_ns;
        to->last_bytes = from->last_bytes;
    }
    t->count = kept;
    t->place = kept != 0 ? parts_place_of(t, t->points[kept - 1].last_ns) : 0;
}

/* ---- the last allocations of a thread ------------------------------------ */

bool vst__recent_add(vst__recent *r, uint64_t serial, uint32_t k)
{
    if (r->count < k) {
        uint64_t *moved =
            vst__grow(r->serials, &r->capacity, r->count + 1, sizeof *moved);
        if (moved == NULL)
            return false;
        r->serials = moved;
        moved[r->count++] = serial;
        return true;
    }
    r->serials[r->next] = serial;
    r->next = r->next + 1 < k ? r->next + 1 : 0;
    return true;
}

/* The serials grow from `next` on, around the ring. */
bool vst__recent_has(const vst__recent *r, uint64_t serial)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t at = r->next + middle;

        at = at < r->count ? at : at - r->count;
        if (r->serials[at] == serial)
            return true;
        if (r->serials[at] < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* ---- sets of serials ----------------------------------------------------- */

bool vst__serials_add(vst__serials *set, uint64_t serial)
{
    size_t word = (size_t)(serial / 64), before = set->capacity;

    if (word >= set->capacity) {
        uint64_t *moved =
            vst__grow(set->words, &set->capacity, word + 1, sizeof *moved);
        if (moved == NULL)
            return false;
        memset(moved + before, 0, (set->capacity - before) * sizeof *moved);
        set->words = moved;
    }
    set->words[word] |= (uint64_t)1 << serial % 64;
    return true;
}
