/* Histograms as JSON, see histogram.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/histogram.h"

/* ---- writing ------------------------------------------------------------- */

typedef struct page {
    char *text;
    size_t length;
} page;

__attribute__((format(printf, 2, 3))) static void
page_put(page *to, const char *format, ...)
{
    size_t room = VST_HISTOGRAM_TEXT - to->length;
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf(to->text + to->length, room, format, values);
    va_end(values);
    if (length > 0 && (size_t)length < room)
        to->length += (size_t)length;
}

size_t vst__histogram_write(const vst__histogram *h,
                            char text[VST_HISTOGRAM_TEXT])
{
    page to = {text, 0};

    if (h->count == 0 || h->values != NULL) {
        page_put(&to, "{\"values\": [");
        for (uint64_t i = 0; i < h->count; i++)
            page_put(&to, "%s%" PRId64, i != 0 ? ", " : "", h->values[i]);
        page_put(&to, "]}");
        return to.length;
    }
    page_put(&to,
             "{\"count\": %" PRIu64 ", \"sum\": %" PRId64 ", \"min\": %" PRId64
             ", \"max\": %" PRId64 ", \"scale\": %" PRId32
             ", \"zeroCount\": %" PRIu64 ", \"positive\": {\"offset\": %" PRId32
             ", \"bucketCounts\": [",
             h->count, h->sum_ns, h->min_ns, h->max_ns, h->scale, h->zeros,
             h->offset);
    for (uint32_t i = 0; i < h->used; i++)
        page_put(&to, "%s%" PRIu64, i != 0 ? ", " : "", h->buckets[i]);
    page_put(&to, "]}}");
    return to.length;
}

/* ---- reading ------------------------------------------------------------- */

/* Reads the number behind `before`. Returns the place behind the number, or
 * NULL. */
static const char *histogram_take_number(const char *at, const char *before,
                                         int64_t *value)
{
    size_t length = strlen(before);
    char *end;

    if (at == NULL || strncmp(at, before, length) != 0)
        return NULL;
    *value = strtoll(at + length, &end, 10);
    return end != at + length ? end : NULL;
}

static vst_status read_values(vst__histogram *h, const char *at)
{
    vst_status status = VST_OK;
    int64_t value;

    if (strcmp(at, "]}") == 0)
        return VST_OK;
    at = histogram_take_number(at, "", &value);
    for (; at != NULL && status == VST_OK;
         at = histogram_take_number(at, ", ", &value)) {
        status = vst__histogram_add(h, value);
        if (strcmp(at, "]}") == 0)
            return status;
    }
    return status != VST_OK ? status : VST_E_ARGUMENT;
}

/* Reads the counts of buckets from `at` on, at most as many as one histogram
 * has. */
static const char *read_buckets(vst__histogram *from, const char *at,
                                uint64_t counts[VST_HISTOGRAM_BUCKETS])
{
    uint64_t count = from->zeros;
    int64_t value;

    from->buckets = counts;
    if (at != NULL && strcmp(at, "]}}") == 0)
        return count == from->count ? at : NULL;
    for (at = histogram_take_number(at, "", &value);
         at != NULL && from->used < VST_HISTOGRAM_BUCKETS && value >= 0;
         at = histogram_take_number(at, ", ", &value)) {
        counts[from->used++] = (uint64_t)value;
        count += (uint64_t)value;
        if (strcmp(at, "]}}") == 0)
            return count == from->count ? at : NULL;
    }
    return NULL;
}

vst_status vst__histogram_read(vst__histogram *h, const char *text)
{
    static const char values[] = "{\"values\": [",
                      buckets[] = ", \"bucketCounts\": [";
    uint64_t counts[VST_HISTOGRAM_BUCKETS];
    vst__histogram from = {.count = 0};
    int64_t count, zeros = 0, scale = 0, offset = 0;
    const char *at;

    if (strncmp(text, values, sizeof values - 1) == 0)
        return read_values(h, text + sizeof values - 1);
    at = histogram_take_number(text, "{\"count\": ", &count);
    at = histogram_take_number(at, ", \"sum\": ", &from.sum_ns);
    at = histogram_take_number(at, ", \"min\": ", &from.min_ns);
    at = histogram_take_number(at, ", \"max\": ", &from.max_ns);
    at = histogram_take_number(at, ", \"scale\": ", &scale);
    at = histogram_take_number(at, ", \"zeroCount\": ", &zeros);
    at = histogram_take_number(at, ", \"positive\": {\"offset\": ", &offset);
    if (at == NULL || strncmp(at, buckets, sizeof buckets - 1) != 0)
        return VST_E_ARGUMENT;
    if (count <= 0 || zeros < 0 || scale > VST_HISTOGRAM_SCALE || scale < -6 ||
        offset < -1 || offset > 1 << 14)
        return VST_E_ARGUMENT;
    from.count = (uint64_t)count;
    from.zeros = (uint64_t)zeros;
    from.scale = (int32_t)scale;
    from.offset = (int32_t)offset;
    if (read_buckets(&from, at + sizeof buckets - 1, counts) == NULL)
        return VST_E_ARGUMENT;
    return vst__histogram_merge(h, &from);
}
