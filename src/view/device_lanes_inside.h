/* The inside of a vst_device_lanes, between device_lanes_read.c, which makes
 * it, and device_lanes.c, which answers. Nothing in it changes once it is made.
 */
#ifndef VST_VIEW_DEVICE_LANES_INSIDE_H
#define VST_VIEW_DEVICE_LANES_INSIDE_H

#include <vestige/device_lanes.h>

#include "view/run.h"

typedef struct vst__lane_activity {
    int64_t start_ns, end_ns;
    uint64_t correlation, external, bytes;
    vst_device_cause op, annotation;
    vst_id id;
    uint32_t context;
    uint32_t launch; /* 1 + number of the call; 0: none */
    /* Of a call 1 + the number of the first that came from it, of these the
     * next; 0: there is no other. */
    uint32_t next;
    uint32_t text; /* place in vst_device_lanes.texts; 0: none */
    uint16_t device;
    uint8_t kind, row;
} vst__lane_activity;

typedef struct vst__lane_text {
    size_t offset;
    uint32_t length;
} vst__lane_text;

/* Runs of at most so many nanoseconds, made of those of the level below. */
typedef struct vst__lane_level {
    int64_t width_ns;
    vst__run *runs;
    size_t count;
} vst__lane_level;

enum { VST_LANE_LEVELS_MAX = 12 };

/* The activities of a row follow each other. */
typedef struct vst__lane_row {
    uint32_t first, count;
    uint32_t level_count;
    vst__lane_level levels[VST_LANE_LEVELS_MAX];
} vst__lane_row;

struct vst_device_lanes {
    vst_device_lane *lanes;
    size_t lane_count;
    vst__lane_row *rows;
    size_t row_count;
    uint32_t *first_row;            /* by lane, and the end */
    vst__lane_activity *activities; /* by lane, row and time */
    uint32_t count;
    vst__lane_text *texts; /* [0] is none */
    size_t text_count, text_capacity;
    char *bytes; /* of all texts */
    size_t bytes_count, bytes_capacity;
    uint64_t left_out, texts_left_out;
};

/* Makes the levels of a row, whose activities are there. */
vst_status vst__lane_levels_make(vst__lane_row *row,
                                 const vst__lane_activity *activities);
void vst__lane_levels_free(vst__lane_row *row);
/* The coarsest level whose runs are no wider than a pixel; NULL: the activities
 * themselves. */
const vst__lane_level *vst__lane_levels_find(const vst__lane_row *row,
                                             int64_t pixel_ns);

static inline vst__run vst__run_of_activity(const vst__lane_activity *activity)
{
    return vst__run_of_span(activity->start_ns, activity->end_ns, activity->id,
                            0);
}

#endif
