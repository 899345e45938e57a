/* See lanes.h: the code that all kinds share. One thread makes lanes. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/lanes_kind.h"

static const vst__lanes_kind *const kinds[] = {
    &vst__lanes_budget,  &vst__lanes_calls,  &vst__lanes_counters,
    &vst__lanes_devices, &vst__lanes_losses, &vst__lanes_marks,
    &vst__lanes_states,  &vst__lanes_tasks};

/* ---- making -------------------------------------------------------------- */

static const vst__lanes_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static vst_status make_levels(const vst__lanes *lanes)
{
    vst_status status = VST_OK;

    for (uint32_t i = 0; status == VST_OK && i < lanes->row_count; i++)
        status = vst__lane_levels_make(lanes, &lanes->rows[i]);
    return status;
}

vst_status vst__lanes_create(vst_trace *trace, const char *kind,
                             const vst__lanes_options *options,
                             vst__lanes **result, vst_error *error)
{
    static const vst__lanes_options everything = {.window = VST_WINDOW_ALL};
    vst__lanes *lanes = calloc(1, sizeof *lanes);
    vst_status status = vst_error_set(error, VST_E_NOMEM, 0, 0);

    *result = NULL;
    if (lanes == NULL)
        return status;
    if (options == NULL)
        options = &everything;
    lanes->kind = find_kind(kind);
    if (lanes->kind == NULL ||
        lanes->kind->is_indexed != (options->view != NULL))
        status = vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    else
        status = lanes->kind->read(lanes, trace, options, error);
    if (status == VST_OK)
        status = vst_error_set(error, make_levels(lanes), 0, 0);
    if (status != VST_OK) {
        vst__lanes_destroy(lanes);
        return status;
    }
    *result = lanes;
    return VST_OK;
}

void vst__lanes_destroy(vst__lanes *lanes)
{
    if (lanes == NULL)
        return;
    if (lanes->own != NULL)
        lanes->kind->free(lanes);
    for (uint32_t i = 0; i < lanes->row_count; i++)
        vst__lane_levels_free(&lanes->rows[i]);
    free(lanes->first_row);
    free(lanes->rows);
    vst__lane_texts_free(&lanes->texts);
    free(lanes);
}

vst_status vst__lanes_add(vst__lanes *lanes, const uint32_t *items,
                          uint32_t rows)
{
    if (!VST_RESERVE(lanes->first_row, (size_t)lanes->lane_count + 2,
                     lanes->lane_capacity))
        return VST_E_NOMEM;
    if (!VST_RESERVE(lanes->rows, (size_t)lanes->row_count + rows,
                     lanes->row_capacity))
        return VST_E_NOMEM;
    lanes->first_row[lanes->lane_count++] = lanes->row_count;
    for (uint32_t i = 0; i < rows; i++) {
        lanes->rows[lanes->row_count++] =
            (vst__lane_row){.lane = lanes->lane_count - 1,
                            .first = lanes->count,
                            .count = items[i]};
        lanes->count += items[i];
    }
    lanes->first_row[lanes->lane_count] = lanes->row_count;
    return VST_OK;
}

/* ---- totals -------------------------------------------------------------- */

/* Adds the times and counts of a row to its lane. */
static void lanes_add_row(const vst__lanes *lanes, const vst__lane_row *row,
                          vst__lane *to)
{
    vst__lane_item first, last;

    if (row->count == 0)
        return;
    lanes->kind->item(lanes, row->first, &first);
    lanes->kind->item(lanes, row->first + row->count - 1, &last);
    if (to->items == 0 || first.start_ns < to->start_ns)
        to->start_ns = first.start_ns;
    if (to->items == 0 || last.end_ns > to->end_ns)
        to->end_ns = last.end_ns;
    to->items += row->count;
}

bool vst__lanes_get(const vst__lanes *lanes, uint32_t lane, vst__lane *got)
{
    *got = (vst__lane){.rows = 0};
    if (lane >= lanes->lane_count)
        return false;
    for (uint32_t i = lanes->first_row[lane]; i < lanes->first_row[lane + 1];
         i++) {
        lanes_add_row(lanes, &lanes->rows[i], got);
        got->rows++;
    }
    lanes->kind->lane(lanes, lane, got);
    return true;
}

uint64_t vst__lanes_left_out(const vst__lanes *lanes, uint64_t *texts)
{
    *texts = lanes->texts_left_out;
    return lanes->left_out;
}

const vst__lane_fact *vst__lanes_facts(const vst__lanes *lanes, size_t *count)
{
    *count = lanes->kind->fact_count;
    return lanes->kind->facts;
}

void vst__lanes_facts_of(const vst__lanes *lanes, uint32_t number,
                         uint64_t *values)
{
    if (lanes->kind->facts_of != NULL)
        lanes->kind->facts_of(lanes, number, values);
}

bool vst__lanes_value_of(const vst__lanes *lanes, uint32_t number,
                         vst_view_value *value)
{
    if (lanes->kind->value_of == NULL)
        return false;
    lanes->kind->value_of(lanes, number, value);
    return true;
}

/* ---- items --------------------------------------------------------------- */

/* Returns a row of a lane, or NULL if there is none. */
static const vst__lane_row *row_of(const vst__lanes *lanes, uint32_t lane,
                                   uint32_t row)
{
    return lane < lanes->lane_count &&
                   row < lanes->first_row[lane + 1] - lanes->first_row[lane]
               ? &lanes->rows[lanes->first_row[lane] + row]
               : NULL;
}

bool vst__lanes_item(const vst__lanes *lanes, uint32_t number,
                     vst__lane_item *item)
{
    uint32_t low = 0, high = lanes->row_count;

    if (number >= lanes->count)
        return false;
    /* find the last row that begins at this item or before */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (lanes->rows[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    lanes->kind->item(lanes, number, item);
    item->number = number;
    item->lane = lanes->rows[low].lane;
    item->row = low - lanes->first_row[item->lane];
    return true;
}

uint32_t vst__lane_first_after(const vst__lanes *lanes,
                               const vst__lane_row *row, int64_t time_ns)
{
    uint32_t low = row->first, high = low + row->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        vst__lane_item item;

        lanes->kind->item(lanes, middle, &item);
        if (item.start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the row's first item that begins at time_ns or later. */
static uint32_t first_from(const vst__lanes *lanes, const vst__lane_row *row,
                           int64_t time_ns)
{
    return time_ns == INT64_MIN
               ? row->first
               : vst__lane_first_after(lanes, row, time_ns - 1);
}

uint32_t vst__lane_last_up_to(const vst__lanes *lanes, const vst__lane_row *row,
                              int64_t time_ns, vst__lane_item *item)
{
    uint32_t at = vst__lane_first_after(lanes, row, time_ns);

    *item = (vst__lane_item){.count = 0};
    while (at > row->first) {
        lanes->kind->item(lanes, --at, item);
        if (item->count != 0)
            break;
    }
    return at;
}

bool vst__lanes_at(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                   int64_t time_ns, vst__lane_item *item)
{
    const vst__lane_row *found = row_of(lanes, lane, row);
    uint32_t number;

    if (found == NULL)
        return false;
    number = vst__lane_last_up_to(lanes, found, time_ns, item);
    return item->count != 0 && item->end_ns >= time_ns &&
           vst__lanes_item(lanes, number, item);
}

size_t vst__lanes_linked(const vst__lanes *lanes, uint32_t number,
                         uint32_t *numbers, size_t most)
{
    return number < lanes->count && lanes->kind->linked != NULL
               ? lanes->kind->linked(lanes, number, numbers, most)
               : 0;
}

size_t vst__lanes_between(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                          int64_t from_ns, int64_t to_ns, vst__lane_item *items,
                          size_t most)
{
    const vst__lane_row *found = row_of(lanes, lane, row);
    uint32_t at, end;
    size_t count = 0;

    if (found == NULL || from_ns >= to_ns)
        return 0;
    end = first_from(lanes, found, to_ns);
    for (at = first_from(lanes, found, from_ns); at < end; at++) {
        vst__lane_item item;

        lanes->kind->item(lanes, at, &item);
        if (item.count != 0 && count++ < most)
            vst__lanes_item(lanes, at, &items[count - 1]);
    }
    return count;
}

int64_t vst__lanes_busy(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                        int64_t from_ns, int64_t to_ns)
{
    const vst__lane_row *found = row_of(lanes, lane, row);
    uint32_t at, end;
    int64_t sum_ns = 0;

    if (found == NULL)
        return 0;
    end = found->first + found->count;
    for (at = vst__lane_first_after(lanes, found, from_ns),
        at -= at != found->first;
         at < end; at++) {
        vst__lane_item item;

        lanes->kind->item(lanes, at, &item);
        if (item.start_ns >= to_ns)
            break;
        if (item.end_ns > from_ns)
            sum_ns += (item.end_ns < to_ns ? item.end_ns : to_ns) -
                      (item.start_ns > from_ns ? item.start_ns : from_ns);
    }
    return sum_ns;
}
