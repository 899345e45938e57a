/* Reads a buffer of CUPTI, and delivers its records. The buffer is read twice,
 * because records that other records need (devices, contexts, events, ids that
 * other libraries gave) may come after them. Any thread enters, several at a
 * time; no function of CUPTI is called while we hold a lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector.h"
#include "library.h"

/* Returns the record after *record, or the first if *record is NULL; NULL if
 * there are no more. Sets *broken if the next record cannot be found. */
static const void *next_record(uint8_t *buffer, size_t valid, void **record,
                               bool *broken)
{
    int result = cupti.cuptiActivityGetNextRecord(buffer, valid, record);
    const uint8_t *at = *record;

    if (result == CUPTI_OK && at != NULL) {
        int32_t kind = *(const int32_t *)*record;
        size_t size = kind >= 0 && kind < CUPTI_KINDS ? cupti_record_sizes[kind]
                                                      : sizeof kind;

        if (at >= buffer && at + size <= buffer + valid)
            return at;
    }
    *broken = result != CUPTI_MAX_LIMIT_REACHED;
    return NULL;
}

/* ---- first pass: records that others need -------------------------------- */

static cupti_recorded *event_place(cupti_collector *self, uint32_t context,
                                   uint32_t event)
{
    return &self->events[(context * 31 + event) & (CUPTI_EVENTS - 1)];
}

static void note_event(cupti_collector *self, const cupti_event *record)
{
    pthread_mutex_lock(&self->lock);
    *event_place(self, record->context, record->event) = (cupti_recorded){
        record->context, record->event, record->stream, record->correlation};
    pthread_mutex_unlock(&self->lock);
}

static void note_external(cupti_collector *self, const cupti_external *record)
{
    pthread_mutex_lock(&self->lock);
    if (self->externals == NULL)
        self->externals = calloc(CUPTI_EXTERNALS, sizeof *self->externals);
    if (self->externals != NULL)
        self->externals[record->correlation & (CUPTI_EXTERNALS - 1)] =
            (cupti_given){record->correlation, record->external};
    pthread_mutex_unlock(&self->lock);
}

static uint64_t external_of(cupti_collector *self, uint32_t correlation)
{
    uint64_t external = 0;

    pthread_mutex_lock(&self->lock);
    if (self->externals != NULL) {
        const cupti_given *given =
            &self->externals[correlation & (CUPTI_EXTERNALS - 1)];

        external = given->correlation == correlation ? given->external : 0;
    }
    pthread_mutex_unlock(&self->lock);
    return external;
}

/* Notes the device of a context. `last`: the context and device that were noted
 * last. */
static void note_context(cupti_collector *self, uint32_t context,
                         uint32_t device, uint32_t last[2])
{
    if (last[0] == context && last[1] == device)
        return;
    cupti_context_note(self, context, device);
    last[0] = context;
    last[1] = device;
}

static void reading_note(cupti_collector *self, const void *record,
                         uint32_t last[2])
{
    const cupti_kernel *kernel = record;
    const cupti_memcpy *copy = record;
    const cupti_memcpy_peer *peer = record;
    const cupti_memset *set = record;
    const cupti_context *context = record;

    switch (*(const int32_t *)record) {
    case CUPTI_DEVICE:
        cupti_device_note(self, record);
        break;
    case CUPTI_CONTEXT:
        note_context(self, context->context, context->device, last);
        break;
    case CUPTI_KERNEL:
        note_context(self, kernel->context, kernel->device, last);
        break;
    case CUPTI_MEMCPY:
        note_context(self, copy->context, copy->device, last);
        break;
    case CUPTI_MEMSET:
        note_context(self, set->context, set->device, last);
        break;
    case CUPTI_MEMCPY_PEER:
        note_context(self, peer->from_context, peer->from_device, last);
        note_context(self, peer->to_context, peer->to_device, last);
        break;
    case CUPTI_EVENT:
        note_event(self, record);
        break;
    case CUPTI_EXTERNAL:
        note_external(self, record);
        break;
    default:
        break;
    }
}

/* ---- second pass: records that are delivered ----------------------------- */

/* Delivers an activity. Its times are in ticks of vst_clock_ticks(), which
 * CUPTI reads by our callback. */
static void reading_deliver(cupti_collector *self, vst_activity *activity,
                            const char *text, size_t length)
{
    if (activity->start == 0 || activity->end < activity->start) {
        __atomic_add_fetch(&self->untimed, 1, __ATOMIC_RELAXED);
        vst_device_lost(self->recording, activity->device, 1);
        return;
    }
    if (activity->end < __atomic_load_n(&self->began, __ATOMIC_RELAXED)) {
        __atomic_add_fetch(&self->before, 1, __ATOMIC_RELAXED);
        return;
    }
    activity->host_time = true;
    activity->external = external_of(self, (uint32_t)activity->correlation);
    activity->attributes = text;
    activity->attributes_len = length;
    vst_device_deliver(self->recording, activity);
}

static void deliver_kernel(cupti_collector *self, const cupti_kernel *record)
{
    char text[CUPTI_TEXT];
    size_t length = cupti_describe_kernel(
        record, cupti_device_properties(self, record->device), text);
    vst_activity activity = {
        .kind = VST_ACTIVITY_KERNEL,
        .device = cupti_device_number(self, record->device),
        .stream = record->stream,
        .context = record->context,
        .id = cupti_kernel_name(self, record->name),
        .correlation = record->correlation,
        .start = record->start,
        .end = record->end,
    };

    reading_deliver(self, &activity, text, length);
}

static size_t describe_graph(uint32_t graph, uint64_t node, uint32_t channel,
                             int32_t channel_type, char *text)
{
    return (size_t)snprintf(text, CUPTI_TEXT,
                            "\"graph id\": %u, \"graph node id\": %" PRIu64
                            ", \"channel\": %u, \"channel_type\": %d",
                            graph, node, channel, channel_type);
}

/* Records of copies and sets all have these members, but at different
 * offsets. */
#define MOVES_BYTES(self, record, of_kind)                                     \
    {                                                                          \
        .kind = (of_kind),                                                     \
        .device = cupti_device_number((self), (record)->device),               \
        .stream = (record)->stream,                                            \
        .context = (record)->context,                                          \
        .correlation = (record)->correlation,                                  \
        .bytes = (record)->bytes,                                              \
        .start = (record)->start,                                              \
        .end = (record)->end,                                                  \
    }

static void deliver_copy(cupti_collector *self, const cupti_memcpy *record)
{
    char text[CUPTI_TEXT], name[96];
    size_t length = describe_graph(record->graph, record->graph_node,
                                   record->channel, record->channel_type, text);
    vst_activity activity = MOVES_BYTES(self, record, VST_ACTIVITY_COPY);

    cupti_copy_name(record->copy_kind, record->from_kind, record->to_kind, name,
                    sizeof name);
    activity.id = cupti_name(self, name);
    reading_deliver(self, &activity, text, length);
}

static void deliver_peer_copy(cupti_collector *self,
                              const cupti_memcpy_peer *record)
{
    char text[CUPTI_TEXT], name[96];
    size_t length = describe_graph(record->graph, record->graph_node,
                                   record->channel, record->channel_type, text);
    vst_activity activity = MOVES_BYTES(self, record, VST_ACTIVITY_COPY);

    length += (size_t)snprintf(
        text + length, CUPTI_TEXT - length,
        ", \"fromDevice\": %u, \"inDevice\": %u, \"toDevice\": %u, "
        "\"fromContext\": %u, \"inContext\": %u, \"toContext\": %u",
        record->from_device, record->device, record->to_device,
        record->from_context, record->context, record->to_context);
    cupti_copy_name(record->copy_kind, record->from_kind, record->to_kind, name,
                    sizeof name);
    activity.id = cupti_name(self, name);
    reading_deliver(self, &activity, text, length);
}

static void deliver_set(cupti_collector *self, const cupti_memset *record)
{
    char text[CUPTI_TEXT], name[64];
    size_t length = describe_graph(record->graph, record->graph_node,
                                   record->channel, record->channel_type, text);
    vst_activity activity = MOVES_BYTES(self, record, VST_ACTIVITY_SET);

    snprintf(name, sizeof name, "Memset (%s)",
             cupti_memory_name(record->memory_kind));
    activity.id = cupti_name(self, name);
    reading_deliver(self, &activity, text, length);
}

static void deliver_call(cupti_collector *self, const cupti_call *record)
{
    char text[32];
    size_t length =
        (size_t)snprintf(text, sizeof text, "\"cbid\": %u", record->callback);
    vst_activity activity = {
        .kind = record->kind == CUPTI_RUNTIME ? VST_ACTIVITY_RUNTIME
                                              : VST_ACTIVITY_DRIVER,
        .id = cupti_call_name(self, record->kind, record->callback),
        .system_tid = record->thread,
        .correlation = record->correlation,
        .start = record->start,
        .end = record->end,
    };

    if (activity.id == 0)
        return; /* the call is left out as noise */
    activity.device = cupti_any_device(self);
    reading_deliver(self, &activity, text, length);
}

/* Describes the event for which the program waited: where it was recorded, -1
 * if that is not known. */
static size_t describe_wait(cupti_collector *self, const cupti_sync *record,
                            char *text, size_t size)
{
    const cupti_recorded *place;
    int64_t stream = -1, correlation = -1;

    /* only waits for events have these facts */
    if (record->type != 1 && record->type != 2)
        return 0;
    pthread_mutex_lock(&self->lock);
    place = event_place(self, record->context, record->event);
    if (place->context == record->context && place->event == record->event &&
        place->correlation <= record->correlation) {
        stream = place->stream;
        correlation = place->correlation;
    }
    pthread_mutex_unlock(&self->lock);
    return (size_t)snprintf(text, size,
                            "\"wait_on_stream\": %" PRId64
                            ", \"wait_on_cuda_event_record_corr_id\": %" PRId64
                            ", \"wait_on_cuda_event_id\": %u",
                            stream, correlation, record->event);
}

static void deliver_sync(cupti_collector *self, const cupti_sync *record)
{
    uint32_t device = cupti_context_device(self, record->context);
    char text[CUPTI_TEXT];
    size_t length = describe_wait(self, record, text, sizeof text);
    vst_activity activity = {
        .kind = VST_ACTIVITY_SYNC,
        .device = record->stream == CUPTI_NONE
                      ? cupti_streamless(self, device)
                      : cupti_device_number(self, device),
        .stream = record->stream,
        .context = record->context,
        .id = cupti_name(self, cupti_sync_name(record->type)),
        .correlation = record->correlation,
        .start = record->start,
        .end = record->end,
    };

    reading_deliver(self, &activity, text, length);
}

static void deliver_overhead(cupti_collector *self,
                             const cupti_overhead *record)
{
    vst_activity activity = {
        .kind = VST_ACTIVITY_OVERHEAD,
        .device = cupti_any_device(self),
        .id = cupti_name(self, cupti_overhead_name(record->overhead_kind)),
        /* no thread, because the overhead may be on CUPTI's own thread */
        .system_tid = UINT32_MAX,
        .start = record->start,
        .end = record->end,
    };

    reading_deliver(self, &activity, NULL, 0);
}

static void deliver_record(cupti_collector *self, const void *record)
{
    switch (*(const int32_t *)record) {
    case CUPTI_KERNEL:
        deliver_kernel(self, record);
        break;
    case CUPTI_MEMCPY:
        deliver_copy(self, record);
        break;
    case CUPTI_MEMCPY_PEER:
        deliver_peer_copy(self, record);
        break;
    case CUPTI_MEMSET:
        deliver_set(self, record);
        break;
    case CUPTI_RUNTIME:
    case CUPTI_DRIVER:
        deliver_call(self, record);
        break;
    case CUPTI_SYNC:
        deliver_sync(self, record);
        break;
    case CUPTI_OVERHEAD:
        deliver_overhead(self, record);
        break;
    default: /* noted in the first pass, or enabled by another profiler */
        break;
    }
}

void cupti_read_buffer(cupti_collector *self, uint8_t *buffer, size_t valid)
{
    uint32_t last[2] = {CUPTI_NONE, CUPTI_NONE};
    bool broken = false;
    const void *record;
    void *at = NULL;

    if (valid == 0)
        return;
    while ((record = next_record(buffer, valid, &at, &broken)) != NULL)
        reading_note(self, record, last);
    at = NULL;
    while ((record = next_record(buffer, valid, &at, &broken)) != NULL)
        deliver_record(self, record);
    if (!broken)
        return;
    cupti_note_once(self, CUPTI_TROUBLE_WALK,
                    "cuptiActivityGetNextRecord failed: a part of a buffer is "
                    "lost");
    vst_device_lost(self->recording, cupti_any_device(self), 1);
}
