/* Own times of calls where some calls are left out, so that their time counts
 * for their callers. One thread at a time uses an object. */
#ifndef VST_REPLAY_OWN_TIMES_H
#define VST_REPLAY_OWN_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/span.h>

/* For each depth, the time of children that are shown and whose parent is still
 * open. Spans come in the order of their ends, thread after thread.
 */
typedef struct vst__own_times {
    struct vst__own_level {
        int64_t ns;
        uint32_t count;    /* of children that are shown */
        uint32_t last;     /* what was noted of the last of them */
        double missing_ns; /* what estimates noted of them, added up */
    } *levels;
    size_t capacity;
    size_t top; /* no level from here on has anything */
    uint32_t thread;
    /* Of the span that ended: count, last and missing_ns. */
    uint32_t children, child;
    double missing_ns;
} vst__own_times;

/* Notes something about the span that ended last, which is shown. */
static inline void vst__own_times_note(vst__own_times *times,
                                       const vst_span *span, uint32_t note)
{
    if (!(span->flags & VST_SPAN_ASYNC))
        times->levels[span->depth].last = note;
}

/* A span ends: computes its own time. The children of a span that is not shown
 * become its parent's. Asynchronous spans have no children. False: out of
 * memory. */
bool vst__own_times_end(vst__own_times *times, const vst_span *span, bool shown,
                        int64_t *self_ns);
/* To be called from leave of a vst_sink. */
void vst__own_times_leave(vst__own_times *times, uint32_t depth);

#endif
