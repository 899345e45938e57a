/* Stretches in which a budget left functions out, as lanes: one lane with one
 * row, whose items say which functions these are. Any thread may ask. */
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "replay/budget.h"
#include "view/lanes_kind.h"

enum {
    STRETCHES_MAX = 20000, /* the most items; if there are more, short gaps
                              between stretches are closed */
    NAMED_MAX = 50,        /* the most functions of an item */
    TEXTS_MAX = 8 << 20,
    TEXT_MAX = 16 + NAMED_MAX * 12
};

typedef struct left_out {
    int64_t start_ns, end_ns;
    uint32_t functions; /* number of a text */
} left_out;

typedef struct reading {
    left_out *all;
    size_t count, capacity;
} reading;

static const vst__lane_fact facts[] = {
    /* `"ids": [1, 2]`; `"ids": null` if every function was left out */
    {"functions", VST_LANE_TEXT},
};

static size_t left_out_describe(const vst_budget_stretch *stretch, char *text)
{
    size_t length = 0;

    if (stretch->flags & VST_LEFT_OUT_PYTHON)
        return (size_t)snprintf(text, TEXT_MAX, "\"ids\": null");
    for (size_t i = 0; i < stretch->count && i < NAMED_MAX; i++)
        length +=
            (size_t)snprintf(text + length, TEXT_MAX - length, "%s%u",
                             i != 0 ? ", " : "\"ids\": [", stretch->ids[i]);
    return length + (size_t)snprintf(text + length, TEXT_MAX - length, "]");
}

/* Adds a stretch, or lengthens the last one if it has the same functions and
 * ends there, or if the gap is shorter than near_ns. */
static vst_status left_out_add(vst__lanes *lanes,
                               const vst_budget_stretch *stretch,
                               int64_t end_ns, int64_t near_ns)
{
    reading *own = lanes->own;
    left_out *last = own->count != 0 ? &own->all[own->count - 1] : NULL;
    left_out added = {.start_ns = stretch->start_ns, .end_ns = end_ns};
    char text[TEXT_MAX];
    vst_status status =
        vst__lanes_keep_text(lanes, text, left_out_describe(stretch, text),
                             TEXTS_MAX, &added.functions);

    if (status != VST_OK)
        return status;
    if (last != NULL && (added.start_ns - last->end_ns < near_ns ||
                         (added.start_ns == last->end_ns &&
                          added.functions == last->functions))) {
        last->end_ns = end_ns;
        return VST_OK;
    }
    if (!VST_RESERVE(own->all, own->count + 1, own->capacity))
        return VST_E_NOMEM;
    own->all[own->count++] = added;
    return VST_OK;
}

static vst_status left_out_add_all(vst__lanes *lanes, const vst_trace *trace,
                                   const vst_budget *budget)
{
    const reading *own = lanes->own;
    vst_budget_info budgeted;
    vst_trace_info info;
    vst_status status = VST_OK;
    int64_t near_ns = 0;
    uint32_t items;

    vst_trace_get_info(trace, &info);
    vst__budget_get_info(budget, &budgeted);
    if (budgeted.changes > STRETCHES_MAX)
        near_ns = (info.end_ns - info.start_ns) / STRETCHES_MAX;
    for (size_t i = 0; status == VST_OK && i < budgeted.changes; i++) {
        vst_budget_stretch stretch;

        vst__budget_get_stretch(budget, i, &stretch);
        if (stretch.start_ns < info.end_ns &&
            (stretch.count != 0 || stretch.flags & VST_LEFT_OUT_PYTHON))
            status = left_out_add(lanes, &stretch,
                                  stretch.end_ns < info.end_ns ? stretch.end_ns
                                                               : info.end_ns,
                                  near_ns);
    }
    items = (uint32_t)own->count;
    return status == VST_OK && items != 0 ? vst__lanes_add(lanes, &items, 1)
                                          : status;
}

static vst_status left_out_read(vst__lanes *lanes, vst_trace *trace,
                                const vst__lanes_options *options,
                                vst_error *error)
{
    vst_budget *budget = NULL;
    vst_status status;

    (void)options;
    lanes->own = calloc(1, sizeof(reading));
    if (lanes->own == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst__budget_read(trace, &budget, error);
    if (status == VST_OK && budget != NULL)
        status =
            vst_error_set(error, left_out_add_all(lanes, trace, budget), 0, 0);
    vst__budget_free(budget);
    return status;
}

static void left_out_free(vst__lanes *lanes)
{
    reading *own = lanes->own;

    free(own->all);
    free(own);
}

static void left_out_lane_of(const vst__lanes *lanes, uint32_t lane,
                             vst__lane *got)
{
    (void)lanes, (void)lane, (void)got;
}

static void left_out_item_of(const vst__lanes *lanes, uint32_t number,
                             vst__lane_item *item)
{
    const left_out *one = &((const reading *)lanes->own)->all[number];

    *item = (vst__lane_item){
        .start_ns = one->start_ns, .end_ns = one->end_ns, .count = 1};
}

static void left_out_facts_of(const vst__lanes *lanes, uint32_t number,
                              uint64_t *values)
{
    values[0] = ((const reading *)lanes->own)->all[number].functions;
}

const vst__lanes_kind vst__lanes_budget = {
    .name = "left_out",
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = left_out_read,
    .free = left_out_free,
    .lane = left_out_lane_of,
    .item = left_out_item_of,
    .facts_of = left_out_facts_of,
};
