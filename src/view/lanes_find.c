/* See lanes.h: search in lanes, and packed lanes for a page without a server.
 * Any thread may ask. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/lanes_kind.h"
#include "view/picture.h"

__extension__ typedef unsigned __int128 u128;

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

vst_status vst__lanes_find(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t from_ns, int64_t to_ns, uint32_t pixels,
                           uint32_t *counts)
{
    vst_id *sorted;

    if (from_ns >= to_ns || (uint64_t)to_ns - (uint64_t)from_ns > INT64_MAX ||
        pixels == 0)
        return VST_E_ARGUMENT;
    sorted = sorted_copy(ids);
    if (sorted == NULL)
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < lanes->row_count; i++) {
        const vst__lane_row *row = &lanes->rows[i];
        uint32_t end = row->first + row->count;
        uint32_t at = from_ns == INT64_MIN
                          ? row->first
                          : vst__lane_first_after(lanes, row, from_ns - 1);

        for (; at < end; at++) {
            vst__lane_item item;

            lanes->kind->item(lanes, at, &item);
            if (item.start_ns >= to_ns)
                break;
            if (is_among(sorted, ids->count, item.id))
                counts[(u128)(item.start_ns - from_ns) * pixels /
                       (u128)(to_ns - from_ns)]++;
        }
    }
    free(sorted);
    return VST_OK;
}

/* Finds the matching item of a row that is nearest to time_ns, before or after.
 * Returns false if there is none. */
static bool lane_nearest(const vst__lanes *lanes, const vst__lane_row *row,
                         int64_t time_ns, bool back, const vst_id *sorted,
                         size_t count, uint32_t *number, int64_t *start_ns)
{
    uint32_t end = row->first + row->count;
    uint32_t at = vst__lane_first_after(lanes, row, time_ns);
    vst__lane_item item;

    while (back ? at-- > row->first : at < end) {
        lanes->kind->item(lanes, at, &item);
        if ((!back || item.start_ns < time_ns) &&
            is_among(sorted, count, item.id)) {
            *number = at;
            *start_ns = item.start_ns;
            return true;
        }
        at += !back;
    }
    return false;
}

vst_status vst__lanes_next(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t time_ns, bool back, vst__lane_item *item)
{
    vst_id *sorted = sorted_copy(ids);
    uint32_t best = lanes->count, number;
    int64_t best_ns = 0, start_ns;

    if (sorted == NULL)
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < lanes->row_count; i++)
        if (lane_nearest(lanes, &lanes->rows[i], time_ns, back, sorted,
                         ids->count, &number, &start_ns) &&
            (best == lanes->count ||
             (back ? start_ns > best_ns : start_ns < best_ns))) {
            best = number;
            best_ns = start_ns;
        }
    free(sorted);
    return vst__lanes_item(lanes, best, item) ? VST_OK : VST_E_ARGUMENT;
}

/* ---- packing ------------------------------------------------------------- */

typedef struct packing {
    uint8_t *bytes;
    size_t size, capacity;
    int64_t before_ns; /* start of the previous item */
    size_t count;
} packing;

static bool lane_put(packing *to, uint64_t value)
{
    uint8_t *bytes = vst__grow(to->bytes, &to->capacity, to->size + 10, 1);

    if (bytes == NULL)
        return false;
    to->bytes = bytes;
    for (; value > 127; value >>= 7)
        bytes[to->size++] = (uint8_t)(value | 128);
    bytes[to->size++] = (uint8_t)value;
    return true;
}

/* In a damaged trace, times may have any value. */
static uint64_t at_least_0(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

static bool put_value(packing *to, const vst_view_value *value)
{
    uint8_t *bytes =
        vst__grow(to->bytes, &to->capacity, to->size + sizeof *value, 1);

    if (bytes == NULL)
        return false;
    to->bytes = bytes;
    memcpy(bytes + to->size, value, sizeof *value);
    to->size += sizeof *value;
    return true;
}

/* value NULL: items have none. */
static vst_status put_run(packing *to, const vst__run *run,
                          const uint64_t *facts, size_t fact_count,
                          const vst_view_value *value)
{
    vst__picture scale = {.from_ns = run->start_ns, .to_ns = run->end_ns};
    vst_view_rect rect = vst__picture_rect(&scale, run, false);
    bool has_room = lane_put(to, at_least_0(to->before_ns, run->start_ns)) &&
                    lane_put(to, at_least_0(run->start_ns, run->end_ns)) &&
                    lane_put(to, rect.id) && lane_put(to, 65535u - rect.busy) &&
                    lane_put(to, run->count);

    while (fact_count != 0 && facts[fact_count - 1] == 0)
        fact_count--;
    has_room = has_room && lane_put(to, fact_count);
    for (size_t i = 0; has_room && i < fact_count; i++)
        has_room = lane_put(to, facts[i]);
    if (value != NULL)
        has_room = has_room && put_value(to, value);
    if (run->start_ns > to->before_ns)
        to->before_ns = run->start_ns;
    to->count++;
    return has_room ? VST_OK : VST_E_NOMEM;
}

/* Packs narrow items, merged as long as they fit into the width. */
static vst_status pack_merged(const vst__lanes *lanes, uint32_t at,
                              uint32_t end, int64_t width_ns, packing *to)
{
    vst__run pending = {.count = 0};
    vst_view_value value, held;
    const vst_view_value *put = NULL;
    vst_status status = VST_OK;

    for (; status == VST_OK && at < end; at++) {
        vst__lane_item item;
        vst__run run;

        lanes->kind->item(lanes, at, &item);
        run = vst__lane_run(&item);
        if (vst__lanes_value_of(lanes, at, &value))
            put = &held;
        if (pending.count != 0 && run.end_ns - run.start_ns < width_ns &&
            vst__run_merge(&pending, &run, width_ns)) {
            if (put != NULL)
                vst__picture_merge_value(&held, &value);
            continue;
        }
        if (pending.count != 0)
            status = put_run(to, &pending, NULL, 0, put);
        pending = run;
        if (put != NULL)
            held = value;
    }
    if (status == VST_OK && pending.count != 0)
        status = put_run(to, &pending, NULL, 0, put);
    return status;
}

static vst_status pack_all(const vst__lanes *lanes, uint32_t at, uint32_t end,
                           packing *to)
{
    uint64_t facts[VST_LANE_FACTS_MAX];
    vst_view_value value;
    vst_status status = VST_OK;

    for (; status == VST_OK && at < end; at++) {
        vst__lane_item item;
        vst__run run;

        lanes->kind->item(lanes, at, &item);
        run = vst__lane_run(&item);
        vst__lanes_facts_of(lanes, at, facts);
        status =
            put_run(to, &run, facts, lanes->kind->fact_count,
                    vst__lanes_value_of(lanes, at, &value) ? &value : NULL);
    }
    return status;
}

vst_status vst__lanes_pack(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                           int64_t base_ns, int64_t before_ns, int64_t width_ns,
                           uint8_t **bytes, size_t *size, uint32_t *first,
                           size_t *count)
{
    packing to = {.before_ns = base_ns};
    const vst__lane_row *of;
    uint32_t end;
    vst_status status;

    if (lane >= lanes->lane_count ||
        row >= lanes->first_row[lane + 1] - lanes->first_row[lane])
        return VST_E_ARGUMENT;
    of = &lanes->rows[lanes->first_row[lane] + row];
    end = vst__lane_first_after(lanes, of, before_ns);
    status = width_ns > 0 ? pack_merged(lanes, of->first, end, width_ns, &to)
                          : pack_all(lanes, of->first, end, &to);
    if (status != VST_OK) {
        free(to.bytes);
        return status;
    }
    *bytes = to.bytes;
    *size = to.size;
    *first = of->first;
    *count = to.count;
    return VST_OK;
}
