/* The records of memory of all threads of a window, merged by time: which one
 * is next. What the records mean together is history.c. One thread at a time.
 */
#ifndef VST_MEMORY_MERGE_H
#define VST_MEMORY_MERGE_H

#include "memory/cursor.h"

/* Of records at the same time. */
typedef enum vst__merge_order {
    VST_ORDER_FREE,
    VST_ORDER_ALLOC,
    VST_ORDER_UNKNOWN /* a free whose allocation may be one of those */
} vst__merge_order;

/* A thread of the window. */
typedef struct vst__merge_stream {
    vst__memory_cursor cursor; /* its record is the next one */
    vst__block block;
    uint64_t *recent; /* NULL: not open */
    const vst__segment *segments;
    size_t segment_count;
    vst_ticks first; /* no record of it is earlier */
    vst_ticks time;  /* when its record is due */
    vst__merge_order order;
    uint32_t thread;
} vst__merge_stream;

/* All zero before the first time. */
typedef struct vst__merge {
    vst_trace *trace;
    const vst__window *window;
    vst__merge_stream *streams; /* sorted by `first` */
    size_t count, opened;
    vst__merge_stream **heap; /* those that have a record, the next on top */
    size_t heap_count;
    size_t block_size;
    vst_ticks horizon; /* how far is looked ahead */
    uint64_t words;    /* of threads that were read to their end */

    vst__block ahead; /* to look ahead with */
    uint64_t recent[VST_RECENT_PLACES];
    uint64_t looked; /* at so many records */
} vst__merge;

vst_status vst__merge_open(vst__merge *merge, vst_trace *trace,
                           const vst__window *window);
void vst__merge_close(vst__merge *merge);

/* The stream whose record is next; NULL after the last. */
static inline vst__merge_stream *vst__merge_first(const vst__merge *merge)
{
    return merge->heap_count != 0 ? merge->heap[0] : NULL;
}

/* Goes on after the first stream's record was taken. */
vst_status vst__merge_next(vst__merge *merge);
/* The first stream's record was not taken: it is due at `time`. */
void vst__merge_wait(vst__merge *merge, vst_ticks time, vst__merge_order order);

/* Whether another thread frees, within a moment, what the first one is about to
 * allocate: *when is 0 if none does. */
vst_status vst__merge_look_ahead(vst__merge *merge, vst_ticks *when);

/* Words read so far. */
uint64_t vst__merge_words(const vst__merge *merge);

#endif
