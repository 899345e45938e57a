/* The slots of slots.h. One thread at a time. */
#include "store/slots.h"

#include <string.h>

#include "base/heap.h"

enum {
    SLOTS = 64, /* that a bound in bytes is divided into, at least */
    SIZE_LEAST = 16 * 1024,
    SIZE_MOST = 1024 * 1024,
    SIZE_BY_TIME = 256 * 1024, /* where only time bounds the file */
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
    vst__free(slots->sealed);
    memset(slots, 0, sizeof *slots);
}

vst_status vst__slots_add(vst__slots *slots)
{
    if (slots->count == slots->capacity) {
        size_t capacity = slots->capacity != 0 ? slots->capacity * 2 : SLOTS;
        vst__slot_sealed *ring = vst__alloc(capacity * sizeof *ring);

        if (ring == NULL)
            return VST_E_NOMEM;
        for (size_t i = 0; i < slots->used; i++)
            ring[i] = slots->sealed[(slots->first + i) % slots->capacity];
        vst__free(slots->sealed);
        slots->sealed = ring;
        slots->capacity = capacity;
        slots->first = 0;
    }
    slots->count++;
    return VST_OK;
}

void vst__slots_seal(vst__slots *slots, const vst__slot_sealed *slot)
{
    slots->sealed[(slots->first + slots->used++) % slots->capacity] = *slot;
}

const vst__slot_sealed *vst__slots_oldest(const vst__slots *slots)
{
    return slots->used != 0 ? &slots->sealed[slots->first] : NULL;
}

void vst__slots_take_oldest(vst__slots *slots)
{
    slots->first = (slots->first + 1) % slots->capacity;
    slots->used--;
}

bool vst__slots_may_grow(const vst__slots *slots, uint64_t end)
{
    return slots->max_size == 0 ||
           (end <= slots->max_size && slots->max_size - end >= slots->size);
}

const vst__slot_sealed *vst__slots_due(const vst__slots *slots, uint64_t end,
                                       vst_ticks now)
{
    const vst__slot_sealed *oldest = vst__slots_oldest(slots);
    bool is_old = oldest != NULL && slots->keep != 0 && oldest->last < now &&
                  now - oldest->last > slots->keep;

    return is_old || !vst__slots_may_grow(slots, end) ? oldest : NULL;
}
