/* See spread.h. */
#include "tables/spread.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SUB = 16, SUB_BITS = 4 };

/* Returns a duration's bin. Below 16 ns a bin is a nanosecond wide; above, a
 * sixteenth of the largest power of two that is not above the duration. */
static uint32_t bin_of(int64_t ns)
{
    uint64_t value = ns > 0 ? (uint64_t)ns : 0;
    uint32_t power, bin;

    if (value < SUB)
        return (uint32_t)value;
    power = 63 - (uint32_t)__builtin_clzll(value);
    bin = (power - SUB_BITS + 1) * SUB +
          (uint32_t)((value >> (power - SUB_BITS)) & (SUB - 1));
    return bin < VST_SPREAD_BINS ? bin : VST_SPREAD_BINS - 1;
}

/* Returns where a bin begins. */
static double start_of(uint32_t bin)
{
    if (bin < SUB)
        return bin;
    return ldexp(SUB + bin % SUB, (int)(bin / SUB) - 1);
}

/* ---- how many took how long ---------------------------------------------- */

/* Returns whether a count has reached a power of two, so that the room must
 * double. */
static bool is_full(uint32_t count, uint32_t first)
{
    return count == 0 || (count >= first && (count & (count - 1)) == 0);
}

static bool add_to_few(vst__spread *s, uint32_t bin)
{
    enum { FIRST = 4 };
    uint32_t count = s->few_count;

    if (is_full(count, FIRST)) {
        size_t room = count ? 2 * (size_t)count : FIRST;
        uint16_t *few = realloc(s->few, room * sizeof *few);
        if (few == NULL)
            return false;
        s->few = few;
    }
    s->few[s->few_count++] = (uint16_t)bin;
    return true;
}

static void spread_fill(const vst__spread *s, uint32_t *bins)
{
    for (uint32_t i = 0; i < s->few_count; i++)
        bins[s->few[i]]++;
}

static bool make_bins(vst__spread *s)
{
    s->bins = calloc(VST_SPREAD_BINS, sizeof *s->bins);
    if (s->bins == NULL)
        return false;
    spread_fill(s, s->bins);
    free(s->few);
    s->few = NULL;
    s->few_count = 0;
    return true;
}

static void count_in(vst__spread *s, uint32_t bin)
{
    bool done = true;

    if (s->bins == NULL && s->few_count == VST_SPREAD_FEW)
        done = make_bins(s);
    if (done && s->bins != NULL)
        s->bins[bin]++;
    else if (done)
        done = add_to_few(s, bin);
    s->count += done;
}

/* ---- means of stretches -------------------------------------------------- */

static bool end_stretch(vst__spread *s)
{
    enum { FIRST = 2 };

    if (is_full(s->used, FIRST) && s->size == 1) {
        size_t room = s->used ? 2 * (size_t)s->used : FIRST;
        double *sums = realloc(s->sums, room * sizeof *sums);
        if (sums == NULL)
            return false;
        s->sums = sums;
    }
    s->sums[s->used++] = s->current;
    return true;
}

void vst__spread_add(vst__spread *s, int64_t ns)
{
    count_in(s, bin_of(ns));
    s->size += s->size == 0;
    s->current += (double)ns;
    if (++s->in_current != s->size)
        return;
    if (!end_stretch(s)) { /* without memory the stretch goes on */
        s->in_current--;
        return;
    }
    s->current = 0;
    s->in_current = 0;
    if (s->used != VST_SPREAD_STRETCHES)
        return;
    for (uint32_t i = 0; i < VST_SPREAD_STRETCHES / 2; i++)
        s->sums[i] = s->sums[2 * i] + s->sums[2 * i + 1];
    s->used = VST_SPREAD_STRETCHES / 2;
    s->size *= 2;
}

void vst__spread_free(vst__spread *s)
{
    free(s->sums);
    free(s->few);
    free(s->bins);
}

/* ---- what they come to --------------------------------------------------- */

static double error_of_mean(const vst__spread *s)
{
    double mean = 0, square = 0, count = s->used;

    if (s->used < 2)
        return -1;
    for (uint32_t i = 0; i < s->used; i++)
        mean += s->sums[i] / count;
    for (uint32_t i = 0; i < s->used; i++)
        square += (s->sums[i] - mean) * (s->sums[i] - mean);
    return sqrt(square / (count - 1) / count) / (double)s->size;
}

/* Returns the time that this share of the calls stayed below, interpolated
 * inside a bin. */
static double spread_quantile(const uint32_t *bins, uint64_t count,
                              double share)
{
    double wanted = share * (double)count, before = 0;

    for (uint32_t bin = 0; bin < VST_SPREAD_BINS; bin++) {
        double inside = bins[bin];
        if (inside > 0 && before + inside >= wanted) {
            double start = start_of(bin);
            double width = start_of(bin + 1) - start;
            return start + width * (wanted - before) / inside;
        }
        before += inside;
    }
    return start_of(VST_SPREAD_BINS - 1);
}

/* The error of the median is half the distance between the quantiles one
 * standard error of the rank below and above it. */
vst__typical vst__spread_typical(const vst__spread *s)
{
    vst__typical typical = {error_of_mean(s), -1, -1};
    uint32_t few[VST_SPREAD_BINS] = {0};
    const uint32_t *bins = s->bins != NULL ? s->bins : few;

    if (!s->count)
        return typical;
    spread_fill(s, few);
    typical.median = spread_quantile(bins, s->count, 0.5);
    if (s->count > 1) {
        double rank = 0.5 / sqrt((double)s->count);
        typical.error_of_median =
            (spread_quantile(bins, s->count, 0.5 + rank) -
             spread_quantile(bins, s->count, 0.5 - rank)) /
            2;
    }
    return typical;
}
