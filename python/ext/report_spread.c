/* How much the calls of a function differ, in bounded memory and without
 * keeping them: see report.h. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

enum { SUB = 16, SUB_BITS = 4 };

/* Below 16 ns a bin is a nanosecond wide, from there on a sixteenth of the
 * power of two that it begins at or above. */
static uint32_t bin_of(int64_t ns)
{
    uint64_t value = ns > 0 ? (uint64_t)ns : 0;
    uint32_t power, bin;

    if (value < SUB)
        return (uint32_t)value;
    power = 63 - (uint32_t)__builtin_clzll(value);
    bin = (power - SUB_BITS + 1) * SUB +
          (uint32_t)((value >> (power - SUB_BITS)) & (SUB - 1));
    return bin < VPY_BINS ? bin : VPY_BINS - 1;
}

/* Where a bin begins. */
static double start_of(uint32_t bin)
{
    if (bin < SUB)
        return bin;
    return ldexp(SUB + bin % SUB, (int)(bin / SUB) - 1);
}

void vpy_spread_add(vpy_spread *s, int64_t ns)
{
    if (!s->bins)
        s->bins = calloc(VPY_BINS, sizeof *s->bins);
    if (s->bins) {
        s->bins[bin_of(ns)]++;
        s->count++;
    }
    s->size += s->size == 0;
    s->current += (double)ns;
    if (++s->in_current != s->size)
        return;
    s->sums[s->used++] = s->current;
    s->current = 0;
    s->in_current = 0;
    if (s->used != VPY_STRETCHES)
        return;
    for (uint32_t i = 0; i < VPY_STRETCHES / 2; i++)
        s->sums[i] = s->sums[2 * i] + s->sums[2 * i + 1];
    s->used = VPY_STRETCHES / 2;
    s->size *= 2;
}

static double error_of_mean(const vpy_spread *s)
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

/* What this share of the calls stayed below; inside a bin, in proportion. */
static double quantile(const vpy_spread *s, double share)
{
    double wanted = share * (double)s->count, before = 0;

    for (uint32_t bin = 0; bin < VPY_BINS; bin++) {
        double inside = s->bins[bin];
        if (inside > 0 && before + inside >= wanted) {
            double start = start_of(bin);
            double width = start_of(bin + 1) - start;
            return start + width * (wanted - before) / inside;
        }
        before += inside;
    }
    return start_of(VPY_BINS - 1);
}

/* The error of the median is half the distance of the quantiles that lie a
 * standard error of their rank around it. */
vpy_typical vpy_spread_typical(const vpy_spread *s)
{
    vpy_typical typical = {error_of_mean(s), -1, -1};

    if (!s->bins || !s->count)
        return typical;
    typical.median = quantile(s, 0.5);
    if (s->count > 1) {
        double rank = 0.5 / sqrt((double)s->count);
        typical.error_of_median =
            (quantile(s, 0.5 + rank) - quantile(s, 0.5 - rank)) / 2;
    }
    return typical;
}
