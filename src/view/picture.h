/* The picture of a window: rows of runs, merged while they are added to the
 * width of a pixel, and further if there are too many. One thread at a time. */
#ifndef VST_VIEW_PICTURE_H
#define VST_VIEW_PICTURE_H

#include <stddef.h>

#include "view/run.h"
#include "view/view.h"

typedef struct vst__picture_row {
    uint32_t thread, depth;
    bool off_stack;
    size_t first, count;
} vst__picture_row;

typedef struct vst__picture {
    int64_t from_ns, to_ns;
    int64_t pixel_ns;
    vst__run *runs;
    size_t count, capacity;
    vst_view_value *values; /* of the runs; NULL: they have none */
    size_t value_capacity;
    vst__picture_row *rows;
    size_t row_count, row_capacity;
} vst__picture;

void vst__picture_init(vst__picture *picture, int64_t from_ns, int64_t to_ns,
                       uint32_t pixels);
void vst__picture_free(vst__picture *picture);
/* Begins a row; the runs that follow belong to it, in order of time. */
vst_status vst__picture_row_begin(vst__picture *picture, uint32_t thread,
                                  uint32_t depth, bool off_stack);
vst_status vst__picture_add(vst__picture *picture, const vst__run *run);
/* Adds a run with its value; all runs of a picture have values, or none. */
vst_status vst__picture_add_value(vst__picture *picture, const vst__run *run,
                                  const vst_view_value *value);
/* Merges the value of the stretch behind `into`. */
void vst__picture_merge_value(vst_view_value *into, const vst_view_value *next);
vst_view_rect vst__picture_rect(const vst__picture *picture,
                                const vst__run *run, bool off_stack);
/* Encodes the answer of vst__view_window, moved by the offset. */
vst_status vst__picture_encode(vst__picture *picture, uint32_t level,
                               int64_t offset_ns, void **bytes, size_t *count);

#endif
