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
    vst_ticks time; /* never earlier than the record before */
    vst__memory_record_type type;
    uint8_t kind; /* a vst_memory_kind; LOSS: a vst_loss_kind */
    uint8_t flags;
    uint8_t range; /* VST_RANGE_ flags */
    vst_stack_id stack;
    uint64_t address; /* LOSS: ticks at which the loss began; COUNTER: its id */
    uint64_t size; /* LOSS: records that are missing; COUNTER: bits of a double
                    */
} vst__memory_record;

typedef struct vst__memory_cursor {
    vst_trace *trace;
    vst_ticks clip;  /* records before it are left out */
    vst_ticks until; /* records after it are left out */
    vst_ticks window_ends;
    const vst__segment *segment; /* the segment being read */
    const vst__segment *end;     /* behind the last segment */
    vst__stream stream;          /* the words of the segment */
    vst__block *block;           /* memory for the stream */
    uint64_t *recent;            /* VST_RECENT_PLACES addresses, see wire.h */
    uint64_t words; /* words of the segments that were read to their end */
    uint64_t run_left, skip_to, records; /* as in replay/decode.h */
    bool at_head;    /* before the first word of a segment */
    bool in_gap;     /* the hooks were away */
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
