/* The levels of a lane's row, see lanes_kind.h. One thread makes them. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/lanes_kind.h"

enum {
    FEW = 4096, /* runs that may be looked at one by one */
    WIDER = 8   /* factor between a level and the one below it */
};

vst__run vst__lane_run(const vst__lane_item *item)
{
    vst__run run =
        vst__run_of_span(item->start_ns, item->end_ns, item->id, item->flags);

    run.count = item->count;
    return run;
}

bool vst__lane_is_drawn(const vst__run *run, int64_t width_ns)
{
    return run->count != 0 && (!(run->flags & VST__RUN_AWAITS) ||
                               run->end_ns - run->start_ns > width_ns);
}

/* The input of a level: runs of the level below, or items. */
typedef struct source {
    const vst__lanes *lanes;
    const vst__lane_level *below; /* NULL: items */
    uint32_t first;
    size_t count;
} source;

static vst__run run_at(const source *from, size_t index)
{
    vst__lane_item item;

    if (from->below != NULL)
        return from->below->runs[index];
    from->lanes->kind->item(from->lanes, from->first + (uint32_t)index, &item);
    return vst__lane_run(&item);
}

static vst_status make_level(const source *from, vst__lane_level *level)
{
    size_t capacity = 0;

    for (size_t i = 0; i < from->count; i++) {
        vst__run run = run_at(from, i), *grown;

        if (!vst__lane_is_drawn(&run, level->width_ns) ||
            (level->count != 0 && run.end_ns - run.start_ns < level->width_ns &&
             vst__run_merge(&level->runs[level->count - 1], &run,
                            level->width_ns)))
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

/* Returns a width that merges a few neighbouring items into one run of the
 * first level. */
static int64_t first_width(const source *from)
{
    vst__run first = run_at(from, 0), last = run_at(from, from->count - 1);
    uint64_t all = (uint64_t)last.start_ns - (uint64_t)first.start_ns;

    return (int64_t)(all / from->count / 2 * WIDER / 2) + 1;
}

vst_status vst__lane_levels_make(const vst__lanes *lanes, vst__lane_row *row)
{
    source from = {lanes, NULL, row->first, row->count};
    int64_t width_ns;
    vst_status status = VST_OK;

    if (row->count <= FEW || lanes->kind->value_of != NULL)
        return VST_OK;
    width_ns = first_width(&from);
    row->levels = calloc(VST_LANE_LEVELS_MAX, sizeof *row->levels);
    if (row->levels == NULL)
        return VST_E_NOMEM;
    while (status == VST_OK && from.count > FEW &&
           row->level_count < VST_LANE_LEVELS_MAX &&
           width_ns < INT64_MAX / WIDER) {
        vst__lane_level *level = &row->levels[row->level_count++];

        *level = (vst__lane_level){.width_ns = width_ns};
        status = make_level(&from, level);
        from = (source){lanes, level, 0, level->count};
        width_ns *= WIDER;
    }
    return status;
}

void vst__lane_levels_free(vst__lane_row *row)
{
    for (uint32_t i = 0; i < row->level_count; i++)
        free(row->levels[i].runs);
    free(row->levels);
}

const vst__lane_level *vst__lane_levels_find(const vst__lane_row *row,
                                             int64_t pixel_ns)
{
    for (uint32_t i = row->level_count; i-- > 0;)
        if (row->levels[i].width_ns <= pixel_ns)
            return &row->levels[i];
    return NULL;
}
