/* How much the calls of a function differ, in bounded memory and without
 * keeping the calls. Calls are grouped into stretches of equal numbers, of
 * which the means are kept; when there are too many stretches, their length
 * doubles. A histogram counts how long calls took, with sixteen bins for each
 * power of two. Memory grows with the number of calls, since very many
 * functions may have been called once. One thread at a time. */
#ifndef VST_TABLES_SPREAD_H
#define VST_TABLES_SPREAD_H

#include <stdint.h>

enum {
    VST_SPREAD_STRETCHES = 32,
    VST_SPREAD_BINS = 672,
    VST_SPREAD_FEW = 2 * VST_SPREAD_BINS
};

/* All zero before the first call. */
typedef struct vst__spread {
    double *sums;
    double current;
    uint64_t size, in_current;
    uint32_t used;
    uint32_t few_count;
    uint64_t count;
    uint16_t
        *few; /* bin of each call, while there are at most VST_SPREAD_FEW */
    uint32_t
        *bins; /* number of calls in each bin, if there are more; else NULL */
} vst__spread;

/* A typical call, in ns; less than 0: not known. */
typedef struct vst__typical {
    double error_of_mean, median, error_of_median;
} vst__typical;

/* If memory runs out, adds the call where there is room. */
void vst__spread_add(vst__spread *spread, int64_t ns);
void vst__spread_free(vst__spread *spread);
vst__typical vst__spread_typical(const vst__spread *spread);

#endif
