/* The data structures of the pass that makes a summary of a history: the curve
 * of memory use (summary_curve.c), serials of allocations (summary_serials.c),
 * reserved and resident memory (summary_resident.c), and the owner of a
 * summary's arrays. One thread at a time. */
#ifndef VST_MEMORY_SUMMARY_PASS_H
#define VST_MEMORY_SUMMARY_PASS_H

#include "memory/report.h"
#include "memory/summary.h"

typedef struct vst__summary_owner {
    vst_memory_summary summary; /* first member, see vst__memory_summary_free */
    vst_memory_point *points, *resident_points;
    vst_memory_thread_sums *threads;
    vst_memory_frame *frames;
    vst_memory_node *nodes;
    vst_memory_line *lines;
    uint32_t *node_of_stack;
    vst__arena strings;
} vst__summary_owner;

/* ---- the last allocations of a thread ------------------------------------ */

/* A ring of the serials of a thread's last allocations; serials grow. */
typedef struct vst__recent {
    uint64_t *serials;
    size_t capacity; /* number of serials kept */
    size_t next;     /* place of the next serial */
    size_t count;
} vst__recent;

/* Returns false if memory ran out. */
bool vst__recent_add(vst__recent *recent, uint64_t serial, uint32_t k);
bool vst__recent_has(const vst__recent *recent, uint64_t serial);

/* ---- sets of serials ----------------------------------------------------- */

bool vst__serials_add(vst__serials *set, uint64_t serial);

/* ---- reserved and resident memory: summary_resident.c -------------------- */

/* Reserved address space by stack: now, and when the sum of all stacks was
 * highest. A stack's `most` is brought up to date before its first change after
 * that. */
typedef struct vst__reserving {
    vst_memory_amount now, most;
    uint64_t mark; /* number of the maximum at which `most` was taken */
} vst__reserving;

typedef struct vst__reservations {
    vst__reserving *stacks;
    size_t stack_count;
    vst_memory_amount now, most;
    uint64_t bytes, count; /* according to the last event */
    uint64_t mark;         /* how many maxima there were */
} vst__reservations;

/* Returns false if memory ran out. The caller frees `stacks`. */
bool vst__reservations_begin(vst__reservations *reserved, size_t stack_count);
void vst__reservations_add(vst__reservations *reserved,
                           const vst_memory_event *event);
/* Returns how much this stack had reserved when the sum of all stacks was
 * highest. */
vst_memory_amount vst__reservations_of(const vst__reservations *reserved,
                                       size_t stack);

/* live: bytes that were live when the sample was taken. */
void vst__resident_add(vst_memory_summary *summary,
                       const vst_memory_resident *sample, double live);
/* Reads the peak from the trace's metadata. */
void vst__resident_read_peak(vst_memory_summary *summary,
                             const vst_trace *trace);

/* ---- usage over time ----------------------------------------------------- */

/* Periods of equal width; when there are too many, pairs are joined. Periods
 * without events are not stored. */
typedef struct vst__curve {
    vst_memory_point *points;
    size_t count;
    int64_t first_ns, width_ns;
    int64_t place; /* place of the last point: widths after the first point */
} vst__curve;

bool vst__curve_begin(vst__curve *curve); /* returns false if memory ran out */
void vst__curve_widen(vst__curve *curve);

static inline void vst__curve_add(vst__curve *t, int64_t now, double bytes)
{
    vst_memory_point *last;
    int64_t place;

    if (t->count == 0)
        t->first_ns = now;
    place = now > t->first_ns ? (now - t->first_ns) / t->width_ns : 0;
    while (place >= VST_MEMORY_POINTS_MAX) {
        vst__curve_widen(t);
        place = (now - t->first_ns) / t->width_ns;
    }
    last = t->points + t->count - 1;
    if (t->count == 0 || place > t->place) {
        t->place = place;
        t->points[t->count++] = (vst_memory_point){now, now, bytes, bytes};
        return;
    }
    if (bytes > last->max_bytes) {
        last->max_bytes = bytes;
        last->max_ns = now;
    }
    last->last_ns = now;
    last->last_bytes = bytes;
}

#endif
