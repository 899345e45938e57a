/* The slots of slots.h: decides how large a chunk is and where it goes.
 * slots.c keeps the parts. One thread at a time. */
#include "store/slots.h"

#include <string.h>

#include "store/slot.h"

enum {
    SLOTS = 64, /* a limit in bytes is divided into at least this many slots */
    SIZE_LEAST = 16 * 1024,
    SIZE_MOST = 1024 * 1024,
    SIZE_BY_TIME = 256 * 1024, /* slot size if only time bounds the file */
    /* A chunk takes 1/SHARES of its thread's share, so that some room is left
       for threads that come later. */
    SHARES = 8,
};

_Static_assert(SIZE_MOST == VST_SLOT_PART_LEAST << (VST_SLOT_ORDERS - 1),
               "the largest slot is the largest part");

/* Returns the size of slots, a power of two. */
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
    /* Keep a little more, because the clock's rate is not known well yet. */
    if (keep_ns != 0) {
        double ticks = (double)keep_ns * 1.01e-9 * ticks_per_second;
        slots->keep = ticks < 1e18 ? (vst_ticks)ticks + 1 : UINT64_MAX;
    }
    slots->slow_after = (max_size != 0 ? max_size : slots->keep) / 4;
}

/* ---- the size of a chunk ------------------------------------------------- */

uint32_t vst__slots_size_of_fixed(const vst__slots *slots, uint64_t size)
{
    uint32_t part = vst__part_size(vst__part_order(size));

    return part < slots->size ? part : slots->size;
}

/* Returns how much a chunk may take: a share of what is left after setting
 * aside one page for each of three times as many threads as exist. Threads that
 * record little do not count as sharers: however many they are, a busy thread
 * gets long chunks. */
static uint64_t fair_share(const vst__slots *slots)
{
    uint64_t gone =
        slots->in_use_size + slots->in_use * 3 * (uint64_t)VST_SLOT_PART_LEAST;

    if (gone >= slots->max_size)
        return 0;
    return (slots->max_size - gone) / SHARES / (slots->busy + 1);
}

uint32_t vst__slots_size_for(const vst__slots *slots, uint64_t wanted,
                             uint64_t least)
{
    uint8_t order = vst__part_order(wanted > least ? wanted : least);
    uint64_t share = slots->max_size != 0 ? fair_share(slots) : slots->size;

    if (vst__part_size(order) > slots->size)
        order = vst__part_order(slots->size);
    while (order != 0 && vst__part_size(order - 1u) >= least &&
           vst__part_size(order) > share)
        order--;
    return vst__part_size(order);
}

bool vst__slots_may_grow(const vst__slots *slots, uint64_t end)
{
    return slots->max_size == 0 ||
           (end <= slots->max_size && slots->max_size - end >= slots->size);
}

/* ---- the place of a chunk ------------------------------------------------ */

static vst__slot_room room_of(const vst__slots *slots, uint32_t number)
{
    const vst__part *part = vst__part_at(slots, number);

    return (vst__slot_room){
        .place = vst__part_place(number),
        .size = vst__part_size(part->order),
        .words = part->words,
        .is_free = part->state == VST_PART_FREE,
        .has_waiting = part->has_waiting,
    };
}

/* Returns the smallest free part that is long enough, 0 if there is none. */
static uint32_t find_free(const vst__slots *slots, uint32_t size)
{
    for (size_t order = vst__part_order(size); order < VST_SLOT_ORDERS; order++)
        if (slots->free[order])
            return slots->free[order];
    return 0;
}

/* Returns the largest free part if it has at least `least` bytes, else 0. */
static uint32_t find_largest(const vst__slots *slots, uint32_t least)
{
    for (size_t order = VST_SLOT_ORDERS; order-- > vst__part_order(least);)
        if (slots->free[order])
            return slots->free[order];
    return 0;
}

static bool is_due(const vst__slots *slots, const vst__part *oldest,
                   vst_ticks now)
{
    return slots->keep != 0 && oldest->last < now &&
           now - oldest->last > slots->keep;
}

static bool may_be_free(const vst__part *part)
{
    return part->state == VST_PART_FREE || part->state == VST_PART_SEALED;
}

/* Returns whether a part of that order would be free if all sealed parts were
 * dropped. */
static bool can_be_had(const vst__slots *slots, uint8_t order)
{
    uint32_t all = slots->size / VST_SLOT_PART_LEAST;
    uint32_t region = (uint32_t)1 << order;

    for (uint32_t begin = 1; begin <= slots->count * all;) {
        uint32_t at = begin;
        bool found = true;

        do {
            const vst__part *part = vst__part_at(slots, at);
            found = found && may_be_free(part);
            at += (uint32_t)1 << part->order;
        } while (at < begin + region);
        if (found)
            return true;
        begin = at;
    }
    return false;
}

/* Called if no free part fits: takes the oldest part if it is long enough. */
static vst__slot_step choose_oldest(const vst__slots *slots,
                                    const vst__slot_wish *wish,
                                    vst__slot_room *room)
{
    if (!slots->oldest)
        return VST_SLOT_NONE;
    *room = room_of(slots, slots->oldest);
    return room->size >= wish->least ? VST_SLOT_TAKE : VST_SLOT_NONE;
}

vst__slot_step vst__slots_choose(const vst__slots *slots,
                                 const vst__slot_wish *wish,
                                 vst__slot_room *room)
{
    bool crowded = slots->free_size >= slots->size;
    uint32_t oldest = slots->oldest;
    uint32_t free = find_free(slots, wish->size);

    if (wish->without_free)
        return choose_oldest(slots, wish, room);
    if (!free && (crowded || (!oldest && !wish->may_grow)))
        free = find_largest(slots, wish->least);
    if (free) {
        *room = room_of(slots, free);
        if (room->size > wish->size)
            room->size = wish->size;
        return VST_SLOT_TAKE;
    }
    if (oldest && (!wish->may_grow ||
                   is_due(slots, vst__part_at(slots, oldest), wish->now))) {
        *room = room_of(slots, oldest);
        if (room->size == wish->size && !vst__part_is_drained(slots, oldest))
            return VST_SLOT_TAKE;
        /* If much is free, drop a part only if dropping can make the room. */
        if (!crowded || can_be_had(slots, vst__part_order(wish->least)))
            return VST_SLOT_DROP;
    }
    return wish->may_grow ? VST_SLOT_GROW : VST_SLOT_NONE;
}
