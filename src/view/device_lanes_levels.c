/* The levels of a lane's row: a wide window is drawn from runs that are a bit
 * narrower than its pixels, however many activities there are. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/device_lanes_inside.h"

enum {
    FEW = 4096, /* runs that may be looked at one by one */
    WIDER = 8   /* a level than the one below it */
};

/* Runs of the level below, or activities. */
typedef struct source {
    const vst__lane_level *below; /* NULL: activities */
    const vst__lane_activity *activities;
    size_t count;
} source;

static vst__run run_at(const source *from, size_t index)
{
    return from->below != NULL ? from->below->runs[index]
                               : vst__run_of_activity(&from->activities[index]);
}

static vst_status make_level(const source *from, vst__lane_level *level)
{
    size_t capacity = 0;

    for (size_t i = 0; i < from->count; i++) {
        vst__run run = run_at(from, i), *grown;

        if (level->count != 0 && run.end_ns - run.start_ns < level->width_ns &&
            vst__run_merge(&level->runs[level->count - 1], &run,
                           level->width_ns))
            continue;
        grown =
            vst__grow(level->runs, &capacity, level->count + 1, sizeof *grown);
        if (grown == NULL)
            return VST_E_NOMEM;
        level->runs = grown;
        grown[level->count++] = run;
    }
    return VST_OK;
}

/* About so many neighbours of the first level are one run of it. */
static int64_t first_width(const vst__lane_activity *activities, size_t count)
{
    uint64_t all = (uint64_t)activities[count - 1].start_ns -
                   (uint64_t)activities[0].start_ns;

    return (int64_t)(all / count / 2 * WIDER / 2) + 1;
}

vst_status vst__lane_levels_make(vst__lane_row *row,
                                 const vst__lane_activity *activities)
{
    source from = {NULL, activities + row->first, row->count};
    int64_t width_ns =
        row->count > FEW ? first_width(from.activities, row->count) : 0;
    vst_status status = VST_OK;

    while (status == VST_OK && from.count > FEW &&
           row->level_count < VST_LANE_LEVELS_MAX &&
           width_ns < INT64_MAX / WIDER) {
        vst__lane_level *level = &row->levels[row->level_count++];

        *level = (vst__lane_level){.width_ns = width_ns};
        status = make_level(&from, level);
        from = (source){level, NULL, level->count};
        width_ns *= WIDER;
    }
    return status;
}

void vst__lane_levels_free(vst__lane_row *row)
{
    for (uint32_t i = 0; i < row->level_count; i++)
        free(row->levels[i].runs);
}

const vst__lane_level *vst__lane_levels_find(const vst__lane_row *row,
                                             int64_t pixel_ns)
{
    for (uint32_t i = row->level_count; i-- > 0;)
        if (row->levels[i].width_ns <= pixel_ns)
            return &row->levels[i];
    return NULL;
}
