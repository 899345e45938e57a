/* The devices of a trace, from its DEVICE entries: see <vestige/device.h>. One
 * thread at a time. */
#ifndef VST_STORE_DEVICES_H
#define VST_STORE_DEVICES_H

#include <vestige/device.h>

#include "base/device_clock.h"
#include "store/format.h"

/* Entries are in the order of the file; of equal ones, the last is kept. */
typedef struct vst__device_item {
    vst_trace_device device;
    /* host ticks for one tick of the device's clock; 0 if its times are host
     * ticks already */
    double slope;
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

/* All zero: no devices. */
typedef struct vst__trace_devices {
    vst__device_item *items; /* sorted by number once they are finished */
    size_t count, capacity;
    vst__stream_item *streams;
    size_t stream_count, stream_capacity;
    vst__pair_item *pairs; /* in the order of the file */
    size_t pair_count, pair_capacity;
    vst__clock_pair *sorted; /* pairs of all devices, by device and time */
    size_t order;
    bool changed; /* entries were added since vst__trace_devices_finish */
} vst__trace_devices;

/* Adds an entry. Its strings must live as long as the trace; NULL if memory ran
 * out for them. */
vst_status vst__trace_devices_add(struct vst_trace *trace,
                                  const vst_file_entry *entry, const char *a,
                                  const char *b);
/* Call after the last entry, when the clock's ticks are known. */
vst_status vst__trace_devices_finish(struct vst_trace *trace);
void vst__trace_devices_free(struct vst_trace *trace);
/* Converts a time of the device to host ticks. */
vst_ticks vst__device_ticks(const struct vst_trace *trace, uint32_t device,
                            uint64_t time);

/* Returns the index of a device, or the number of devices if there is none. */
size_t vst__trace_device_index(const struct vst_trace *trace, uint32_t number);

#endif
