/* Serials of allocations: the last ones of a thread, and sets of serials. One
 * thread at a time. */
#include "memory/summary_pass.h"

#include <string.h>

#include "base/grow.h"

/* ---- the last allocations of a thread ------------------------------------ */

bool vst__recent_add(vst__recent *r, uint64_t serial, uint32_t k)
{
    if (r->count < k) {
        if (!VST_RESERVE(r->serials, r->count + 1, r->capacity))
            return false;
        r->serials[r->count++] = serial;
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
        if (!VST_RESERVE(set->words, word + 1, set->capacity))
            return false;
        memset(set->words + before, 0,
               (set->capacity - before) * sizeof *set->words);
    }
    set->words[word] |= (uint64_t)1 << serial % 64;
    return true;
}
