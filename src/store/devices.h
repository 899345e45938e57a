/* The devices of a trace, as its entries DEVICE tell them: see
 * <vestige/device.h>. One thread at a time. */
#ifndef VST_STORE_DEVICES_H
#define VST_STORE_DEVICES_H

#include <vestige/device.h>

#include "base/device_clock.h"
#include "store/format.h"

/* Entries come in the order of the file: of equals, the last is kept. */
typedef struct vst__device_item {
    vst_trace_device device;
    double slope; /* our ticks per one of its clock's; 0: its times are ours */
    size_t first_pair;
    size_t order;
} vst__device_item;

typedef struct vst__stream_item {
    vst_trace_stream stream;
    size_t order;
} vst__stream_item;

typedef struct vst__pair_item {
    vst__clock_pair pair;
    uint32_t device;
} vst__pair_item;

/* All zero is none. */
typedef struct vst__trace_devices {
    vst__device_item *items; /* sorted by number, once they are finished */
    size_t count, capacity;
    vst__stream_item *streams;
    size_t stream_count, stream_capacity;
    vst__pair_item *pairs; /* as the file has them */
    size_t pair_count, pair_capacity;
    vst__clock_pair *sorted; /* by device and time, of all devices */
    size_t order;
    bool changed; /* since they were finished */
} vst__trace_devices;

/* Strings that live as long as the trace; NULL: there was no memory. */
vst_status vst__trace_devices_add(struct vst_trace *trace,
                                  const vst_file_entry *entry, const char *a,
                                  const char *b);
/* After the last entry, once the clock's ticks are known. */
vst_status vst__trace_devices_finish(struct vst_trace *trace);
void vst__trace_devices_free(struct vst_trace *trace);
/* A time of the device, as our ticks. */
vst_ticks vst__device_ticks(const struct vst_trace *trace, uint32_t device,
                            uint64_t time);

#endif
