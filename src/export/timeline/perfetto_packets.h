/* Packets of Perfetto's own format: the sequences that they belong to, events
 * and their arguments. What the packets tell is perfetto.c's. One thread at a
 * time.
 *
 * A file is a list of packets. Each belongs to a sequence, and a sequence has
 * memory: names are sent once and then called by number, a time is what has
 * passed since the packet before. Spans come in the order in which they end, so
 * time would go back at every caller; but at one depth of one thread it never
 * does. Each depth therefore has a sequence, and no time takes more bytes than
 * it must. The sequences of a thread are taken up by the next one, which says
 * that it begins anew. Readers sort by time; two events of the same time keep
 * their order, and that is right: a span starts later than its parent (see
 * matcher.c), and ends before it in the file if it ends in the same moment. */
#ifndef VST_EXPORT_PERFETTO_PACKETS_H
#define VST_EXPORT_PERFETTO_PACKETS_H

#include "base/intern.h"
#include "export/output/proto.h"
#include "export/timeline/drawing.h"

enum {
    /* A sequence's number is a byte. Deeper spans share the last of them, where
     * time goes back. */
    VST_PF_DEPTHS = 120,
    VST_PF_OTHERS, /* the one of everything that does not nest */
    VST_PF_SEQUENCES
};

/* Fields of messages, by the names that Perfetto has for them. */
enum {
    VST_PF_PACKET = 1,
    VST_PF_PACKET_CLOCK_SNAPSHOT = 6,
    VST_PF_PACKET_TIMESTAMP = 8,
    VST_PF_PACKET_SEQUENCE = 10,
    VST_PF_PACKET_TRACK_EVENT = 11,
    VST_PF_PACKET_INTERNED_DATA = 12,
    VST_PF_PACKET_SEQUENCE_FLAGS = 13,
    VST_PF_PACKET_CLOCK_ID = 58,
    VST_PF_PACKET_DEFAULTS = 59,
    VST_PF_PACKET_TRACK_DESCRIPTOR = 60,
    VST_PF_PACKET_TRACE_UUID = 89,

    VST_PF_EVENT_CATEGORY_IIDS = 3,
    VST_PF_EVENT_DEBUG_ANNOTATIONS = 4,
    VST_PF_EVENT_LEGACY = 6,
    VST_PF_EVENT_TYPE = 9,
    VST_PF_EVENT_NAME_IID = 10,
    VST_PF_EVENT_TRACK_UUID = 11,
    VST_PF_EVENT_NAME = 23,
    VST_PF_EVENT_COUNTER_VALUE = 30,
    VST_PF_EVENT_DOUBLE_COUNTER_VALUE = 44,
    VST_PF_EVENT_FLOW_IDS = 47,
    VST_PF_EVENT_LAST_FLOW_IDS = 48,

    VST_PF_TRACK_UUID = 1,
    VST_PF_TRACK_NAME = 2,
    VST_PF_TRACK_PROCESS = 3,
    VST_PF_TRACK_THREAD = 4,
    VST_PF_TRACK_PARENT_UUID = 5,
    VST_PF_TRACK_COUNTER = 8
};

typedef enum vst__pf_type {
    VST_PF_BEGIN = 1,
    VST_PF_END = 2,
    VST_PF_INSTANT = 3,
    VST_PF_COUNTER = 4
} vst__pf_type;

/* A set of numbers. */
typedef struct vst__pf_set {
    uint64_t *words;
    size_t capacity; /* words */
} vst__pf_set;

typedef struct vst__pf_sequence {
    bool begun;
    int64_t last_ns;
    vst__pf_set names, keys; /* numbers of those that were sent */
    uint64_t categories;     /* a bit each: those sent when first used */
} vst__pf_sequence;

/* What writes packets. All zero but drawing and keys is a new one. */
typedef struct vst__pf {
    vst__drawing *drawing;
    vst__pf_sequence sequences[VST_PF_SEQUENCES];
    vst__proto packet, event, interned, text;
    vst__intern *keys; /* of arguments */
    uint32_t key_count;
} vst__pf;

void vst__pf_free(vst__pf *self);

static inline bool vst__pf_set_has(const vst__pf_set *set, uint32_t number)
{
    return number / 64 < set->capacity &&
           (set->words[number / 64] >> number % 64 & 1) != 0;
}

/* Ends self->packet, which begins with its sequence. */
void vst__pf_begin_packet(vst__pf *self);
void vst__pf_write_packet(vst__pf *self);

/* Sequences begin anew, where tracks say no other, on this one. */
void vst__pf_forget_sequences(vst__pf *self, size_t count);
void vst__pf_begin_sequence(vst__pf *self, uint32_t number, uint64_t track);

/* An event of a sequence: begun, given what it has to say in self->event, and
 * written with the names that it is the first to use. track is 0 where the
 * sequence's own is meant. */
void vst__pf_open_event(vst__pf *self, vst__pf_type type,
                        vst__category category, uint64_t track);
void vst__pf_put_name(vst__pf *self, uint32_t number, const vst__label *label);
/* The number of an argument's key, which is sent if the sequence does not know
 * it yet. Long keys have none: 0. */
uint32_t vst__pf_number_key(vst__pf *self, uint32_t number, const char *key,
                            size_t count);
void vst__pf_write_event(vst__pf *self, uint32_t number, int64_t time_ns);

/* A thread in a switch of a kernel's. */
typedef struct vst__pf_side {
    const char *name;
    size_t name_len;
    uint32_t tid;
} vst__pf_side;

/* Says that the clock of switches is that of all others; before the first. */
void vst__pf_write_clocks(vst__pf *self);
/* A processor goes from one thread, which is then in a state as Linux numbers
 * them, to another. */
void vst__pf_write_switch(vst__pf *self, uint32_t cpu, int64_t time_ns,
                          const vst__pf_side *from, uint64_t state,
                          const vst__pf_side *to);

/* ---- perfetto_args.c ---------------------------------------------------- */

void vst__pf_put_args(vst__pf *self, uint32_t number,
                      const vst__arg_list *args);
/* One value of which the key is known; what is no JSON is text. */
void vst__pf_put_json(vst__pf *self, uint32_t number, const char *key,
                      const char *json);

#endif
