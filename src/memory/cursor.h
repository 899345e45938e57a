/* The records of memory of one thread of a window, one after the other, and
 * where something of them is missing. One thread at a time. */
#ifndef VST_MEMORY_CURSOR_H
#define VST_MEMORY_CURSOR_H

#include "store/reader.h"
#include "store/stream.h"

typedef enum vst__memory_record_type {
    VST_RECORD_ALLOC,
    VST_RECORD_FREE,
    VST_RECORD_FREE_RANGE,
    VST_RECORD_CHANGE,  /* of what is mapped there, see VST_RANGE_CHANGES */
    VST_RECORD_COUNTER, /* any counter's */
    VST_RECORD_LOSS
} vst__memory_record_type;

typedef struct vst__memory_record {
    vst_ticks time; /* not before that of the record before */
    vst__memory_record_type type;
    uint8_t kind; /* a vst_memory_kind; LOSS: a vst_loss_kind */
    uint8_t flags;
    uint8_t range; /* VST_RANGE_ flags */
    vst_stack_id stack;
    uint64_t address; /* LOSS: since when, in ticks; COUNTER: its id */
    uint64_t size; /* LOSS: how many records; COUNTER: the bits of a double */
} vst__memory_record;

typedef struct vst__memory_cursor {
    vst_trace *trace;
    vst_ticks clip;  /* what was before is left out */
    vst_ticks until; /* as is what comes after */
    vst_ticks window_ends;
    const vst__segment *segment; /* the one being read */
    const vst__segment *end;
    vst__stream stream;
    vst__block *block;
    uint64_t *recent; /* VST_RECENT_PLACES addresses */
    uint64_t words;   /* of the segments that were read to their end */
    uint64_t run_left, skip_to, records; /* as in replay's decoder */
    bool at_head;
    bool in_gap;
    vst_ticks gap;   /* since when */
    vst_ticks known; /* time of the last word */
    uint64_t hidden; /* words before the clip */
    vst__memory_record record;
} vst__memory_cursor;

/* The cursor uses `block` and `recent` from here on; the caller frees them at
 * the end. */
void vst__memory_cursor_open(vst__memory_cursor *cursor, vst_trace *trace,
                             const vst__window *window,
                             const vst__segment *segments, size_t count,
                             vst__block *block, uint64_t *recent);
/* The next one is in cursor->record; *any is false if there is none. */
vst_status vst__memory_cursor_next(vst__memory_cursor *cursor, bool *any);
/* Words read so far. */
uint64_t vst__memory_cursor_words(const vst__memory_cursor *cursor);

#endif
