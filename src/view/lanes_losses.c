/* Losses as lanes: stretches about which the trace knows nothing. One lane for
 * each thread that has any, with three rows: records could not be kept; the
 * hooks were removed; records were dropped to stay within a limit. Read from an
 * index, also from that of a growing trace. One thread makes them. */
#include <stdlib.h>

#include "view/lanes_kind.h"
#include "view/view_state.h"

enum { ROWS = 3 };

typedef struct losses {
    vst__index_loss *all; /* by thread, row and start */
    size_t count;
} losses;

static const vst__lane_fact facts[] = {{"records", VST_LANE_NUMBER}};

static uint32_t row_of(const vst__index_loss *loss)
{
    return loss->kind - VST_LOSS_RECORDS;
}

static int by_row(const void *a, const void *b)
{
    const vst__index_loss *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Copies the losses of the index, because a growing trace replaces it. */
static vst_status losses_copy(losses *self, const vst_view *view)
{
    size_t count = (size_t)view->index.header->losses.count;

    self->all = malloc((count + 1) * sizeof *self->all);
    if (self->all == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        vst__index_loss loss = view->index.losses[i];

        if (loss.kind < VST_LOSS_RECORDS || loss.kind > VST_LOSS_DROPPED)
            continue;
        loss.start_ns += view->offset_ns;
        loss.end_ns += view->offset_ns;
        self->all[self->count++] = loss;
    }
    qsort(self->all, self->count, sizeof *self->all, by_row);
    return VST_OK;
}

static vst_status losses_make_lanes(vst__lanes *lanes, const losses *self)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < self->count;) {
        uint32_t items[ROWS] = {0}, thread = self->all[i].thread;

        for (; i < self->count && self->all[i].thread == thread; i++)
            items[row_of(&self->all[i])]++;
        status = vst__lanes_add(lanes, items, ROWS);
    }
    return status;
}

static vst_status read_losses(vst__lanes *lanes, vst_trace *trace,
                              const vst__lanes_options *options,
                              vst_error *error)
{
    losses *self = calloc(1, sizeof *self);
    vst_status status = VST_E_NOMEM;

    (void)trace;
    lanes->own = self;
    if (self != NULL)
        status = losses_copy(self, options->view);
    if (status == VST_OK)
        status = losses_make_lanes(lanes, self);
    return vst_error_set(error, status, 0, 0);
}

static void free_losses(vst__lanes *lanes)
{
    losses *self = lanes->own;

    free(self->all);
    free(self);
}

/* ---- lanes and items ----------------------------------------------------- */

static const vst__index_loss *loss_at(const vst__lanes *lanes, uint32_t number)
{
    return &((const losses *)lanes->own)->all[number];
}

static void losses_lane_of(const vst__lanes *lanes, uint32_t lane,
                           vst__lane *got)
{
    got->thread =
        loss_at(lanes, lanes->rows[lanes->first_row[lane]].first)->thread;
}

static void losses_item_of(const vst__lanes *lanes, uint32_t number,
                           vst__lane_item *item)
{
    const vst__index_loss *loss = loss_at(lanes, number);

    *item = (vst__lane_item){
        .start_ns = loss->start_ns, .end_ns = loss->end_ns, .count = 1};
}

static void losses_facts_of(const vst__lanes *lanes, uint32_t number,
                            uint64_t *values)
{
    values[0] = loss_at(lanes, number)->records;
}

const vst__lanes_kind vst__lanes_losses = {
    .name = "losses",
    .is_indexed = true,
    .facts = facts,
    .fact_count = sizeof facts / sizeof *facts,
    .read = read_losses,
    .free = free_losses,
    .lane = losses_lane_of,
    .item = losses_item_of,
    .facts_of = losses_facts_of,
};
