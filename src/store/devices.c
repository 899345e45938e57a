/* Reads the devices of a trace: see devices.h. */
#include "store/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/reader.h"

/* ---- entries ------------------------------------------------------------- */

static vst_status add_device(vst_trace *trace, const vst_file_entry *entry,
                             const char *name, const char *attributes)
{
    vst__trace_devices *self = &trace->devices;
    vst__device_item *items;
    double rate;

    if (!VST_RESERVE(self->items, self->count + 1, self->capacity) ||
        name == NULL || attributes == NULL)
        return VST_E_NOMEM;
    items = &self->items[self->count++];
    *items = (vst__device_item){
        .device = {.number = entry->id,
                   .ordinal = (uint32_t)entry->x,
                   .collector = (uint32_t)(entry->x >> 32),
                   .name = name,
                   .name_len = entry->a_len,
                   .attributes = attributes,
                   .attributes_len = entry->b_len},
        .order = self->order++,
    };
    memcpy(&rate, &entry->y, sizeof rate);
    if (rate > 0 && rate < 1e15) {
        items->device.has_clock = true;
        items->slope = trace->header.ticks_per_second / rate;
    }
    for (size_t i = 0; i < 8; i++) {
        unsigned char c = (unsigned char)(entry->z >> 8 * i);
        /* The platform becomes part of names, so characters that a terminal
         * obeys are removed. */
        items->device.platform[i] =
            (char)(c == 0 || (c > ' ' && c < 0x7f) ? c : '?');
    }
    return VST_OK;
}

static vst_status add_stream(vst_trace *trace, const vst_file_entry *entry,
                             const char *name)
{
    vst__trace_devices *self = &trace->devices;

    if (!VST_RESERVE(self->streams, self->stream_count + 1,
                     self->stream_capacity) ||
        name == NULL)
        return VST_E_NOMEM;
    self->streams[self->stream_count++] = (vst__stream_item){
        .stream = {.device = entry->id,
                   .number = (uint32_t)entry->x,
                   .priority = (int32_t)(int64_t)entry->y,
                   .name = name,
                   .name_len = entry->a_len},
        .order = self->order++,
    };
    return VST_OK;
}

static vst_status add_pair(vst_trace *trace, const vst_file_entry *entry)
{
    vst__trace_devices *self = &trace->devices;

    if (!VST_RESERVE(self->pairs, self->pair_count + 1, self->pair_capacity))
        return VST_E_NOMEM;
    self->pairs[self->pair_count++] =
        (vst__pair_item){{entry->x, entry->y, entry->z}, entry->id};
    return VST_OK;
}

vst_status vst__trace_devices_add(vst_trace *trace, const vst_file_entry *entry,
                                  const char *a, const char *b)
{
    if (entry->id == 0 || entry->id > VST_DEVICES_MAX)
        return VST_OK;
    trace->devices.changed = true;
    switch (entry->line) {
    case VST_DEVICE_ENTRY_DEVICE:
        return add_device(trace, entry, a, b);
    case VST_DEVICE_ENTRY_STREAM:
        return add_stream(trace, entry, a);
    case VST_DEVICE_ENTRY_PAIR:
        return add_pair(trace, entry);
    default: /* an entry of a newer writer */
        return VST_OK;
    }
}

/* ---- finishing the devices ----------------------------------------------- */

static int devices_order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_number(const void *a, const void *b)
{
    const vst__device_item *x = a, *y = b;

    return x->device.number != y->device.number
               ? devices_order_of(x->device.number, y->device.number)
               : devices_order_of(x->order, y->order);
}

static int by_device(const void *a, const void *b)
{
    const vst__stream_item *x = a, *y = b;

    if (x->stream.device != y->stream.device)
        return devices_order_of(x->stream.device, y->stream.device);
    return x->stream.number != y->stream.number
               ? devices_order_of(x->stream.number, y->stream.number)
               : devices_order_of(x->order, y->order);
}

static int devices_by_time(const void *a, const void *b)
{
    const vst__pair_item *x = a, *y = b;

    if (x->device != y->device)
        return devices_order_of(x->device, y->device);
    return x->pair.theirs != y->pair.theirs
               ? devices_order_of(x->pair.theirs, y->pair.theirs)
               : devices_order_of(x->pair.ours, y->pair.ours);
}

static void finish_devices(vst__trace_devices *self)
{
    vst__device_item *items = self->items;
    size_t kept = 0;

    if (self->count == 0)
        return;
    qsort(items, self->count, sizeof *items, by_number);
    for (size_t i = 0; i < self->count; i++)
        if (i + 1 == self->count ||
            items[i + 1].device.number != items[i].device.number)
            items[kept++] = items[i];
    self->count = kept;
}

static void finish_streams(vst__trace_devices *self)
{
    vst__stream_item *streams = self->streams;
    size_t kept = 0;

    if (self->stream_count == 0)
        return;
    qsort(streams, self->stream_count, sizeof *streams, by_device);
    for (size_t i = 0; i < self->stream_count; i++)
        if (i + 1 == self->stream_count ||
            streams[i + 1].stream.device != streams[i].stream.device ||
            streams[i + 1].stream.number != streams[i].stream.number)
            streams[kept++] = streams[i];
    self->stream_count = kept;
}

/* Fits the clock of one device to the pairs from `at` on. Returns where the
 * pairs of the next device begin. */
static size_t fit_device(vst_trace *trace, vst__device_item *item, size_t at)
{
    vst__trace_devices *self = &trace->devices;
    vst__clock_fit fit = {0};
    double error;

    while (at < self->pair_count &&
           self->pairs[at].device < item->device.number)
        at++;
    item->first_pair = at;
    for (;
         at < self->pair_count && self->pairs[at].device == item->device.number;
         at++)
        if (vst__clock_fit_add(&fit, &self->pairs[at].pair))
            self->sorted[item->first_pair + fit.count - 1] =
                self->pairs[at].pair;
    item->device.pairs = item->device.has_clock ? fit.count : 0;
    error = fit.error * 1e9 / trace->header.ticks_per_second;
    item->device.error_ns = item->device.has_clock && fit.count == 0 ? -1
                            : error < 9e18 ? (int64_t)(error + 0.5)
                                           : INT64_MAX;
    if (!item->device.has_clock)
        item->device.error_ns = 0;
    return at;
}

static vst_status finish_pairs(vst_trace *trace)
{
    vst__trace_devices *self = &trace->devices;
    vst__clock_pair *sorted =
        realloc(self->sorted, (self->pair_count + 1) * sizeof *sorted);
    size_t at = 0;

    if (sorted == NULL)
        return VST_E_NOMEM;
    self->sorted = sorted;
    if (self->pair_count > 1)
        qsort(self->pairs, self->pair_count, sizeof *self->pairs,
              devices_by_time);
    for (size_t i = 0; i < self->count; i++)
        at = fit_device(trace, &self->items[i], at);
    return VST_OK;
}

vst_status vst__trace_devices_finish(vst_trace *trace)
{
    vst__trace_devices *self = &trace->devices;

    if (!self->changed)
        return VST_OK;
    self->changed = false;
    finish_devices(self);
    finish_streams(self);
    return finish_pairs(trace);
}

void vst__trace_devices_free(vst_trace *trace)
{
    free(trace->devices.items);
    free(trace->devices.streams);
    free(trace->devices.pairs);
    free(trace->devices.sorted);
}

/* ---- questions about devices --------------------------------------------- */

static const vst__device_item *devices_find(const vst_trace *trace,
                                            uint32_t number)
{
    const vst__device_item *items = trace->devices.items;
    size_t low = 0, high = trace->devices.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t there = items[middle].device.number;

        if (there == number)
            return &items[middle];
        if (there < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

vst_ticks vst__device_ticks(const vst_trace *trace, uint32_t device,
                            uint64_t time)
{
    const vst__device_item *item = devices_find(trace, device);

    if (item == NULL || !item->device.has_clock || item->device.pairs == 0)
        return time;
    return vst__clock_pairs_convert(trace->devices.sorted + item->first_pair,
                                    item->device.pairs, item->slope, time);
}

size_t vst_trace_device_count(const vst_trace *trace)
{
    return trace->devices.count;
}

const vst_trace_device *vst_trace_device_at(const vst_trace *trace,
                                            size_t index)
{
    return index < trace->devices.count ? &trace->devices.items[index].device
                                        : NULL;
}

const vst_trace_device *vst_trace_device_find(const vst_trace *trace,
                                              uint32_t number)
{
    const vst__device_item *item = devices_find(trace, number);

    return item != NULL ? &item->device : NULL;
}

size_t vst__trace_device_index(const vst_trace *trace, uint32_t number)
{
    const vst__device_item *item = devices_find(trace, number);

    return item != NULL ? (size_t)(item - trace->devices.items)
                        : trace->devices.count;
}

size_t vst_trace_stream_count(const vst_trace *trace)
{
    return trace->devices.stream_count;
}

const vst_trace_stream *vst_trace_stream_at(const vst_trace *trace,
                                            size_t index)
{
    return index < trace->devices.stream_count
               ? &trace->devices.streams[index].stream
               : NULL;
}

const vst_trace_stream *vst_trace_stream_find(const vst_trace *trace,
                                              uint32_t device, uint32_t number)
{
    const vst__stream_item *items = trace->devices.streams;
    size_t low = 0, high = trace->devices.stream_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const vst_trace_stream *there = &items[middle].stream;

        if (there->device == device && there->number == number)
            return there;
        if (there->device < device ||
            (there->device == device && there->number < number))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
