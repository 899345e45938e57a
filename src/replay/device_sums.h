/* What devices did, added up: by name, by device and by stream. How much of the
 * time each was busy, when it had nothing to do, and whether it waited for the
 * program to launch something.
 *
 * Work is kernels, copies and sets. A device is busy while any of its streams
 * does some; it is idle between two works of one window. Time between windows
 * was not recorded and counts as neither. */
#ifndef VST_REPLAY_DEVICE_SUMS_H
#define VST_REPLAY_DEVICE_SUMS_H

#include <vestige/device.h>
#include <vestige/trace.h>

enum {
    /* So many gaps of a device are told of, the longest. */
    VST_DEVICE_GAPS_MAX = 32
};

typedef struct vst_device_sums vst_device_sums;

/* Some 60 bytes are kept of each work while this reads, for one window at a
 * time. */
vst_status vst__device_sums_create(vst_trace *trace, int window,
                                   vst_device_sums **sums, vst_error *error);
void vst__device_sums_destroy(vst_device_sums *sums);

/* Activities of one name on one device. */
typedef struct vst_device_named {
    uint32_t device;
    uint32_t kind; /* vst_activity_kind */
    vst_id id;
    uint64_t count;
    int64_t total_ns, longest_ns;
    uint64_t bytes;
} vst_device_named;

/* By device, kind and id. */
size_t vst__device_sums_named_count(const vst_device_sums *sums);
const vst_device_named *vst__device_sums_named_at(const vst_device_sums *sums,
                                                  size_t index);

/* How a device, or one of its streams, was used. */
typedef struct vst_device_use {
    uint32_t device;
    bool is_stream;
    uint32_t stream;
    uint64_t works;
    /* From the first work's start to the last one's end; busy and idle within,
     * which add up to it. */
    int64_t start_ns, end_ns; /* of the whole */
    int64_t span_ns;          /* of the windows, added up */
    int64_t busy_ns, idle_ns;
    uint64_t gaps;
    int64_t longest_gap_ns;
    /* Of the idle time, what had passed when the launch of the next work was
     * called: the device waited for the program. */
    int64_t unlaunched_ns;
    /* Works whose launch is in the trace; from the call's end to the start of
     * the work, none of it if that began before. */
    uint64_t launched;
    int64_t delay_ns;
    /* Of a stream: works that were launched and had not begun, when one was
     * launched, with this one: the most, and the sum over all launches. */
    uint64_t queue_max, queue_sum;
} vst_device_use;

/* By device: first the whole, then its streams. */
size_t vst__device_sums_use_count(const vst_device_sums *sums);
const vst_device_use *vst__device_sums_use_at(const vst_device_sums *sums,
                                              size_t index);

/* A time in which a device had nothing to do. */
typedef struct vst_device_gap {
    uint32_t device;
    int64_t start_ns, end_ns;
    int64_t unlaunched_ns; /* as above; -1: the launch is not in the trace */
    /* The work that ended it: */
    uint32_t stream;
    vst_id id;
    uint32_t thread;       /* that launched it; 0: not known */
    vst_id op, annotation; /* around that call; 0: none */
} vst_device_gap;

/* By device, the longest first. */
size_t vst__device_sums_gap_count(const vst_device_sums *sums);
const vst_device_gap *vst__device_sums_gap_at(const vst_device_sums *sums,
                                              size_t index);

#endif
