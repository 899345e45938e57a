/* Durations of many calls: each value exactly while there are few, then an
 * exponential histogram in OpenTelemetry's form. At scale s the bucket of index
 * i has the values above base^i up to base^(i+1), where base is 2^(2^-s). When
 * there are too many buckets, the scale is lowered by one and neighbours are
 * joined, so any two histograms can be merged and memory is bounded. One thread
 * at a time. */
#ifndef VST_TABLES_HISTOGRAM_H
#define VST_TABLES_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

enum {
    VST_HISTOGRAM_EXACT = 128, /* values that are kept exactly */
    VST_HISTOGRAM_BUCKETS = 320,
    VST_HISTOGRAM_SCALE = 7, /* at first: a bucket is 0.54 % wide */
    VST_HISTOGRAM_TEXT = 8192
};

/* All zero before the first value. */
typedef struct vst__histogram {
    uint64_t count;
    int64_t sum_ns, min_ns, max_ns;
    int64_t *values;   /* all values; NULL once there are buckets */
    uint64_t *buckets; /* the first has the index `offset` */
    uint64_t zeros;    /* values of 0 ns, which no bucket has */
    int32_t offset, scale;
    uint32_t used, room; /* number of buckets in use, and room for buckets */
} vst__histogram;

/* Adds a value; a negative value counts as 0. If memory runs out, the histogram
 * is unchanged. */
vst_status vst__histogram_add(vst__histogram *h, int64_t ns);
/* Adds all values of another histogram. If memory runs out, some may be
 * missing. */
vst_status vst__histogram_merge(vst__histogram *h, const vst__histogram *other);
void vst__histogram_free(vst__histogram *h);

/* Returns the value below which this share of the values lies: 0.5 gives the
 * median (the upper one of an even number). Returns 0 if there are no values.
 */
int64_t vst__histogram_quantile(const vst__histogram *h, double share);
/* Returns how many values are at least ns, and sets *sum_ns to their sum;
 * estimates if buckets count the values. */
uint64_t vst__histogram_above(const vst__histogram *h, int64_t ns,
                              int64_t *sum_ns);

/* Writes JSON: `{"values": [ns, …]}`, or in OpenTelemetry's form `{"count": …
 * "sum": … "min": … "max": … "scale": … "zeroCount": … "positive": {"offset": …
 * "bucketCounts": […]}}`. Returns the length. */
size_t vst__histogram_write(const vst__histogram *h,
                            char text[VST_HISTOGRAM_TEXT]);
/* Merges a text of vst__histogram_write. Returns VST_E_ARGUMENT if the text is
 * not a histogram. */
vst_status vst__histogram_read(vst__histogram *h, const char *text);

#endif
