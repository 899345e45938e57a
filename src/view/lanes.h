/* Lanes: everything that a picture shows besides calls. A kind of lanes (marks,
 * states, ...) is read from a trace once and kept in memory; then any thread
 * may ask. Kinds that an index has (losses, counters) are read from a view, so
 * they can be read again when its trace has grown.
 *
 * A lane has rows; a row has items in the order of their starts. Lanes, rows of
 * a lane and items are numbered from 0; an item's number is unique among the
 * items of all rows. An item has facts: integers, whose names and units are in
 * the table of its kind. An item may be linked to the items that it caused, and
 * the items of a curve have values.
 *
 * A file lanes_<kind>.c reads a kind and defines its lanes, items and facts;
 * lanes.c answers questions about all kinds. */
#ifndef VST_VIEW_LANES_H
#define VST_VIEW_LANES_H

#include <stddef.h>

#include <vestige/trace.h>

#include "view/view.h"

typedef struct vst__lanes vst__lanes;

typedef enum vst__lane_unit {
    VST_LANE_NUMBER,
    VST_LANE_ITEM, /* 1 + the number of an item; 0: none */
    /* 1 + the number of the item that caused this one and links to it */
    VST_LANE_ORIGIN,
    VST_LANE_TEXT /* the number of a text; 0: none */
} vst__lane_unit;

typedef struct vst__lane_fact {
    const char *name;
    vst__lane_unit unit;
} vst__lane_fact;

enum { VST_LANE_FACTS_MAX = 16 };

typedef struct vst__lane {
    uint32_t thread; /* number; 0: no thread */
    uint32_t device; /* number; 0: no device */
    uint32_t stream; /* number of the stream on its device */
    vst_id id;       /* the function that all items belong to; 0: none */
    uint32_t first, members; /* if it shows a group: the lanes of the members */
    uint32_t rows;
    uint64_t items, steps; /* for tasks: steps as replay counts them */
    int64_t start_ns, end_ns;
    int64_t busy_ns; /* for devices: time with at least one item */
    int64_t awaiting_ns;
    uint64_t bytes;   /* for devices: bytes copied and set */
    const char *name; /* NULL: none */
    size_t name_len;
    /* for a task: its kind and how it ended; for a curve: its kind; may be NULL
     */
    const char *what, *end;
    bool has_values;    /* it is a curve: */
    double least, most; /* of all its values */
} vst__lane;

typedef struct vst__lane_item {
    uint32_t number, lane, row;
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t flags; /* flags of a run, see run.h */
    uint64_t count; /* how many spans it stands for; 0: nothing is here */
} vst__lane_item;

typedef struct vst__lanes_options {
    int window; /* as in vst_trace_replay; states always use all windows */
    /* coroutine functions that run other coroutines */
    const vst_view_ids *wrappers;
    bool fold_imports; /* for calls: as in vst_view_options */
    /* For kinds that an index has: the view to read, instead of a trace, and a
     * function to call meanwhile. */
    vst_view *view;
    vst_progress_fn progress;
    void *progress_ctx;
} vst__lanes_options;

/* Reads the lanes of a kind from the trace or the view, which may be closed
 * afterwards. options NULL: all of the trace. Returns VST_E_ARGUMENT if there
 * is no such kind, or if it is not read from a trace, or not from a view. */
vst_status vst__lanes_create(vst_trace *trace, const char *kind,
                             const vst__lanes_options *options,
                             vst__lanes **lanes, vst_error *error);
void vst__lanes_destroy(vst__lanes *lanes);

/* Returns false if there is no such lane. */
bool vst__lanes_get(const vst__lanes *lanes, uint32_t lane, vst__lane *got);
/* Returns how many items were not kept because there were too many, and sets
 * *texts to the number of texts that were not kept. */
uint64_t vst__lanes_left_out(const vst__lanes *lanes, uint64_t *texts);

const vst__lane_fact *vst__lanes_facts(const vst__lanes *lanes, size_t *count);
/* Fills the facts of an existing item; values has room for VST_LANE_FACTS_MAX.
 */
void vst__lanes_facts_of(const vst__lanes *lanes, uint32_t number,
                         uint64_t *values);
/* Fills the value of an existing item. Returns false if items of this kind have
 * none. */
bool vst__lanes_value_of(const vst__lanes *lanes, uint32_t number,
                         vst_view_value *value);
/* Returns a text and its length, valid as long as the lanes; NULL if there is
 * no text of this number. */
const char *vst__lanes_text(const vst__lanes *lanes, uint64_t number,
                            size_t *length);

/* Draws a window in the format of vst__view_window; a row's thread is its lane,
 * its depth its row. */
vst_status vst__lanes_draw(const vst__lanes *lanes, int64_t from_ns,
                           int64_t to_ns, uint32_t pixels, const uint32_t *of,
                           size_t count, void **bytes, size_t *size);
/* Finds the item that a row shows at a time. Returns false, like the functions
 * below, if there is none. */
bool vst__lanes_at(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                   int64_t time_ns, vst__lane_item *item);
bool vst__lanes_item(const vst__lanes *lanes, uint32_t number,
                     vst__lane_item *item);
/* Finds the items that an item caused: stores the numbers of the first `most`.
 * Returns how many there are. */
size_t vst__lanes_linked(const vst__lanes *lanes, uint32_t number,
                         uint32_t *numbers, size_t most);
/* Finds the items of a row that begin in from_ns <= time < to_ns: stores the
 * first `most`. Returns how many there are. */
size_t vst__lanes_between(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                          int64_t from_ns, int64_t to_ns, vst__lane_item *items,
                          size_t most);
/* Returns how much of a range the items of the row cover. */
int64_t vst__lanes_busy(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                        int64_t from_ns, int64_t to_ns);

/* Adds to `counts` how many items with these ids begin in each pixel. */
vst_status vst__lanes_find(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t from_ns, int64_t to_ns, uint32_t pixels,
                           uint32_t *counts);
/* Finds the first item with one of these ids that begins after time_ns, or with
 * `back` the last one before. Returns VST_E_ARGUMENT if there is none. */
vst_status vst__lanes_next(const vst__lanes *lanes, const vst_view_ids *ids,
                           int64_t time_ns, bool back, vst__lane_item *item);

/* Packs the items of a row that begin before a time, for a page without a
 * server, as varints (7 bits each, low bits first). Each item has: the time
 * since the start of the previous item (the first: since base_ns), its length,
 * its id and flags as in a rectangle, 65535 minus its busy share (as in a
 * rectangle), its count, the number of facts that follow (the others are 0),
 * these facts, and its value (vst_view_value, 24 bytes) if items have values.
 * Items narrower than width_ns are merged with their neighbours and have no
 * facts. Sets *bytes to malloc()ed memory, *first to the
 * number of the first item, *count to the number of items. */
vst_status vst__lanes_pack(const vst__lanes *lanes, uint32_t lane, uint32_t row,
                           int64_t base_ns, int64_t before_ns, int64_t width_ns,
                           uint8_t **bytes, size_t *size, uint32_t *first,
                           size_t *count);

#endif
