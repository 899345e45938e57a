/* Words to compressed events: one thread of one window, batch by batch. What
 * was dropped of it, and what lies before the range that is shown, is one event
 * DROPPED and then what was open when the rest begins; what lies behind it is
 * left out. One thread at a time. */
#ifndef VST_REPLAY_DECODE_H
#define VST_REPLAY_DECODE_H

#include <vestige/tracer.h>

#include "base/fold.h"
#include "store/reader.h"
#include "store/stream.h"

enum { VST_BATCH = 4096 };

typedef struct vst__decoder {
    vst_trace *trace;
    vst__block *block;           /* NULL before it is opened: the trace's own */
    const vst__segment *segment; /* the one being read */
    const vst__segment *end;
    vst__stream stream;
    uint64_t words; /* of the segments that were read to their end */

    bool at_head;      /* no word of the segment was looked at yet */
    vst_ticks known;   /* what the thread did was told up to here */
    uint64_t records;  /* words of the thread before this run, without
                        * checkpoints; at its end before the next one */
    uint64_t run_left; /* so many words of the segment are the run's own, the
                        * last ones; all if there is no checkpoint */
    uint64_t skip_to;  /* words before the last so many are not needed */
    uint64_t told[2];  /* payload of a DROPPED in this batch */

    /* Words before the clip are folded; then what the fold emits comes in. */
    bool folding;
    vst__fold fold;
    uint64_t hidden;       /* words that were folded, or dropped before */
    vst_ticks shown;       /* when what is shown begins */
    uint64_t before_shown; /* words that were read by then */
    uint64_t *pending;
    size_t pending_at, pending_count;

    /* What all events of a thread have in common is written once into each that
     * is used: the first `filled` have it. */
    uint64_t system_tid;
    vst_device_resource where;
    size_t filled;
    vst_compressed_event events[VST_BATCH];
} vst__decoder;

/* NULL without memory. A short reading uses few of the events, so they are not
 * cleared. */
vst__decoder *vst__decoder_create(void);
void vst__decoder_destroy(vst__decoder *decoder); /* NULL: nothing is done */
/* Decodes `count` segments of one thread of a window, in their order. Before
 * the first time, a decoder that is a part of something is all zero up to its
 * events. */
void vst__decoder_open(vst__decoder *decoder, vst_trace *trace,
                       const vst__window *window, const vst__segment *segments,
                       size_t count);
/* The next batch is in decoder->events; its payloads are good until the next
 * call. *last: no events follow. A last batch may be empty. */
vst_status vst__decoder_next(vst__decoder *decoder, size_t *count, bool *last);
/* Words decoded so far. */
uint64_t vst__decoder_words(const vst__decoder *decoder);
void vst__decoder_close(vst__decoder *decoder);

#endif
