/* A run: a span, or neighbouring spans of one row that are drawn as one
 * rectangle. The count and the busy time are exact sums. The id is the winner
 * of a vote weighted by time: an id with more than half of the time always
 * wins. */
#ifndef VST_VIEW_RUN_H
#define VST_VIEW_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <vestige/wire.h>

/* Flags of runs in addition to VST_SPAN_…: a wait of tasks, and its kind. */
enum { VST__RUN_AWAITS = 1 << 16, VST__RUN_AWAITS_SHIFT = 17 };

typedef struct vst__run {
    int64_t start_ns, end_ns;
    int64_t busy_ns;
    uint64_t count; /* 0: empty */
    int64_t votes;
    vst_id id;
    uint32_t flags; /* VST_SPAN_… of a single span */
} vst__run;

static inline vst__run vst__run_of_span(int64_t start_ns, int64_t end_ns,
                                        vst_id id, uint32_t flags)
{
    return (vst__run){
        start_ns, end_ns, end_ns - start_ns, 1, end_ns - start_ns + 1,
        id,       flags};
}

/* Merges `next`, which lies behind `run`, into `run` if the result is no wider
 * than width_ns. Returns whether it did. */
static inline bool vst__run_merge(vst__run *run, const vst__run *next,
                                  int64_t width_ns)
{
    int64_t left;
    bool same;

    if (next->end_ns - run->start_ns > width_ns)
        return false;
    run->end_ns = next->end_ns;
    run->busy_ns += next->busy_ns;
    run->count += next->count;
    run->flags = 0;
    /* The outcome is unpredictable, so compute without branches. */
    left = run->votes - next->votes;
    same = run->id == next->id;
    run->id = same || left >= 0 ? run->id : next->id;
    left = left >= 0 ? left : -left;
    run->votes = same ? run->votes + next->votes : left;
    return true;
}

#endif
