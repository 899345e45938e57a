/* Lanes: what a picture shows beside calls. A kind of lanes (marks, states,
 * ...) is read from a trace once and kept in memory; any thread may then ask.
 *
 * A lane has rows, a row has items in the order of their starts. Lanes, rows of
 * a lane and items have numbers from 0 on; an item's number is one of all items
 * of all rows. An item has facts: integers whose names and units stand in the
 * table of its kind. Some items are linked: these came from it.
 *
 * A file lanes_<kind>.c reads a kind and says what its lanes, items and facts
 * are; lanes.c answers for all of them. */
#ifndef VST_VIEW_LANES_H
#define VST_VIEW_LANES_H

#include <stddef.h>

#include <vestige/trace.h>

#include "view/view.h"

typedef struct vst__lanes vst__lanes;

typedef enum vst__lane_unit {
    VST_LANE_NUMBER,
    VST_LANE_ITEM,   /* 1 + the number of an item; 0: none */
    VST_LANE_ORIGIN, /* the same: it came from that, which is linked to it */
    VST_LANE_TEXT    /* the number of a text, 0: none */
} vst__lane_unit;

typedef struct vst__lane_fact {
    const char *name;
    vst__lane_unit unit;
} vst__lane_fact;

enum { VST_LANE_FACTS_MAX = 16 };

typedef struct vst__lane {
    uint32_t thread;         /* number; 0: of none */
    uint32_t device;         /* number; 0: of none */
    uint32_t stream;         /* of the device */
    vst_id id;               /* of the function that all of it is of; 0: none */
    uint32_t first, members; /* lanes that are shown as one in this */
    uint32_t rows;
    uint64_t items, steps; /* of tasks, their steps as replay counts them */
    int64_t start_ns, end_ns;
    int64_t busy_ns; /* of devices: while there was at least one item */
    int64_t awaiting_ns;
    uint64_t bytes;   /* of devices: copied and set */
    const char *name; /* NULL: none */
    size_t name_len;
    const char *what, *end; /* of a task: what it is, how it ended; NULL */
} vst__lane;

typedef struct vst__lane_item {
    uint32_t number, lane, row;
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t flags; /* as a run has them, see run.h */
    uint64_t count; /* it stands for so many; 0: nothing is there */
} vst__lane_item;

typedef struct vst__lanes_options {
    int window; /* as vst_trace_replay takes it; states are of all */
    const vst_view_ids *wrappers; /* coroutine functions that run others */
    bool fold_imports;            /* calls: as vst_view_options has it */
} vst__lanes_options;

/* NULL: all of the trace, which may be closed afterwards. VST_E_ARGUMENT: there
 * is no such kind. */
vst_status vst__lanes_create(vst_trace *trace, const char *kind,
                             const vst__lanes_options *options,
                             vst__lanes **lanes, vst_error *error);
void vst__lanes_destroy(vst__lanes *lanes);

/* False: there is no such lane. */
bool vst__lanes_get(const vst__lanes *lanes, uint32_t lane, vst__lane *got);
/* Items, and texts of items, that were not kept because there were too many. */
uint64_t vst__lanes_left_out(const vst__lanes *lanes, uint64_t *texts);

const vst__lane_fact *vst__lanes_facts(const vst__lanes *lanes, size_t *count);
/* Of an item that there is: values has room for VST_LANE_FACTS_MAX. */
void vst__lanes_facts_of(const vst__lanes *lanes, uint32_t number,
                         uint64_t *values);
/* A text, with a length; good as long as the lanes. NULL: there is none of this
 * number. */
const char *vst__lanes_text(const vst__lanes *lanes, uint64_t number,
                            size_t *length);

/* A window as vst__view_window answers it; a row's thread is its lane, its
 * depth its row. */
vst_status vst__lanes_draw(const vst__lanes *lanes, int64_t from_ns,
                           int64_t to_ns, uint32_t pixels, const uint32_t *of,
                           size_t count, void **bytes, size_t *size);
/* What a row shows at a time. False, here and below: there is nothing. */
bool vst__lanes_at(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                   int64_t time_ns, vst__lane_item *item);
bool vst__lanes_item(const vst__lanes *lanes, uint32_t number,
                     vst__lane_item *item);
/* Items that came from one: the numbers of the first `most`. Returns how many
 * there are. */
size_t vst__lanes_linked(const vst__lanes *lanes, uint32_t number,
                         uint32_t *numbers, size_t most);
/* Items of a row that begin in from_ns <= time < to_ns: the first `most`.
 * Returns how many there are. */
size_t vst__lanes_between(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                          int64_t from_ns, int64_t to_ns, vst__lane_item *items,
                          size_t most);
/* How much of a range the items of a row cover. */
int64_t vst__lanes_busy(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                        int64_t from_ns, int64_t to_ns);

/* Adds to `counts` how many of those ids begin in each pixel. */
vst_status vst__lanes_find(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t from_ns, int64_t to_ns, uint32_t pixels,
                           uint32_t *counts);
/* The first of those ids that begins after a time, or the last before it.
 * VST_E_ARGUMENT: there is none. */
vst_status vst__lanes_next(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t time_ns, bool back, vst__lane_item *item);

/* The items of a row that begin before a time, for a page without a server:
 * varints (7 bits each, low first). Of each item the time since the start of
 * the one before it (of the first since base_ns), its length, its id and flags
 * as in a rectangle, 65535 less how much of it is filled (as there), its count,
 * how many facts follow (the others are 0), and these. What is narrower than
 * width_ns is merged with its neighbours and has no facts. `bytes` is malloc's,
 * *first is the number of the first item, *count how many there are. */
vst_status vst__lanes_pack(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                           int64_t base_ns, int64_t before_ns, int64_t width_ns,
                           uint8_t **bytes, size_t *size, uint32_t *first,
                           size_t *count);

#endif
