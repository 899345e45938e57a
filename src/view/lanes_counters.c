/* Values over time as lanes: one lane with one row for each counter of the
 * program, and for the memory that was allocated. An item lasts until the value
 * changes. Counters are read from an index, also from that of a growing trace;
 * memory is replayed, and only if the trace does not grow. One thread makes
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/lanes_kind.h"
#include "view/view_state.h"

typedef struct item {
    int64_t start_ns, end_ns;
    vst_view_value value;
} item;

typedef struct curve {
    uint32_t kind; /* vst__track_kind */
    vst_id id;
    uint32_t thread;
    double least, most;
} curve;

typedef struct counters {
    curve *curves; /* by lane */
    item *all;     /* by lane and time */
    size_t curve_count, count;
    int64_t offset_ns, end_ns;
} counters;

/* ---- reading ------------------------------------------------------------- */

static vst_status read_memory(vst__tracks *tracks,
                              const vst__lanes_options *options,
                              vst_error *error)
{
    vst_view *view = options->view;
    vst_status status;

    if (!vst_trace_has_memory(view->trace) || view->live != NULL)
        return VST_OK;
    pthread_mutex_lock(&view->lock);
    vst_trace_set_progress(view->trace, options->progress,
                           options->progress_ctx);
    status = vst__tracks_read_memory(tracks, view->trace, error);
    vst_trace_set_progress(view->trace, NULL, NULL);
    pthread_mutex_unlock(&view->lock);
    return status;
}

/* Limits a time, which a damaged index may have wrong, so that differences
 * fit. */
static int64_t counters_time(const counters *self, int64_t time_ns)
{
    const int64_t limit = (int64_t)1 << 61;

    if (time_ns < -limit)
        time_ns = -limit;
    return (time_ns < limit ? time_ns : limit) + self->offset_ns;
}

/* Makes a lane of a track. Items do not overlap, also where a damaged file has
 * times out of order. */
static vst_status counters_add(vst__lanes *lanes, const vst__track *track)
{
    counters *self = lanes->own;
    curve *added = &self->curves[self->curve_count++];
    uint32_t count = (uint32_t)track->count;
    item *items = self->all + self->count;

    *added = (curve){.kind = track->kind,
                     .id = track->id,
                     .thread = track->thread,
                     .least = NAN,
                     .most = NAN};
    for (uint32_t i = 0; i < count; i++) {
        const vst__track_point *point = &track->points[i];
        int64_t start_ns = counters_time(self, point->first_ns);

        if (i != 0 && start_ns < items[i - 1].start_ns)
            start_ns = items[i - 1].start_ns;
        if (i != 0)
            items[i - 1].end_ns = start_ns;
        items[i] = (item){start_ns,
                          start_ns > self->end_ns ? start_ns : self->end_ns,
                          {point->min, point->max, point->last}};
        added->least = fmin(added->least, point->min);
        added->most = fmax(added->most, point->max);
    }
    self->count += count;
    return vst__lanes_add(lanes, &count, 1);
}

static vst_status counters_make_lanes(vst__lanes *lanes,
                                      const vst__index *index,
                                      const vst__tracks *memory)
{
    counters *self = lanes->own;
    size_t curves = (size_t)index->header->tracks.count, points = 0;
    vst_status status = VST_OK;

    for (size_t i = 0; i < curves; i++)
        points += (size_t)index->tracks[i].points;
    for (size_t i = 0; i < memory->count; i++)
        points += memory->tracks[i].count;
    self->curves = calloc(curves + memory->count + 1, sizeof *self->curves);
    self->all = calloc(points + 1, sizeof *self->all);
    if (self->curves == NULL || self->all == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; status == VST_OK && i < curves; i++) {
        const vst__index_track *of = &index->tracks[i];
        vst__track track = {
            .kind = of->kind,
            .id = of->id,
            .thread = of->thread,
            .count = (size_t)of->points,
            /* const is cast away; counters_add only reads the points. */
            .points = (vst__track_point *)(uintptr_t)(index->points +
                                                      of->first_point),
        };

        status = counters_add(lanes, &track);
    }
    for (size_t i = 0; status == VST_OK && i < memory->count; i++)
        status = counters_add(lanes, &memory->tracks[i]);
    return status;
}

static vst_status read_counters(vst__lanes *lanes, vst_trace *trace,
                                const vst__lanes_options *options,
                                vst_error *error)
{
    counters *self = calloc(1, sizeof *self);
    vst__tracks memory = {.count = 0};
    vst_view_info info;
    vst_status status;

    (void)trace;
    lanes->own = self;
    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    vst__view_get_info(options->view, &info);
    self->offset_ns = options->view->offset_ns;
    self->end_ns = info.end_ns;
    status = read_memory(&memory, options, error);
    if (status == VST_OK)
        status = vst_error_set(
            error, counters_make_lanes(lanes, &options->view->index, &memory),
            0, 0);
    vst__tracks_free(&memory);
    return status;
}

static void free_counters(vst__lanes *lanes)
{
    counters *self = lanes->own;

    free(self->curves);
    free(self->all);
    free(self);
}

/* ---- lanes and items ----------------------------------------------------- */

static void counters_lane_of(const vst__lanes *lanes, uint32_t lane,
                             vst__lane *got)
{
    static const char *const kinds[] = {"", "counter", "memory", "framework"};
    static const char *const names[] = {"", "", "memory",
                                        "memory of the framework"};
    const curve *of = &((const counters *)lanes->own)->curves[lane];

    got->thread = of->thread;
    got->id = of->id;
    got->what = kinds[of->kind & 3];
    got->name = names[of->kind & 3];
    got->name_len = strlen(got->name);
    got->has_values = true;
    got->least = of->least;
    got->most = of->most;
}

static const item *item_at(const vst__lanes *lanes, uint32_t number)
{
    return &((const counters *)lanes->own)->all[number];
}

static void counters_item_of(const vst__lanes *lanes, uint32_t number,
                             vst__lane_item *got)
{
    const item *of = item_at(lanes, number);

    *got = (vst__lane_item){
        .start_ns = of->start_ns, .end_ns = of->end_ns, .count = 1};
}

static void counters_value_of(const vst__lanes *lanes, uint32_t number,
                              vst_view_value *value)
{
    *value = item_at(lanes, number)->value;
}

const vst__lanes_kind vst__lanes_counters = {
    .name = "counters",
    .is_indexed = true,
    .read = read_counters,
    .free = free_counters,
    .lane = counters_lane_of,
    .item = counters_item_of,
    .value_of = counters_value_of,
};
