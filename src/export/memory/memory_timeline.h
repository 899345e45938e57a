/* Memory in use over time, by what it is for: the forms of it as files. One
 * thread at a time. */
#ifndef VST_EXPORT_MEMORY_TIMELINE_H
#define VST_EXPORT_MEMORY_TIMELINE_H

#include "export/output/output.h"
#include "graph/categories.h"

/* From a time on, so many bytes of each category are in use. */
typedef struct vst__memory_timeline_point {
    int64_t time_us; /* VST_TIME_BEFORE: what was there already */
    int64_t bytes[VST_CATEGORIES];
} vst__memory_timeline_point;

/* The point after a row; `point` is the one before, all zero at first. */
void vst__memory_timeline_add(vst__memory_timeline_point *point,
                              const vst__memory_row *row);

/* memory_timeline_html.c: a page with a plot. first_us is the time shown for
 * what was allocated before. */
vst_status vst__memory_timeline_page(const vst__memory_rows *rows,
                                     int64_t first_us, vst__output *output);

#endif
