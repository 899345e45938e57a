/* Packets of Perfetto's own format: their sequences, events and arguments.
 * perfetto.c decides what the packets say. One thread at a time.
 *
 * A file is a list of packets. Each belongs to a sequence, and a sequence has
 * memory: a name is sent once and then identified by a number, and a time is
 * the difference to the previous packet. Spans come in the order in which they
 * end, so time would go back at every caller; but at one depth of one thread it
 * never does. Each depth therefore has a sequence, and times take few bytes.
 * The next thread uses the sequences again, and says that they begin anew.
 * Readers sort by time and keep the order of events of equal time. This order
 * is right: a span starts later than its parent (see matcher.c), and comes
 * before its parent in the file if both end in one moment. */
#ifndef VST_EXPORT_PERFETTO_PACKETS_H
#define VST_EXPORT_PERFETTO_PACKETS_H

#include "base/intern.h"
#include "export/output/proto.h"
#include "export/timeline/drawing.h"

enum {
    /* A sequence's number is a byte. Deeper spans share the last sequence, in
     * which time goes back. */
    VST_PF_DEPTHS = 120,
    VST_PF_OTHERS, /* the sequence of everything that does not nest */
    VST_PF_SEQUENCES
};

/* Fields of messages, by Perfetto's names. */
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
    vst__pf_set names, keys; /* numbers that were sent on this sequence */
    /* a bit each: categories that were sent at first use */
    uint64_t categories;
} vst__pf_sequence;

/* Writes packets. New when all zero except drawing and keys. */
typedef struct vst__pf {
    vst__drawing *drawing;
    vst__pf_sequence sequences[VST_PF_SEQUENCES];
    vst__proto packet, event, interned, text;
    vst__intern *keys; /* keys of arguments */
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

/* vst__pf_forget_sequences makes the first `count` sequences begin again before
 * their next packet. vst__pf_begin_sequence begins a sequence, whose events are
 * on `track` unless they name another. */
void vst__pf_forget_sequences(vst__pf *self, size_t count);
void vst__pf_begin_sequence(vst__pf *self, uint32_t number, uint64_t track);

/* Open an event of a sequence, put its arguments into self->event, and write it
 * with the names that it uses first. track 0 means the sequence's own track. */
void vst__pf_open_event(vst__pf *self, vst__pf_type type,
                        vst__category category, uint64_t track);
void vst__pf_put_name(vst__pf *self, uint32_t number, const vst__label *label);
/* Returns the number of an argument's key, which is sent if the sequence does
 * not know it yet; 0 for a long key, which has no number. */
uint32_t vst__pf_number_key(vst__pf *self, uint32_t number, const char *key,
                            size_t count);
void vst__pf_write_event(vst__pf *self, uint32_t number, int64_t time_ns);

/* One thread in a kernel's switch. */
typedef struct vst__pf_side {
    const char *name;
    size_t name_len;
    uint32_t tid;
} vst__pf_side;

/* Says that switches use the clock of everything else; call before the first
 * switch. */
void vst__pf_write_clocks(vst__pf *self);
/* Writes that a processor switches from one thread, which gets a state in
 * Linux's numbering, to another. */
void vst__pf_write_switch(vst__pf *self, uint32_t cpu, int64_t time_ns,
                          const vst__pf_side *from, uint64_t state,
                          const vst__pf_side *to);

/* ---- perfetto_args.c ----------------------------------------------------- */

void vst__pf_put_args(vst__pf *self, uint32_t number,
                      const vst__arg_list *args);
/* Puts a value under a known key; invalid JSON is written as text. */
void vst__pf_put_json(vst__pf *self, uint32_t number, const char *key,
                      const char *json);

#endif
