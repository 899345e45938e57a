/* The clock map of clockmap.h. A sample comes with every chunk, so two samples
 * may be microseconds apart when many threads start together. A line through
 * such a pair would turn the jitter of the samples into a slope, so a sample
 * closer than MIN_APART to the previous one is left out. So is a sample that
 * goes backward, which keeps the map monotone whatever the file says. One
 * thread at a time. */
#include "store/clockmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum {
    MIN_APART_NS = 1000000,
    /* Fraction bits of a slope: 60 keep the error of a piece of 2^60 ticks
     * below a nanosecond. */
    SHIFT_MAX = 60
};

/* Limits of valid clocks (36 years since boot, 146 since 1970); sums of values
 * within them fit 64 bits. */
#define MONOTONIC_LIMIT ((int64_t)1 << 60)
#define REALTIME_LIMIT ((int64_t)1 << 62)
#define OFFSET_LIMIT ((int64_t)1 << 60)

__extension__ typedef unsigned __int128 u128;

void vst__clockmap_init(vst__clockmap *map)
{
    memset(map, 0, sizeof *map);
}

void vst__clockmap_free(vst__clockmap *map)
{
    free(map->samples);
    free(map->pieces);
    memset(map, 0, sizeof *map);
}

static bool is_sane(int64_t ns, int64_t limit)
{
    return ns > -limit && ns < limit;
}

vst_status vst__clockmap_add(vst__clockmap *map, const vst_clock_sample *sample)
{
    if (!is_sane(sample->monotonic_ns, MONOTONIC_LIMIT))
        return VST_OK;
    if (!VST_RESERVE(map->samples, map->sample_count + 1, map->sample_capacity))
        return VST_E_NOMEM;
    map->samples[map->sample_count++] = *sample;
    return VST_OK;
}

static int by_ticks(const void *a, const void *b)
{
    const vst_clock_sample *x = a, *y = b;

    if (x->ticks != y->ticks)
        return x->ticks < y->ticks ? -1 : 1;
    return (x->monotonic_ns > y->monotonic_ns) -
           (x->monotonic_ns < y->monotonic_ns);
}

/* Keeps samples that ascend on both clocks and are MIN_APART_NS from each
 * other. */
static void clockmap_thin(vst__clockmap *map)
{
    vst_clock_sample *samples = map->samples;
    size_t kept = 1;

    qsort(samples, map->sample_count, sizeof *samples, by_ticks);
    for (size_t i = 1; i < map->sample_count; i++)
        if (samples[i].ticks > samples[kept - 1].ticks &&
            samples[i].monotonic_ns >=
                samples[kept - 1].monotonic_ns + MIN_APART_NS)
            samples[kept++] = samples[i];
    map->sample_count = kept;
}

/* Sets the slope to ns / ticks, rounded down, with as many fraction bits as
 * fit. */
static void set_slope(vst__clock_piece *piece, uint64_t ns, uint64_t ticks)
{
    u128 slope;

    piece->shift = SHIFT_MAX;
    slope = ((u128)ns << piece->shift) / ticks;
    while (slope >> 63 != 0) {
        slope >>= 1;
        piece->shift--;
    }
    piece->mult = (uint64_t)slope;
}

static int64_t clockmap_distance(const vst__clock_piece *piece, uint64_t ticks)
{
    u128 ns = (u128)ticks * piece->mult >> piece->shift;

    return ns < (u128)MONOTONIC_LIMIT ? (int64_t)ns : MONOTONIC_LIMIT;
}

/* Uses the ticks of a thousand seconds, which hold the rate to 13 digits. */
static vst__clock_piece piece_outside(double ticks_per_second)
{
    vst__clock_piece piece = {.span = UINT64_MAX};

    set_slope(&piece, (uint64_t)1000 * 1000000000,
              (uint64_t)(ticks_per_second * 1000));
    return piece;
}

static void drop_samples(vst__clockmap *map)
{
    free(map->samples);
    map->samples = NULL;
    map->sample_count = map->sample_capacity = 0;
}

/* Ends the last piece at the sample, and begins another piece there. */
static void extend_to(vst__clockmap *map, const vst_clock_sample *sample,
                      const vst__clock_piece *outside)
{
    vst__clock_piece *last = &map->pieces[map->count - 1];
    int64_t ns = sample->monotonic_ns + map->wall_ns + map->offset_ns;

    if (sample->ticks <= last->start || ns < last->base_ns + MIN_APART_NS)
        return;
    last->span = sample->ticks - last->start;
    set_slope(last, (uint64_t)(ns - last->base_ns), last->span);
    map->pieces[map->count] = *outside;
    map->pieces[map->count].start = sample->ticks;
    map->pieces[map->count++].base_ns = ns;
}

vst_status vst__clockmap_extend(vst__clockmap *map, double ticks_per_second)
{
    vst__clock_piece outside = piece_outside(ticks_per_second);
    vst__clock_piece *pieces;

    if (map->sample_count == 0)
        return VST_OK;
    pieces =
        realloc(map->pieces, (map->count + map->sample_count) * sizeof *pieces);
    if (pieces == NULL)
        return VST_E_NOMEM;
    map->pieces = pieces;
    qsort(map->samples, map->sample_count, sizeof *map->samples, by_ticks);
    for (size_t i = 0; i < map->sample_count; i++)
        extend_to(map, &map->samples[i], &outside);
    map->current = map->pieces[map->count - 1];
    drop_samples(map);
    return VST_OK;
}

vst_status vst__clockmap_build(vst__clockmap *map, double ticks_per_second,
                               const vst_clock_sample *start)
{
    int64_t wall = 0;
    vst__clock_piece outside = piece_outside(ticks_per_second);
    vst_status status = VST_OK;

    if (is_sane(start->monotonic_ns, MONOTONIC_LIMIT) &&
        is_sane(start->realtime_ns, REALTIME_LIMIT)) {
        wall = start->realtime_ns - start->monotonic_ns;
        status = vst__clockmap_add(map, start);
    }
    map->wall_ns = wall;
    if (status == VST_OK && map->sample_count == 0)
        status =
            vst__clockmap_add(map, &(vst_clock_sample){start->ticks, 0, 0});
    if (status != VST_OK)
        return status;
    clockmap_thin(map);
    map->pieces = calloc(map->sample_count, sizeof *map->pieces);
    if (map->pieces == NULL)
        return VST_E_NOMEM;
    map->count = map->sample_count;
    for (size_t i = 0; i < map->count; i++) {
        vst__clock_piece *piece = &map->pieces[i];
        const vst_clock_sample *sample = &map->samples[i];

        *piece = outside;
        piece->start = sample->ticks;
        piece->base_ns = sample->monotonic_ns + wall;
        if (i + 1 < map->count) {
            piece->span = sample[1].ticks - sample->ticks;
            set_slope(piece,
                      (uint64_t)(sample[1].monotonic_ns - sample->monotonic_ns),
                      piece->span);
        }
    }
    map->before = outside;
    map->current = map->pieces[0];
    drop_samples(map);
    return VST_OK;
}

vst_status vst__clockmap_set_offset(vst__clockmap *map, int64_t offset_ns)
{
    int64_t shift;

    if (offset_ns < -OFFSET_LIMIT || offset_ns > OFFSET_LIMIT)
        return VST_E_ARGUMENT;
    shift = offset_ns - map->offset_ns;
    for (size_t i = 0; i < map->count; i++)
        map->pieces[i].base_ns += shift;
    map->current.base_ns += shift;
    map->offset_ns = offset_ns;
    return VST_OK;
}

/* Finds the piece for a time outside the current piece, and makes it
 * current. */
static int64_t clockmap_find(vst__clockmap *map, vst_ticks ticks)
{
    size_t low = 0, high = map->count;
    const vst__clock_piece *first = &map->pieces[0];

    if (ticks < first->start)
        return first->base_ns -
               clockmap_distance(&map->before, first->start - ticks);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (map->pieces[middle].start <= ticks)
            low = middle;
        else
            high = middle;
    }
    map->current = map->pieces[low];
    return map->current.base_ns +
           clockmap_distance(&map->current, ticks - map->current.start);
}

int64_t vst__clockmap_to_ns(vst__clockmap *map, vst_ticks ticks)
{
    const vst__clock_piece *piece = &map->current;
    uint64_t delta = ticks - piece->start;

    if (ticks >= piece->start && delta < piece->span)
        return piece->base_ns + clockmap_distance(piece, delta);
    return clockmap_find(map, ticks);
}

int64_t vst__clockmap_monotonic_to_ns(const vst__clockmap *map,
                                      uint64_t monotonic_ns)
{
    if (monotonic_ns > (uint64_t)MONOTONIC_LIMIT)
        monotonic_ns = (uint64_t)MONOTONIC_LIMIT;
    return (int64_t)monotonic_ns + map->wall_ns + map->offset_ns;
}

vst_ticks vst__clockmap_to_ticks(vst__clockmap *map, int64_t ns)
{
    vst_ticks low = 0, high = UINT64_MAX;

    while (low < high) {
        vst_ticks middle = low + (high - low) / 2;
        if (vst__clockmap_to_ns(map, middle) < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t to_ns(void *ctx, vst_ticks ticks)
{
    return vst__clockmap_to_ns(ctx, ticks);
}

vst_time_converter vst__clockmap_converter(vst__clockmap *map)
{
    vst_time_converter converter = {to_ns, map};

    return converter;
}
