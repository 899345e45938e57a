/* A device's clock as <vestige/device.h> specifies it: pairs of its time and
 * ours, and how far they are from a line. The recorder adds pairs as it takes
 * them, to say how good they are; the reader turns times by them. One thread at
 * a time. */
#ifndef VST_BASE_DEVICE_CLOCK_H
#define VST_BASE_DEVICE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/wire.h>

typedef struct vst__clock_pair {
    uint64_t theirs;
    vst_ticks ours;
    uint64_t width; /* ours may be wrong by so much */
} vst__clock_pair;

/* All zero is one without pairs. */
typedef struct vst__clock_fit {
    size_t count;            /* of pairs */
    vst__clock_pair last[2]; /* the last one first */
    double error;            /* in our ticks */
} vst__clock_fit;

/* Pairs come in the order of their times; one that goes back is left out, and
 * false returned. The error is the largest width of a pair, and that of a pair
 * between two others also has how far it lies from the line through these. */
_Bool vst__clock_fit_add(vst__clock_fit *fit, const vst__clock_pair *pair);

/* Ours at their time, by pairs which a fit took; slope is how many of our ticks
 * one of theirs is, if there is only one pair. */
vst_ticks vst__clock_pairs_convert(const vst__clock_pair *pairs, size_t count,
                                   double slope, uint64_t theirs);

#endif
