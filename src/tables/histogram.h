/* How long many calls took: each value exactly while they are few, then an
 * exponential histogram in OpenTelemetry's form. At scale s the bucket of index
 * i has the values above base^i up to base^(i+1), where base is 2^(2^-s).
 * Where the buckets become too many, the scale falls by one and neighbours are
 * joined, so any two histograms can be merged and memory is bounded. One thread
 * at a time. */
#ifndef VST_TABLES_HISTOGRAM_H
#define VST_TABLES_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

enum {
    VST_HISTOGRAM_EXACT = 128, /* so many values are kept as they are */
    VST_HISTOGRAM_BUCKETS = 320,
    VST_HISTOGRAM_SCALE = 7, /* at first: a bucket is 0.54 % wide */
    VST_HISTOGRAM_TEXT = 8192
};

/* All zero before the first value. */
typedef struct vst__histogram {
    uint64_t count;
    int64_t sum_ns, min_ns, max_ns;
    int64_t *values;   /* all of them; NULL once there are buckets */
    uint64_t *buckets; /* the first is that of the index `offset` */
    uint64_t zeros;    /* values of 0 ns, which no bucket has */
    int32_t offset, scale;
    uint32_t used, room; /* of the buckets */
} vst__histogram;

/* Without memory the histogram stays as it was. Below 0 ns counts as 0. */
vst_status vst__histogram_add(vst__histogram *h, int64_t ns);
/* Adds all values of another. Without memory some may be missing. */
vst_status vst__histogram_merge(vst__histogram *h, const vst__histogram *other);
void vst__histogram_free(vst__histogram *h);

/* The value that a share of the others lies below: 0.5 is the median, of an
 * even number of values the upper one. 0: there are no values. */
int64_t vst__histogram_quantile(const vst__histogram *h, double share);
/* How many values are at least ns, and their sum: about, where buckets count
 * them. */
uint64_t vst__histogram_above(const vst__histogram *h, int64_t ns,
                              int64_t *sum_ns);

/* Writes JSON: `{"values": [ns, …]}`, or as OpenTelemetry has it `{"count":
 * … "sum": … "min": … "max": … "scale": … "zeroCount": … "positive":
 * {"offset": … "bucketCounts": […]}}`. Returns the length. */
size_t vst__histogram_write(const vst__histogram *h,
                            char text[VST_HISTOGRAM_TEXT]);
/* Merges what vst__histogram_write wrote. VST_E_ARGUMENT: it did not. */
vst_status vst__histogram_read(vst__histogram *h, const char *text);

#endif
