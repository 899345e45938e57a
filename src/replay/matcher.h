/* A matcher's counts, for the core and tests; <vestige/tracer.h> has the rest.
 */
#ifndef VST_REPLAY_MATCHER_H
#define VST_REPLAY_MATCHER_H

#include <vestige/tracer.h>

typedef struct vst_matcher_counts {
    uint64_t spans;
    uint64_t unmatched_exits;
    uint64_t cut_spans;
} vst_matcher_counts;

void vst__matcher_count(const vst_matcher *matcher, vst_matcher_counts *counts);

#endif
