/* Reads the memory records of one thread of a window, in order. Where records
 * are missing, it gives a LOSS record. Only one thread uses a cursor at a time.
 */
#ifndef VST_MEMORY_CURSOR_H
#define VST_MEMORY_CURSOR_H

#include "store/reader.h"
#include "store/stream.h"

typedef enum vst__memory_record_type {
    VST_RECORD_ALLOC,
    VST_RECORD_FREE,
    VST_RECORD_FREE_RANGE,
    VST_RECORD_CHANGE,  /* a mapping changed, see VST_RANGE_CHANGES */
    VST_RECORD_COUNTER, /* a value of a counter */
    VST_RECORD_LOSS     /* records are missing */
} vst__memory_record_type;

typedef struct vst__memory_record {
    vst_ticks time; /* never earlier than that of the previous record */
    vst__memory_record_type type;
    uint8_t kind; /* a vst_memory_kind; for LOSS a vst_loss_kind */
    uint8_t flags;
    uint8_t range; /* VST_RANGE_ flags */
    vst_stack_id stack;
    /* LOSS: ticks at which the loss began; COUNTER: the counter's id */
    uint64_t address;
    /* LOSS: number of missing records; COUNTER: bits of a double */
    uint64_t size;
} vst__memory_record;

typedef struct vst__memory_cursor {
    vst_trace *trace;
    vst_ticks clip;  /* earlier records are left out */
    vst_ticks until; /* later records are left out */
    vst_ticks window_ends;
    const vst__segment *segment; /* the segment being read */
    const vst__segment *end;     /* end of the segments */
    vst__stream stream;          /* the words of the segment */
    vst__block *block;           /* memory for the stream */
    uint64_t *recent;            /* VST_RECENT_PLACES addresses, see wire.h */
    uint64_t words; /* words in the segments that were read to their end */
    uint64_t run_left, skip_to, records; /* see replay/decode.h */
    bool at_head;    /* no word of the segment was read yet */
    bool in_gap;     /* the hooks are away */
    vst_ticks gap;   /* when the gap began */
    vst_ticks known; /* time of the last word read */
    uint64_t hidden; /* words before the clip, which become one LOSS */
    vst__memory_record record;
} vst__memory_cursor;

/* The cursor uses `block` and `recent` from here on; the caller frees them at
 * the end. */
void vst__memory_cursor_open(vst__memory_cursor *cursor, vst_trace *trace,
                             const vst__window *window,
                             const vst__segment *segments, size_t count,
                             vst__block *block, uint64_t *recent);
/* Puts the next record into cursor->record. *any is false after the last. */
vst_status vst__memory_cursor_next(vst__memory_cursor *cursor, bool *any);
/* Words read so far. */
uint64_t vst__memory_cursor_words(const vst__memory_cursor *cursor);

#endif
