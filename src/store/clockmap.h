/* Converts ticks to nanoseconds of the wall clock, as format.h specifies:
 * piecewise linear between clock samples, monotone, in integers. One thread at
 * a time, because the map remembers the piece used last. */
#ifndef VST_STORE_CLOCKMAP_H
#define VST_STORE_CLOCKMAP_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/clock.h>
#include <vestige/status.h>

/* A straight piece: ns = base + ((ticks - start) * mult >> shift). */
typedef struct vst__clock_piece {
    vst_ticks start;
    uint64_t span; /* how many ticks the piece covers */
    int64_t base_ns;
    uint64_t mult;
    uint32_t shift;
} vst__clock_piece;

typedef struct vst__clockmap {
    vst_clock_sample *samples; /* kept until the map is built */
    size_t sample_count;
    size_t sample_capacity;
    vst__clock_piece *pieces;
    size_t count;
    vst__clock_piece current;
    /* covers times before the first sample, running backward */
    vst__clock_piece before;
    int64_t offset_ns; /* already included in the pieces */
    int64_t wall_ns;   /* wall time minus MONOTONIC, without the offset */
} vst__clockmap;

void vst__clockmap_init(vst__clockmap *map);
void vst__clockmap_free(vst__clockmap *map);
vst_status vst__clockmap_add(vst__clockmap *map,
                             const vst_clock_sample *sample);
/* Builds the map from the added samples. `start` is the file's own sample, from
 * which wall time is counted. */
vst_status vst__clockmap_build(vst__clockmap *map, double ticks_per_second,
                               const vst_clock_sample *start);
/* Continues a map with the samples added since it was built. Times before the
 * last sample that the map had do not change. */
vst_status vst__clockmap_extend(vst__clockmap *map, double ticks_per_second);
/* Shifts all times by offset_ns. Returns VST_E_ARGUMENT if no valid clock can
 * be that wrong. */
vst_status vst__clockmap_set_offset(vst__clockmap *map, int64_t offset_ns);
int64_t vst__clockmap_to_ns(vst__clockmap *map, vst_ticks ticks);
/* Converts a time of CLOCK_MONOTONIC; a damaged file may hold any value. */
int64_t vst__clockmap_monotonic_to_ns(const vst__clockmap *map,
                                      uint64_t monotonic_ns);
/* Returns the first ticks that are not before `ns`. */
vst_ticks vst__clockmap_to_ticks(vst__clockmap *map, int64_t ns);
vst_time_converter vst__clockmap_converter(vst__clockmap *map);

#endif
