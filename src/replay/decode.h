/* Words to compressed events: one thread of one window, batch by batch. One
 * thread at a time. */
#ifndef VST_REPLAY_DECODE_H
#define VST_REPLAY_DECODE_H

#include <vestige/tracer.h>

#include "store/reader.h"
#include "store/stream.h"

enum { VST_BATCH = 4096 };

typedef struct vst__decoder {
    vst_trace *trace;
    const vst__segment *segment; /* the one being read */
    const vst__segment *end;
    vst__stream stream;
    uint64_t words; /* of the segments that were read to their end */
    vst_compressed_event events[VST_BATCH];
} vst__decoder;

/* Decodes `count` segments of one thread, in their order. */
void vst__decoder_open(vst__decoder *decoder, vst_trace *trace,
                       const vst__segment *segments, size_t count);
/* The next batch is in decoder->events; its payloads are good until the next
 * call. *last: no events follow. A last batch may be empty. */
vst_status vst__decoder_next(vst__decoder *decoder, size_t *count, bool *last);
/* Words decoded so far. */
uint64_t vst__decoder_words(const vst__decoder *decoder);

#endif
