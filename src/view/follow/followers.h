/* Reads a trace while it is recorded, a step at a time: each thread's walk
 * stops where its records end, keeps its open calls, and continues there when
 * there are more records. The walks share one decoder. One thread at a time.
 *
 *     vst__following_grow(&following, error);
 *     for each follower:
 *         vst__follower_begin(&following, follower, &more);
 *         while (more)
 *             vst__follower_next(follower, &more);
 *         vst__follower_end(follower); */
#ifndef VST_VIEW_FOLLOW_FOLLOWERS_H
#define VST_VIEW_FOLLOW_FOLLOWERS_H

#include "view/walk.h"

/* One thread in one window. */
typedef struct vst__follower {
    uint32_t window, thread;
    /* valid until the trace grows again; NULL: no longer in the file */
    const vst__stretch *stretch;
    bool begun;
    vst__stop stop;
    void *user_data; /* the user's data, which the user frees */
    uint64_t words;  /* words read, without those before the shown range */
    vst__walk walk;  /* must not move, because parts of it point into it */
} vst__follower;

typedef struct vst__following {
    vst_trace *trace;
    vst__reading reading;
    vst__stretch *stretches;
    size_t stretch_count;
    vst__follower **followers; /* by window, then thread */
    size_t count, capacity;
    vst__decoder *decoder;
} vst__following;

/* Opens a trace to follow; *following is all zero before. Reads only the list
 * of chunks. */
vst_status vst__following_open(vst__following *following, const char *path,
                               vst_error *error);
void vst__following_close(vst__following *following);
/* Finds out what the file has by now. */
vst_status vst__following_grow(vst__following *following, vst_error *error);

/* Prepares reading; *more is false if there is nothing new. */
vst_status vst__follower_begin(const vst__following *following,
                               vst__follower *follower, bool *more);
/* Reads the next batch into follower->walk; *more is false after the last one.
 */
vst_status vst__follower_next(vst__follower *follower, bool *more);
/* Frees memory that is needed only while reading. */
void vst__follower_end(vst__follower *follower);

#endif
