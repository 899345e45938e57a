/* See <vestige/device_lanes.h>: what lanes answer. Any thread may ask. */
#include <stdlib.h>

#include "view/device_lanes_inside.h"
#include "view/picture.h"

__extension__ typedef unsigned __int128 u128;

/* ---- what there is ------------------------------------------------------- */

size_t vst_device_lanes_count(const vst_device_lanes *lanes)
{
    return lanes->lane_count;
}

const vst_device_lane *vst_device_lanes_at(const vst_device_lanes *self,
                                           size_t lane)
{
    return &self->lanes[lane];
}

uint64_t vst_device_lanes_left_out(const vst_device_lanes *lanes)
{
    return lanes->left_out;
}

uint64_t vst_device_lanes_texts_left_out(const vst_device_lanes *lanes)
{
    return lanes->texts_left_out;
}

/* ---- pictures ------------------------------------------------------------ */

/* The first activity from `first` on that begins after a time. */
static uint32_t first_after(const vst_device_lanes *lanes, uint32_t first,
                            uint32_t count, int64_t time_ns)
{
    uint32_t low = first, high = first + count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (lanes->activities[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static vst_status draw_activities(const vst_device_lanes *lanes,
                                  const vst__lane_row *row,
                                  vst__picture *picture)
{
    uint32_t end = row->first + row->count;
    uint32_t at = first_after(lanes, row->first, row->count, picture->from_ns);
    vst_status status = VST_OK;

    for (at -= at != row->first; status == VST_OK && at < end; at++) {
        vst__run run = vst__run_of_activity(&lanes->activities[at]);

        if (run.start_ns > picture->to_ns)
            break;
        status = vst__picture_add(picture, &run);
    }
    return status;
}

static vst_status draw_level(const vst__lane_level *level,
                             vst__picture *picture)
{
    size_t low = 0, high = level->count;
    vst_status status = VST_OK;

    while (low < high) { /* the first that ends in the window or behind it */
        size_t middle = low + (high - low) / 2;

        if (level->runs[middle].end_ns < picture->from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; status == VST_OK && low < level->count; low++) {
        if (level->runs[low].start_ns > picture->to_ns)
            break;
        status = vst__picture_add(picture, &level->runs[low]);
    }
    return status;
}

static vst_status draw_lane(const vst_device_lanes *lanes, uint32_t lane,
                            vst__picture *picture, uint32_t *coarsest)
{
    uint32_t first = lanes->first_row[lane];
    vst_status status = VST_OK;

    for (uint32_t i = first; status == VST_OK && i < lanes->first_row[lane + 1];
         i++) {
        const vst__lane_row *row = &lanes->rows[i];
        const vst__lane_level *level =
            vst__lane_levels_find(row, picture->pixel_ns);

        status = vst__picture_row_begin(picture, lane, i - first, false);
        if (status == VST_OK)
            status = level != NULL ? draw_level(level, picture)
                                   : draw_activities(lanes, row, picture);
        if (level != NULL && level - row->levels + 1 > *coarsest)
            *coarsest = (uint32_t)(level - row->levels + 1);
    }
    return status;
}

static bool is_range(int64_t from_ns, int64_t to_ns)
{
    return from_ns < to_ns && (uint64_t)to_ns - (uint64_t)from_ns <= INT64_MAX;
}

vst_status vst_device_lanes_draw(const vst_device_lanes *lanes, int64_t from_ns,
                                 int64_t to_ns, uint32_t pixels,
                                 const uint32_t *of, size_t count, void **bytes,
                                 size_t *size)
{
    vst__picture picture;
    vst_status status = VST_OK;
    uint32_t coarsest = 0;

    if (!is_range(from_ns, to_ns))
        return VST_E_ARGUMENT;
    vst__picture_init(&picture, from_ns, to_ns, pixels);
    for (size_t i = 0; status == VST_OK && i < count; i++)
        if (of[i] < lanes->lane_count)
            status = draw_lane(lanes, of[i], &picture, &coarsest);
    if (status == VST_OK)
        status = vst__picture_encode(&picture, coarsest, 0, bytes, size);
    vst__picture_free(&picture);
    return status;
}

/* ---- one activity -------------------------------------------------------- */

static uint32_t lane_of(const vst_device_lanes *lanes, uint32_t number)
{
    size_t low = 0, high = lanes->lane_count;

    while (high - low > 1) { /* the last that begins at it or before */
        size_t middle = low + (high - low) / 2;

        if (lanes->lanes[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

vst_status vst_device_lanes_get(const vst_device_lanes *lanes, uint32_t number,
                                vst_device_activity *activity)
{
    const vst__lane_activity *own;
    const vst__lane_text *text;

    if (number >= lanes->count)
        return VST_E_ARGUMENT;
    own = &lanes->activities[number];
    text = &lanes->texts[own->text];
    *activity = (vst_device_activity){
        .number = number,
        .lane = lane_of(lanes, number),
        .row = own->row,
        .kind = own->kind,
        .id = own->id,
        .context = own->context,
        .device = own->device,
        .start_ns = own->start_ns,
        .end_ns = own->end_ns,
        .correlation = own->correlation,
        .external = own->external,
        .bytes = own->bytes,
        .op = own->op,
        .annotation = own->annotation,
        .launch = own->launch,
        .args = lanes->bytes + text->offset,
        .args_len = text->length,
    };
    return VST_OK;
}

vst_status vst_device_lanes_find(const vst_device_lanes *lanes, uint32_t lane,
                                 uint32_t row, int64_t time_ns,
                                 vst_device_activity *activity)
{
    const vst__lane_row *found;
    uint32_t at;

    if (lane >= lanes->lane_count || row >= lanes->lanes[lane].rows)
        return VST_E_ARGUMENT;
    found = &lanes->rows[lanes->first_row[lane] + row];
    at = first_after(lanes, found->first, found->count, time_ns);
    if (at == found->first || lanes->activities[at - 1].end_ns < time_ns)
        return VST_E_ARGUMENT;
    return vst_device_lanes_get(lanes, at - 1, activity);
}

const char *vst_device_lanes_texts(const vst_device_lanes *lanes,
                                   size_t *length)
{
    *length = lanes->bytes_count;
    return lanes->bytes;
}

size_t vst_device_lanes_launched(const vst_device_lanes *lanes, uint32_t call,
                                 uint32_t *numbers, size_t most)
{
    uint32_t next;
    size_t found = 0;

    if (call >= lanes->count ||
        !vst_activity_is_on_thread(lanes->activities[call].kind))
        return 0;
    for (next = lanes->activities[call].next; next != 0;
         next = lanes->activities[next - 1].next) {
        if (found < most)
            numbers[found] = next - 1;
        found++;
    }
    return found;
}

/* ---- search -------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const vst_id *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static vst_id *sorted_copy(const vst_view_ids *ids)
{
    vst_id *sorted = malloc((ids->count + 1) * sizeof *sorted);

    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < ids->count; i++)
        sorted[i] = ids->ids[i];
    qsort(sorted, ids->count, sizeof *sorted, compare_ids);
    return sorted;
}

static bool is_among(const vst_id *sorted, size_t count, vst_id id)
{
    return bsearch(&id, sorted, count, sizeof id, compare_ids) != NULL;
}

vst_status vst_device_lanes_search(const vst_device_lanes *lanes,
                                   int64_t from_ns, int64_t to_ns,
                                   uint32_t pixels, const vst_view_ids *ids,
                                   uint32_t *counts)
{
    vst_id *sorted;

    if (!is_range(from_ns, to_ns) || pixels == 0)
        return VST_E_ARGUMENT;
    sorted = sorted_copy(ids);
    if (sorted == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < lanes->row_count; i++) {
        const vst__lane_row *row = &lanes->rows[i];
        uint32_t end = row->first + row->count;
        uint32_t at =
            from_ns == INT64_MIN
                ? row->first
                : first_after(lanes, row->first, row->count, from_ns - 1);

        for (; at < end && lanes->activities[at].start_ns < to_ns; at++) {
            const vst__lane_activity *own = &lanes->activities[at];

            if (is_among(sorted, ids->count, own->id))
                counts[(u128)(own->start_ns - from_ns) * pixels /
                       (u128)(to_ns - from_ns)]++;
        }
    }
    free(sorted);
    return VST_OK;
}

/* The nearest of a row; lanes->count: there is none. */
static uint32_t nearest(const vst_device_lanes *lanes, const vst__lane_row *row,
                        int64_t time_ns, bool back, const vst_id *sorted,
                        size_t count)
{
    uint32_t end = row->first + row->count;
    uint32_t at = first_after(lanes, row->first, row->count, time_ns);

    if (!back) {
        for (; at < end; at++)
            if (is_among(sorted, count, lanes->activities[at].id))
                return at;
        return lanes->count;
    }
    while (at-- > row->first)
        if (lanes->activities[at].start_ns < time_ns &&
            is_among(sorted, count, lanes->activities[at].id))
            return at;
    return lanes->count;
}

vst_status vst_device_lanes_next(const vst_device_lanes *lanes, int64_t time_ns,
                                 bool back, uint32_t lane,
                                 const vst_view_ids *ids,
                                 vst_device_activity *activity)
{
    uint32_t best = lanes->count;
    vst_id *sorted = sorted_copy(ids);
    uint32_t row = 0, end = (uint32_t)lanes->row_count;

    if (sorted == NULL)
        return VST_E_NOMEM;
    if (lane < lanes->lane_count) {
        row = lanes->first_row[lane];
        end = lanes->first_row[lane + 1];
    } else if (lane != UINT32_MAX) {
        end = 0;
    }
    for (; row < end; row++) {
        uint32_t at = nearest(lanes, &lanes->rows[row], time_ns, back, sorted,
                              ids->count);

        if (at == lanes->count)
            continue;
        if (best == lanes->count ||
            (back ? lanes->activities[at].start_ns >
                        lanes->activities[best].start_ns
                  : lanes->activities[at].start_ns <
                        lanes->activities[best].start_ns))
            best = at;
    }
    free(sorted);
    return vst_device_lanes_get(lanes, best, activity);
}
