/* What devices did, added up: by name, by device and by stream. How much of the
 * time each was busy, when it had nothing to do, and whether it waited for the
 * program to launch something.
 *
 * Work is kernels, copies and sets. A device is busy while any of its streams
 * does some; it is idle between two works of one window. Time between windows
 * was not recorded and counts as neither. One thread at a time. */
#ifndef VST_TABLES_DEVICE_SUMS_H
#define VST_TABLES_DEVICE_SUMS_H

#include <vestige/device.h>

#include "base/map64.h"
#include "tables/table.h"

enum {
    /* So many gaps of a device are told of, the longest. */
    VST_DEVICE_GAPS = 32
};

/* Activities of one name on one device. */
typedef struct vst__device_named {
    uint32_t device;
    uint32_t kind; /* vst_activity_kind */
    vst_id id;
    uint64_t count;
    int64_t total_ns, longest_ns;
    uint64_t bytes;
} vst__device_named;

/* How a device, or one of its streams, was used. */
typedef struct vst__device_use {
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
} vst__device_use;

/* A time in which a device had nothing to do. */
typedef struct vst__device_gap {
    uint32_t device;
    int64_t start_ns, end_ns;
    int64_t unlaunched_ns; /* as above; -1: the launch is not in the trace */
    /* The work that ended it: */
    uint32_t stream;
    vst_id id;
    uint32_t thread;       /* that launched it; 0: not known */
    vst_id op, annotation; /* around that call; 0: none */
} vst__device_gap;

/* A kernel, copy or set. */
typedef struct vst__device_work {
    int64_t start_ns, end_ns;
    int64_t called_ns, returned_ns; /* its launch; INT64_MIN: not known */
    vst_id id, op, annotation;
    uint32_t device, stream, thread;
} vst__device_work;

typedef struct vst__device_sums {
    vst__device_named *named; /* by device, kind and id */
    size_t named_count, named_capacity;
    vst__map64 named_of; /* device, kind and id -> 1 + index */

    vst__device_use *uses; /* by device: first the whole, then its streams */
    size_t use_count, use_capacity;
    vst__map64 use_of; /* device and stream -> 1 + index */

    vst__device_gap *gaps; /* by device, the longest first */
    size_t gap_count, gap_capacity;

    /* Of the window that is being read: its works are kept until it ends. */
    const vst__table_pass *pass;
    const struct vst__window *window; /* NULL before the first */
    int64_t first_ns, last_ns;
    vst__device_work *works;
    size_t work_count, work_capacity;
    int64_t *calls; /* of a stream */
    size_t call_capacity;
    bool is_finished;
} vst__device_sums;

/* For tables of devices: to be called where each begins; gives what all of them
 * added up, in order, when all is read; to be called where each ends. */
vst_status vst__device_sums_join(vst__filling *filling);
vst_status vst__device_sums_finish(vst__device_sums *sums);
void vst__device_sums_leave(vst__filling *filling);

#endif
