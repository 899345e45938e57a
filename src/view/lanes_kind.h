/* The parts of a kind of lanes, for the files that read one. lanes.c answers
 * questions from them. One thread reads; nothing changes afterwards. */
#ifndef VST_VIEW_LANES_KIND_H
#define VST_VIEW_LANES_KIND_H

#include "base/map64.h"
#include "view/lanes.h"
#include "view/run.h"

/* Runs of at most this many nanoseconds, made from the runs of the level below.
 */
typedef struct vst__lane_level {
    int64_t width_ns;
    vst__run *runs;
    size_t count;
} vst__lane_level;

enum { VST_LANE_LEVELS_MAX = 12 };

/* A row, whose items have the numbers from `first` on. */
typedef struct vst__lane_row {
    uint32_t lane;
    uint32_t first, count;
    uint32_t level_count;
    vst__lane_level *levels; /* NULL: the row is short */
} vst__lane_row;

typedef struct vst__lanes_kind {
    const char *name;
    bool is_indexed; /* read from options->view; the trace is NULL */
    const vst__lane_fact *facts;
    size_t fact_count;
    /* Fills `own`, and calls vst__lanes_add for each lane with the number of
     * its rows and items. */
    vst_status (*read)(vst__lanes *lanes, vst_trace *trace,
                       const vst__lanes_options *options, vst_error *error);
    void (*free)(vst__lanes *lanes);
    /* Fill the details of a lane and of an item. The caller has filled a lane's
     * rows, items and times before; it fills an item's number, lane and row
     * afterwards. */
    void (*lane)(const vst__lanes *lanes, uint32_t lane, vst__lane *got);
    void (*item)(const vst__lanes *lanes, uint32_t number,
                 vst__lane_item *item);
    void (*facts_of)(const vst__lanes *lanes, uint32_t number,
                     uint64_t *values); /* NULL: no facts */
    /* NULL: items have no values. Rows with values are drawn from items alone,
     * so they should have few: a track has at most VST_TRACK_POINTS_MAX. */
    void (*value_of)(const vst__lanes *lanes, uint32_t number,
                     vst_view_value *value);
    size_t (*linked)(const vst__lanes *lanes, uint32_t number,
                     uint32_t *numbers, size_t most); /* NULL: no links */
} vst__lanes_kind;

extern const vst__lanes_kind vst__lanes_budget, vst__lanes_calls,
    vst__lanes_counters, vst__lanes_devices, vst__lanes_losses,
    vst__lanes_marks, vst__lanes_states, vst__lanes_tasks;

typedef struct vst__lane_text {
    size_t offset;
    uint32_t length;
} vst__lane_text;

/* Texts of items; the first has number 1. */
typedef struct vst__lane_texts {
    vst__lane_text *all;
    size_t count, capacity;
    char *bytes;
    size_t size, bytes_capacity;
    vst__map64 known; /* hash -> number */
} vst__lane_texts;

struct vst__lanes {
    const vst__lanes_kind *kind;
    void *own; /* the kind's data */
    uint32_t lane_count;
    size_t lane_capacity;
    uint32_t *first_row; /* by lane, plus the end */
    vst__lane_row *rows;
    uint32_t row_count;
    size_t row_capacity;
    uint32_t count; /* items */
    uint64_t left_out, texts_left_out;
    vst__lane_texts texts;
};

/* Adds a lane with `rows` rows, of items[i] items each. */
vst_status vst__lanes_add(vst__lanes *lanes, const uint32_t *items,
                          uint32_t rows);
/* Finds or adds a text. Sets *number to 0 if the text is empty, or if more than
 * `most` bytes would be kept. */
vst_status vst__lanes_keep_text(vst__lanes *lanes, const char *text,
                                size_t length, size_t most, uint32_t *number);
void vst__lane_texts_free(vst__lane_texts *texts);

/* Returns the number of the row's first item that begins after time_ns, or the
 * number behind the row's last item. */
uint32_t vst__lane_first_after(const vst__lanes *lanes,
                               const vst__lane_row *row, int64_t time_ns);

/* Returns the last item with a count that begins at time_ns or before, else the
 * row's first item. */
uint32_t vst__lane_last_up_to(const vst__lanes *lanes, const vst__lane_row *row,
                              int64_t time_ns, vst__lane_item *item);

/* lanes_draw.c: a wide window is drawn from runs that are a bit narrower than
 * its pixels, so the number of items does not matter. */
vst__run vst__lane_run(const vst__lane_item *item);
vst_status vst__lane_levels_make(const vst__lanes *lanes, vst__lane_row *row);
void vst__lane_levels_free(vst__lane_row *row);

#endif
