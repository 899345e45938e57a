/* The index of a trace that is being recorded: what is new goes into it, and
 * what was there stays. It is in memory alone. One thread at a time. */
#ifndef VST_VIEW_FOLLOW_LIVE_H
#define VST_VIEW_FOLLOW_LIVE_H

#include "view/follow/followers.h"
#include "view/index_build.h"

typedef struct vst__live vst__live;

/* To be closed also where it fails, if it is not NULL. */
vst_status vst__live_open(vst__live **live, const char *path, vst_error *error);
void vst__live_close(vst__live *live);
/* Reads what is new. All that the functions below gave is gone then, also where
 * it fails: VST_E_DAMAGED leaves what there was, other trouble may leave
 * nothing. */
vst_status vst__live_grow(vst__live *live, vst_error *error);

vst_trace *vst__live_trace(const vst__live *live);
const vst__reading *vst__live_reading(const vst__live *live);
vst__stretch *vst__live_stretches(const vst__live *live, size_t *count);
const vst__index *vst__live_index(const vst__live *live);

/* ---- between live.c, live_index.c and live_forget.c ------------------------
 */

#define VST_LIVE_OLD 0x80000000u /* of the level of a block to be forgotten */

/* A thread, in all windows. */
typedef struct vst__live_thread {
    vst__thread_part part;
    vst__pyramid pyramid;
} vst__live_thread;

/* A thread of one window: what follower->of is. */
typedef struct vst__live_stretch {
    vst__stretch_part part;
    vst__last_open last;
    uint64_t read;    /* words, also of segments that are gone by now */
    uint64_t next;    /* so many, and there is another checkpoint */
    size_t segments;  /* that the stretch had */
    size_t dropped;   /* that it has no longer: places count them, too */
    vst_ticks newest; /* when the last one begins */
} vst__live_stretch;

/* Bytes of blocks, and behind those that stay the ones of the last picture. */
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
    bool broken; /* memory or the file failed: there is nothing to show */
    vst__index index;
    vst__index_header header;
};

vst_status vst__live_append(void *live_bytes, const void *bytes, size_t count,
                            uint64_t *offset);
/* Makes the index of all that is known: what grows ends now in it. */
vst_status vst__live_publish(vst__live *live);
void vst__live_unpublish(vst__live *live);
/* All frames of a checkpoint, which has only those that the ones before it have
 * not; to be freed. NULL without memory. */
vst__open *vst__live_frames(const vst__stretch_part *part, size_t number);
/* Frees what is only of times that a bounded file has dropped, while nothing is
 * published. */
void vst__live_forget(vst__live *live);
/* From now on the index is empty. */
void vst__live_break(vst__live *live);

#endif
