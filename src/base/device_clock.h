/* The clock of a device, as <vestige/device.h> specifies it: pairs of the
 * device's time and the host's, and the distance of these pairs from a line.
 * The recorder adds pairs as it takes them, to report how exact they are; the
 * reader converts times with them. One thread at a time. */
#ifndef VST_BASE_DEVICE_CLOCK_H
#define VST_BASE_DEVICE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/wire.h>

typedef struct vst__clock_pair {
    uint64_t theirs;
    vst_ticks ours;
    uint64_t width; /* largest error of the host's time */
} vst__clock_pair;

/* All zero: a fit without pairs. */
typedef struct vst__clock_fit {
    size_t count;            /* number of pairs */
    vst__clock_pair last[2]; /* newest first */
    double error;            /* in host ticks */
} vst__clock_fit;

/* Adds a pair. Pairs come in the order of their times; returns false, and
 * leaves the pair out, if its time goes back. The error is the largest width of
 * a pair; for a pair between two others, the distance from the line through
 * these is added. */
_Bool vst__clock_fit_add(vst__clock_fit *fit, const vst__clock_pair *pair);

/* Converts a time of the device to the host's, with pairs that a fit accepted.
 * `slope` is used if there is only one pair: host ticks for one tick of the
 * device. */
vst_ticks vst__clock_pairs_convert(const vst__clock_pair *pairs, size_t count,
                                   double slope, uint64_t theirs);

#endif
