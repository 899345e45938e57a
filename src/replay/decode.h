/* Turns words into compressed events: one thread of one window, batch by batch.
 * Dropped words, and words before the shown range, become one event DROPPED,
 * followed by the calls that are open where the range begins; words behind the
 * range are left out. One thread at a time. */
#ifndef VST_REPLAY_DECODE_H
#define VST_REPLAY_DECODE_H

#include <vestige/tracer.h>

#include "base/fold.h"
#include "store/reader.h"
#include "store/stream.h"

enum { VST_BATCH = 4096 };

typedef struct vst__decoder {
    vst_trace *trace;
    /* NULL before the first use: the trace's own block */
    vst__block *block;
    const vst__segment *segment; /* the segment being read */
    const vst__segment *end;
    vst__stream stream;
    uint64_t words; /* words in the segments that were read to their end */

    bool at_head; /* no word of the segment was read yet */
    /* up to this time, the thread's records were given out */
    vst_ticks known;
    /* words of the thread before this run, without checkpoints; at the run's
     * end, before the next run */
    uint64_t records;
    /* how many words of the segment, counted from its end, are the run's own;
     * all if it has no checkpoint */
    uint64_t run_left;
    uint64_t skip_to;            /* skip words until only this many are left */
    uint64_t dropped_payload[2]; /* payload of a DROPPED in this batch */

    /* Words before the clip are folded; then the fold's words are decoded. */
    bool folding;
    vst__fold fold;
    uint64_t hidden;       /* words that were folded or dropped */
    vst_ticks shown;       /* when the shown range begins */
    uint64_t before_shown; /* how many words had been read by then */
    uint64_t *pending;
    size_t pending_at, pending_count;

    /* Members that all events of a thread have in common are written once into
     * each event that is used; the first `filled` events have them. */
    uint64_t system_tid;
    vst_device_resource where;
    size_t filled;
    vst_compressed_event events[VST_BATCH];
} vst__decoder;

/* Returns NULL if memory ran out. Events are not cleared, because a short
 * reading uses few of them. */
vst__decoder *vst__decoder_create(void);
void vst__decoder_destroy(vst__decoder *decoder); /* NULL is allowed */
/* Decodes `count` segments of one thread of a window, in their order. Before
 * the first call, a decoder that is part of another struct must be all zero up
 * to `events`. */
void vst__decoder_open(vst__decoder *decoder, vst_trace *trace,
                       const vst__window *window, const vst__segment *segments,
                       size_t count);
/* Puts the next batch into decoder->events; its payloads are valid until the
 * next call. *last: no events follow. The last batch may be empty. */
vst_status vst__decoder_next(vst__decoder *decoder, size_t *count, bool *last);
/* Returns how many words were decoded so far. */
uint64_t vst__decoder_words(const vst__decoder *decoder);
void vst__decoder_close(vst__decoder *decoder);

#endif
