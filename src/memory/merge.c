/* The merge of merge.h: a heap of threads. A thread is open, with memory for a
 * block of words, from its first word to its last. One thread at a time. */
#include "memory/merge.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

enum {
    /* approximate size of the blocks of all threads together */
    BLOCKS_SIZE = 64 * 1024 * 1024,
    BLOCK_LEAST = 16 * 1024,
    /* How many records vst__merge_look_ahead reads at most, in all. */
    LOOK_AHEAD_MAX = 50000000,
};

/* ---- the heap ------------------------------------------------------------ */

static bool merge_comes_before(const vst__merge_stream *a,
                               const vst__merge_stream *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    if (a->order != b->order)
        return a->order < b->order;
    return a->thread < b->thread;
}

static void merge_sift_down(vst__merge *merge)
{
    vst__merge_stream *moved = merge->heap[0];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < merge->heap_count) {
        if (child + 1 < merge->heap_count &&
            merge_comes_before(merge->heap[child + 1], merge->heap[child]))
            child++;
        if (!merge_comes_before(merge->heap[child], moved))
            break;
        merge->heap[at] = merge->heap[child];
        at = child;
    }
    merge->heap[at] = moved;
}

static void merge_push(vst__merge *merge, vst__merge_stream *added)
{
    size_t at = merge->heap_count++;

    while (at != 0 && merge_comes_before(added, merge->heap[(at - 1) / 2])) {
        merge->heap[at] = merge->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merge->heap[at] = added;
}

/* ---- threads ------------------------------------------------------------- */

static void close_stream(vst__merge *merge, vst__merge_stream *closed)
{
    merge->words += vst__memory_cursor_words(&closed->cursor);
    vst__block_free(&closed->block);
    free(closed->recent);
    closed->recent = NULL;
}

/* Gets the stream's next record; closes it after the last. */
static vst_status merge_advance(vst__merge *merge, vst__merge_stream *moved,
                                bool *any)
{
    const vst__memory_record *record = &moved->cursor.record;
    vst_status status = vst__memory_cursor_next(&moved->cursor, any);

    if (status != VST_OK)
        merge->trace->block.sys_errno = moved->block.sys_errno;
    if (status != VST_OK || !*any)
        return status;
    if (record->time > moved->time)
        moved->time = record->time;
    moved->order =
        record->type == VST_RECORD_ALLOC ? VST_ORDER_ALLOC : VST_ORDER_FREE;
    return VST_OK;
}

static vst_status open_stream(vst__merge *merge, vst__merge_stream *opened)
{
    bool any;
    vst_status status;

    vst__block_init(&opened->block, &merge->trace->source);
    opened->block.file_size = merge->trace->block.file_size;
    opened->block.size = merge->block_size;
    opened->recent = malloc(VST_RECENT_PLACES * sizeof *opened->recent);
    if (opened->recent == NULL)
        return VST_E_NOMEM;
    vst__memory_cursor_open(&opened->cursor, merge->trace, merge->window,
                            opened->segments, opened->segment_count,
                            &opened->block, opened->recent);
    status = merge_advance(merge, opened, &any);
    if (status == VST_OK && any)
        merge_push(merge, opened);
    else
        close_stream(merge, opened);
    return status;
}

/* Opens all threads that may have the next record. */
static vst_status open_due(vst__merge *merge)
{
    vst_status status = VST_OK;

    while (status == VST_OK && merge->opened < merge->count) {
        vst__merge_stream *next = &merge->streams[merge->opened];

        if (merge->heap_count != 0 && next->first > merge->heap[0]->time)
            break;
        merge->opened++;
        status = open_stream(merge, next);
    }
    return status;
}

static int by_first(const void *a, const void *b)
{
    const vst__merge_stream *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

/* The record for which a chunk was begun may be older than the chunk, because
 * its thread had to wait; a TIME escape then precedes it. */
static vst_status find_first(vst__merge *merge, vst__merge_stream *of)
{
    const vst__segment *segment = of->segments;
    uint64_t words[2] = {0, 0};
    size_t got;
    vst_status status = vst__source_read(
        &merge->trace->source, words, sizeof words,
        segment->offset + segment->checkpoint * sizeof *words, &got);

    of->first = segment->start;
    if (status != VST_OK)
        merge->trace->block.sys_errno = merge->trace->source.sys_errno;
    else if (got == sizeof words && vst_word_kind(words[0]) == VST_ESCAPE &&
             vst_word_escape_type(words[0]) == VST_ESCAPE_TIME &&
             words[1] < of->first)
        of->first = words[1];
    return status;
}

static vst_status find_streams(vst__merge *merge)
{
    const vst__window *window = merge->window;
    const vst__segment *segments =
        merge->trace->segments != NULL
            ? &merge->trace->segments[window->segments]
            : NULL;
    vst_status status = VST_OK;
    size_t count = 0;

    for (size_t i = 0; i < window->segment_count; i++)
        count += i == 0 || segments[i].thread != segments[i - 1].thread;
    merge->streams = calloc(count + 1, sizeof *merge->streams);
    merge->heap = malloc((count + 1) * sizeof(vst__merge_stream *));
    if (merge->streams == NULL || merge->heap == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < window->segment_count; i++) {
        if (i == 0 || segments[i].thread != segments[i - 1].thread) {
            merge->streams[merge->count].segments = &segments[i];
            merge->streams[merge->count++].thread = segments[i].thread;
        }
        merge->streams[merge->count - 1].segment_count++;
    }
    for (size_t i = 0; i < count && status == VST_OK; i++)
        status = find_first(merge, &merge->streams[i]);
    qsort(merge->streams, count, sizeof *merge->streams, by_first);
    merge->block_size = BLOCKS_SIZE / (count + 1);
    if (merge->block_size > VST_BLOCK_SIZE)
        merge->block_size = VST_BLOCK_SIZE;
    if (merge->block_size < BLOCK_LEAST)
        merge->block_size = BLOCK_LEAST;
    merge->block_size &= ~(size_t)7;
    return status;
}

vst_status vst__merge_open(vst__merge *merge, vst_trace *trace,
                           const vst__window *window)
{
    double ticks = trace->header.ticks_per_second;
    vst_status status;

    memset(merge, 0, sizeof *merge);
    merge->trace = trace;
    merge->window = window;
    merge->horizon = (vst_ticks)(ticks / 1000);
    vst__block_init(&merge->ahead, &trace->source);
    merge->ahead.file_size = trace->block.file_size;
    status = find_streams(merge);
    return status == VST_OK ? open_due(merge) : status;
}

void vst__merge_close(vst__merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        if (merge->streams[i].recent != NULL)
            close_stream(merge, &merge->streams[i]);
    free(merge->streams);
    free(merge->heap);
    vst__block_free(&merge->ahead);
    memset(merge, 0, sizeof *merge);
}

uint64_t vst__merge_words(const vst__merge *merge)
{
    uint64_t words = merge->words;

    for (size_t i = 0; i < merge->heap_count; i++)
        words += vst__memory_cursor_words(&merge->heap[i]->cursor);
    return words;
}

/* ---- records in their order ---------------------------------------------- */

vst_status vst__merge_next(vst__merge *merge)
{
    vst__merge_stream *first = merge->heap[0];
    bool any;
    vst_status status = merge_advance(merge, first, &any);

    if (status != VST_OK)
        return status;
    if (!any) {
        close_stream(merge, first);
        merge->heap[0] = merge->heap[--merge->heap_count];
    }
    if (merge->heap_count != 0)
        merge_sift_down(merge);
    return merge->opened != merge->count ? open_due(merge) : VST_OK;
}

void vst__merge_wait(vst__merge *merge, vst_ticks time, vst__merge_order order)
{
    merge->heap[0]->time = time;
    merge->heap[0]->order = order;
    merge_sift_down(merge);
}

static bool merge_ends(const vst__memory_record *freed,
                       const vst__memory_record *allocated)
{
    return freed->type == VST_RECORD_FREE &&
           freed->address == allocated->address &&
           vst_memory_is_framework(freed->kind) ==
               vst_memory_is_framework(allocated->kind);
}

/* Looks for a thread's free of the address, in a copy of its cursor. */
static vst_status merge_look_in_stream(vst__merge *merge,
                                       const vst__merge_stream *other,
                                       const vst__memory_record *allocated,
                                       vst_ticks *when)
{
    vst__memory_cursor ahead = other->cursor;
    vst_ticks most = allocated->time + merge->horizon;
    vst_status status = VST_OK;
    bool any = true;

    memcpy(merge->recent, other->recent, sizeof merge->recent);
    ahead.recent = merge->recent;
    ahead.block = ahead.stream.block = &merge->ahead;
    while (any && status == VST_OK && ahead.record.time <= most) {
        if (merge_ends(&ahead.record, allocated)) {
            vst_ticks due = ahead.record.time > other->time ? ahead.record.time
                                                            : other->time;
            if (*when == 0 || due < *when)
                *when = due;
            break;
        }
        merge->looked++;
        status = vst__memory_cursor_next(&ahead, &any);
    }
    return status;
}

vst_status vst__merge_look_ahead(vst__merge *merge, vst_ticks *when)
{
    vst_status status = VST_OK;

    *when = 0;
    for (size_t i = 1; i < merge->heap_count && status == VST_OK &&
                       merge->looked < LOOK_AHEAD_MAX;
         i++)
        status = merge_look_in_stream(merge, merge->heap[i],
                                      &merge->heap[0]->cursor.record, when);
    return status;
}
