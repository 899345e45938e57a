/* See histogram.h. */
#include "tables/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- buckets ------------------------------------------------------------- */

/* The C library's log2 and exp2 would need version 2.29 of it, and wheels run
 * on 2.28. The functions here are exact at powers of two. */

/* Returns the index of a value's bucket at the first scale; ns is at least 1. A
 * power of two is the last value of its bucket. */
static int32_t index_of(int64_t ns)
{
    const int32_t per_power = 1 << VST_HISTOGRAM_SCALE;
    int zeros = __builtin_clzll((uint64_t)ns);
    int64_t part = ns << (zeros - 1); /* from 2^62 to 2^63 */
    double log = log1p((double)part * 0x1p-62 - 1) * (per_power / M_LN2);

    return (63 - zeros) * per_power + (int32_t)log - (log == 0);
}

static double binary_power(double exponent)
{
    double whole = floor(exponent);

    return ldexp(1 + expm1((exponent - whole) * M_LN2), (int)whole);
}

/* Returns where a bucket begins. */
static double start_of(const vst__histogram *h, int64_t index)
{
    return binary_power(ldexp((double)index, -h->scale));
}

/* Divides by two and rounds down, for negative indices too. */
static int64_t halve(int64_t index, int times)
{
    return index >> times;
}

/* Joins neighbouring buckets in pairs. */
static void histogram_coarsen(vst__histogram *h)
{
    int32_t offset = (int32_t)halve(h->offset, 1);
    uint32_t used = 0;

    for (uint32_t i = 0; i < h->used; i++) {
        uint32_t to = (uint32_t)(halve((int64_t)h->offset + i, 1) - offset);
        uint64_t inside = h->buckets[i];

        if (to >= used)
            h->buckets[used++] = inside;
        else
            h->buckets[to] += inside;
    }
    h->offset = offset;
    h->used = used;
    h->scale--;
}

/* Makes room for the bucket of an index; the buckets in between are empty. */
static bool make_room(vst__histogram *h, int64_t index)
{
    uint32_t before = index < h->offset ? (uint32_t)(h->offset - index) : 0;
    uint32_t used = h->used + before, room = h->room != 0 ? h->room : 16;
    uint64_t *grown;

    if (index >= h->offset + (int64_t)h->used)
        used = (uint32_t)(index - h->offset) + 1;
    while (room < used)
        room *= 2;
    if (room > h->room) {
        grown = realloc(h->buckets, room * sizeof *grown);
        if (grown == NULL)
            return false;
        h->buckets = grown;
        h->room = room;
    }
    memmove(h->buckets + before, h->buckets, h->used * sizeof *h->buckets);
    memset(h->buckets, 0, before * sizeof *h->buckets);
    memset(h->buckets + before + h->used, 0,
           (used - before - h->used) * sizeof *h->buckets);
    h->offset -= (int32_t)before;
    h->used = used;
    return true;
}

/* Counts values in the bucket with this index at this scale. */
static bool count_at(vst__histogram *h, int64_t index, int scale, uint64_t many)
{
    int64_t at, first, last;

    if (h->used == 0)
        h->scale = scale;
    while (h->scale > scale)
        histogram_coarsen(h);
    for (;; histogram_coarsen(h)) {
        at = halve(index, scale - h->scale);
        if (h->used == 0)
            h->offset = (int32_t)at;
        first = at < h->offset ? at : h->offset;
        last = h->offset + (int64_t)h->used - 1;
        last = at > last ? at : last;
        if (last - first < VST_HISTOGRAM_BUCKETS)
            break;
    }
    if ((at < h->offset || at >= h->offset + (int64_t)h->used) &&
        !make_room(h, at))
        return false;
    h->buckets[at - h->offset] += many;
    return true;
}

static bool count_value(vst__histogram *h, int64_t ns)
{
    if (ns > 0)
        return count_at(h, index_of(ns), VST_HISTOGRAM_SCALE, 1);
    h->zeros++;
    return true;
}

/* ---- values -------------------------------------------------------------- */

static bool is_exact(const vst__histogram *h)
{
    return h->count == 0 || h->values != NULL;
}

static void forget_buckets(vst__histogram *h)
{
    free(h->buckets);
    h->buckets = NULL;
    h->zeros = 0;
    h->used = h->room = 0;
}

/* Changes from single values to buckets. */
static bool histogram_to_buckets(vst__histogram *h)
{
    for (uint64_t i = 0; h->values != NULL && i < h->count; i++)
        if (!count_value(h, h->values[i])) {
            forget_buckets(h);
            return false;
        }
    free(h->values);
    h->values = NULL;
    return true;
}

static bool keep_value(vst__histogram *h, int64_t ns)
{
    enum { FIRST = 4 };
    bool is_full = h->count == 0 ||
                   (h->count >= FIRST && (h->count & (h->count - 1)) == 0);

    if (is_full) {
        size_t room = h->count != 0 ? 2 * (size_t)h->count : FIRST;
        int64_t *grown = realloc(h->values, room * sizeof *grown);

        if (grown == NULL)
            return false;
        h->values = grown;
    }
    h->values[h->count] = ns;
    return true;
}

/* Updates count, sum and limits for values that are counted already. */
static void histogram_sum_up(vst__histogram *h, uint64_t count, int64_t sum_ns,
                             int64_t min_ns, int64_t max_ns)
{
    if (h->count == 0 || min_ns < h->min_ns)
        h->min_ns = min_ns;
    if (h->count == 0 || max_ns > h->max_ns)
        h->max_ns = max_ns;
    /* In a damaged file, calls may last centuries. */
    h->sum_ns = h->sum_ns > INT64_MAX - sum_ns ? INT64_MAX : h->sum_ns + sum_ns;
    h->count += count;
}

vst_status vst__histogram_add(vst__histogram *h, int64_t ns)
{
    bool done;

    if (ns < 0)
        ns = 0;
    if (is_exact(h) && h->count < VST_HISTOGRAM_EXACT)
        done = keep_value(h, ns);
    else
        done = (h->values == NULL || histogram_to_buckets(h)) &&
               count_value(h, ns);
    if (done)
        histogram_sum_up(h, 1, ns, ns, ns);
    return done ? VST_OK : VST_E_NOMEM;
}

vst_status vst__histogram_merge(vst__histogram *h, const vst__histogram *other)
{
    vst_status status = VST_OK;

    if (is_exact(other)) {
        for (uint64_t i = 0; i < other->count && status == VST_OK; i++)
            status = vst__histogram_add(h, other->values[i]);
        return status;
    }
    if (!histogram_to_buckets(h))
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < other->used; i++)
        if (other->buckets[i] != 0 &&
            !count_at(h, (int64_t)other->offset + i, other->scale,
                      other->buckets[i]))
            return VST_E_NOMEM;
    h->zeros += other->zeros;
    histogram_sum_up(h, other->count, other->sum_ns, other->min_ns,
                     other->max_ns);
    return VST_OK;
}

void vst__histogram_free(vst__histogram *h)
{
    free(h->values);
    free(h->buckets);
    *h = (vst__histogram){.count = 0};
}

/* ---- shares -------------------------------------------------------------- */

static int compare_values(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static int64_t histogram_clamp(const vst__histogram *h, double ns)
{
    if (ns <= (double)h->min_ns)
        return h->min_ns;
    return ns >= (double)h->max_ns ? h->max_ns : (int64_t)ns;
}

int64_t vst__histogram_quantile(const vst__histogram *h, double share)
{
    uint64_t rank = (uint64_t)(share * (double)h->count), before = h->zeros;

    if (h->count == 0)
        return 0;
    if (rank >= h->count - 1)
        return h->max_ns;
    if (h->values != NULL) {
        qsort(h->values, h->count, sizeof *h->values, compare_values);
        return h->values[rank];
    }
    if (rank < before)
        return 0;
    for (uint32_t i = 0; i < h->used; i++) {
        uint64_t inside = h->buckets[i];

        if (rank < before + inside) {
            double start = start_of(h, (int64_t)h->offset + i);
            double width = start_of(h, (int64_t)h->offset + i + 1) - start;
            double part = ((double)(rank - before) + 0.5) / (double)inside;

            return histogram_clamp(h, start + part * width);
        }
        before += inside;
    }
    return h->max_ns;
}

uint64_t vst__histogram_above(const vst__histogram *h, int64_t ns,
                              int64_t *sum_ns)
{
    uint64_t count = 0;
    double sum = 0, start, end = start_of(h, h->offset);

    for (uint64_t i = 0; h->values != NULL && i < h->count; i++)
        if (h->values[i] >= ns) {
            sum += (double)h->values[i];
            count++;
        }
    for (uint32_t i = 0; i < h->used; i++) {
        start = end;
        end = start_of(h, (int64_t)h->offset + i + 1);
        if ((start + end) / 2 < (double)ns)
            continue;
        sum += (double)h->buckets[i] *
               (double)histogram_clamp(h, (start + end) / 2);
        count += h->buckets[i];
    }
    *sum_ns = sum < (double)h->sum_ns ? (int64_t)sum : h->sum_ns;
    return count;
}
