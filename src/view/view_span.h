/* The end and the content of a span that was found, for the files that answer
 * questions. One thread at a time uses a pass. */
#ifndef VST_VIEW_SPAN_H
#define VST_VIEW_SPAN_H

#include "view/pass.h"

/* Finds the end of a span of the stack by its row and start (view_span.c). */
vst_status vst__view_find_end(vst_view *view, vst_view_span *span,
                              vst_error *error);
/* view_replay.c: the span to fill. */
typedef struct vst__view_wanted {
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t depth;
    bool off_stack;
} vst__view_wanted;

/* Replays the part of a stretch from from_ns to to_ns, and fills the arguments,
 * the allocated bytes and the own time of a span. Changes nothing if the span
 * is not there. */
vst_status vst__view_replay(vst__pass *pass, size_t stretch,
                            const vst__view_wanted *wanted, int64_t from_ns,
                            int64_t to_ns, vst_view_span *span);
vst_status vst__view_keep_args(vst_view_span *span, const char *args,
                               size_t count);

#endif
