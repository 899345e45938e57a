/* See picture.h. This file knows runs and rectangles, but not where they come
 * from. */
#include "view/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

__extension__ typedef unsigned __int128 u128;

enum { FULL = 65535 };

void vst__picture_init(vst__picture *picture, int64_t from_ns, int64_t to_ns,
                       uint32_t pixels)
{
    memset(picture, 0, sizeof *picture);
    picture->from_ns = from_ns;
    picture->to_ns = to_ns;
    picture->pixel_ns = (to_ns - from_ns) / (int64_t)(pixels != 0 ? pixels : 1);
}

void vst__picture_free(vst__picture *picture)
{
    free(picture->runs);
    free(picture->values);
    free(picture->rows);
    memset(picture, 0, sizeof *picture);
}

vst_status vst__picture_row_begin(vst__picture *picture, uint32_t thread,
                                  uint32_t depth, bool off_stack)
{
    vst__picture_row *rows = picture->rows;

    /* Reuse the last row if it is empty. */
    if (picture->row_count == 0 || rows[picture->row_count - 1].count != 0) {
        rows = vst__grow(rows, &picture->row_capacity, picture->row_count + 1,
                         sizeof *rows);
        if (rows == NULL)
            return VST_E_NOMEM;
        picture->rows = rows;
        picture->row_count++;
    }
    rows[picture->row_count - 1] =
        (vst__picture_row){thread, depth, off_stack, picture->count, 0};
    return VST_OK;
}

/* Merges a run into the last run of a row, if there is one. Spans wider than a
 * pixel stay alone. */
static bool merge_into_row(vst__run *runs, size_t first, size_t count,
                           const vst__run *run, int64_t pixel_ns)
{
    return count != 0 && run->end_ns - run->start_ns < pixel_ns &&
           vst__run_merge(&runs[first + count - 1], run, pixel_ns);
}

static bool is_outside(const vst__picture *picture, const vst__run *run)
{
    return run->end_ns < picture->from_ns || run->start_ns > picture->to_ns;
}

vst_status vst__picture_add(vst__picture *picture, const vst__run *run)
{
    vst__picture_row *row = &picture->rows[picture->row_count - 1];
    vst__run *runs;

    if (is_outside(picture, run) ||
        merge_into_row(picture->runs, row->first, row->count, run,
                       picture->pixel_ns))
        return VST_OK;
    runs = vst__grow(picture->runs, &picture->capacity, picture->count + 1,
                     sizeof *runs);
    if (runs == NULL)
        return VST_E_NOMEM;
    picture->runs = runs;
    runs[picture->count++] = *run;
    row->count++;
    return VST_OK;
}

void vst__picture_merge_value(vst_view_value *into, const vst_view_value *next)
{
    if (next->least < into->least)
        into->least = next->least;
    if (next->most > into->most)
        into->most = next->most;
    into->last = next->last;
}

vst_status vst__picture_add_value(vst__picture *picture, const vst__run *run,
                                  const vst_view_value *value)
{
    size_t before = picture->count;
    vst_status status;

    if (is_outside(picture, run))
        return VST_OK;
    if (!VST_RESERVE(picture->values, before + 1, picture->value_capacity))
        return VST_E_NOMEM;
    status = vst__picture_add(picture, run);
    if (picture->count != before)
        picture->values[before] = *value;
    else if (status == VST_OK)
        vst__picture_merge_value(&picture->values[before - 1], value);
    return status;
}

/* Moves the value of a run forward, or merges it there. */
static void picture_move_value(vst__picture *picture, size_t from, size_t to,
                               bool is_merged)
{
    vst_view_value value = picture->values[from];

    if (is_merged)
        vst__picture_merge_value(&picture->values[to], &value);
    else
        picture->values[to] = value;
}

/* Merges each row again, for wider pixels. */
static void merge_further(vst__picture *picture)
{
    size_t to = 0;

    for (size_t i = 0; i < picture->row_count; i++) {
        vst__picture_row *row = &picture->rows[i];
        const vst__run *from = picture->runs + row->first;
        vst__run *into = picture->runs + to;
        size_t count = 0;

        for (size_t j = 0; j < row->count; j++) {
            vst__run run = from[j];
            bool is_merged =
                merge_into_row(into, 0, count, &run, picture->pixel_ns);

            if (!is_merged)
                into[count++] = run;
            if (picture->values != NULL)
                picture_move_value(picture, row->first + j, to + count - 1,
                                   is_merged);
        }
        row->first = to;
        row->count = count;
        to += count;
    }
    picture->count = to;
}

static void picture_fit(vst__picture *picture)
{
    while (picture->count > VST_VIEW_RECTS_MAX &&
           picture->pixel_ns < INT64_MAX / 4) {
        picture->pixel_ns = picture->pixel_ns * 2 + 1;
        merge_further(picture);
    }
    /* If there are more rows than fit, although none is empty, leave out the
     * last rows. */
    while (picture->count > VST_VIEW_RECTS_MAX)
        picture->count -= picture->rows[--picture->row_count].count;
}

/* Returns the place in the window as a share of 2^32 - 1. */
static uint32_t picture_place(const vst__picture *picture, int64_t time_ns)
{
    u128 width = (u128)(picture->to_ns - picture->from_ns);

    if (time_ns <= picture->from_ns)
        return 0;
    if (time_ns >= picture->to_ns)
        return UINT32_MAX;
    return (uint32_t)((u128)(time_ns - picture->from_ns) * UINT32_MAX / width);
}

static uint32_t rect_id(const vst__run *run, bool off_stack)
{
    uint32_t id = run->id <= VST_VIEW_ID_MASK ? run->id : 0;

    if (off_stack)
        id |= VST_VIEW_OFF_STACK;
    if (run->flags & VST_SPAN_RAISED)
        id |= VST_VIEW_RAISED;
    if (run->flags & VST_SPAN_OPEN_AT_START)
        id |= VST_VIEW_OPEN_AT_START;
    if (run->flags & VST_SPAN_OPEN_AT_END)
        id |= VST_VIEW_OPEN_AT_END;
    if (run->flags & VST__RUN_AWAITS)
        id |= VST_VIEW_AWAITS | run->flags >> VST__RUN_AWAITS_SHIFT
                                                  << VST_VIEW_AWAITS_SHIFT;
    return id;
}

vst_view_rect vst__picture_rect(const vst__picture *picture,
                                const vst__run *run, bool off_stack)
{
    int64_t width_ns = run->end_ns - run->start_ns;
    u128 busy = FULL;

    if (run->busy_ns < width_ns)
        busy = (u128)run->busy_ns * FULL / (u128)width_ns;
    return (vst_view_rect){
        .start = picture_place(picture, run->start_ns),
        .end = picture_place(picture, run->end_ns),
        .id = rect_id(run, off_stack),
        .busy = (uint16_t)busy,
        .count = (uint16_t)(run->count < FULL ? run->count : FULL),
    };
}

vst_status vst__picture_encode(vst__picture *picture, uint32_t level,
                               int64_t offset_ns, void **bytes, size_t *count)
{
    vst_view_head *head;
    vst_view_row *rows;
    vst_view_rect *rects;
    size_t value_bytes;

    if (picture->row_count != 0 &&
        picture->rows[picture->row_count - 1].count == 0)
        picture->row_count--;
    picture_fit(picture);
    value_bytes =
        picture->values != NULL ? picture->count * sizeof *picture->values : 0;
    *count = sizeof *head + picture->row_count * sizeof *rows +
             picture->count * sizeof *rects + value_bytes;
    head = malloc(*count);
    *bytes = head;
    if (head == NULL)
        return VST_E_NOMEM;
    *head = (vst_view_head){VST_VIEW_MAGIC,
                            (uint32_t)picture->row_count,
                            (uint32_t)picture->count,
                            level,
                            picture->from_ns + offset_ns,
                            picture->to_ns + offset_ns};
    rows = (vst_view_row *)(void *)(head + 1);
    rects = (vst_view_rect *)(void *)(rows + picture->row_count);
    for (size_t i = 0; i < picture->row_count; i++) {
        const vst__picture_row *row = &picture->rows[i];

        rows[i] = (vst_view_row){row->thread, row->depth, (uint32_t)row->first,
                                 (uint32_t)row->count};
        for (size_t j = row->first; j < row->first + row->count; j++)
            rects[j] =
                vst__picture_rect(picture, &picture->runs[j], row->off_stack);
    }
    if (value_bytes != 0)
        memcpy(rects + picture->count, picture->values, value_bytes);
    return VST_OK;
}
