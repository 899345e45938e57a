/* Own times of calls when some calls are left out, so that the time of those
 * counts for their callers. One thread at a time uses an object. */
#ifndef VST_REPLAY_OWN_TIMES_H
#define VST_REPLAY_OWN_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/span.h>

/* For each depth, the time of shown children whose parent is still open. Spans
 * come in the order of their ends, thread after thread. */
typedef struct vst__own_times {
    struct vst__own_level {
        int64_t ns;
        uint32_t count; /* number of shown children */
        uint32_t last;  /* value noted for the last child */
        /* sum of the values that estimates noted for the children */
        double missing_ns;
    } *levels;
    size_t capacity;
    size_t top; /* all levels from here on are empty */
    uint32_t thread;
    /* For the span that ended last: its count, last and missing_ns. */
    uint32_t children, child;
    double missing_ns;
} vst__own_times;

/* Notes a value for the span that ended last, which is shown. */
static inline void vst__own_times_note(vst__own_times *times,
                                       const vst_span *span, uint32_t note)
{
    if (!(span->flags & VST_SPAN_ASYNC))
        times->levels[span->depth].last = note;
}

/* Call when a span ends: computes its own time. The children of a span that is
 * not shown become children of its parent. Asynchronous spans have no children.
 * Returns false if memory ran out. */
bool vst__own_times_end(vst__own_times *times, const vst_span *span, bool shown,
                        int64_t *self_ns);
/* Call from a vst_sink's leave. */
void vst__own_times_leave(vst__own_times *times, uint32_t depth);

#endif
