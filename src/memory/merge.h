/* Merges the memory records of all threads of a window by time. history.c
 * finds out how the records belong together. Only one thread uses a merge at
 * a time. */
#ifndef VST_MEMORY_MERGE_H
#define VST_MEMORY_MERGE_H

#include "memory/cursor.h"

/* Which of several records with the same time comes first. */
typedef enum vst__merge_order {
    VST_ORDER_FREE,
    VST_ORDER_ALLOC,
    /* a free whose allocation was not seen yet: the allocation may be among the
     * records with this time */
    VST_ORDER_UNKNOWN
} vst__merge_order;

/* A thread of the window. */
typedef struct vst__merge_stream {
    vst__memory_cursor cursor; /* cursor.record is this thread's next record */
    vst__block block;          /* memory for the cursor */
    /* memory for the cursor; NULL if the stream is not open */
    uint64_t *recent;
    const vst__segment *segments;
    size_t segment_count;
    vst_ticks first; /* the thread has no earlier record */
    /* The place of the next record in the merged order: its time, then its
     * order among records of that time. */
    vst_ticks time;
    vst__merge_order order; /* see `time` */
    uint32_t thread;
} vst__merge_stream;

/* Must be all zero before vst__merge_open is called for the first time. */
typedef struct vst__merge {
    vst_trace *trace;
    const vst__window *window;
    vst__merge_stream *streams; /* sorted by `first` */
    size_t count, opened;
    vst__merge_stream **heap; /* streams with a record, the earliest on top */
    size_t heap_count;
    size_t block_size;
    vst_ticks horizon; /* how far vst__merge_look_ahead looks */
    uint64_t words;    /* words of threads that were read to their end */

    /* For vst__merge_look_ahead: memory for its cursor, and how many records it
     * has read. */
    vst__block ahead;
    uint64_t recent[VST_RECENT_PLACES];
    uint64_t looked;
} vst__merge;

vst_status vst__merge_open(vst__merge *merge, vst_trace *trace,
                           const vst__window *window);
void vst__merge_close(vst__merge *merge);

/* The stream that has the next record; NULL after the last record. */
static inline vst__merge_stream *vst__merge_first(const vst__merge *merge)
{
    return merge->heap_count != 0 ? merge->heap[0] : NULL;
}

/* Removes the first stream's record: the caller has used it. */
vst_status vst__merge_next(vst__merge *merge);
/* Puts the first stream's record off until `time`. */
void vst__merge_wait(vst__merge *merge, vst_ticks time, vst__merge_order order);

/* The first stream's record is an allocation. If another thread frees the same
 * address within the horizon, *when is the time of that free, else 0. */
vst_status vst__merge_look_ahead(vst__merge *merge, vst_ticks *when);

/* Words read so far. */
uint64_t vst__merge_words(const vst__merge *merge);

#endif
