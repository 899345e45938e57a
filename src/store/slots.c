/* Splits, takes, seals, drops and joins the parts of slots. Each operation
 * costs a few steps, whatever the file holds. One thread at a time. */
#include "store/slot.h"

#include <string.h>

#include "base/heap.h"
#include "store/format.h"

enum {
    SLOTS_FIRST = 64,
    DRAINING = 16, /* at most one of this many slots drains */
};

/* ---- places -------------------------------------------------------------- */

static uint32_t slot_number_of(uint64_t place)
{
    return 1 + (uint32_t)((place - VST_FILE_HEADER_SIZE) / VST_SLOT_PART_LEAST);
}

uint64_t vst__part_place(uint32_t number)
{
    return VST_FILE_HEADER_SIZE + (uint64_t)(number - 1) * VST_SLOT_PART_LEAST;
}

/* Returns how many parts of the smallest size a slot has. */
static uint32_t parts_of_slot(const vst__slots *slots)
{
    return slots->size / VST_SLOT_PART_LEAST;
}

static size_t index_of(const vst__slots *slots, uint32_t number)
{
    return (number - 1) / parts_of_slot(slots);
}

static uint32_t first_of(const vst__slots *slots, uint32_t number)
{
    return (number - 1) % parts_of_slot(slots);
}

static vst__slot *slot_of(const vst__slots *slots, uint32_t number)
{
    return &slots->slots[index_of(slots, number)];
}

vst__part *vst__part_at(const vst__slots *slots, uint32_t number)
{
    vst__slot *slot = slot_of(slots, number);

    return slot->parts != NULL ? &slot->parts[first_of(slots, number)]
                               : &slot->whole;
}

/* ---- lists --------------------------------------------------------------- */

static void link_free(vst__slots *slots, uint32_t number)
{
    vst__part *part = vst__part_at(slots, number);
    uint32_t *first = &slots->free[part->order];

    part->previous = 0;
    part->next = *first;
    if (part->next)
        vst__part_at(slots, part->next)->previous = number;
    *first = number;
    slots->free_size += vst__part_size(part->order);
}

static void unlink_free(vst__slots *slots, uint32_t number)
{
    const vst__part *part = vst__part_at(slots, number);

    if (part->next)
        vst__part_at(slots, part->next)->previous = part->previous;
    if (part->previous)
        vst__part_at(slots, part->previous)->next = part->next;
    else
        slots->free[part->order] = part->next;
    slots->free_size -= vst__part_size(part->order);
}

static void link_newest(vst__slots *slots, uint32_t number)
{
    vst__part_at(slots, number)->next = 0;
    if (slots->newest)
        vst__part_at(slots, slots->newest)->next = number;
    else
        slots->oldest = number;
    slots->newest = number;
}

/* Sealed parts leave their list only here. */
static void unlink_oldest(vst__slots *slots)
{
    slot_of(slots, slots->oldest)->sealed--;
    slots->oldest = vst__part_at(slots, slots->oldest)->next;
    if (!slots->oldest)
        slots->newest = 0;
}

static void link_busy(vst__slots *slots, uint32_t number)
{
    vst__part *part = vst__part_at(slots, number);

    part->is_busy = true;
    part->next = 0;
    part->previous = slots->busy_last;
    if (part->previous)
        vst__part_at(slots, part->previous)->next = number;
    else
        slots->busy_first = number;
    slots->busy_last = number;
    slots->busy++;
}

static void unlink_busy(vst__slots *slots, uint32_t number)
{
    vst__part *part = vst__part_at(slots, number);

    if (!part->is_busy)
        return;
    part->is_busy = false;
    if (part->next)
        vst__part_at(slots, part->next)->previous = part->previous;
    else
        slots->busy_last = part->previous;
    if (part->previous)
        vst__part_at(slots, part->previous)->next = part->next;
    else
        slots->busy_first = part->next;
    slots->busy--;
}

/* Call when bytes were taken or time has passed. */
static void unlink_slow(vst__slots *slots, uint32_t taken, vst_ticks now)
{
    if (slots->max_size != 0)
        slots->taken += taken;
    else if (now > slots->taken)
        slots->taken = now;
    while (slots->busy_first &&
           slots->taken - vst__part_at(slots, slots->busy_first)->taken >
               slots->slow_after)
        unlink_busy(slots, slots->busy_first);
}

/* ---- halves -------------------------------------------------------------- */

/* Makes room to note the parts of a slot that is still one part. */
static vst_status slot_halve(const vst__slots *slots, vst__slot *slot)
{
    if (slot->parts != NULL)
        return VST_OK;
    slot->parts = vst__calloc(parts_of_slot(slots), sizeof *slot->parts);
    if (slot->parts == NULL)
        return VST_E_NOMEM;
    slot->parts[0] = slot->whole;
    return VST_OK;
}

/* Frees a part and joins it with its free neighbours. The two halves of a pair
 * have numbers that differ in one bit; they are joined if the other half is one
 * free part. */
static void make_free(vst__slots *slots, uint32_t number)
{
    vst__slot *slot = slot_of(slots, number);
    uint32_t slot_begin = number - first_of(slots, number);
    uint32_t first = number - slot_begin;
    uint8_t order = vst__part_at(slots, number)->order;
    uint8_t whole = vst__part_order(slots->size);

    vst__part_at(slots, number)->state = VST_PART_FREE;
    for (; order < whole; order++) {
        uint32_t other = first ^ (uint32_t)1 << order;
        const vst__part *half = vst__part_at(slots, slot_begin + other);

        if (half->state != VST_PART_FREE || half->order != order)
            break;
        if (!slot->is_draining)
            unlink_free(slots, slot_begin + other);
        first &= other;
    }
    if (order == whole) {
        vst__free(slot->parts);
        slot->parts = NULL;
    }
    *vst__part_at(slots, slot_begin + first) =
        (vst__part){.order = order, .state = VST_PART_FREE};
    if (!slot->is_draining)
        link_free(slots, slot_begin + first);
}

/* Shortens a part that is in no list. The cut-off room becomes free parts; the
 * farther away, the larger. */
static void slot_shorten(vst__slots *slots, uint32_t number, uint8_t order)
{
    uint8_t all = vst__part_at(slots, number)->order;

    vst__part_at(slots, number)->order = order;
    for (; order < all; order++) {
        uint32_t rest = number + ((uint32_t)1 << order);

        *vst__part_at(slots, rest) =
            (vst__part){.order = order, .state = VST_PART_FREE};
        link_free(slots, rest);
    }
}

/* ---- draining ------------------------------------------------------------ */

/* Many threads leave short parts behind, whose order in time is not the order
 * of their places. When one is dropped, its place is still short, and the next
 * chunk there is short too. So if longer chunks are wanted, some slots take no
 * new chunks until everything sealed in them was dropped; their free parts have
 * been joined by then. */

bool vst__part_is_drained(const vst__slots *slots, uint32_t number)
{
    return slot_of(slots, number)->is_draining;
}

/* Calls fn for each free part of a slot. */
static void each_free(vst__slots *slots, vst__slot *slot,
                      void (*call)(vst__slots *slots, uint32_t number))
{
    uint32_t begin = 1 + (uint32_t)(slot - slots->slots) * parts_of_slot(slots);

    for (uint32_t at = begin; at < begin + parts_of_slot(slots);) {
        const vst__part *part = vst__part_at(slots, at);
        uint32_t next = at + ((uint32_t)1 << part->order);

        if (part->state == VST_PART_FREE)
            call(slots, at);
        at = next;
    }
}

static void start_draining(vst__slots *slots, vst__slot *slot)
{
    if (slot->is_draining || slots->draining > slots->count / DRAINING)
        return;
    each_free(slots, slot, unlink_free);
    slot->is_draining = true;
    slots->draining++;
}

static void stop_draining(vst__slots *slots, vst__slot *slot)
{
    if (!slot->is_draining)
        return;
    slot->is_draining = false;
    slots->draining--;
    each_free(slots, slot, link_free);
}

/* Returns whether a slot should drain: its free parts are much too short, and
 * would become at least twice as long. Parts that threads hold stay where they
 * are. */
static bool is_worth_draining(const vst__slots *slots, const vst__slot *slot,
                              uint32_t size, uint32_t wanted)
{
    return size <= wanted / 4 &&
           (uint64_t)size * 2 * (slot->held + 1u) <= slots->size;
}

bool vst__slots_stop_draining(vst__slots *slots)
{
    bool any = slots->draining != 0;

    for (size_t i = 0; i < slots->count && slots->draining != 0; i++)
        stop_draining(slots, &slots->slots[i]);
    return any;
}

/* ---- functions of slots.h ------------------------------------------------ */

void vst__slots_free(vst__slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        vst__free(slots->slots[i].parts);
    vst__free(slots->slots);
    memset(slots, 0, sizeof *slots);
}

vst_status vst__slots_prepare(vst__slots *slots, uint64_t place, uint32_t size)
{
    size_t index = index_of(slots, slot_number_of(place));

    if (index >= slots->capacity) {
        size_t capacity = slots->capacity != 0 ? slots->capacity : SLOTS_FIRST;
        vst__slot *grown;

        while (capacity <= index)
            capacity *= 2;
        grown = vst__realloc(slots->slots, capacity * sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        slots->slots = grown;
        slots->capacity = capacity;
    }
    while (slots->count <= index) {
        vst__part fixed = {.order = vst__part_order(slots->size),
                           .state = VST_PART_FIXED};

        slots->slots[slots->count++] = (vst__slot){.whole = fixed};
    }
    return size < slots->size ? slot_halve(slots, &slots->slots[index])
                              : VST_OK;
}

void vst__slots_add(vst__slots *slots, uint64_t place)
{
    uint32_t number = slot_number_of(place);

    vst__part_at(slots, number)->state = VST_PART_FREE;
    link_free(slots, number);
}

static void slot_take(vst__slots *slots, const vst__slot_room *room,
                      vst__part part)
{
    uint32_t number = slot_number_of(room->place);

    if (room->is_free)
        unlink_free(slots, number);
    else
        unlink_oldest(slots);
    slot_of(slots, number)->held++;
    part.order = vst__part_at(slots, number)->order;
    *vst__part_at(slots, number) = part;
    slot_shorten(slots, number, vst__part_order(room->size));
}

void vst__slots_take(vst__slots *slots, const vst__slot_room *room,
                     uint32_t sequence, vst_ticks now)
{
    unlink_slow(slots, 0, now);
    slot_take(slots, room,
              (vst__part){.state = VST_PART_IN_USE,
                          .sequence = sequence,
                          .taken = slots->taken});
    link_busy(slots, slot_number_of(room->place));
    slots->in_use++;
    slots->in_use_size += room->size;
    unlink_slow(slots, room->size, now);
}

void vst__slots_take_fixed(vst__slots *slots, const vst__slot_room *room)
{
    slot_take(slots, room, (vst__part){.state = VST_PART_FIXED});
}

void vst__slots_drop_oldest(vst__slots *slots, uint32_t wanted)
{
    uint32_t number = slots->oldest;
    vst__slot *slot = slot_of(slots, number);
    uint32_t size = vst__part_size(vst__part_at(slots, number)->order);

    unlink_oldest(slots);
    make_free(slots, number);
    if (is_worth_draining(slots, slot, size, wanted))
        start_draining(slots, slot);
    if (slot->sealed == 0)
        stop_draining(slots, slot);
}

bool vst__slots_seal(vst__slots *slots, uint64_t place, vst_ticks last,
                     uint64_t words, bool has_waiting)
{
    uint32_t number = slot_number_of(place);
    vst__part *part = vst__part_at(slots, number);
    bool is_slow;

    unlink_slow(slots, 0, last);
    is_slow = !part->is_busy;
    unlink_busy(slots, number);
    slots->in_use--;
    slots->in_use_size -= vst__part_size(part->order);
    slot_of(slots, number)->held--;
    slot_of(slots, number)->sealed++;
    part->state = VST_PART_SEALED;
    part->last = last;
    part->words = (uint32_t)words;
    part->has_waiting = has_waiting;
    link_newest(slots, number);
    return is_slow;
}

bool vst__slots_has(const vst__slots *slots, uint64_t place, uint32_t sequence)
{
    uint32_t number = slot_number_of(place);
    size_t index = index_of(slots, number);
    const vst__part *part;

    if (index >= slots->count ||
        (slots->slots[index].parts == NULL && first_of(slots, number) != 0))
        return false;
    part = vst__part_at(slots, number);
    return (part->state == VST_PART_IN_USE || part->state == VST_PART_SEALED) &&
           part->sequence == sequence;
}

uint64_t vst__slots_last_chunk(const vst__slots *slots, uint64_t place)
{
    size_t index = index_of(slots, slot_number_of(place));
    const vst__part *parts;
    uint32_t last;

    if (index >= slots->count || slots->slots[index].parts == NULL)
        return place;
    parts = slots->slots[index].parts;
    last = 0;
    for (uint32_t at = 0; at < parts_of_slot(slots);
         at += (uint32_t)1 << parts[at].order)
        if (parts[at].state != VST_PART_FREE)
            last = at;
    return place + (uint64_t)last * VST_SLOT_PART_LEAST;
}
