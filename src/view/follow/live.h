/* The index of a trace that is being recorded: new records extend it, and
 * finished parts stay. Kept only in memory. One thread at a time. */
#ifndef VST_VIEW_FOLLOW_LIVE_H
#define VST_VIEW_FOLLOW_LIVE_H

#include "view/follow/followers.h"
#include "view/index_build.h"

typedef struct vst__live vst__live;

/* Opens a live index. If *live is not NULL after a failure, it must be closed
 * too. */
vst_status vst__live_open(vst__live **live, const char *path, vst_error *error);
void vst__live_close(vst__live *live);
/* Reads new records. Invalidates everything that the functions below returned,
 * even if it fails. After VST_E_DAMAGED the previous content stays; after
 * another error the index may be empty. */
vst_status vst__live_grow(vst__live *live, vst_error *error);

vst_trace *vst__live_trace(const vst__live *live);
const vst__reading *vst__live_reading(const vst__live *live);
vst__stretch *vst__live_stretches(const vst__live *live, size_t *count);
const vst__index *vst__live_index(const vst__live *live);

/* ---- shared by live.c, live_index.c and live_forget.c -------------------- */

/* flag in the level of a block that will be forgotten */
#define VST_LIVE_OLD 0x80000000u

/* One thread, in all windows. */
typedef struct vst__live_thread {
    vst__thread_part part;
    vst__pyramid pyramid;
} vst__live_thread;

/* One thread in one window: the data of its follower. */
typedef struct vst__live_stretch {
    vst__stretch_part part;
    vst__last_open last;
    uint64_t read;    /* words read, including segments that are gone by now */
    uint64_t next;    /* value of `read` at which the next checkpoint is due */
    size_t segments;  /* segments that the stretch had at the last look */
    size_t dropped;   /* segments dropped so far; places count them, too */
    vst_ticks newest; /* when the last segment begins */
} vst__live_stretch;

/* Block bytes: the first `stay` are permanent, the rest belong to the last
 * picture. */
typedef struct vst__live_bytes {
    unsigned char *bytes;
    size_t count, capacity;
    size_t stay;
} vst__live_bytes;

struct vst__live {
    vst__following following;
    vst__live_thread **threads; /* by number */
    size_t thread_count, thread_capacity;
    vst__live_bytes bytes;
    bool broken; /* memory ran out or the file failed: nothing can be shown */
    vst__index index;
    vst__index_header header;
};

vst_status vst__live_append(void *live_bytes, const void *bytes, size_t count,
                            uint64_t *offset);
/* Makes the index of everything known; runs and calls that still grow end now
 * in it. */
vst_status vst__live_publish(vst__live *live);
void vst__live_unpublish(vst__live *live);
/* Returns all frames of a checkpoint, which itself stores only the frames that
 * earlier checkpoints lack. The caller frees them. NULL if memory ran out. */
vst__open *vst__live_frames(const vst__stretch_part *part, size_t number);
/* Frees data of times that a bounded file has dropped. Call while nothing is
 * published. */
void vst__live_forget(vst__live *live);
/* Makes the index empty from now on. */
void vst__live_break(vst__live *live);

#endif
