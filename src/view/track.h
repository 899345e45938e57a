/* A curve: what a counter said over time, thinned as it goes so that it stays
 * small however many values there were. Each point stands for as many values,
 * with the least, the most and the last of them. One thread at a time. */
#ifndef VST_VIEW_TRACK_H
#define VST_VIEW_TRACK_H

#include <stddef.h>

#include "view/view.h"

enum { VST_TRACK_POINTS_MAX = 1 << 17 };

typedef struct vst__track_point {
    int64_t first_ns, last_ns;
    double min, max, last;
} vst__track_point;

typedef struct vst__track {
    uint32_t kind; /* vst_view_track */
    vst_id id;
    uint32_t thread;
    uint32_t every; /* so many values make a point */
    uint32_t in_last;
    size_t count, capacity;
    vst__track_point *points;
} vst__track;

typedef struct vst__tracks {
    vst__track *tracks;
    size_t count, capacity;
} vst__tracks;

void vst__tracks_free(vst__tracks *tracks);
/* The track is made if there is none yet. In order of time. */
vst_status vst__tracks_add(vst__tracks *tracks, vst_view_track kind, vst_id id,
                           uint32_t thread, int64_t time_ns, double value);
/* Reads the history of memory of the trace into tracks. */
vst_status vst__tracks_read_memory(vst__tracks *tracks, vst_trace *trace,
                                   vst_error *error);
/* What a range shows of one; series is all zero. */
vst_status vst__track_show(const vst__track *track, int64_t from_ns,
                           int64_t to_ns, uint32_t pixels,
                           vst_view_series *series);

#endif
