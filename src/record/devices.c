/* Stores what collectors deliver: devices, streams, comparisons of clocks, and
 * activities. An activity is a record of the thread that delivers it; no
 * tracer's stop() keeps such threads out. Any thread; every function except
 * those for activities takes the recorder's lock. */
#include "record/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "record/recording.h"

enum {
    PLATFORM_BYTES = sizeof((vst__device *)0)->platform,
    TRIES = 8, /* comparisons made in a row; the narrowest counts */
    ATTRIBUTES_MAX = (VST_ESCAPE_WORDS_MAX - VST_ACTIVITY_WORDS - 4) *
        8,             /* bytes */
    QUALITY_BYTES = 96 /* bytes of JSON about one device */
};

#define METADATA_KEY "vestige.devices"

/* ---- devices and streams; with the lock held ----------------------------- */

static vst_status devices_define(vst_recording *recording, vst_entry *entry)
{
    const vst_chunk_provider *provider = recording->provider;

    entry->kind = VST_ENTRY_DEVICE;
    if (!vst__recording_is_ours(recording))
        return VST_E_STATE;
    return provider->define(provider->ctx, entry);
}

/* Copies the platform's name, cut to the field and padded with zeros. */
static void set_platform(char *to, const char *platform)
{
    size_t length = strlen(platform);

    memset(to, 0, PLATFORM_BYTES);
    memcpy(to, platform, length < PLATFORM_BYTES ? length : PLATFORM_BYTES);
}

static vst__device *devices_find(const vst__devices *self,
                                 const vst_device *device)
{
    char platform[PLATFORM_BYTES];

    set_platform(platform, device->platform);
    for (size_t i = 0; i < self->count; i++) {
        vst__device *item = &self->items[i];

        if (item->collector == self->collector &&
            item->ordinal == device->ordinal &&
            memcmp(item->platform, platform, sizeof platform) == 0)
            return item;
    }
    return NULL;
}

static vst__device *devices_add(vst__devices *self, const vst_device *device)
{
    vst__device *items;

    if (self->count == VST_DEVICES_MAX)
        return NULL;
    items = vst__grow_own(self->items, &self->capacity, self->count + 1,
                          sizeof *items);
    if (items == NULL)
        return NULL;
    self->items = items;
    items += self->count++;
    memset(items, 0, sizeof *items);
    items->collector = self->collector;
    items->ordinal = device->ordinal;
    set_platform(items->platform, device->platform);
    return items;
}

static vst_status define_device(vst_recording *recording, uint32_t number,
                                const vst_device *device)
{
    const vst__device *item = &recording->devices.items[number - 1];
    double rate = item->clock.read != NULL ? item->clock.ticks_per_second : 0;
    vst_entry entry = {
        .id = number,
        .line = VST_DEVICE_ENTRY_DEVICE,
        .a = device->name,
        .a_len = strlen(device->name),
        .b = device->attributes,
        .b_len = device->attributes != NULL ? strlen(device->attributes) : 0,
        .x = item->ordinal | (uint64_t)item->collector << 32,
    };

    memcpy(&entry.y, &rate, sizeof entry.y);
    for (size_t i = 0; i < sizeof item->platform; i++)
        entry.z |= (uint64_t)(unsigned char)item->platform[i] << 8 * i;
    return devices_define(recording, &entry);
}

vst_status vst_device_declare(vst_recording *recording,
                              const vst_device *device, uint32_t *number)
{
    vst__device *item;
    vst_status status = VST_E_NOMEM;

    *number = 0;
    if (device->clock.read != NULL && !(device->clock.ticks_per_second > 0))
        return VST_E_ARGUMENT;
    vst__recorder_take();
    item = devices_find(&recording->devices, device);
    if (item == NULL)
        item = devices_add(&recording->devices, device);
    if (item != NULL) {
        item->clock = device->clock;
        *number = (uint32_t)(item - recording->devices.items) + 1;
        status = define_device(recording, *number, device);
    }
    vst__recorder_give();
    return status;
}

vst_status vst_device_declare_stream(vst_recording *recording, uint32_t device,
                                     const vst_device_stream *stream)
{
    vst_entry entry = {
        .id = device,
        .line = VST_DEVICE_ENTRY_STREAM,
        .a = stream->name,
        .a_len = stream->name != NULL ? strlen(stream->name) : 0,
        .x = stream->number,
        .y = (uint64_t)(int64_t)stream->priority,
    };
    vst_status status = VST_E_ARGUMENT;

    vst__recorder_take();
    if (device != 0 && device <= recording->devices.count)
        status = devices_define(recording, &entry);
    vst__recorder_give();
    return status;
}

void vst__devices_set_collector(vst_recording *recording, uint32_t collector)
{
    vst__recorder_take();
    recording->devices.collector = collector;
    vst__recorder_give();
}

void vst__devices_free(vst__devices *devices)
{
    vst__free(devices->items);
    vst__free(devices->notes);
}

/* ---- clocks -------------------------------------------------------------- */

/* Returns the narrowest of TRIES comparisons, because the thread may be
 * preempted during any of them. */
static vst__clock_pair devices_compare(const vst_device_clock *clock)
{
    vst__clock_pair best = {.width = UINT64_MAX};

    for (int i = 0; i < TRIES; i++) {
        vst_ticks before = vst_clock_ticks();
        uint64_t theirs = clock->read(clock->ctx);
        vst_ticks width = (vst_clock_ticks() - before + 1) / 2;

        if (width < best.width)
            best = (vst__clock_pair){theirs, before + width, width};
    }
    return best;
}

void vst_device_sync(vst_recording *recording, uint32_t device)
{
    vst_device_clock clock = {0};
    vst__clock_pair pair;

    vst__recorder_take();
    if (device != 0 && device <= recording->devices.count)
        clock = recording->devices.items[device - 1].clock;
    vst__recorder_give();
    if (clock.read == NULL)
        return;
    pair = devices_compare(&clock);
    vst__recorder_take();
    if (vst__clock_fit_add(&recording->devices.items[device - 1].fit, &pair)) {
        vst_entry entry = {
            .id = device,
            .line = VST_DEVICE_ENTRY_PAIR,
            .x = pair.theirs,
            .y = pair.ours,
            .z = pair.width,
        };
        devices_define(recording, &entry);
    }
    vst__recorder_give();
}

static size_t count_devices(vst_recording *recording)
{
    size_t count;

    vst__recorder_take();
    count = recording->devices.count;
    vst__recorder_give();
    return count;
}

void vst__devices_sync(vst_recording *recording)
{
    size_t count = count_devices(recording);

    for (size_t i = 1; i <= count; i++)
        vst_device_sync(recording, (uint32_t)i);
}

/* ---- quality of the clocks; with the lock held --------------------------- */

static size_t put_clocks(const vst__devices *self, char *json, size_t size)
{
    double ns = 1e9 / vst_clock_ticks_per_second();
    const char *between = "";
    size_t length = 0;

    for (size_t i = 0; i < self->count; i++) {
        const vst__clock_fit *fit = &self->items[i].fit;

        if (fit->count == 0)
            continue;
        length += (size_t)snprintf(json + length, size - length,
                                   "%s{\"device\": %zu, \"pairs\": %zu, "
                                   "\"error_ns\": %.0f}",
                                   between, i + 1, fit->count, fit->error * ns);
        between = ", ";
    }
    return length;
}

static void devices_write_quality(vst_recording *recording)
{
    vst__devices *self = &recording->devices;
    size_t size = (self->count + 2) * QUALITY_BYTES, length;
    char *json = vst__alloc(size);
    vst_entry entry = {
        .kind = VST_ENTRY_METADATA,
        .a = METADATA_KEY,
        .a_len = strlen(METADATA_KEY),
        .b = json,
    };

    if (json == NULL)
        return;
    length = (size_t)snprintf(json, size, "{\"clocks\": [");
    length += put_clocks(self, json + length, size - length);
    length += (size_t)snprintf(json + length, size - length,
                               "], \"late\": %" PRIu64 "}", self->late);
    entry.b_len = length;
    recording->provider->define(recording->provider->ctx, &entry);
    self->late_written = self->late;
    vst__free(json);
}

void vst__devices_write_quality(vst_recording *recording)
{
    vst__recorder_take();
    if (recording->devices.count != 0 && vst__recording_is_ours(recording))
        devices_write_quality(recording);
    vst__recorder_give();
}

void vst__devices_write_late(vst_recording *recording)
{
    vst__recorder_take();
    if (recording->devices.late != recording->devices.late_written &&
        vst__recording_is_ours(recording)) {
        devices_write_quality(recording);
        recording->provider->lost(recording->provider->ctx, recording->lost);
    }
    vst__recorder_give();
}

/* ---- activities ---------------------------------------------------------- */

void vst__devices_open(vst_recording *recording, bool open)
{
    __atomic_store_n(&recording->devices.is_open, open, __ATOMIC_RELAXED);
}

/* Writes the attributes if they fit; JSON that is cut would be invalid. */
static uint32_t put_attributes(const vst_activity *activity, uint64_t *at)
{
    static const char note[] = "\"attributes\": \"too long to record\"";
    const char *bytes = activity->attributes;
    size_t length = activity->attributes_len, words;

    if (length > ATTRIBUTES_MAX) {
        bytes = note;
        length = sizeof note - 1;
    }
    words = (length + 7) / 8;
    at[0] = length;
    at[words] = 0;
    memcpy(at + 1, bytes, length);
    return (uint32_t)words + 1;
}

/* Writes the payload of an activity, and returns the number of its words. */
static uint32_t devices_put(const vst_activity *activity, uint64_t *payload)
{
    uint32_t words = VST_ACTIVITY_WORDS;
    uint64_t flags = activity->host_time ? VST_ACTIVITY_HOST_TIME : 0;

    payload[1] = activity->id | (uint64_t)activity->context << 32;
    payload[2] = activity->correlation;
    payload[3] = activity->start;
    payload[4] =
        activity->end > activity->start ? activity->end - activity->start : 0;
    if (activity->system_tid != 0) {
        flags |= VST_ACTIVITY_HAS_THREAD;
        payload[words++] = activity->system_tid;
    }
    if (activity->external != 0) {
        flags |= VST_ACTIVITY_HAS_EXTERNAL;
        payload[words++] = activity->external;
    }
    if (activity->bytes != 0) {
        flags |= VST_ACTIVITY_HAS_BYTES;
        payload[words++] = activity->bytes;
    }
    if (activity->attributes_len != 0) {
        flags |= VST_ACTIVITY_HAS_ATTRIBUTES;
        words += put_attributes(activity, payload + words);
    }
    payload[0] = (activity->kind & 0xffu) | flags << 8 |
                 (uint64_t)(activity->device & 0xffffu) << 16 |
                 (uint64_t)activity->stream << 32;
    return words;
}

/* Stores the words if the calling thread is ready and has room. Returns false
 * if the caller must take the slow path. */
static bool store_at_once(const uint64_t *payload, uint32_t words)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t *at = buffer->cursor;
    vst_ticks now = vst_clock_ticks();
    uint64_t delta = now - buffer->last;

    if (buffer->free_epoch != vst_record_epoch() ||
        buffer->limit - at <= (int64_t)words || delta >> 32 != 0)
        return false;
    buffer->last = now;
    buffer->cursor = buffer->floor = at + 1 + words;
    for (uint32_t i = 0; i < words; i++)
        vst_store_word(at + 1 + i, payload[i]);
    vst_store_word(at,
                   vst_word_escape(VST_ESCAPE_DEVICE, words, (uint32_t)delta));
    return true;
}

VST_COLD static void count_late(vst_recording *recording)
{
    vst__recorder_take();
    recording->devices.late++;
    recording->lost++;
    vst__recorder_give();
}

/* The thread joins the recording in progress first. If `recording` is still
 * open after that, the thread has joined this one. */
bool vst_device_deliver(vst_recording *recording, const vst_activity *activity)
{
    uint64_t payload[VST_ESCAPE_WORDS_MAX];
    bool joined = vst_thread_enter_free();
    uint32_t words;

    if (!__atomic_load_n(&recording->devices.is_open, __ATOMIC_RELAXED) ||
        !joined) {
        count_late(recording);
        return false;
    }
    words = devices_put(activity, payload);
    if (!VST_LIKELY(store_at_once(payload, words)))
        vst__record_escape(VST_ESCAPE_DEVICE, payload, words);
    return true;
}

void vst_device_lost(vst_recording *recording, uint32_t device, uint64_t count)
{
    const vst_activity lost = {
        .kind = VST_ACTIVITY_LOST, .device = device, .correlation = count};

    vst__recorder_take();
    recording->lost += count;
    vst__recorder_give();
    vst_device_deliver(recording, &lost);
}
