/* The live set of live.h: entries lie densely, and the table holds their
 * numbers. Removing an entry moves its followers back, as in base/map64.c. One
 * thread at a time. */
#include "memory/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { FIRST_SLOTS = 1024 };

void vst__live_clear(vst__live *live)
{
    live->count = live->slot_used = live->map_count = 0;
    live->free = 0;
    if (live->slots != NULL)
        memset(live->slots, 0, live->slot_count * sizeof *live->slots);
}

void vst__live_free(vst__live *live)
{
    free(live->blocks);
    free(live->slots);
    free(live->maps);
    memset(live, 0, sizeof *live);
}

/* ---- blocks -------------------------------------------------------------- */

/* Uses the upper bits of a product, so that neighbouring addresses lie
 * apart. */
static size_t live_home(const vst__live *live, uint64_t address)
{
    uint64_t hash = (address ^ address >> 33) * 0x9e3779b97f4a7c15u;

    return (size_t)(hash >> 32) & (live->slot_count - 1);
}

/* Returns the place of an address in the table, or the empty place where it
 * belongs. */
static size_t live_probe(const vst__live *live, uint64_t address)
{
    size_t i = live_home(live, address);

    while (live->slots[i] != 0 &&
           live->blocks[live->slots[i] - 1].address != address)
        i = (i + 1) & (live->slot_count - 1);
    return i;
}

const vst__block_info *vst__live_find(const vst__live *live, uint64_t address)
{
    uint32_t number;

    if (live->slot_used == 0)
        return NULL;
    number = live->slots[live_probe(live, address)];
    return number != 0 ? &live->blocks[number - 1] : NULL;
}

static bool live_widen(vst__live *live)
{
    size_t wider = live->slot_count != 0 ? live->slot_count * 2 : FIRST_SLOTS;
    uint32_t *old = live->slots;
    size_t count = live->slot_count;
    uint32_t *slots = calloc(wider, sizeof *slots);

    if (slots == NULL)
        return false;
    live->slots = slots;
    live->slot_count = wider;
    for (size_t i = 0; i < count; i++)
        if (old[i] != 0)
            slots[live_probe(live, live->blocks[old[i] - 1].address)] = old[i];
    free(old);
    return true;
}

vst_status vst__live_add(vst__live *live, const vst__block_info *block)
{
    uint32_t number = live->free;

    if (live->slot_used * 3 >= live->slot_count * 2 && !live_widen(live))
        return VST_E_NOMEM;
    if (number != 0) {
        live->free = (uint32_t)live->blocks[number - 1].size;
    } else {
        if (!VST_RESERVE(live->blocks, live->count + 1, live->capacity) ||
            live->count >= UINT32_MAX - 1)
            return VST_E_NOMEM;
        number = (uint32_t)++live->count;
    }
    live->blocks[number - 1] = *block;
    live->slots[live_probe(live, block->address)] = number;
    live->slot_used++;
    return VST_OK;
}

static void empty_slot(vst__live *live, size_t hole)
{
    size_t mask = live->slot_count - 1, i = hole;

    for (;;) {
        live->slots[hole] = 0;
        do {
            i = (i + 1) & mask;
            if (live->slots[i] == 0)
                return;
            /* An entry whose home lies behind the hole stays where it is. */
        } while (
            ((i - live_home(live, live->blocks[live->slots[i] - 1].address)) &
             mask) < ((i - hole) & mask));
        live->slots[hole] = live->slots[i];
        hole = i;
    }
}

bool vst__live_remove(vst__live *live, uint64_t address,
                      vst__block_info *removed)
{
    size_t slot;
    uint32_t number;

    if (live->slot_used == 0)
        return false;
    slot = live_probe(live, address);
    number = live->slots[slot];
    if (number == 0)
        return false;
    empty_slot(live, slot);
    live->slot_used--;
    *removed = live->blocks[number - 1];
    live->blocks[number - 1].address = 0;
    live->blocks[number - 1].size = live->free;
    live->free = number;
    return true;
}

/* ---- mappings ------------------------------------------------------------ */

/* Returns the index of the first mapping that ends behind the address. */
static size_t find_map(const vst__live *live, uint64_t address)
{
    size_t low = 0, high = live->map_count;

    while (high > low) {
        size_t middle = low + (high - low) / 2;
        const vst__block_info *map = &live->maps[middle];

        if (map->address + map->size > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static vst_status insert_map(vst__live *live, size_t index,
                             const vst__block_info *map)
{
    if (!VST_RESERVE(live->maps, live->map_count + 1, live->map_capacity))
        return VST_E_NOMEM;
    memmove(live->maps + index + 1, live->maps + index,
            (live->map_count - index) * sizeof *live->maps);
    live->maps[index] = *map;
    live->map_count++;
    return VST_OK;
}

vst_status vst__live_map(vst__live *live, const vst__block_info *map)
{
    return insert_map(live, find_map(live, map->address), map);
}

vst_status vst__live_unmap(vst__live *live, uint64_t address, uint64_t size,
                           vst__block_info *part, bool *found)
{
    size_t index = find_map(live, address);
    uint64_t end = address + size;
    vst__block_info *map, rest;

    *found = index < live->map_count && live->maps[index].address < end;
    if (!*found)
        return VST_OK;
    map = &live->maps[index];
    rest = *part = *map;
    if (part->address < address)
        part->address = address;
    if (end > map->address + map->size)
        end = map->address + map->size;
    part->size = end - part->address;
    rest.size = map->address + map->size - end;
    rest.address = end;
    map->size = part->address - map->address;
    if (map->size != 0)
        return rest.size != 0 ? insert_map(live, index + 1, &rest) : VST_OK;
    if (rest.size != 0) {
        *map = rest;
        return VST_OK;
    }
    memmove(map, map + 1, (--live->map_count - index) * sizeof *map);
    return VST_OK;
}
