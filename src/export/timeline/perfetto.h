/* The inside of the exporter for Perfetto's own format, shared by perfetto.c
 * (the document), perfetto_events.c (the events of a replay), perfetto_beside.c
 * (arrows and memory), perfetto_devices.c (what devices did) and
 * perfetto_args.c (packets and their arguments). One thread at a time.
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
#ifndef VST_EXPORT_PERFETTO_H
#define VST_EXPORT_PERFETTO_H

#include "base/intern.h"
#include "export/output/proto.h"
#include "export/timeline/timeline.h"

enum {
    /* A sequence's number is a byte. Deeper spans share the last of them, where
     * time goes back. */
    VST_PERFETTO_DEPTHS = 120,
    VST_PERFETTO_BESIDE, /* the one for everything that is no span */
    VST_PERFETTO_SEQUENCES
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

    VST_PF_INTERNED_CATEGORIES = 1,
    VST_PF_INTERNED_EVENT_NAMES = 2,
    VST_PF_INTERNED_ANNOTATION_NAMES = 3,
    VST_PF_INTERNED_IID = 1, /* of each */
    VST_PF_INTERNED_NAME = 2,

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

/* Categories, by the numbers that every sequence has for them. */
typedef enum vst__pf_category {
    VST_PF_PYTHON = 1,
    VST_PF_OPERATOR,
    VST_PF_ANNOTATION,
    VST_PF_MARK,
    VST_PF_VALUE,
    VST_PF_TRACE,
    VST_PF_MEMORY,
    VST_PF_FWDBWD,
    VST_PF_STARTS,
    VST_PF_TASK, /* from here on: sent on the sequence beside, when used */
    VST_PF_AWAIT,
    VST_PF_DEVICE /* and so many as vst__device_category has */
} vst__pf_category;

/* A set of numbers. */
typedef struct vst__pf_set {
    uint64_t *words;
    size_t capacity; /* words */
} vst__pf_set;

typedef struct vst__pf_sequence {
    bool begun;
    int64_t last_ns;
    vst__pf_set names, keys; /* numbers of those that were sent */
    uint64_t categories;     /* a bit each: those from VST_PF_TASK on, sent */
} vst__pf_sequence;

/* What is known of a definition. */
typedef struct vst__pf_name {
    uint32_t iid; /* 0: not used yet */
    vst_definition_kind kind;
    bool is_call, is_step;
    uint8_t count;  /* bytes of: */
    char begin[16]; /* the event that begins a span, without arguments */
    uint64_t track; /* of a counter, 0: none yet */
} vst__pf_name;

typedef struct vst__perfetto {
    vst__timeline timeline; /* first: a drawing is given only this */
    vst__pf_sequence sequences[VST_PERFETTO_SEQUENCES];
    vst__proto packet, event, interned, text;
    vst_status status; /* of what a drawing could not return */

    /* Of the process that is being replayed. */
    uint64_t process_uuid, next_uuid;
    vst__pf_name *names; /* one for each definition */
    uint32_t name_count; /* numbers given out */
    uint64_t memory_tracks[2];

    vst__intern *keys; /* of arguments */
    uint32_t key_count;

    /* For perfetto_states.c: the processor of the thread whose states are being
     * written, and that of the next one. */
    const vst_trace_thread *state_thread;
    uint32_t state_cpu, next_cpu;

    /* Of the thread that is being replayed. */
    uint64_t thread_uuid;

    /* Tracks on which what would overlap lies beside each other. */
    uint64_t lane_parent;
    char lane_name[128];
    size_t lane_name_len;
    int64_t *lanes; /* when the last span of each ends */
    uint64_t *lane_uuids;
    size_t lane_count, lane_capacity, lane_uuid_capacity;

    /* For perfetto_devices.c: the device whose streams are being written. */
    uint32_t device;
    uint64_t device_uuid; /* 0: none yet */
    bool has_annotations; /* the lanes are those of its annotations */
} vst__perfetto;

/* ---- perfetto.c --------------------------------------------------------- */

/* The track of a thread; of none, that of the windows. */
uint64_t vst__pf_thread_uuid(const vst__perfetto *self,
                             const vst__timeline_process *process,
                             uint32_t tid);
/* A track under another: a counter of bytes, of something else, or none. */
typedef enum vst__pf_track {
    VST_PF_TRACK_OF_SPANS,
    VST_PF_TRACK_OF_VALUES,
    VST_PF_TRACK_OF_BYTES
} vst__pf_track;
vst_status vst__pf_put_track(vst__perfetto *self, uint64_t uuid,
                             uint64_t parent, vst__pf_track kind,
                             const char *name, size_t name_len);

/* ---- perfetto_args.c ---------------------------------------------------- */

/* True if the number was not in it; self->status if there is no memory. */
bool vst__pf_set_add(vst__perfetto *self, vst__pf_set *set, uint32_t number);
static inline bool vst__pf_set_has(const vst__pf_set *set, uint32_t number)
{
    return number / 64 < set->capacity &&
           (set->words[number / 64] >> number % 64 & 1) != 0;
}

/* Sequences begin anew, where tracks say no other, on this one. */
void vst__pf_forget_sequences(vst__perfetto *self, size_t count);
vst_status vst__pf_begin_sequence(vst__perfetto *self, uint32_t number,
                                  uint64_t track);
/* An event of a sequence: begun, given what it has to say in self->event, and
 * written with the names that it is the first to use. */
void vst__pf_open_event(vst__perfetto *self, vst__pf_type type,
                        vst__pf_category category);
vst_status vst__pf_write_event(vst__perfetto *self, uint32_t number,
                               int64_t time_ns);

void vst__pf_arg_u64(vst__perfetto *self, uint32_t number, const char *key,
                     uint64_t value);
void vst__pf_arg_i64(vst__perfetto *self, uint32_t number, const char *key,
                     int64_t value);
void vst__pf_arg_double(vst__perfetto *self, uint32_t number, const char *key,
                        double value);
void vst__pf_arg_text(vst__perfetto *self, uint32_t number, const char *key,
                      const char *text, size_t count);
/* JSON members without the braces, or what should have been. */
void vst__pf_args_json(vst__perfetto *self, uint32_t number, const char *json,
                       size_t count);
/* One value of which the key is known; what is no JSON is text. */
void vst__pf_arg_json(vst__perfetto *self, uint32_t number, const char *key,
                      const char *json);

/* ---- perfetto_events.c -------------------------------------------------- */

void vst__perfetto_sink(vst__perfetto *self, vst_sink *sink);
vst_status vst__pf_draw_span(vst__timeline *timeline, const vst_span *span);
/* The name of an event that is open, on a sequence. */
void vst__pf_put_name(vst__perfetto *self, uint32_t number, vst_id id);
/* From here on, lanes are tracks of this name under another. */
void vst__pf_begin_lanes(vst__perfetto *self, uint64_t parent, const char *name,
                         size_t name_len);
/* A lane where nothing overlaps what is from then to then. Spans come in the
 * order of their ends, or of their starts: a lane is free if its last one ended
 * before. */
vst_status vst__pf_find_lane(vst__perfetto *self, int64_t start_ns,
                             int64_t end_ns, uint64_t *uuid);
/* An instant on a thread's own track, up to its name. */
void vst__pf_open_on_thread(vst__perfetto *self, uint32_t thread,
                            vst__pf_category category);
/* Of a counter. A value is whole if it can be, which is shorter. */
vst_status vst__pf_write_value(vst__perfetto *self, uint64_t track,
                               int64_t time_ns, double value);
/* Another process is replayed: nothing is known of it. */
vst_status vst__pf_make_names(vst__perfetto *self);
void vst__pf_free_names(vst__perfetto *self);

/* ---- perfetto_beside.c -------------------------------------------------- */

extern const vst__drawing vst__perfetto_drawing;

/* ---- perfetto_states.c -------------------------------------------------- */

void vst__pf_draw_state(vst__timeline *timeline, const vst__state *state);

/* ---- perfetto_devices.c: for the drawing -------------------------------- */

void vst__pf_draw_stream(vst__timeline *timeline, const char *name,
                         size_t name_len);
void vst__pf_draw_activity(vst__timeline *timeline,
                           const vst_device_span *span);
void vst__pf_draw_annotated(vst__timeline *timeline,
                            const vst__timeline_annotated *annotated);
void vst__pf_draw_number(vst__timeline *timeline, const char *key,
                         int64_t value);
void vst__pf_draw_fraction(vst__timeline *timeline, const char *key,
                           double value);
void vst__pf_draw_definition(vst__timeline *timeline, const char *key,
                             vst_id id);

#endif
