/* See pyramid.h. Each level is made from the finished runs of the level before,
 * so every span is looked at only one time, and only the blocks are sorted at
 * the end.
 */
#include "view/pyramid.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum {
    RUN_BYTES_MAX = 50,
    FIRST_BYTES = 64,
    /* With more bytes in unfinished blocks than this, blocks end early:
     * thousands of rows with two dozen levels each would take 400 MB. */
    HELD_MAX = 8 << 20
};

void vst__pyramid_init(vst__pyramid *pyramid, int64_t threshold_ns,
                       uint32_t level_count, vst__append_fn append, void *ctx)
{
    memset(pyramid, 0, sizeof *pyramid);
    pyramid->append = append;
    pyramid->append_ctx = ctx;
    pyramid->level_count = level_count;
    pyramid->lanes[0].threshold_ns = -1; /* level 0 merges nothing */
    for (uint32_t i = 0; i < level_count; i++) {
        pyramid->stack[i].threshold_ns = threshold_ns;
        pyramid->lanes[i + 1].threshold_ns = threshold_ns;
        threshold_ns *= 4;
    }
}

static void free_level(vst__level *level)
{
    for (size_t i = 0; i < level->count; i++)
        free(level->rows[i].bytes);
    free(level->rows);
}

void vst__pyramid_free(vst__pyramid *pyramid)
{
    for (size_t i = 0; i < VST_LEVELS_MAX; i++) {
        free_level(&pyramid->stack[i]);
        free_level(&pyramid->lanes[i]);
    }
    free(pyramid->blocks);
    memset(pyramid, 0, sizeof *pyramid);
}

static bool copy_level(vst__level *copy, const vst__level *level)
{
    copy->threshold_ns = level->threshold_ns;
    if (level->count == 0)
        return true;
    copy->rows = malloc(level->count * sizeof *copy->rows);
    if (copy->rows == NULL)
        return false;
    copy->capacity = level->count;
    for (; copy->count < level->count; copy->count++) {
        vst__level_row *row = &copy->rows[copy->count];

        *row = level->rows[copy->count];
        if (row->bytes == NULL)
            continue;
        row->bytes = malloc(row->capacity);
        if (row->bytes == NULL)
            return false;
        memcpy(row->bytes, level->rows[copy->count].bytes, row->count);
    }
    return true;
}

bool vst__pyramid_copy(vst__pyramid *copy, const vst__pyramid *pyramid,
                       vst__append_fn append, void *ctx)
{
    *copy = *pyramid;
    copy->append = append;
    copy->append_ctx = ctx;
    copy->block_capacity = pyramid->block_count + 1;
    copy->blocks = malloc(copy->block_capacity * sizeof *copy->blocks);
    memset(copy->stack, 0, sizeof copy->stack);
    memset(copy->lanes, 0, sizeof copy->lanes);
    if (copy->blocks == NULL)
        return false;
    if (pyramid->block_count != 0)
        memcpy(copy->blocks, pyramid->blocks,
               pyramid->block_count * sizeof *copy->blocks);
    for (size_t i = 0; i < VST_LEVELS_MAX; i++)
        if (!copy_level(&copy->stack[i], &pyramid->stack[i]) ||
            !copy_level(&copy->lanes[i], &pyramid->lanes[i]))
            return false;
    return true;
}

/* ---- blocks -------------------------------------------------------------- */

static unsigned char *pyramid_put(unsigned char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}

static uint64_t pyramid_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static vst_status end_block(vst__pyramid *pyramid, vst__level_row *row,
                            uint32_t number, uint32_t level)
{
    uint64_t offset;
    vst_status status;

    if (!VST_RESERVE(pyramid->blocks, pyramid->block_count + 1,
                     pyramid->block_capacity))
        return VST_E_NOMEM;
    status =
        pyramid->append(pyramid->append_ctx, row->bytes, row->count, &offset);
    if (status != VST_OK)
        return status;
    pyramid->blocks[pyramid->block_count] = (vst__block_of){
        number,
        level,
        pyramid->block_count,
        {row->start_ns, offset, row->count, row->runs},
    };
    pyramid->block_count++;
    row->count = row->runs = 0;
    return VST_OK;
}

/* Makes room for a run in the unfinished block, or in a new one. */
static vst_status pyramid_make_room(vst__pyramid *pyramid, vst__level_row *row,
                                    uint32_t number, uint32_t level)
{
    uint32_t capacity = row->capacity != 0 ? row->capacity * 2 : FIRST_BYTES;
    unsigned char *bytes;

    if (row->count + RUN_BYTES_MAX <= row->capacity)
        return VST_OK;
    if (row->capacity != 0 && pyramid->held > HELD_MAX)
        return end_block(pyramid, row, number, level);
    bytes = realloc(row->bytes, capacity);
    if (bytes == NULL)
        return VST_E_NOMEM;
    pyramid->held += capacity - row->capacity;
    row->bytes = bytes;
    row->capacity = capacity;
    return VST_OK;
}

static vst_status put_run(vst__pyramid *pyramid, vst__level_row *row,
                          uint32_t number, uint32_t level, const vst__run *run)
{
    int64_t width_ns = run->end_ns - run->start_ns;
    bool single = run->count == 1;
    vst_status status = pyramid_make_room(pyramid, row, number, level);
    unsigned char *at;

    if (status != VST_OK)
        return status;
    if (row->runs == 0)
        row->start_ns = row->before_ns = run->start_ns;
    at = row->bytes + row->count;
    at = pyramid_put(at, pyramid_zigzag(run->start_ns - row->before_ns));
    at = pyramid_put(at, (uint64_t)width_ns);
    at = pyramid_put(at, (uint64_t)(width_ns - run->busy_ns));
    at = pyramid_put(at, (uint64_t)run->id << 1 | single);
    at = pyramid_put(at, single ? run->flags : run->count);
    row->count = (uint32_t)(at - row->bytes);
    row->before_ns = run->end_ns;
    row->runs++;
    return row->count + RUN_BYTES_MAX > VST_INDEX_BLOCK
               ? end_block(pyramid, row, number, level)
               : VST_OK;
}

/* ---- levels -------------------------------------------------------------- */

static vst__level_row *find_row(vst__level *level, size_t number)
{
    vst__level_row *rows;

    if (number < level->count)
        return &level->rows[number];
    rows = vst__grow(level->rows, &level->capacity, number + 1, sizeof *rows);
    if (rows == NULL)
        return NULL;
    level->rows = rows;
    memset(rows + level->count, 0, (number + 1 - level->count) * sizeof *rows);
    level->count = number + 1;
    return &rows[number];
}

/* Extends the open run of levels[at], or replaces it and passes the finished
 * run to the next level. */
static vst_status pyramid_feed(vst__pyramid *pyramid, vst__level *levels,
                               uint32_t at, uint32_t end, uint32_t row,
                               const vst__run *run)
{
    bool lane = levels == pyramid->lanes;
    vst__run here = *run, there;

    for (; at < end; at++) {
        vst__level *level = &levels[at];
        vst__level_row *place = find_row(level, row);
        vst_status status;

        if (place == NULL)
            return VST_E_NOMEM;
        if (place->run.count != 0 &&
            vst__run_merge(&place->run, &here, level->threshold_ns))
            return VST_OK;
        there = place->run;
        place->run = here;
        if (there.count == 0)
            return VST_OK;
        status = put_run(pyramid, place, lane ? row | VST_ROW_OFF_STACK : row,
                         lane ? at : at + 1, &there);
        if (status != VST_OK)
            return status;
        here = there;
    }
    return VST_OK;
}

/* Returns the first lane that is free at the run's start. If none is free,
 * returns the last lane and moves the run's start to the end of that lane. */
static uint32_t find_lane(vst__pyramid *pyramid, vst__run *run)
{
    uint32_t lane = 0;

    while (lane < pyramid->lane_count &&
           pyramid->lane_ends[lane] > run->start_ns)
        lane++;
    if (lane == VST_LANES_MAX) {
        lane--;
        if (run->end_ns < pyramid->lane_ends[lane])
            run->end_ns = pyramid->lane_ends[lane];
        *run = vst__run_of_span(pyramid->lane_ends[lane], run->end_ns, run->id,
                                run->flags);
    }
    if (lane == pyramid->lane_count)
        pyramid->lane_count++;
    pyramid->lane_ends[lane] = run->end_ns;
    return lane;
}

vst_status vst__pyramid_add(vst__pyramid *pyramid, const vst__walk_span *span)
{
    int64_t end_ns =
        span->end_ns > span->start_ns ? span->end_ns : span->start_ns;
    vst__run run =
        vst__run_of_span(span->start_ns, end_ns, span->id, span->flags);
    vst__level *level = &pyramid->stack[0];

    if (span->flags & VST_SPAN_ASYNC)
        return pyramid_feed(pyramid, pyramid->lanes, 0,
                            pyramid->level_count + 1, find_lane(pyramid, &run),
                            &run);
    if (span->depth >= VST_ROWS_MAX || pyramid->level_count == 0)
        return VST_OK;
    /* Nearly always the span extends the open run. */
    if (VST_LIKELY(span->depth < level->count &&
                   level->rows[span->depth].run.count != 0 &&
                   vst__run_merge(&level->rows[span->depth].run, &run,
                                  level->threshold_ns)))
        return VST_OK;
    return pyramid_feed(pyramid, pyramid->stack, 0, pyramid->level_count,
                        span->depth, &run);
}

static vst_status finish_levels(vst__pyramid *pyramid, vst__level *levels,
                                uint32_t end)
{
    bool lane = levels == pyramid->lanes;
    vst_status status = VST_OK;

    for (uint32_t at = 0; at < end; at++)
        for (uint32_t i = 0; i < levels[at].count && status == VST_OK; i++) {
            vst__level_row *row = &levels[at].rows[i];
            uint32_t number = lane ? i | VST_ROW_OFF_STACK : i;
            uint32_t level = lane ? at : at + 1;

            if (row->run.count != 0) {
                vst__run run = row->run;
                status = put_run(pyramid, row, number, level, &run);
                if (status == VST_OK)
                    status =
                        pyramid_feed(pyramid, levels, at + 1, end, i, &run);
            }
            if (status == VST_OK && row->runs != 0)
                status = end_block(pyramid, row, number, level);
        }
    return status;
}

static int pyramid_in_order(const void *a, const void *b)
{
    const vst__block_of *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

vst_status vst__pyramid_finish(vst__pyramid *pyramid)
{
    vst_status status =
        finish_levels(pyramid, pyramid->stack, pyramid->level_count);

    if (status == VST_OK)
        status =
            finish_levels(pyramid, pyramid->lanes, pyramid->level_count + 1);
    if (pyramid->block_count > 1)
        qsort(pyramid->blocks, pyramid->block_count, sizeof *pyramid->blocks,
              pyramid_in_order);
    return status;
}
