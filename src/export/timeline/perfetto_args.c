/* Packets of Perfetto's format: sequences and what was sent on each, events,
 * and their arguments. Arguments in JSON become typed values. One thread at a
 * time. */
#include <locale.h>
#include <stdlib.h>

#include "base/grow.h"
#include "export/timeline/perfetto.h"

enum {
    CLOCK = 64, /* the first that sequences may define for themselves */
    WALL_CLOCK = 1,
    STATE_CLEARED = 1,
    DEPTH_MAX = 32, /* of arguments within arguments; the rest is text */

    ANNOTATION_NAME_IID = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
    ANNOTATION_DICT = 11,
    ANNOTATION_ARRAY = 12,

    KEY_MAX = 256 /* longer ones are not worth a number */
};

bool vst__pf_set_add(vst__perfetto *self, vst__pf_set *set, uint32_t number)
{
    size_t before = set->capacity;
    uint64_t *words =
        vst__grow(set->words, &set->capacity, number / 64 + 1, sizeof *words);

    if (words == NULL) {
        self->status = VST_E_NOMEM;
        return false;
    }
    set->words = words;
    memset(words + before, 0, (set->capacity - before) * sizeof *words);
    if (words[number / 64] >> number % 64 & 1)
        return false;
    words[number / 64] |= UINT64_C(1) << number % 64;
    return true;
}

/* ---- sequences ---------------------------------------------------------- */

static void empty(vst__pf_set *set)
{
    if (set->words != NULL)
        memset(set->words, 0, set->capacity * sizeof *set->words);
}

void vst__pf_forget_sequences(vst__perfetto *self, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        vst__pf_sequence *sequence = &self->sequences[i];

        if (!sequence->begun)
            continue;
        sequence->begun = false;
        sequence->categories = 0;
        empty(&sequence->names);
        empty(&sequence->keys);
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

static const char *category_name(uint32_t number)
{
    static const char *const names[VST_PF_DEVICE] = {
        [VST_PF_PYTHON] = "python_function",
        [VST_PF_OPERATOR] = "cpu_op",
        [VST_PF_ANNOTATION] = "user_annotation",
        [VST_PF_MARK] = "instant",
        [VST_PF_VALUE] = "counter",
        [VST_PF_TRACE] = "Trace",
        [VST_PF_MEMORY] = "cpu_instant_event",
        [VST_PF_FWDBWD] = "fwdbwd",
        [VST_PF_STARTS] = "process",
        [VST_PF_TASK] = "task",
        [VST_PF_AWAIT] = "await",
    };

    return number < VST_PF_DEVICE
               ? names[number]
               : vst__device_category_name(
                     (vst__device_category)(number - VST_PF_DEVICE));
}

static void put_categories(vst__proto *packet, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++) {
        size_t one = vst__proto_open(packet, VST_PF_INTERNED_CATEGORIES);

        vst__proto_u64(packet, VST_PF_INTERNED_IID, i);
        vst__proto_text(packet, VST_PF_INTERNED_NAME, category_name(i));
        vst__proto_close(packet, one);
    }
}

/* Every sequence has a clock of its own, which counts from packet to packet and
 * shows the time of day. All are set at the same moment, so that no snapshot
 * contradicts another. */
vst_status vst__pf_begin_sequence(vst__perfetto *self, uint32_t number,
                                  uint64_t track)
{
    vst__proto *packet = &self->packet;
    int64_t base_ns = self->timeline.base_ns;
    size_t message;

    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE, number + 1);
    vst__proto_u64(packet, VST_PF_PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    message = vst__proto_open(packet, VST_PF_PACKET_CLOCK_SNAPSHOT);
    put_clock(packet, WALL_CLOCK, base_ns, false);
    put_clock(packet, CLOCK, base_ns, true);
    vst__proto_u64(packet, 2, WALL_CLOCK); /* of the whole trace */
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
    /* Only spans are on the sequences of a depth. */
    put_categories(packet, VST_PF_PYTHON,
                   number == VST_PERFETTO_BESIDE ? VST_PF_STARTS
                                                 : VST_PF_ANNOTATION);
    vst__proto_close(packet, message);
    self->sequences[number].begun = true;
    self->sequences[number].last_ns = base_ns;
    return vst__proto_write(packet, VST_PF_PACKET, self->timeline.output);
}

/* ---- events ------------------------------------------------------------- */

void vst__pf_open_event(vst__perfetto *self, vst__pf_type type,
                        vst__pf_category category)
{
    vst__pf_sequence *beside = &self->sequences[VST_PERFETTO_BESIDE];

    /* Those of tasks and devices are sent when there are such. */
    if (category >= VST_PF_TASK && type != VST_PF_END &&
        !(beside->categories >> category & 1)) {
        put_categories(&self->interned, category, category);
        beside->categories |= UINT64_C(1) << category;
    }
    vst__proto_clear(&self->event);
    vst__proto_u64(&self->event, VST_PF_EVENT_TYPE, type);
    if (type != VST_PF_END && type != VST_PF_COUNTER)
        vst__proto_u64(&self->event, VST_PF_EVENT_CATEGORY_IIDS, category);
}

vst_status vst__pf_write_event(vst__perfetto *self, uint32_t number,
                               int64_t time_ns)
{
    vst__pf_sequence *sequence = &self->sequences[number];
    vst__proto *packet = &self->packet;

    if (self->status != VST_OK || self->event.failed || self->interned.failed)
        return VST_E_NOMEM;
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
    return vst__proto_write(packet, VST_PF_PACKET, self->timeline.output);
}

/* ---- arguments ---------------------------------------------------------- */

/* The number of a key, which is sent if the sequence does not know it yet. Long
 * keys have none: 0. */
static uint32_t number_of(vst__perfetto *self, uint32_t number, const char *key,
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
            self->status = VST_E_NOMEM;
            return 0;
        }
        self->key_count = iid;
    }
    if (!vst__pf_set_add(self, &self->sequences[number].keys, iid))
        return iid;
    one = vst__proto_open(&self->interned, VST_PF_INTERNED_ANNOTATION_NAMES);
    vst__proto_u64(&self->interned, VST_PF_INTERNED_IID, iid);
    vst__proto_bytes(&self->interned, VST_PF_INTERNED_NAME, key, count);
    vst__proto_close(&self->interned, one);
    return iid;
}

static void put_key(vst__perfetto *self, uint32_t number, const char *key,
                    size_t count)
{
    uint32_t iid = number_of(self, number, key, count);

    if (iid != 0)
        vst__proto_u64(&self->event, ANNOTATION_NAME_IID, iid);
    else
        vst__proto_bytes(&self->event, ANNOTATION_NAME, key, count);
}

static size_t open_arg(vst__perfetto *self, uint32_t number, const char *key)
{
    size_t opened =
        vst__proto_open(&self->event, VST_PF_EVENT_DEBUG_ANNOTATIONS);

    put_key(self, number, key, strlen(key));
    return opened;
}

void vst__pf_arg_u64(vst__perfetto *self, uint32_t number, const char *key,
                     uint64_t value)
{
    size_t opened = open_arg(self, number, key);

    vst__proto_u64(&self->event, ANNOTATION_UINT, value);
    vst__proto_close(&self->event, opened);
}

void vst__pf_arg_i64(vst__perfetto *self, uint32_t number, const char *key,
                     int64_t value)
{
    size_t opened = open_arg(self, number, key);

    vst__proto_i64(&self->event, ANNOTATION_INT, value);
    vst__proto_close(&self->event, opened);
}

void vst__pf_arg_double(vst__perfetto *self, uint32_t number, const char *key,
                        double value)
{
    size_t opened = open_arg(self, number, key);

    vst__proto_double(&self->event, ANNOTATION_DOUBLE, value);
    vst__proto_close(&self->event, opened);
}

void vst__pf_arg_text(vst__perfetto *self, uint32_t number, const char *key,
                      const char *text, size_t count)
{
    size_t opened = open_arg(self, number, key);
    size_t value = vst__proto_open(&self->event, ANNOTATION_STRING);

    vst__proto_raw_utf8(&self->event, text, count);
    vst__proto_close(&self->event, value);
    vst__proto_close(&self->event, opened);
}

/* A number as it is written: whole, or a fraction. */
static void put_number(vst__proto *event, vst__json_part part)
{
    int64_t whole;
    char digits[64];

    if (vst__json_integer(part, &whole)) {
        vst__proto_i64(event, ANNOTATION_INT, whole);
    } else if (part.count < sizeof digits) {
        memcpy(digits, part.at, part.count);
        digits[part.count] = '\0';
        /* JSON's point is not the locale's. */
        if (strchr(digits, '.') != NULL)
            *strchr(digits, '.') = *localeconv()->decimal_point;
        vst__proto_double(event, ANNOTATION_DOUBLE, strtod(digits, NULL));
    } else {
        vst__proto_bytes(event, ANNOTATION_STRING, part.at, part.count);
    }
}

static void put_scalar(vst__proto *event, vst__json_part part)
{
    if (*part.at == '"') {
        vst__json_part inside = vst__json_inside(part);
        size_t opened = vst__proto_open(event, ANNOTATION_STRING);

        vst__proto_raw_json(event, inside.at, inside.count);
        vst__proto_close(event, opened);
    } else if (*part.at == 't' || *part.at == 'f') {
        vst__proto_u64(event, ANNOTATION_BOOL, *part.at == 't');
    } else if (*part.at == 'n') {
        vst__proto_text(event, ANNOTATION_STRING, "null");
    } else {
        put_number(event, part);
    }
}

/* A list or an object that is being written. */
typedef struct nested {
    vst__json_part part;
    const char *at;
    size_t opened; /* its own message */
} nested;

/* A key of an object, without its escapes. */
static void put_json_key(vst__perfetto *self, uint32_t number,
                         vst__json_part key)
{
    vst__json_part inside = vst__json_inside(key);

    vst__proto_clear(&self->text);
    vst__proto_raw_json(&self->text, inside.at, inside.count);
    put_key(self, number, self->text.bytes != NULL ? self->text.bytes : "",
            self->text.count);
}

/* The value of an annotation that is open: a scalar, or all that is in it. */
static void put_value(vst__perfetto *self, uint32_t number,
                      vst__json_part value)
{
    vst__proto *event = &self->event;
    nested levels[DEPTH_MAX];
    size_t depth = 0;

    for (;;) {
        nested *top;
        bool is_object;

        if (value.count != 0 && (*value.at == '{' || *value.at == '[') &&
            depth < DEPTH_MAX)
            levels[depth++] = (nested){value, NULL, 0};
        else if (value.count != 0 && (*value.at == '{' || *value.at == '['))
            vst__proto_bytes(event, ANNOTATION_STRING, value.at, value.count);
        else if (value.count != 0)
            put_scalar(event, value);
        for (;;) { /* to the next value, if there is one */
            if (depth == 0)
                return;
            top = &levels[depth - 1];
            is_object = *top->part.at == '{';
            if (top->opened != 0)
                vst__proto_close(event, top->opened);
            top->opened = 0;
            if (vst__json_next(top->part, &top->at, &value))
                break;
            depth--;
        }
        top->opened = vst__proto_open(event, is_object ? ANNOTATION_DICT
                                                       : ANNOTATION_ARRAY);
        if (is_object) {
            put_json_key(self, number, value);
            if (!vst__json_next(top->part, &top->at, &value))
                value = (vst__json_part){NULL, 0};
        }
    }
}

void vst__pf_args_json(vst__perfetto *self, uint32_t number, const char *json,
                       size_t count)
{
    vst__json_part members, key, value;
    const char *at = json;

    if (!vst__json_is_members(json, count)) {
        vst__pf_arg_text(self, number, "args", json, count);
        return;
    }
    members = (vst__json_part){json, count};
    while (vst__json_next_member(members, &at, &key, &value)) {
        size_t opened =
            vst__proto_open(&self->event, VST_PF_EVENT_DEBUG_ANNOTATIONS);

        put_json_key(self, number, key);
        put_value(self, number, value);
        vst__proto_close(&self->event, opened);
    }
}

void vst__pf_arg_json(vst__perfetto *self, uint32_t number, const char *key,
                      const char *json)
{
    vst__json_part value = vst__json_whole(json);
    size_t opened;

    if (value.count == 0) {
        vst__pf_arg_text(self, number, key, json, strlen(json));
        return;
    }
    opened = open_arg(self, number, key);
    put_value(self, number, value);
    vst__proto_close(&self->event, opened);
}
