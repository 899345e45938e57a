/* See perfetto_packets.h. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/perfetto_packets.h"

enum {
    /* the first clock number that sequences may define themselves */
    CLOCK = 64,
    WALL_CLOCK = 1,
    STATE_CLEARED = 1,

    INTERNED_CATEGORIES = 1,
    INTERNED_EVENT_NAMES = 2,
    INTERNED_ANNOTATION_NAMES = 3,
    INTERNED_IID = 1, /* field of each interned entry */
    INTERNED_NAME = 2,

    KEY_MAX = 256 /* longer keys get no number */
};

/* Adds a number. Returns whether it was new. */
static bool set_add(vst__pf *self, vst__pf_set *set, uint32_t number)
{
    size_t before = set->capacity;

    if (!VST_RESERVE(set->words, number / 64 + 1, set->capacity)) {
        vst__drawing_fail(self->drawing, VST_E_NOMEM);
        return false;
    }
    memset(set->words + before, 0,
           (set->capacity - before) * sizeof *set->words);
    if (set->words[number / 64] >> number % 64 & 1)
        return false;
    set->words[number / 64] |= UINT64_C(1) << number % 64;
    return true;
}

void vst__pf_free(vst__pf *self)
{
    for (size_t i = 0; i < VST_PF_SEQUENCES; i++) {
        free(self->sequences[i].names.words);
        free(self->sequences[i].keys.words);
    }
    vst__proto_free(&self->packet);
    vst__proto_free(&self->event);
    vst__proto_free(&self->interned);
    vst__proto_free(&self->text);
    vst__intern_destroy(self->keys);
}

void vst__pf_begin_packet(vst__pf *self)
{
    vst__proto_u64(&self->packet, VST_PF_PACKET_SEQUENCE, VST_PF_OTHERS + 1);
}

void vst__pf_write_packet(vst__pf *self)
{
    vst_status status =
        vst__proto_write(&self->packet, VST_PF_PACKET, self->drawing->output);

    if (status != VST_OK)
        vst__drawing_fail(self->drawing, status);
}

/* ---- sequences ----------------------------------------------------------- */

static void packet_empty(vst__pf_set *set)
{
    if (set->words != NULL)
        memset(set->words, 0, set->capacity * sizeof *set->words);
}

void vst__pf_forget_sequences(vst__pf *self, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        vst__pf_sequence *sequence = &self->sequences[i];

        if (!sequence->begun)
            continue;
        sequence->begun = false;
        sequence->categories = 0;
        packet_empty(&sequence->names);
        packet_empty(&sequence->keys);
    }
}

static void put_clock(vst__proto *packet, uint64_t id, int64_t ns,
                      bool incremental)
{
    size_t clock = vst__proto_open(packet, 1);

    vst__proto_u64(packet, 1, id);
    vst__proto_i64(packet, 2, ns);
    if (incremental)
        vst__proto_u64(packet, 3, 1);
    vst__proto_close(packet, clock);
}

static void put_categories(vst__proto *packet, vst__category first,
                           vst__category last)
{
    for (vst__category i = first; i <= last; i++) {
        size_t one = vst__proto_open(packet, INTERNED_CATEGORIES);

        vst__proto_u64(packet, INTERNED_IID, i);
        vst__proto_text(packet, INTERNED_NAME, vst__category_name(i));
        vst__proto_close(packet, one);
    }
}

/* Begins a sequence. Every sequence has a clock of its own, which counts from
 * packet to packet and is tied to the time of day. All clocks are tied at one
 * moment, so that no snapshot contradicts another. */
void vst__pf_begin_sequence(vst__pf *self, uint32_t number, uint64_t track)
{
    vst__proto *packet = &self->packet;
    int64_t base_ns = self->drawing->base_ns;
    size_t message;

    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, number + 1);
    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    message = vst__proto_open(packet, VST_PF_PACKET_CLOCK_SNAPSHOT);
    put_clock(packet, WALL_CLOCK, base_ns, false);
    put_clock(packet, CLOCK, base_ns, true);
    vst__proto_u64(packet, 2, WALL_CLOCK); /* the clock of the whole trace */
    vst__proto_close(packet, message);
    message = vst__proto_open(packet, VST_PF_PACKET_DEFAULTS);
    vst__proto_u64(packet, VST_PF_PACKET_CLOCK_ID, CLOCK);
    if (track != 0) {
        size_t defaults = vst__proto_open(packet, VST_PF_PACKET_TRACK_EVENT);
        vst__proto_u64(packet, VST_PF_EVENT_TRACK_UUID, track);
        vst__proto_close(packet, defaults);
    }
    vst__proto_close(packet, message);
    message = vst__proto_open(packet, VST_PF_PACKET_INTERNED_DATA);
    /* Only spans are on the sequences of depths. */
    put_categories(packet, VST_CATEGORY_CALL,
                   number == VST_PF_OTHERS ? VST_CATEGORY_START
                                           : VST_CATEGORY_ANNOTATION);
    vst__proto_close(packet, message);
    self->sequences[number].begun = true;
    self->sequences[number].last_ns = base_ns;
    vst__pf_write_packet(self);
}

/* ---- events -------------------------------------------------------------- */

void vst__pf_open_event(vst__pf *self, vst__pf_type type,
                        vst__category category, uint64_t track)
{
    uint64_t *sent = &self->sequences[VST_PF_OTHERS].categories;

    /* Categories after START are sent at first use. */
    if (category > VST_CATEGORY_START && type != VST_PF_END &&
        !(*sent >> category & 1)) {
        put_categories(&self->interned, category, category);
        *sent |= UINT64_C(1) << category;
    }
    vst__proto_clear(&self->event);
    vst__proto_u64(&self->event, VST_PF_EVENT_TYPE, type);
    if (type != VST_PF_END && type != VST_PF_COUNTER)
        vst__proto_u64(&self->event, VST_PF_EVENT_CATEGORY_IIDS, category);
    if (track != 0)
        vst__proto_u64(&self->event, VST_PF_EVENT_TRACK_UUID, track);
}

void vst__pf_put_name(vst__pf *self, uint32_t number, const vst__label *label)
{
    size_t opened;

    if (label->number == 0) {
        vst__proto_utf8(&self->event, VST_PF_EVENT_NAME, label->text,
                        label->count);
        return;
    }
    vst__proto_u64(&self->event, VST_PF_EVENT_NAME_IID, label->number);
    if (!set_add(self, &self->sequences[number].names, label->number))
        return;
    opened = vst__proto_open(&self->interned, INTERNED_EVENT_NAMES);
    vst__proto_u64(&self->interned, INTERNED_IID, label->number);
    vst__proto_utf8(&self->interned, INTERNED_NAME, label->text, label->count);
    vst__proto_close(&self->interned, opened);
}

uint32_t vst__pf_number_key(vst__pf *self, uint32_t number, const char *key,
                            size_t count)
{
    uint32_t iid;
    size_t one;

    if (count > KEY_MAX)
        return 0;
    iid = vst__intern_find(self->keys, key, count);
    if (iid == 0) {
        iid = self->key_count + 1;
        if (vst__intern_add(self->keys, key, count, iid) != VST_OK) {
            vst__drawing_fail(self->drawing, VST_E_NOMEM);
            return 0;
        }
        self->key_count = iid;
    }
    if (!set_add(self, &self->sequences[number].keys, iid))
        return iid;
    one = vst__proto_open(&self->interned, INTERNED_ANNOTATION_NAMES);
    vst__proto_u64(&self->interned, INTERNED_IID, iid);
    vst__proto_bytes(&self->interned, INTERNED_NAME, key, count);
    vst__proto_close(&self->interned, one);
    return iid;
}

void vst__pf_write_event(vst__pf *self, uint32_t number, int64_t time_ns)
{
    vst__pf_sequence *sequence = &self->sequences[number];
    vst__proto *packet = &self->packet;

    if (self->event.failed || self->interned.failed) {
        vst__drawing_fail(self->drawing, VST_E_NOMEM);
        return;
    }
    vst__proto_u64(packet, VST_PF_PACKET_TIMESTAMP,
                   (uint64_t)time_ns - (uint64_t)sequence->last_ns);
    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, number + 1);
    if (self->interned.count != 0)
        vst__proto_bytes(packet, VST_PF_PACKET_INTERNED_DATA,
                         self->interned.bytes, self->interned.count);
    vst__proto_bytes(packet, VST_PF_PACKET_TRACK_EVENT, self->event.bytes,
                     self->event.count);
    vst__proto_clear(&self->interned);
    sequence->last_ns = time_ns;
    vst__pf_write_packet(self);
}

/* ---- switches ------------------------------------------------------------ */

void vst__pf_write_clocks(vst__pf *self)
{
    enum { SNAPSHOT_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, BOOT_CLOCK = 6 };
    static const uint64_t ids[] = {WALL_CLOCK, BOOT_CLOCK};
    vst__proto *packet = &self->packet;
    size_t snapshot;

    vst__pf_begin_packet(self);
    snapshot = vst__proto_open(packet, VST_PF_PACKET_CLOCK_SNAPSHOT);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        size_t clock = vst__proto_open(packet, SNAPSHOT_CLOCK);

        vst__proto_u64(packet, CLOCK_ID, ids[i]);
        vst__proto_i64(packet, CLOCK_TIME, self->drawing->base_ns);
        vst__proto_close(packet, clock);
    }
    vst__proto_close(packet, snapshot);
    vst__pf_write_packet(self);
}

void vst__pf_write_switch(vst__pf *self, uint32_t cpu, int64_t time_ns,
                          const vst__pf_side *from, uint64_t state,
                          const vst__pf_side *to)
{
    enum {
        BUNDLE = 1, /* fields of a packet with a processor's ftrace events */
        BUNDLE_CPU = 1,
        BUNDLE_EVENT = 2,
        EVENT_TIME = 1,
        EVENT_PID = 2,
        EVENT_SWITCH = 4,
        PREVIOUS_NAME = 1,
        PREVIOUS_PID = 2,
        PREVIOUS_PRIORITY = 3,
        PREVIOUS_STATE = 4,
        NEXT_NAME = 5,
        NEXT_PID = 6,
        NEXT_PRIORITY = 7,
        PRIORITY = 120 /* the usual priority */
    };
    vst__proto *packet = &self->packet;
    size_t bundle, event, body;

    vst__pf_begin_packet(self);
    bundle = vst__proto_open(packet, BUNDLE);
    vst__proto_u64(packet, BUNDLE_CPU, cpu);
    event = vst__proto_open(packet, BUNDLE_EVENT);
    vst__proto_u64(packet, EVENT_TIME, (uint64_t)time_ns);
    vst__proto_u64(packet, EVENT_PID, from->tid);
    body = vst__proto_open(packet, EVENT_SWITCH);
    vst__proto_bytes(packet, PREVIOUS_NAME, from->name, from->name_len);
    vst__proto_u64(packet, PREVIOUS_PID, from->tid);
    vst__proto_u64(packet, PREVIOUS_PRIORITY, PRIORITY);
    vst__proto_u64(packet, PREVIOUS_STATE, state);
    vst__proto_bytes(packet, NEXT_NAME, to->name, to->name_len);
    vst__proto_u64(packet, NEXT_PID, to->tid);
    vst__proto_u64(packet, NEXT_PRIORITY, PRIORITY);
    vst__proto_close(packet, body);
    vst__proto_close(packet, event);
    vst__proto_close(packet, bundle);
    vst__pf_write_packet(self);
}
