/* A curve: the values of a counter over time, thinned while they are added, so
 * that it stays small however many there are. Each point stands for an equal
 * number of values, and has their least, greatest and last. One thread at a
 * time. */
#ifndef VST_VIEW_TRACK_H
#define VST_VIEW_TRACK_H

#include <stddef.h>

#include <vestige/trace.h>

enum { VST_TRACK_POINTS_MAX = 1 << 17 };

typedef struct vst__track_point {
    int64_t first_ns, last_ns;
    double min, max, last;
} vst__track_point;

typedef enum vst__track_kind {
    VST_TRACK_COUNTER = 1,   /* a counter of the program, named by id */
    VST_TRACK_MEMORY = 2,    /* allocated bytes */
    VST_TRACK_FRAMEWORK = 3, /* allocated bytes of a framework's allocator */
} vst__track_kind;

typedef struct vst__track {
    uint32_t kind; /* vst__track_kind */
    vst_id id;
    uint32_t thread;
    uint32_t every; /* how many values make a point */
    uint32_t in_last;
    size_t count, capacity;
    vst__track_point *points;
} vst__track;

typedef struct vst__tracks {
    vst__track *tracks;
    size_t count, capacity;
} vst__tracks;

void vst__tracks_free(vst__tracks *tracks);
/* Adds a value; makes the track if there is none. Call in order of time. */
vst_status vst__tracks_add(vst__tracks *tracks, vst__track_kind kind, vst_id id,
                           uint32_t thread, int64_t time_ns, double value);
/* Reads the history of memory of the trace into tracks. */
vst_status vst__tracks_read_memory(vst__tracks *tracks, vst_trace *trace,
                                   vst_error *error);
#endif
