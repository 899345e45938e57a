/* A pass over the records of one thread that is made for speed: it gives the
 * spans, batch by batch, in the order in which they end.
 *
 * Calls and spans that BEGIN opened and that nest are matched here, on a stack
 * of small frames. Whatever else there is (stacks that are switched, gaps, what
 * was dropped, ends that come in another order) is given to replay's matcher,
 * together with all that is open, and comes back once it is plain again: so the
 * matcher always decides what is a span, and from when to when.
 *
 * A walk begins at the head of a thread's words or at a place where another
 * walk has been. One thread at a time uses a walk; several may walk in one
 * trace that nobody changes, if it is not packed. */
#ifndef VST_VIEW_WALK_H
#define VST_VIEW_WALK_H

#include <vestige/tracer.h>

#include "replay/decode.h"
#include "replay/far_ends.h"
#include "view/flame.h"
#include "view/import_fold.h"

/* A span that is open. */
typedef struct vst__open {
    int64_t start_ns;
    uint64_t pair; /* of a BEGIN; of an import that is folded, what is known of
                    * it; else 0 */
    vst_id id;
    uint32_t flags; /* VST_SPAN_… and VST_FRAME_… */
} vst__open;

typedef struct vst__walk_span {
    int64_t start_ns, end_ns;
    vst_id id;
    uint32_t flags;
    uint32_t depth;     /* of VST_SPAN_ASYNC: 0 */
    uint32_t is_import; /* while imports are folded */
} vst__walk_span;

/* is_import of what is no span: it names the import that it lies in, by id. */
enum { VST_WALK_NAMES = 2 };

/* What walks share, and never change: others may use the trace meanwhile. */
typedef struct vst__reading {
    vst_trace *trace;
    vst__source source;
    vst__clockmap clock;        /* the pieces are the trace's */
    const vst_imports *imports; /* NULL: they are not folded */
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

/* Where a walk is, between two batches. */
typedef struct vst__place {
    uint64_t segment, word;
    uint64_t ticks; /* of the word before; at a segment's head: of what is
                     * known of the thread */
    uint64_t records;
    int64_t last_ns;
    uint64_t bytes, allocations; /* since the stretch began */
    uint32_t delivered;          /* spans were, since the last DROPPED */
    uint32_t open_count;
    const vst__open *open;
} vst__place;

/* Where a walk through a stretch that grows has read all that there was: behind
 * so many words of a segment. */
typedef struct vst__stop {
    uint64_t offset; /* of the segment, as sequence and start */
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
    vst__clockmap clock; /* a copy; the pieces are the trace's */
    vst_time_converter converter;
    vst__decoder *decoder;
    vst_matcher *matcher; /* NULL until it is needed */

    const vst__stretch *stretch;
    vst__window window;
    vst__segment *segments; /* those to be read */
    size_t segment_capacity;
    size_t segment_first, segment_count;
    uint64_t words_before; /* of the stretch, before segments */

    /* Events of the decoder's last batch: how many there are, and how many were
     * matched; more follow it if it is not the last. */
    size_t event_count, matched;
    bool last;

    bool plain; /* open is what is open, else the matcher knows */
    bool delivered;
    bool finished;
    bool always_matcher;    /* so that whole_sink gets every span */
    bool keep_args;         /* there, also without one */
    bool goes_on;           /* what is open at the end stays open */
    bool has_tasks;         /* a step of a task was met */
    int64_t count_until_ns; /* what is allocated later is not counted */
    int64_t last_ns;
    vst__open *open;
    size_t open_count, open_capacity;
    size_t begun; /* frames of BEGIN among them */
    uint64_t bytes, allocations;

    vst__walk_span *spans; /* of the last batch */
    size_t span_count, span_capacity;

    vst__import_fold fold;
    vst__flame *tree; /* NULL: nobody wants one */
    /* Losses, counters, what is moved; or NULL. */
    const vst_sink *also;
    const vst_sink *whole_sink;
    /* Gets all that the matcher delivers, in place of the batches' spans; NULL:
     * nobody does. With always_matcher. */
    const vst_sink *direct;
} vst__walk;

/* stretches.c: all that are there to show, by window, then thread; to be freed,
 * also where this fails. They point into the trace. */
vst_status vst__stretches_find(const vst_trace *trace, vst__stretch **stretches,
                               size_t *stretch_count);

void vst__reading_init(vst__reading *reading, vst_trace *trace);
vst_status vst__walk_init(vst__walk *walk, const vst__reading *reading);
void vst__walk_free(vst__walk *walk);
/* From a place, or from the head (NULL), up to the segment `last`. */
vst_status vst__walk_open(vst__walk *walk, const vst__stretch *stretch,
                          const vst__place *place, size_t last);
/* The next batch; *ends: none follows. If the segments are the stretch's last,
 * what is open then is closed. */
vst_status vst__walk_next(vst__walk *walk, bool *ends);
/* After the last batch of a walk that goes on: where that was. */
void vst__walk_stop(const vst__walk *walk, vst__stop *stop);
/* Goes on from there, where the stretch has more by now. The decoder may have
 * been another walk's meanwhile. */
vst_status vst__walk_resume(vst__walk *walk, const vst__stretch *stretch,
                            const vst__reading *reading, const vst__stop *stop,
                            bool *more);
/* Frees what a walk needs only while it reads. */
void vst__walk_rest(vst__walk *walk);
/* Puts what is open on the walk's tree, if it has one. */
vst_status vst__walk_fill_tree(vst__walk *walk);
/* Tells where the walk is; false where that cannot be told. */
bool vst__walk_place(const vst__walk *walk, vst__place *place);
/* Words of the stretch before where the walk is. */
uint64_t vst__walk_words(const vst__walk *walk);
/* What is open, outermost first; good until the next batch. NULL without
 * memory. */
const vst__open *vst__walk_open_spans(vst__walk *walk, size_t *count);
/* The same where imports are not folded. */
vst__open *vst__walk_all_open(vst__walk *walk, size_t *count);

#endif
