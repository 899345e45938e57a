/* The curve of memory use over time, see summary_pass.h. One thread at a time.
 */
#include "memory/summary_pass.h"

#include <stdlib.h>

#include "base/grow.h"

enum { FIRST_WIDTH_NS = 1000 };

bool vst__curve_begin(vst__curve *t)
{
    *t = (vst__curve){.width_ns = FIRST_WIDTH_NS};
    t->points = calloc(VST_MEMORY_POINTS_MAX, sizeof *t->points);
    return t->points != NULL;
}

static int64_t curve_place_of(const vst__curve *t, int64_t now)
{
    return now > t->first_ns ? (now - t->first_ns) / t->width_ns : 0;
}

void vst__curve_widen(vst__curve *t)
{
    size_t kept = 0;

    t->width_ns *= 2;
    for (size_t i = 0; i < t->count; i++) {
        vst_memory_point *from = &t->points[i], *to = &t->points[kept];

        if (kept == 0 || curve_place_of(t, from->last_ns) !=
                             curve_place_of(t, t->points[kept - 1].last_ns)) {
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
    t->place = kept != 0 ? curve_place_of(t, t->points[kept - 1].last_ns) : 0;
}
