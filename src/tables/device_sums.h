/* Sums of what devices did, by name, by device and by stream: how long each was
 * busy or idle, and whether it waited for the program to launch something.
 *
 * Work means kernels, copies and sets. A device is busy while any of its
 * streams works; it is idle between two works of one window. Time between
 * windows was not recorded and counts as neither. One thread at a time. */
#ifndef VST_TABLES_DEVICE_SUMS_H
#define VST_TABLES_DEVICE_SUMS_H

#include <vestige/device.h>

#include "base/map64.h"
#include "tables/table.h"

enum {
    /* Only this many gaps of a device are listed, the longest. */
    VST_DEVICE_GAPS = 32
};

/* The activities of one name on one device. */
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
    /* From the first work's start to the last work's end; busy and idle time
     * add up to span_ns. */
    int64_t start_ns, end_ns; /* begin and end of all windows together */
    int64_t span_ns;          /* summed over the windows */
    int64_t busy_ns, idle_ns;
    uint64_t gaps;
    int64_t longest_gap_ns;
    /* Idle time before the launching call of the next work began: meanwhile the
     * device waited for the program. */
    int64_t unlaunched_ns;
    /* Works whose launch is in the trace, and the time from the call's end to
     * the start of the work (0 if the work began earlier). */
    uint64_t launched;
    int64_t delay_ns;
    /* For a stream: the length of the queue at each launch (works that were
     * launched and had not begun, including the new one): the largest, and the
     * sum over all launches. */
    uint64_t queue_max, queue_sum;
} vst__device_use;

/* A time in which a device was idle. */
typedef struct vst__device_gap {
    uint32_t device;
    int64_t start_ns, end_ns;
    /* as in vst__device_use; -1: the launch is not in the trace */
    int64_t unlaunched_ns;
    /* The work that ended the gap: */
    uint32_t stream;
    vst_id id;
    uint32_t thread; /* thread that launched it; 0: not known */
    /* operator and annotation around the launching call; 0: none */
    vst_id op, annotation;
} vst__device_gap;

/* A kernel, copy or set. */
typedef struct vst__device_work {
    int64_t start_ns, end_ns;
    /* the launching call; INT64_MIN: not known */
    int64_t called_ns, returned_ns;
    vst_id id, op, annotation;
    uint32_t device, stream, thread;
} vst__device_work;

typedef struct vst__device_sums {
    vst__device_named *named; /* by device, kind and id */
    size_t named_count, named_capacity;
    vst__map64 named_of; /* (device, kind, id) -> 1 + index */

    /* by device: first the whole device, then its streams */
    vst__device_use *uses;
    size_t use_count, use_capacity;
    vst__map64 use_of; /* (device, stream) -> 1 + index */

    vst__device_gap *gaps; /* by device, the longest first */
    size_t gap_count, gap_capacity;

    /* The window that is being read, whose works are kept until it ends. */
    const vst__table_pass *pass;
    const struct vst__window *window; /* NULL before the first window */
    int64_t first_ns, last_ns;
    vst__device_work *works;
    size_t work_count, work_capacity;
    /* times at which a stream's launching calls began, sorted */
    int64_t *calls;
    size_t call_capacity;
    bool is_finished;
} vst__device_sums;

/* For tables of devices. Call join when a table begins and leave when it ends;
 * finish completes and sorts the sums when all is read. */
vst_status vst__device_sums_join(vst__filling *filling);
vst_status vst__device_sums_finish(vst__device_sums *sums);
void vst__device_sums_leave(vst__filling *filling);

#endif
