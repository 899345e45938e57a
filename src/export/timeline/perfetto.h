/* Shared by perfetto.c, which draws processes and their tracks, and
 * perfetto_events.c, which draws the events on them. One thread at a time. */
#ifndef VST_EXPORT_PERFETTO_H
#define VST_EXPORT_PERFETTO_H

#include "export/timeline/perfetto_packets.h"

/* Tracks of one name under one parent, which share spans that would overlap on
 * a single track. */
typedef struct vst__pf_tracks {
    uint64_t parent;
    int64_t tid; /* distinguishes lanes of equal names */
    char name[128];
    size_t name_len;
    int64_t *ends; /* when the last span of each track ends */
    uint64_t *uuids;
    size_t count, capacity, uuid_capacity;
} vst__pf_tracks;

typedef struct vst__perfetto {
    vst__drawing drawing; /* must be first: a format gets a pointer to it */
    vst__pf pf;

    /* For the process that is being drawn. */
    uint64_t process_uuid, next_uuid;
    vst__pf_tracks loose;

    /* The thread whose spans nest. */
    bool has_tid;
    uint32_t tid;

    /* A trace does not say on which processor a thread ran, so each thread gets
     * a processor of its own. */
    bool has_state_tid;
    uint32_t state_tid, state_cpu, next_cpu;
} vst__perfetto;

static inline vst__perfetto *vst__perfetto_of(vst__drawing *drawing)
{
    return (vst__perfetto *)drawing;
}

/* ---- perfetto.c: tracks -------------------------------------------------- */

/* Returns the track of a lane that has a tid. A process has room for 2^32 such
 * tracks, and for as many other tracks. */
static inline uint64_t vst__pf_process_uuid(const vst__drawn_process *process)
{
    return (uint64_t)(process->index + 1) << 34;
}

static inline uint64_t vst__pf_lane_uuid(const vst__drawn_process *process,
                                         uint32_t tid)
{
    return vst__pf_process_uuid(process) + 1 + tid;
}

typedef enum vst__pf_track_kind {
    VST_PF_OF_SPANS,
    VST_PF_OF_VALUES,
    VST_PF_OF_BYTES
} vst__pf_track_kind;

void vst__pf_put_track(vst__perfetto *self, uint64_t uuid, uint64_t parent,
                       vst__pf_track_kind kind, const char *name,
                       size_t name_len);
/* Returns the track of a span that is on no depth's sequence. */
uint64_t vst__pf_track_of(vst__perfetto *self, const vst__drawn_span *span);

/* ---- perfetto_events.c --------------------------------------------------- */

void vst__perfetto_span(vst__drawing *drawing, const vst__drawn_span *span);
void vst__perfetto_instant(vst__drawing *drawing,
                           const vst__drawn_instant *instant);
void vst__perfetto_counter(vst__drawing *drawing, vst__label *label,
                           uint32_t tid, int64_t time_ns,
                           const vst__arg *value);
void vst__perfetto_arrow(vst__drawing *drawing, const vst__arrow *arrow);
void vst__perfetto_state(vst__drawing *drawing, const vst__drawn_state *state);

#endif
