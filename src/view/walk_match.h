/* How a walk interprets events; shared by walk.c, walk_match.c and
 * walk_matcher.c. */
#ifndef VST_VIEW_WALK_MATCH_H
#define VST_VIEW_WALK_MATCH_H

#include "replay/matcher_stack.h"
#include "view/walk.h"

/* Matches events and sets *matched to their number, which is less than count if
 * there were very many spans; the caller then calls again with the rest. */
vst_status vst__walk_match(vst__walk *walk, const vst_compressed_event *events,
                           size_t count, size_t *matched);
/* Ends the thread: closes what is open. */
vst_status vst__walk_finish(vst__walk *walk);

/* walk_matcher.c: hands the open frames to the matcher, which matches from here
 * on. */
vst_status vst__walk_to_matcher(vst__walk *walk);
/* Takes the open frames back, if a plain stack can hold them. */
vst_status vst__walk_from_matcher(vst__walk *walk);
/* Handles a VST_ESCAPE_IMPORT inside `depth` frames. */
vst_status vst__walk_named(vst__walk *walk, uint64_t id, uint32_t depth,
                           int64_t time_ns);
vst_status vst__walk_feed(vst__walk *walk, const vst_compressed_event *events,
                          size_t count, int64_t end_ns);

#endif
