/* A fast pass over the records of one thread, which gives the spans, batch by
 * batch, in the order of their ends.
 *
 * Calls and nested spans of BEGIN are matched here, on a stack of small frames.
 * Anything else (stacks that are switched, gaps, dropped records, ends in
 * another order) goes to replay's matcher, together with all open frames, and
 * comes back once a plain stack suffices. So the matcher always decides what is
 * a span, and from when to when.
 *
 * A walk begins at the head of a thread's words or at a place where another
 * walk has been. One thread at a time uses a walk; several threads may walk in
 * one trace that nobody changes, if it is not packed. */
#ifndef VST_VIEW_WALK_H
#define VST_VIEW_WALK_H

#include <vestige/tracer.h>

#include "replay/decode.h"
#include "replay/far_ends.h"
#include "view/flame.h"
#include "view/import_fold.h"

/* An open span. */
typedef struct vst__open {
    int64_t start_ns;
    /* for BEGIN: id and instance; for a folded import: what is known of it;
     * else 0 */
    uint64_t pair;
    vst_id id;
    uint32_t flags; /* VST_SPAN_… and VST_FRAME_… */
} vst__open;

typedef struct vst__walk_span {
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t flags;
    uint32_t depth;     /* 0 for VST_SPAN_ASYNC */
    uint32_t is_import; /* set while imports are folded */
} vst__walk_span;

/* Value of is_import for an entry that is no span but the name of the import
 * around it. */
enum { VST_WALK_NAMES = 2 };

/* Data that walks share and never change: others may use the trace meanwhile.
 */
typedef struct vst__reading {
    vst_trace *trace;
    vst__source source;
    /* the pieces of this clock belong to the trace */
    vst__clockmap clock;
    const vst_imports *imports; /* NULL: imports are not folded */
} vst__reading;

/* All records of a thread in a window of the trace. */
typedef struct vst__stretch {
    const vst__window *window;
    const vst__segment *segments;
    size_t segment_count;
    uint32_t thread;
    uint64_t words;
    const struct vst_far_ends *far_ends; /* NULL: the trace has none */
} vst__stretch;

/* The position of a walk between two batches. */
typedef struct vst__place {
    uint64_t segment, word;
    /* time of the previous word; at a segment's head, time of the thread's last
     * known record */
    uint64_t ticks;
    uint64_t records;
    int64_t last_ns;
    /* bytes and allocations since the stretch began */
    uint64_t bytes, allocations;
    uint32_t delivered; /* spans delivered since the last DROPPED */
    uint32_t open_count;
    const vst__open *open;
} vst__place;

/* The end of what a walk through a growing stretch has read: behind `words`
 * words of a segment. */
typedef struct vst__stop {
    uint64_t offset; /* with sequence and start: identifies the segment */
    uint32_t sequence;
    vst_ticks start;
    uint64_t words;
    vst_ticks ticks;
    uint64_t records;
} vst__stop;

typedef struct vst__walk {
    vst_trace *trace;
    vst__source source;
    vst__block block;
    vst__clockmap clock; /* a copy; its pieces belong to the trace */
    vst_time_converter converter;
    vst__decoder *decoder;
    vst_matcher *matcher; /* NULL until needed */

    const vst__stretch *stretch;
    vst__window window;
    vst__segment *segments; /* the segments to be read */
    size_t segment_capacity;
    size_t segment_first, segment_count;
    uint64_t words_before; /* words of the stretch before `segments` */

    /* Events of the decoder's last batch: how many there are, and how many are
     * matched. More batches follow unless `last`. */
    size_t event_count, matched;
    bool last;

    bool plain; /* `open` has the open frames; if false, the matcher has them */
    bool delivered;
    bool finished;
    /* use the matcher throughout, so that whole_sink gets every span */
    bool always_matcher;
    bool keep_args; /* let the matcher make args even without whole_sink */
    bool goes_on;   /* frames that are open at the end stay open */
    bool has_tasks; /* a step of a task was found */
    int64_t count_until_ns; /* later allocations are not counted */
    int64_t last_ns;
    vst__open *open;
    size_t open_count, open_capacity;
    size_t begun; /* how many of the open frames were opened by BEGIN */
    uint64_t bytes, allocations;

    vst__walk_span *spans; /* spans of the last batch */
    size_t span_count, span_capacity;

    vst__import_fold fold;
    vst__flame *tree; /* NULL: no tree is wanted */
    /* Gets losses, counters and moves; may be NULL. */
    const vst_sink *event_sink;
    const vst_sink *whole_sink;
    /* With always_matcher: gets everything that the matcher delivers, instead
     * of the batches' spans. NULL: none. */
    const vst_sink *direct;
} vst__walk;

/* stretches.c: finds all stretches that can be shown, by window, then thread.
 * The caller frees them, even if this fails. They point into the trace. */
vst_status vst__stretches_find(const vst_trace *trace, vst__stretch **stretches,
                               size_t *stretch_count);

void vst__reading_init(vst__reading *reading, vst_trace *trace);
vst_status vst__walk_init(vst__walk *walk, const vst__reading *reading);
void vst__walk_free(vst__walk *walk);
/* Begins at a place, or at the head (NULL), and reads up to the segment `last`.
 */
vst_status vst__walk_open(vst__walk *walk, const vst__stretch *stretch,
                          const vst__place *place, size_t last);
/* Reads the next batch; sets *ends if it is the last. If the segments reach the
 * stretch's end, this closes what is open then. */
vst_status vst__walk_next(vst__walk *walk, bool *ends);
/* Fills *stop with the position after the last batch of a walk that goes on. */
void vst__walk_stop(const vst__walk *walk, vst__stop *stop);
/* Continues at a stop if the stretch has more by now (*more). The decoder may
 * have served another walk meanwhile. */
vst_status vst__walk_resume(vst__walk *walk, const vst__stretch *stretch,
                            const vst__reading *reading, const vst__stop *stop,
                            bool *more);
/* Frees memory that a walk needs only while it reads. */
void vst__walk_rest(vst__walk *walk);
/* Puts the open frames on the walk's tree, if it has one. */
vst_status vst__walk_fill_tree(vst__walk *walk);
/* Fills *place with the walk's position. Returns false if the position cannot
 * be expressed. */
bool vst__walk_place(const vst__walk *walk, vst__place *place);
/* Returns how many words of the stretch lie before the walk's position. */
uint64_t vst__walk_words(const vst__walk *walk);
/* Returns the open frames, outermost first, after folding; valid until the next
 * batch. NULL if memory ran out. */
const vst__open *vst__walk_open_spans(vst__walk *walk, size_t *count);
/* Returns the open frames without folding of imports. */
vst__open *vst__walk_all_open(vst__walk *walk, size_t *count);

#endif
