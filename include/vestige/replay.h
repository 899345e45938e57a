/* Replay's matcher: pairs one thread's enters and exits into spans. A tracer's
 * get_events may be built on it, as the Python tracer's is; a file read back is
 * replayed with it directly.
 *
 * An exit names what it leaves. If that is not the innermost open span but one
 * further out, those above it are closed with it and marked VST_SPAN_CUT; if it
 * is not open at all, the exit is ignored and counted. */
#ifndef VESTIGE_REPLAY_H
#define VESTIGE_REPLAY_H

#include "span.h"
#include "tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vst_matcher vst_matcher;

typedef struct vst_matcher_counts {
    uint64_t spans;
    uint64_t unmatched_exits;
    uint64_t cut_spans;
} vst_matcher_counts;

VST_API vst_status vst_matcher_create(vst_matcher **matcher);
VST_API void vst_matcher_destroy(vst_matcher *matcher);

/* Feeds one batch of one thread. With an end time other than VST_TIME_OPEN
 * everything still open is closed there, and the matcher is ready for another
 * thread; serials go on counting until a reading begins anew (events NULL, no
 * end time). */
VST_API vst_status vst_matcher_feed(vst_matcher *matcher,
                                    const vst_time_converter *converter,
                                    const vst_compressed_event *events,
                                    size_t count, int64_t end_time_ns,
                                    const vst_sink *sink);
VST_API void vst_matcher_count(const vst_matcher *matcher,
                               vst_matcher_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
