/* Pictures of lanes, and the levels of a row from which wide windows are drawn,
 * see lanes_kind.h. One thread makes levels; any thread may draw. */
#include <stdlib.h>

#include "base/grow.h"
#include "view/lanes_kind.h"
#include "view/picture.h"

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

/* Returns whether an item is drawn by itself. A wait narrower than a pixel
 * belongs to the run of steps around it. */
static bool lane_is_drawn(const vst__run *run, int64_t width_ns)
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

        if (!lane_is_drawn(&run, level->width_ns) ||
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

/* Returns the coarsest level whose runs are no wider than a pixel; NULL: draw
 * the items themselves. */
static const vst__lane_level *find_level(const vst__lane_row *row,
                                         int64_t pixel_ns)
{
    for (uint32_t i = row->level_count; i-- > 0;)
        if (row->levels[i].width_ns <= pixel_ns)
            return &row->levels[i];
    return NULL;
}

/* ---- pictures ------------------------------------------------------------ */

static vst_status draw_run(vst__picture *picture, const vst__run *run)
{
    return lane_is_drawn(run, picture->pixel_ns)
               ? vst__picture_add(picture, run)
               : VST_OK;
}

static vst_status draw_items(const vst__lanes *lanes, const vst__lane_row *row,
                             vst__picture *picture)
{
    uint32_t end = row->first + row->count;
    vst__lane_item item;
    uint32_t at = vst__lane_last_up_to(lanes, row, picture->from_ns, &item);
    vst_view_value value;
    vst_status status = VST_OK;

    for (; status == VST_OK && at < end; at++) {
        vst__run run;

        lanes->kind->item(lanes, at, &item);
        if (item.start_ns > picture->to_ns)
            break;
        run = vst__lane_run(&item);
        if (vst__lanes_value_of(lanes, at, &value))
            status = vst__picture_add_value(picture, &run, &value);
        else
            status = draw_run(picture, &run);
    }
    return status;
}

static vst_status draw_level(const vst__lane_level *level,
                             vst__picture *picture)
{
    size_t low = 0, high = level->count;
    vst_status status = VST_OK;

    /* find the first run that ends in the window or behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (level->runs[middle].end_ns < picture->from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; status == VST_OK && low < level->count; low++) {
        if (level->runs[low].start_ns > picture->to_ns)
            break;
        status = draw_run(picture, &level->runs[low]);
    }
    return status;
}

static vst_status lanes_draw_lane(const vst__lanes *lanes, uint32_t lane,
                                  vst__picture *picture, uint32_t *coarsest)
{
    uint32_t first = lanes->first_row[lane], end = lanes->first_row[lane + 1];
    vst_status status = VST_OK;

    for (uint32_t i = first; status == VST_OK && i < end; i++) {
        const vst__lane_row *row = &lanes->rows[i];
        const vst__lane_level *level = find_level(row, picture->pixel_ns);

        status = vst__picture_row_begin(picture, lane, i - first, false);
        if (status == VST_OK)
            status = level != NULL ? draw_level(level, picture)
                                   : draw_items(lanes, row, picture);
        if (level != NULL && level - row->levels + 1 > *coarsest)
            *coarsest = (uint32_t)(level - row->levels + 1);
    }
    return status;
}

static bool is_range(int64_t from_ns, int64_t to_ns)
{
    return from_ns < to_ns && (uint64_t)to_ns - (uint64_t)from_ns <= INT64_MAX;
}

vst_status vst__lanes_draw(const vst__lanes *lanes, int64_t from_ns,
                           int64_t to_ns, uint32_t pixels, const uint32_t *of,
                           size_t count, void **bytes, size_t *size)
{
    vst__picture picture;
    vst_status status = VST_OK;
    uint32_t coarsest = 0;

    if (!is_range(from_ns, to_ns) || pixels == 0)
        return VST_E_ARGUMENT;
    vst__picture_init(&picture, from_ns, to_ns, pixels);
    for (size_t i = 0; status == VST_OK && i < count; i++)
        if (of[i] < lanes->lane_count)
            status = lanes_draw_lane(lanes, of[i], &picture, &coarsest);
    if (status == VST_OK)
        status = vst__picture_encode(&picture, coarsest, 0, bytes, size);
    vst__picture_free(&picture);
    return status;
}
