/* The forms in which the memory in use over time, by category, is written to
 * files. One thread at a time. */
#ifndef VST_EXPORT_MEMORY_TIMELINE_H
#define VST_EXPORT_MEMORY_TIMELINE_H

#include "export/output/output.h"
#include "graph/categories.h"

/* The bytes in use of each category from a time on. */
typedef struct vst__memory_timeline_point {
    int64_t time_us; /* VST_TIME_BEFORE: allocated before the recording */
    int64_t bytes[VST_CATEGORIES];
} vst__memory_timeline_point;

/* Turns *point, which holds the previous point (all zero at first), into the
 * point after a row. */
void vst__memory_timeline_add(vst__memory_timeline_point *point,
                              const vst__memory_row *row);

/* memory_timeline_html.c: writes a page with a plot. first_us is the time shown
 * for blocks that were allocated before. */
vst_status vst__memory_timeline_page(const vst__memory_rows *rows,
                                     int64_t first_us, vst__output *output);

#endif
