/* Collects the activities of devices, see devices.h. */
#include "replay/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "replay/escapes.h"
#include "store/live.h"

enum {
    STEP = 1024 /* activities that are delivered in one call */
};

/* ---- collecting ---------------------------------------------------------- */

/* Returns the newest thread with this system tid, 0 if there is none. */
static uint32_t thread_of(const vst_trace *trace, uint64_t tid)
{
    for (size_t i = trace->thread_count; i-- > 0;)
        if (trace->threads[i].system_tid == tid)
            return trace->threads[i].number;
    return 0;
}

/* Reads the times, whose bits may have any value. */
static void read_times(vst_trace *trace, const uint64_t *payload,
                       bool host_time, vst__activity *activity)
{
    vst_ticks start = payload[3], end = start + payload[4];

    if (end < start)
        end = start;
    if (!host_time) {
        start = vst__device_ticks(trace, activity->device, start);
        end = vst__device_ticks(trace, activity->device, end);
    }
    activity->start_ns = vst__clockmap_to_ns(&trace->clock, start);
    activity->end_ns = vst__clockmap_to_ns(&trace->clock, end);
    if (activity->end_ns < activity->start_ns)
        activity->end_ns = activity->start_ns;
}

/* Reads the words that follow the fixed part. `offset` is the payload's
 * position in the file. */
static void read_more(vst_trace *trace, const uint64_t *payload, uint32_t words,
                      uint64_t offset, vst__activity *activity)
{
    uint32_t flags = (uint32_t)(payload[0] >> 8) & 0xffu;
    uint32_t at = VST_ACTIVITY_WORDS;

    if (flags & VST_ACTIVITY_HAS_THREAD && at < words) {
        activity->thread = thread_of(trace, payload[at++]);
        activity->is_delivered_by_other = true;
    }
    if (flags & VST_ACTIVITY_HAS_EXTERNAL && at < words)
        activity->external = payload[at++];
    if (flags & VST_ACTIVITY_HAS_BYTES && at < words)
        activity->bytes = payload[at++];
    if (!(flags & VST_ACTIVITY_HAS_ATTRIBUTES) || at >= words ||
        payload[at] > (uint64_t)(words - at - 1) * sizeof *payload)
        return;
    activity->length = (uint32_t)payload[at];
    activity->place = offset + (at + 1) * sizeof *payload;
}

static vst_status devices_note(void *ctx, const vst__escape_found *found)
{
    vst_devices *self = ctx;
    const uint64_t *payload = found->word + 1;
    const int64_t *shown = self->shown;
    uint32_t kind = (uint32_t)payload[0] & 0xffu;
    bool on_thread = vst_activity_is_on_thread(kind);
    vst__activity *items,
        activity = {
            .kind = (uint8_t)kind,
            .device = (uint16_t)(payload[0] >> 16),
            .stream = (uint32_t)(payload[0] >> 32),
            .id = (vst_id)payload[1],
            .context = (uint32_t)(payload[1] >> 32),
            .correlation = payload[2],
            .segment = found->segment,
            .thread = on_thread ? self->segments[found->segment].thread : 0,
        };

    if (kind == 0 || kind >= VST_ACTIVITY_LOST)
        return VST_OK;
    read_times(self->trace, payload,
               on_thread || payload[0] >> 8 & VST_ACTIVITY_HOST_TIME,
               &activity);
    if (activity.end_ns < shown[0] || activity.start_ns > shown[1])
        return VST_OK;
    read_more(self->trace, payload, vst_word_escape_words(*found->word),
              found->offset + sizeof *payload, &activity);
    if (self->count >= UINT32_MAX - 1)
        return VST_E_NOMEM;
    items =
        vst__grow(self->items, &self->capacity, self->count + 1, sizeof *items);
    if (items == NULL)
        return VST_E_NOMEM;
    self->items = items;
    items[self->count++] = activity;
    return VST_OK;
}

static int devices_order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Sorts as vst_device_span requires. */
static int devices_in_order(const void *a, const void *b)
{
    const vst__activity *x = a, *y = b;
    bool on_thread = vst_activity_is_on_thread(x->kind);

    if (on_thread != vst_activity_is_on_thread(y->kind))
        return on_thread ? -1 : 1;
    if (on_thread && x->thread != y->thread)
        return devices_order_of(x->thread, y->thread);
    if (!on_thread && x->device != y->device)
        return devices_order_of(x->device, y->device);
    if (!on_thread && x->stream != y->stream)
        return devices_order_of(x->stream, y->stream);
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return devices_order_of(x->correlation, y->correlation);
}

/* The key includes the collector, because correlation ids are unique only among
 * its devices. */
static uint64_t launch_key(const vst_devices *self, uint32_t number,
                           uint64_t correlation)
{
    const vst_trace_device *device = vst_trace_device_find(self->trace, number);

    return correlation * (VST_COLLECTORS_MAX + 1) +
           (device != NULL ? device->collector : 0);
}

/* Returns the place of 1 + the index of the call with this id; NULL if there is
 * none. */
static const uint64_t *find_launch(const vst_devices *self, uint32_t number,
                                   uint64_t correlation)
{
    return correlation != 0
               ? vst__map64_find(&self->launches,
                                 launch_key(self, number, correlation))
               : NULL;
}

/* If a call of the runtime calls the driver, both have the id; the first one
 * counts. */
static vst_status note_calls(vst_devices *self)
{
    vst__map64_clear(&self->launches);
    for (size_t i = 0; i < self->calls; i++) {
        const vst__activity *call = &self->items[i];
        uint64_t *place;

        if (call->correlation == 0 || call->kind == VST_ACTIVITY_OVERHEAD)
            continue;
        place = vst__map64_put(
            &self->launches, launch_key(self, call->device, call->correlation));
        if (place == NULL)
            return VST_E_NOMEM;
        if (*place == 0)
            *place = i + 1;
    }
    return VST_OK;
}

/* Returns the activity itself if it is a call, or the call that launched it;
 * NULL if there is none. */
static vst__activity *devices_find_call(const vst_devices *self, size_t index)
{
    vst__activity *activity = &self->items[index];
    const uint64_t *place;

    if (index < self->calls)
        return activity;
    place = find_launch(self, activity->device, activity->correlation);
    return place != NULL ? &self->items[*place - 1] : NULL;
}

static vst_status find_launches(vst_devices *self)
{
    vst_status status = note_calls(self);

    for (size_t i = self->calls; status == VST_OK && i < self->count; i++) {
        vst__activity *call = devices_find_call(self, i);

        if (call != NULL && vst_activity_is_work(self->items[i].kind))
            self->items[i].launched = call->launched++;
    }
    return status;
}

/* ---- claims -------------------------------------------------------------- */

static vst_status find_causes(vst_devices *self)
{
    const vst_trace *trace = self->trace;

    if (self->cause_of != NULL)
        return VST_OK;
    self->max = vst_trace_definition_max(trace);
    self->cause_of = malloc((size_t)self->max + 1);
    if (self->cause_of == NULL)
        return VST_E_NOMEM;
    memset(self->cause_of, VST_CAUSES, (size_t)self->max + 1);
    for (size_t i = 0; i < trace->definition_count; i++) {
        unsigned char *cause = &self->cause_of[trace->definition_ids[i]];

        if (trace->definitions[i].kind == VST_DEF_OPERATOR)
            *cause = VST_CAUSE_OPERATOR;
        else if (trace->definitions[i].kind == VST_DEF_ANNOTATION)
            *cause = VST_CAUSE_ANNOTATION;
    }
    return VST_OK;
}

/* Calls that their own threads recorded are not offered for claims. */
static vst_status make_claims(vst_devices *self, vst__claims *claims)
{
    size_t calls = self->calls;

    free(claims->causes);
    free(claims->next);
    claims->causes = calloc(calls + 1, sizeof *claims->causes);
    claims->next = malloc((calls + 1) * sizeof *claims->next);
    if (claims->causes == NULL || claims->next == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < calls; i++)
        claims->next[i] =
            (uint32_t)(self->items[i].is_delivered_by_other ? i : i + 1);
    claims->next[calls] = (uint32_t)calls;
    return VST_OK;
}

/* Returns the first call from `at` on that was not claimed; shortens the path
 * for the next search. */
static uint32_t find_free(const vst__claims *claims, uint32_t at)
{
    uint32_t found = at;

    while (claims->next[found] != found)
        found = claims->next[found];
    while (claims->next[at] != found) {
        uint32_t next = claims->next[at];
        claims->next[at] = found;
        at = next;
    }
    return found;
}

/* Returns the first call of the thread that is not before start_ns. */
static uint32_t first_call(const vst_devices *self, uint32_t thread,
                           int64_t start_ns)
{
    size_t low = 0, high = self->calls;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const vst__activity *call = &self->items[middle];

        if (call->thread < thread ||
            (call->thread == thread && call->start_ns < start_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* A span inside another ends first, so inner spans claim first. */
void vst__activities_claim(vst_devices *self, const vst_span *span)
{
    unsigned cause = vst__activities_cause(self, span->id);
    vst__claims *claims;
    uint32_t at;

    if (cause == VST_CAUSES || self->calls == 0)
        return;
    claims = &self->claims[cause];
    at = find_free(claims, first_call(self, span->thread, span->start_ns));
    while (at < self->calls && self->items[at].thread == span->thread &&
           self->items[at].start_ns <= span->end_ns) {
        claims->causes[at] = (vst_device_cause){span->serial, span->id};
        claims->next[at] = at + 1;
        at = find_free(claims, at + 1);
    }
}

void vst__activities_note_cause(vst_devices *self, const uint64_t *payload,
                                const vst_device_cause *causes)
{
    const uint64_t *place =
        find_launch(self, (uint32_t)(payload[0] >> 16) & 0xffffu, payload[2]);

    if (place == NULL)
        return;
    for (size_t i = 0; i < VST_CAUSES; i++)
        self->claims[i].causes[*place - 1] = causes[i];
}

vst_status vst__activities_collect(vst_devices *self, vst_trace *trace,
                                   const vst__window *window)
{
    const vst__escape_visit visit = {VST_ESCAPE_DEVICE, VST_ACTIVITY_WORDS,
                                     devices_note, self};
    vst_status status;

    self->trace = trace;
    self->segments = &trace->segments[window->segments];
    self->shown[0] = vst__clockmap_to_ns(&trace->clock, window->first);
    self->shown[1] = vst__clockmap_to_ns(&trace->clock, window->last);
    self->count = self->calls = self->at = 0;
    status = find_causes(self);
    for (size_t i = 0; status == VST_OK && i < window->segment_count; i++)
        status = vst__escapes_each(trace, self->segments, (uint32_t)i, &visit);
    if (self->count > 1)
        qsort(self->items, self->count, sizeof *self->items, devices_in_order);
    while (self->calls < self->count &&
           vst_activity_is_on_thread(self->items[self->calls].kind))
        self->calls++;
    for (size_t i = 0; status == VST_OK && i < VST_CAUSES; i++)
        status = make_claims(self, &self->claims[i]);
    return status == VST_OK ? find_launches(self) : status;
}

/* ---- delivering ---------------------------------------------------------- */

/* Reads the text of the attributes into self->text. Returns false if it is
 * gone. */
static vst_status read_text(vst_devices *self, const vst__activity *activity,
                            bool *is_there)
{
    char *text = vst__grow(self->text, &self->text_capacity,
                           (size_t)activity->length + 1, 1);
    bool reused;
    size_t got;
    vst_status status;

    *is_there = false;
    if (text == NULL)
        return VST_E_NOMEM;
    self->text = text;
    status = vst__source_read(&self->trace->source, text, activity->length,
                              activity->place, &got);
    if (status == VST_OK)
        status = vst__live_is_reused(
            self->trace, &self->segments[activity->segment], &reused);
    *is_there = status == VST_OK && !reused && got == activity->length;
    return status;
}

static vst_status devices_deliver(vst_devices *self, size_t index,
                                  const vst_sink *sink)
{
    const vst__activity *activity = &self->items[index];
    const vst__activity *call = devices_find_call(self, index);
    vst_device_launch launch;
    vst_device_span span = {
        .kind = activity->kind,
        .device = activity->device,
        .stream = activity->stream,
        .context = activity->context,
        .id = activity->id,
        .thread = activity->thread,
        .start_ns = activity->start_ns,
        .end_ns = activity->end_ns,
        .correlation = activity->correlation,
        .external = activity->external,
        .bytes = activity->bytes,
        .launched = index < self->calls ? activity->launched : 0,
    };
    vst_status status = VST_OK;
    bool has_text = false;

    if (activity->place != 0 && !sink->no_args)
        status = read_text(self, activity, &has_text);
    if (status != VST_OK)
        return status;
    if (has_text) {
        span.args = self->text;
        span.args_len = activity->length;
    }
    if (call != NULL) {
        size_t at = (size_t)(call - self->items);

        span.op = self->claims[VST_CAUSE_OPERATOR].causes[at];
        span.annotation = self->claims[VST_CAUSE_ANNOTATION].causes[at];
    }
    if (call != NULL && call != activity) {
        launch = (vst_device_launch){call->id,     call->kind,
                                     call->thread, call->start_ns,
                                     call->end_ns, activity->launched};
        span.launch = &launch;
    }
    return sink->device(sink->ctx, &span);
}

vst_status vst__activities_deliver(vst_devices *self, const vst_sink *sink,
                                   bool *more)
{
    size_t end = self->count - self->at > STEP ? self->at + STEP : self->count;
    vst_status status = VST_OK;

    while (status == VST_OK && self->at < end)
        status = devices_deliver(self, self->at++, sink);
    *more = self->at < self->count;
    return status;
}

void vst__activities_free(vst_devices *self)
{
    for (size_t i = 0; i < VST_CAUSES; i++) {
        free(self->claims[i].causes);
        free(self->claims[i].next);
    }
    vst__map64_free(&self->launches);
    free(self->items);
    free(self->cause_of);
    free(self->text);
}
