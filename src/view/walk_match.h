/* What events mean to a walk; between walk.c and walk_match.c. */
#ifndef VST_VIEW_WALK_MATCH_H
#define VST_VIEW_WALK_MATCH_H

#include "replay/matcher_stack.h"
#include "view/walk.h"

/* *matched: how many were, which is all of them unless they gave very many
 * spans; the caller then comes again with the others. */
vst_status vst__walk_match(vst__walk *walk, const vst_compressed_event *events,
                           size_t count, size_t *matched);
/* The thread ends: what is open is closed. */
vst_status vst__walk_finish(vst__walk *walk);

/* walk_odd.c: from here on the matcher matches. */
vst_status vst__walk_to_matcher(vst__walk *walk);
/* Takes back what is open, if it is plain. */
vst_status vst__walk_from_matcher(vst__walk *walk);
/* A VST_ESCAPE_IMPORT, inside of so many frames. */
vst_status vst__walk_named(vst__walk *walk, uint64_t id, uint32_t depth,
                           int64_t time_ns);
vst_status vst__walk_feed(vst__walk *walk, const vst_compressed_event *events,
                          size_t count, int64_t end_ns);

#endif
