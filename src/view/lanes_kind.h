/* What a kind of lanes consists of, for the files that read one. lanes.c
 * answers from it. One thread reads; nothing changes afterwards. */
#ifndef VST_VIEW_LANES_KIND_H
#define VST_VIEW_LANES_KIND_H

#include "base/map64.h"
#include "view/lanes.h"
#include "view/run.h"

/* Runs of at most so many nanoseconds, made of those of the level below. */
typedef struct vst__lane_level {
    int64_t width_ns;
    vst__run *runs;
    size_t count;
} vst__lane_level;

enum { VST_LANE_LEVELS_MAX = 12 };

/* The items of a row have the numbers from `first` on. */
typedef struct vst__lane_row {
    uint32_t lane;
    uint32_t first, count;
    uint32_t level_count;
    vst__lane_level *levels; /* NULL: the row is short */
} vst__lane_row;

typedef struct vst__lanes_kind {
    const char *name;
    const vst__lane_fact *facts;
    size_t fact_count;
    /* Fills own, and says by vst__lanes_add how many rows and items there are.
     */
    vst_status (*read)(vst__lanes *lanes, vst_trace *trace,
                       const vst__lanes_options *options, vst_error *error);
    void (*free)(vst__lanes *lanes);
    /* Others fill rows, items and times of a lane before, and number, lane and
     * row of an item behind this. */
    void (*lane)(const vst__lanes *lanes, uint32_t lane, vst__lane *got);
    void (*item)(const vst__lanes *lanes, uint32_t number,
                 vst__lane_item *item);
    void (*facts_of)(const vst__lanes *lanes, uint32_t number,
                     uint64_t *values); /* NULL: no facts */
    size_t (*linked)(const vst__lanes *lanes, uint32_t number,
                     uint32_t *numbers, size_t most); /* NULL: none */
} vst__lanes_kind;

extern const vst__lanes_kind vst__lanes_calls, vst__lanes_devices,
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
    void *own; /* of the kind */
    uint32_t lane_count;
    size_t lane_capacity;
    uint32_t *first_row; /* by lane, and the end */
    vst__lane_row *rows;
    uint32_t row_count;
    size_t row_capacity;
    uint32_t count; /* items */
    uint64_t left_out, texts_left_out;
    vst__lane_texts texts;
};

/* A lane with so many rows, of so many items each. */
vst_status vst__lanes_add(vst__lanes *lanes, const uint32_t *items,
                          uint32_t rows);
/* Finds or adds a text. Its number is 0 if it is empty, and if more than so
 * many bytes would be kept. */
vst_status vst__lanes_keep_text(vst__lanes *lanes, const char *text,
                                size_t length, size_t most, uint32_t *number);
void vst__lane_texts_free(vst__lane_texts *texts);

/* The first item of a row that begins after a time: its number, or that behind
 * the row's last. */
uint32_t vst__lane_first_after(const vst__lanes *lanes,
                               const vst__lane_row *row, int64_t time_ns);

/* lanes_levels.c: a wide window is drawn from runs that are a bit narrower than
 * its pixels, however many items there are. */
vst__run vst__lane_run(const vst__lane_item *item);
/* A wait is drawn where it is wider than a pixel. One that is narrower is part
 * of the run of steps around it. */
bool vst__lane_is_drawn(const vst__run *run, int64_t width_ns);
vst_status vst__lane_levels_make(const vst__lanes *lanes, vst__lane_row *row);
void vst__lane_levels_free(vst__lane_row *row);
/* The coarsest level whose runs are no wider than a pixel; NULL: the items
 * themselves. */
const vst__lane_level *vst__lane_levels_find(const vst__lane_row *row,
                                             int64_t pixel_ns);

#endif
