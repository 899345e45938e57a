/* Reads a trace while it is recorded, a step at a time: each thread's walk
 * stops where its records end and goes on there when there are more. What is
 * open stays open meanwhile. The walks share one decoder. One thread at a
 * time.
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

/* A thread of a window. */
typedef struct vst__follower {
    uint32_t window, thread;
    const vst__stretch *stretch; /* until the trace grows again; NULL: it is
                                  * gone from the file */
    bool begun;
    vst__stop stop;
    void *of;       /* the user's, who frees it */
    uint64_t words; /* that were read, but for those before what is shown */
    vst__walk walk; /* must not move: parts of it point to others */
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

/* The following is all zero before. Nothing is read yet but the chunks. */
vst_status vst__following_open(vst__following *following, const char *path,
                               vst_error *error);
void vst__following_close(vst__following *following);
/* Looks what the file has by now. */
vst_status vst__following_grow(vst__following *following, vst_error *error);

/* *more: there is something to read. */
vst_status vst__follower_begin(const vst__following *following,
                               vst__follower *follower, bool *more);
/* The next batch is in follower->walk; after the last one, *more is false. */
vst_status vst__follower_next(vst__follower *follower, bool *more);
/* Frees what is not needed until it goes on. */
void vst__follower_end(vst__follower *follower);

#endif
