/* What a framework's backends reported (VST_ESCAPE_REPORTED), as lanes of the
 * threads that ran it. A thread tells it when the recording stops, of itself
 * and of others. So the spans are gathered while the threads are read, and put
 * into lanes of their own below the others when all are. One thread at a time.
 */
#include "view/reported.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

vst_status vst__reported_add(vst__reported *list, const vst_span *span)
{
    vst__reported_span *spans =
        vst__grow(list->spans, &list->capacity, list->count + 1, sizeof *spans);

    if (spans == NULL)
        return VST_E_NOMEM;
    list->spans = spans;
    spans[list->count++] = (vst__reported_span){
        span->thread,
        {.start_ns = span->start_ns,
         .end_ns = span->end_ns,
         .id = span->id,
         .flags = VST_SPAN_ASYNC | VST_SPAN_REPORTED},
    };
    return VST_OK;
}

vst_status vst__reported_join(vst__reported *list, const vst__reported *more)
{
    vst__reported_span *spans;

    if (more->count == 0)
        return VST_OK;
    spans = vst__grow(list->spans, &list->capacity, list->count + more->count,
                      sizeof *spans);
    if (spans == NULL)
        return VST_E_NOMEM;
    list->spans = spans;
    memcpy(spans + list->count, more->spans, more->count * sizeof *spans);
    list->count += more->count;
    return VST_OK;
}

void vst__reported_free(vst__reported *list)
{
    free(list->spans);
    *list = (vst__reported){NULL, 0, 0};
}

/* Longer ones first, so that they are above what lies in them. */
static int by_thread_and_time(const void *a, const void *b)
{
    const vst__reported_span *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->span.start_ns != y->span.start_ns)
        return x->span.start_ns < y->span.start_ns ? -1 : 1;
    if (x->span.end_ns != y->span.end_ns)
        return x->span.end_ns > y->span.end_ns ? -1 : 1;
    return (x->span.id > y->span.id) - (x->span.id < y->span.id);
}

void vst__reported_sort(vst__reported *list)
{
    if (list->count > 1)
        qsort(list->spans, list->count, sizeof *list->spans,
              by_thread_and_time);
}

/* The place of a thread's first span; or where it would be. */
static size_t first_of(const vst__reported *list, uint32_t thread)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->spans[middle].thread < thread)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the spans of a thread to its lanes, and to what is known of it. */
static vst_status fill_lanes(const vst__reported *list,
                             vst__index_thread *thread, vst__pyramid *lanes)
{
    vst_status status = VST_OK;

    for (size_t i = first_of(list, thread->number);
         status == VST_OK && i < list->count &&
         list->spans[i].thread == thread->number;
         i++) {
        const vst__walk_span *span = &list->spans[i].span;

        if (thread->spans == 0 || span->start_ns < thread->start_ns)
            thread->start_ns = span->start_ns;
        if (thread->spans == 0 || span->end_ns > thread->end_ns)
            thread->end_ns = span->end_ns;
        thread->spans++;
        status = vst__pyramid_add(lanes, span);
    }
    return status == VST_OK ? vst__pyramid_finish(lanes) : status;
}

vst_status vst__reported_draw(const vst__reported *list,
                              vst__index_thread *thread, vst__append_fn append,
                              void *append_ctx, vst__block_of **blocks,
                              size_t *block_count)
{
    vst__pyramid lanes;
    vst__block_of *grown = NULL;
    vst_status status;

    vst__pyramid_init(&lanes, thread->threshold_ns, thread->level_count, append,
                      append_ctx);
    status = fill_lanes(list, thread, &lanes);
    if (status == VST_OK && lanes.block_count != 0) {
        grown = realloc(*blocks,
                        (*block_count + lanes.block_count) * sizeof *grown);
        if (grown == NULL)
            status = VST_E_NOMEM;
    }
    if (grown != NULL) {
        *blocks = grown;
        for (size_t i = 0; i < lanes.block_count; i++) {
            grown[*block_count] = lanes.blocks[i];
            grown[(*block_count)++].row += thread->beside;
        }
        thread->beside += lanes.lane_count;
    }
    vst__pyramid_free(&lanes);
    return status;
}
