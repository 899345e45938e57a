/* The slots of slots.h. One thread at a time. */
#include "store/slots.h"

#include <string.h>

#include "base/heap.h"
#include "store/format.h"

enum {
    SLOTS = 64, /* that a bound in bytes is divided into, at least */
    SIZE_LEAST = 16 * 1024,
    SIZE_MOST = 1024 * 1024,
    SIZE_BY_TIME = 256 * 1024, /* where only time bounds the file */
    /* A chunk takes one of so many parts of what there is for each thread: even
     * if each takes as much as it may when it comes, some is left. */
    SHARES = 8,
};

typedef enum part_state { NOT_RECORDS, FREE, IN_USE, SEALED } part_state;

/* Of a slot. What is valid is the one with which a part begins. */
typedef struct part {
    uint8_t order; /* 0: VST_SLOT_PART_LEAST long, 1: twice that, ... */
    uint8_t state;
    vst_ticks last; /* of a sealed one */
    uint64_t words;
} part;

struct vst__slot {
    part whole;
    part *parts;             /* if it is halved, by their place in it */
    uint32_t next, previous; /* in its list */
    uint32_t in_use;         /* parts */
    uint32_t last_chunk;     /* where its last one begins, of a sealed one */
    bool is_sealed;          /* is in the list of those */
};

/* A power of two. */
static uint32_t slot_size(uint64_t max_size)
{
    uint32_t size = SIZE_LEAST;

    if (max_size == 0)
        return SIZE_BY_TIME;
    while (size < SIZE_MOST && (uint64_t)size * 2 <= max_size / SLOTS)
        size *= 2;
    return size;
}

void vst__slots_init(vst__slots *slots, uint64_t max_size, uint64_t keep_ns,
                     double ticks_per_second)
{
    memset(slots, 0, sizeof *slots);
    if (max_size == 0 && keep_ns == 0)
        return;
    slots->size = slot_size(max_size);
    slots->max_size = max_size;
    /* A little more: the rate of the clock is known better later. */
    if (keep_ns != 0) {
        double ticks = (double)keep_ns * 1.01e-9 * ticks_per_second;
        slots->keep = ticks < 1e18 ? (vst_ticks)ticks + 1 : UINT64_MAX;
    }
}

void vst__slots_free(vst__slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        vst__free(slots->slots[i].parts);
    vst__free(slots->slots);
    memset(slots, 0, sizeof *slots);
}

/* ---- places -------------------------------------------------------------- */

static uint8_t order_of(uint64_t size)
{
    uint8_t order = 0;

    while (((uint64_t)VST_SLOT_PART_LEAST << order) < size)
        order++;
    return order;
}

static size_t index_of(const vst__slots *slots, uint64_t place)
{
    return (size_t)((place - VST_FILE_HEADER_SIZE) / slots->size);
}

static uint64_t place_of(const vst__slots *slots, size_t index, size_t first)
{
    return VST_FILE_HEADER_SIZE + (uint64_t)index * slots->size +
           (uint64_t)first * VST_SLOT_PART_LEAST;
}

static size_t first_of(const vst__slots *slots, uint64_t place)
{
    return (size_t)((place - VST_FILE_HEADER_SIZE) % slots->size /
                    VST_SLOT_PART_LEAST);
}

static const part *part_at(const vst__slot *slot, size_t first)
{
    return slot->parts ? &slot->parts[first] : &slot->whole;
}

/* ---- lists ----------------------------------------------------------------
 */

static void link_mixed(vst__slots *slots, uint32_t number)
{
    vst__slot *slot = &slots->slots[number - 1];

    slot->previous = 0;
    slot->next = slots->mixed;
    if (slot->next)
        slots->slots[slot->next - 1].previous = number;
    slots->mixed = number;
    slot->is_sealed = false;
}

static void link_sealed(vst__slots *slots, uint32_t number)
{
    vst__slot *slot = &slots->slots[number - 1];

    slot->next = 0;
    slot->previous = slots->sealed_last;
    if (slot->previous)
        slots->slots[slot->previous - 1].next = number;
    else
        slots->sealed_first = number;
    slots->sealed_last = number;
    slot->is_sealed = true;
}

static void unlink_slot(vst__slots *slots, uint32_t number)
{
    const vst__slot *slot = &slots->slots[number - 1];

    if (slot->next)
        slots->slots[slot->next - 1].previous = slot->previous;
    else if (slot->is_sealed)
        slots->sealed_last = slot->previous;
    if (slot->previous)
        slots->slots[slot->previous - 1].next = slot->next;
    else if (slot->is_sealed)
        slots->sealed_first = slot->next;
    else
        slots->mixed = slot->next;
}

/* ---- finding room ----------------------------------------------------------
 */

uint32_t vst__slots_size_for(const vst__slots *slots, uint64_t wanted,
                             uint64_t least)
{
    uint64_t size = (uint64_t)VST_SLOT_PART_LEAST << order_of(wanted);
    uint64_t share = slots->max_size / SHARES / (slots->in_use + 1);

    if (size > slots->size)
        size = slots->size;
    while (slots->max_size != 0 && size > share && size / 2 >= least &&
           size > VST_SLOT_PART_LEAST)
        size /= 2;
    return (uint32_t)size;
}

/* What a chunk of that order would be put in place of, if it began there: a
 * part that is not smaller, or several that are. False: it cannot. */
static bool region_at(const vst__slot *slot, size_t first, uint8_t order,
                      vst__slot_room *room)
{
    size_t parts = (size_t)1 << order, at = first;

    if (first % parts != 0)
        return false;
    *room = (vst__slot_room){.is_free = true};
    do {
        const part *p = part_at(slot, at);

        if (p->state != FREE && p->state != SEALED)
            return false;
        if (p->state == SEALED) {
            room->is_free = false;
            room->words += p->words;
            if (p->last > room->last)
                room->last = p->last;
        }
        at += (size_t)1 << p->order;
    } while (at < first + parts);
    room->region_size = (uint64_t)(at - first) * VST_SLOT_PART_LEAST;
    return true;
}

/* The smallest free one, or the oldest of the others. */
static bool is_better(const vst__slot_room *room, const vst__slot_room *best)
{
    return room->is_free ? room->region_size < best->region_size
                         : room->last < best->last;
}

static bool find(const vst__slots *slots, uint8_t order, bool is_free,
                 vst__slot_room *best)
{
    size_t all = slots->size / VST_SLOT_PART_LEAST;
    bool found = false;

    for (uint32_t number = slots->mixed; number != 0;
         number = slots->slots[number - 1].next) {
        const vst__slot *slot = &slots->slots[number - 1];

        for (size_t at = 0; at < all;) {
            vst__slot_room room;

            if (region_at(slot, at, order, &room) && room.is_free == is_free &&
                (!found || is_better(&room, best))) {
                room.place = place_of(slots, number - 1, at);
                *best = room;
                found = true;
            }
            at += (size_t)1 << part_at(slot, at)->order;
        }
    }
    return found;
}

bool vst__slots_find_free(const vst__slots *slots, uint32_t size,
                          vst__slot_room *room)
{
    return find(slots, order_of(size), true, room);
}

bool vst__slots_find_oldest(const vst__slots *slots, uint32_t size,
                            vst__slot_room *room)
{
    bool found = find(slots, order_of(size), false, room);
    uint32_t number = slots->sealed_first;

    if (number == 0)
        return found;
    const part *whole = &slots->slots[number - 1].whole;
    if (found && room->last < whole->last)
        return true;
    *room = (vst__slot_room){
        .place = place_of(slots, number - 1, 0),
        .region_size = slots->size,
        .words = whole->words,
        .last = whole->last,
    };
    return true;
}

bool vst__slots_may_grow(const vst__slots *slots, uint64_t end)
{
    return slots->max_size == 0 ||
           (end <= slots->max_size && slots->max_size - end >= slots->size);
}

bool vst__slots_is_due(const vst__slots *slots, const vst__slot_room *oldest,
                       uint64_t end, vst_ticks now)
{
    return !vst__slots_may_grow(slots, end) ||
           (slots->keep != 0 && oldest->last < now &&
            now - oldest->last > slots->keep);
}

/* ---- taking it --------------------------------------------------------------
 */

/* Halves a slot, as one part still. */
static vst_status halve(const vst__slots *slots, vst__slot *slot)
{
    if (slot->parts)
        return VST_OK;
    slot->parts =
        vst__calloc(slots->size / VST_SLOT_PART_LEAST, sizeof *slot->parts);
    if (!slot->parts)
        return VST_E_NOMEM;
    slot->parts[0] = slot->whole;
    return VST_OK;
}

static void make_whole(vst__slot *slot, part whole)
{
    vst__free(slot->parts);
    slot->parts = NULL;
    slot->whole = whole;
    slot->last_chunk = 0;
}

vst_status vst__slots_prepare(vst__slots *slots, uint64_t place, uint32_t size)
{
    size_t index = index_of(slots, place);

    if (index >= slots->capacity) {
        size_t capacity = slots->capacity != 0 ? slots->capacity : SLOTS;

        while (capacity <= index)
            capacity *= 2;
        vst__slot *grown = vst__realloc(slots->slots, capacity * sizeof *grown);
        if (!grown)
            return VST_E_NOMEM;
        slots->slots = grown;
        slots->capacity = capacity;
    }
    while (slots->count <= index)
        slots->slots[slots->count++] = (vst__slot){.whole = {.order = 0}};
    vst__slot *slot = &slots->slots[index];
    slot->whole.order = order_of(slots->size);
    return size < slots->size ? halve(slots, slot) : VST_OK;
}

void vst__slots_add(vst__slots *slots, uint64_t place)
{
    size_t index = index_of(slots, place);
    vst__slot *slot = &slots->slots[index];

    slot->whole.state = FREE;
    if (slot->parts)
        slot->parts[0] = slot->whole;
    link_mixed(slots, (uint32_t)index + 1);
}

/* What is left of the region becomes free parts, the larger the further. */
void vst__slots_take(vst__slots *slots, const vst__slot_room *room,
                     uint32_t size)
{
    size_t index = index_of(slots, room->place);
    size_t first = first_of(slots, room->place);
    vst__slot *slot = &slots->slots[index];
    uint8_t order = order_of(size), all = order_of(room->region_size);
    part taken = {.order = order, .state = IN_USE};

    if (slot->is_sealed) {
        unlink_slot(slots, (uint32_t)index + 1);
        link_mixed(slots, (uint32_t)index + 1);
    }
    if (size == slots->size) {
        make_whole(slot, taken);
    } else {
        slot->parts[first] = taken;
        for (; order < all; order++)
            slot->parts[first + ((size_t)1 << order)] =
                (part){.order = order, .state = FREE};
    }
    slot->in_use++;
    slots->in_use++;
}

void vst__slots_give_away(vst__slots *slots, uint64_t place)
{
    size_t index = index_of(slots, place);

    unlink_slot(slots, (uint32_t)index + 1);
    make_whole(&slots->slots[index],
               (part){.order = order_of(slots->size), .state = NOT_RECORDS});
}

void vst__slots_seal(vst__slots *slots, uint64_t place, vst_ticks last,
                     uint64_t words)
{
    size_t index = index_of(slots, place), first = first_of(slots, place);
    vst__slot *slot = &slots->slots[index];
    part *sealed = slot->parts ? &slot->parts[first] : &slot->whole;
    vst__slot_room room;
    size_t last_part = 0;

    sealed->state = SEALED;
    sealed->last = last;
    sealed->words = words;
    slots->in_use--;
    if (--slot->in_use != 0 ||
        !region_at(slot, 0, order_of(slots->size), &room))
        return;
    /* Free parts are for the next thread, before a slot is whole again. */
    for (size_t at = 0; slot->parts && at < slots->size / VST_SLOT_PART_LEAST;
         at += (size_t)1 << slot->parts[at].order) {
        if (slot->parts[at].state == FREE)
            return;
        last_part = at;
    }
    make_whole(slot, (part){.order = order_of(slots->size),
                            .state = SEALED,
                            .last = room.last,
                            .words = room.words});
    slot->last_chunk = (uint32_t)last_part;
    unlink_slot(slots, (uint32_t)index + 1);
    link_sealed(slots, (uint32_t)index + 1);
}

uint64_t vst__slots_last_chunk(const vst__slots *slots, uint64_t place)
{
    size_t index = index_of(slots, place), last = 0;

    if (index >= slots->count)
        return place;
    if (!slots->slots[index].parts)
        return place_of(slots, index, slots->slots[index].last_chunk);
    const part *parts = slots->slots[index].parts;
    for (size_t at = 0; at < slots->size / VST_SLOT_PART_LEAST;
         at += (size_t)1 << parts[at].order)
        if (parts[at].state != FREE)
            last = at;
    return place_of(slots, index, last);
}
