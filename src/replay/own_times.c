/* Computes own times, see own_times.h. */
#include "replay/own_times.h"

#include <stdlib.h>
#include <string.h>

static bool own_times_reserve(vst__own_times *times, size_t depth)
{
    size_t capacity = times->capacity ? times->capacity : 64;
    struct vst__own_level *levels;

    if (depth < times->capacity)
        return true;
    while (capacity <= depth)
        capacity *= 2;
    levels = realloc(times->levels, capacity * sizeof *levels);
    if (levels == NULL)
        return false;
    memset(levels + times->capacity, 0,
           (capacity - times->capacity) * sizeof *levels);
    times->levels = levels;
    times->capacity = capacity;
    return true;
}

/* Takes out the sums of everything that waits deeper than `depth`. */
static struct vst__own_level own_times_gather(vst__own_times *times,
                                              size_t depth)
{
    struct vst__own_level sum = {.ns = 0};

    while (times->top > depth + 1) {
        struct vst__own_level *level = &times->levels[--times->top];
        sum.ns += level->ns;
        sum.count += level->count;
        sum.missing_ns += level->missing_ns;
        if (level->count)
            sum.last = level->last;
        *level = (struct vst__own_level){.ns = 0};
    }
    return sum;
}

static void own_times_add(vst__own_times *times, size_t depth,
                          struct vst__own_level more)
{
    struct vst__own_level *level = &times->levels[depth];

    if (depth >= times->top)
        times->top = depth + 1;
    level->ns += more.ns;
    level->count += more.count;
    level->missing_ns += more.missing_ns;
    if (more.count)
        level->last = more.last;
}

bool vst__own_times_end(vst__own_times *times, const vst_span *span, bool shown,
                        int64_t *self_ns)
{
    int64_t duration = span->end_ns - span->start_ns;
    struct vst__own_level inside;

    *self_ns = duration;
    times->children = 0;
    if (span->flags & VST_SPAN_ASYNC)
        return true;
    if (!own_times_reserve(times, span->depth))
        return false;
    if (times->thread != span->thread) {
        times->thread = span->thread;
        memset(times->levels, 0, times->capacity * sizeof *times->levels);
        times->top = 0;
    }
    inside = own_times_gather(times, span->depth);
    *self_ns = duration > inside.ns ? duration - inside.ns : 0;
    times->children = inside.count;
    times->child = inside.last;
    times->missing_ns = inside.missing_ns;
    if (shown)
        inside = (struct vst__own_level){.ns = duration, .count = 1};
    own_times_add(times, span->depth, inside);
    return true;
}

void vst__own_times_leave(vst__own_times *times, uint32_t depth)
{
    if (times->top > (size_t)depth + 1)
        own_times_add(times, depth, own_times_gather(times, depth));
}
