/* Spans that a framework's backends reported, on their way into an index. */
#ifndef VST_VIEW_REPORTED_H
#define VST_VIEW_REPORTED_H

#include "view/pyramid.h"

typedef struct vst__reported_span {
    uint32_t thread; /* that ran it */
    vst__walk_span span;
} vst__reported_span;

typedef struct vst__reported {
    vst__reported_span *spans;
    size_t count, capacity;
} vst__reported;

vst_status vst__reported_add(vst__reported *list, const vst_span *span);
vst_status vst__reported_join(vst__reported *list, const vst__reported *more);
void vst__reported_free(vst__reported *list);
/* By thread, then time: as vst__reported_draw needs them. */
void vst__reported_sort(vst__reported *list);
/* Draws the spans of one thread as lanes behind those that it has, into blocks
 * that are appended to its own. */
vst_status vst__reported_draw(const vst__reported *list,
                              vst__index_thread *thread, vst__append_fn append,
                              void *append_ctx, vst__block_of **blocks,
                              size_t *block_count);

#endif
