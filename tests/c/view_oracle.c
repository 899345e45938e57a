/* See view_oracle.h. */
#include "view_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/map64.h"
#include "os/os.h"
#include "view/picture.h"
#include "view/track.h"

static oracle_thread *thread_of(oracle *view, uint32_t number)
{
    for (size_t i = 0; i < view->thread_count; i++)
        if (view->threads[i].number == number)
            return &view->threads[i];
    return NULL;
}

static vst_status take_span(void *ctx, const vst_span *span)
{
    oracle *view = ctx;
    oracle_thread *thread = thread_of(view, span->thread);
    oracle_span *spans;

    if (thread == NULL)
        return VST_OK;
    spans = vst__grow(thread->spans, &thread->capacity, thread->count + 1,
                      sizeof *spans);
    if (spans == NULL)
        return VST_E_NOMEM;
    thread->spans = spans;
    spans += thread->count++;
    *spans = (oracle_span){
        .span = *span, .args_at = view->text_count, .order = view->spans};
    spans->row = span->depth;
    if (span->flags & VST_SPAN_ASYNC) {
        uint32_t lane = 0;
        while (lane < thread->off_stack && thread->lanes[lane] > span->start_ns)
            lane++;
        if (lane == 64) { /* drawn behind the last span of the last lane */
            lane = 63;
            spans->span.start_ns = thread->lanes[lane];
            if (span->end_ns < thread->lanes[lane])
                spans->span.end_ns = thread->lanes[lane];
        }
        if (lane == thread->off_stack)
            thread->off_stack++;
        thread->lanes[lane] = spans->span.end_ns;
        spans->row = lane;
    } else if (span->depth >= thread->levels) {
        thread->levels = span->depth + 1;
    }
    if (thread->count == 1 || span->start_ns < thread->start_ns)
        thread->start_ns = span->start_ns;
    if (thread->count == 1 || span->end_ns > thread->end_ns)
        thread->end_ns = span->end_ns;
    view->spans++;
    if (span->args_len != 0) {
        char *text = vst__grow(view->text, &view->text_capacity,
                               view->text_count + span->args_len, 1);
        if (text == NULL)
            return VST_E_NOMEM;
        view->text = text;
        memcpy(text + view->text_count, span->args, span->args_len);
        view->text_count += span->args_len;
    }
    return VST_OK;
}

static vst_status take_loss(void *ctx, const vst_loss *loss)
{
    oracle *view = ctx;
    vst_loss *losses = vst__grow(view->losses, &view->loss_capacity,
                                 view->loss_count + 1, sizeof *losses);

    if (losses == NULL)
        return VST_E_NOMEM;
    view->losses = losses;
    losses[view->loss_count++] = *loss;
    return VST_OK;
}

static vst_status take_counter(void *ctx, const vst_counter *counter)
{
    oracle *view = ctx;

    return vst__tracks_add(&view->tracks, VST_TRACK_COUNTER, counter->id,
                           counter->thread, counter->time_ns, counter->value);
}

static int by_start(const void *a, const void *b)
{
    const oracle_span *x = a, *y = b;

    if ((x->span.flags ^ y->span.flags) & VST_SPAN_ASYNC)
        return x->span.flags & VST_SPAN_ASYNC ? 1 : -1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    /* Spans off the stack are in replay's order. At a depth of the stack, this
     * test sorts spans itself instead of trusting replay's order. */
    if (!(x->span.flags & VST_SPAN_ASYNC) &&
        x->span.start_ns != y->span.start_ns)
        return x->span.start_ns < y->span.start_ns ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static vst_status load(oracle *view, const vst_view_options *options,
                       vst_error *error)
{
    vst_sink sink = {.ctx = view,
                     .span = take_span,
                     .loss = take_loss,
                     .counter = take_counter};
    vst_status status;

    view->thread_count = vst_trace_thread_count(view->trace);
    view->threads = calloc(view->thread_count + 1, sizeof *view->threads);
    if (view->threads == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; i < view->thread_count; i++)
        view->threads[i].number = vst_trace_thread_at(view->trace, i)->number;
    vst_trace_set_progress(view->trace, options->progress,
                           options->progress_ctx);
    status = vst_trace_replay(view->trace, VST_WINDOW_ALL, NULL, &sink, error);
    vst_trace_set_progress(view->trace, NULL, NULL);
    if (status == VST_OK)
        status = vst__tracks_read_memory(&view->tracks, view->trace, error);
    for (size_t i = 0; i < view->thread_count; i++) {
        oracle_thread *thread = &view->threads[i];
        if (thread->count > 1)
            qsort(thread->spans, thread->count, sizeof *thread->spans,
                  by_start);
        for (size_t j = 0; j < thread->count; j++)
            if (thread->spans[j].span.flags & VST_SPAN_ASYNC)
                thread->spans[j].row += thread->levels;
    }
    return status;
}

vst_status oracle_open(const char *path, const vst_view_options *options,
                       oracle **out, vst_error *error)
{
    oracle *view = calloc(1, sizeof *view);
    vst_status status;

    if (view == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst_trace_open(path, &view->trace, error);
    if (status == VST_OK)
        status = load(view, options, error);
    if (status != VST_OK) {
        oracle_close(view);
        return status;
    }
    *out = view;
    return VST_OK;
}

void oracle_close(oracle *view)
{
    if (view == NULL)
        return;
    for (size_t i = 0; i < view->thread_count; i++)
        free(view->threads[i].spans);
    free(view->threads);
    free(view->text);
    free(view->losses);
    vst__tracks_free(&view->tracks);
    vst_trace_close(view->trace);
    free(view);
}

static bool is_wanted(const vst_view_range *range, uint32_t thread)
{
    if (range->threads == NULL)
        return true;
    for (size_t i = 0; i < range->thread_count; i++)
        if (range->threads[i] == thread)
            return true;
    return false;
}

vst_status oracle_window(oracle *view, const vst_view_range *range,
                         void **bytes, size_t *count, vst_error *error)
{
    vst__picture picture;
    vst_status status = VST_OK;

    if (range->to_ns <= range->from_ns || range->pixels == 0)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    vst__picture_init(&picture, range->from_ns - view->offset_ns,
                      range->to_ns - view->offset_ns, range->pixels);
    for (size_t i = 0; i < view->thread_count; i++) {
        const oracle_thread *thread = &view->threads[i];

        if (!is_wanted(range, thread->number))
            continue;
        for (size_t j = 0; status == VST_OK && j < thread->count; j++) {
            const vst_span *span = &thread->spans[j].span;
            vst__run run = vst__run_of_span(span->start_ns, span->end_ns,
                                            span->id, span->flags);
            if (range->max_depth && span->depth >= range->max_depth)
                continue;
            if (j == 0 || thread->spans[j - 1].row != thread->spans[j].row ||
                picture.row_count == 0)
                status = vst__picture_row_begin(&picture, thread->number,
                                                thread->spans[j].row,
                                                span->flags & VST_SPAN_ASYNC);
            if (status == VST_OK)
                status = vst__picture_add(&picture, &run);
        }
    }
    if (status == VST_OK)
        status =
            vst__picture_encode(&picture, 0, view->offset_ns, bytes, count);
    vst__picture_free(&picture);
    return vst_error_set(error, status, 0, 0);
}

/* Returns the last span at this time: a span may begin where a span of no width
 * lies. */
static const oracle_span *find_at(const oracle_thread *thread, uint32_t depth,
                                  int64_t time_ns)
{
    const oracle_span *found = NULL;

    for (size_t i = 0; i < thread->count; i++) {
        const oracle_span *one = &thread->spans[i];
        if (one->row == depth && one->span.start_ns <= time_ns &&
            (time_ns < one->span.end_ns || time_ns == one->span.start_ns))
            found = one;
    }
    return found;
}

/* Returns the last span of a row that has room for another span. */
static const oracle_span *find_around(const oracle_thread *thread, uint32_t row,
                                      const vst_span *span)
{
    const oracle_span *found = NULL;

    for (size_t i = 0; i < thread->count; i++) {
        const oracle_span *one = &thread->spans[i];
        if (one->row == row && one->span.start_ns <= span->start_ns &&
            one->span.end_ns >= span->end_ns)
            found = one;
    }
    return found;
}

static void fill(const oracle *view, const oracle_span *one,
                 vst_view_span *span)
{
    *span = (vst_view_span){
        .id = one->span.id,
        .thread = one->span.thread,
        .depth = one->row,
        .flags = one->span.flags,
        .start_ns = one->span.start_ns + view->offset_ns,
        .end_ns = one->span.end_ns + view->offset_ns,
        .self_ns =
            one->span.end_ns - one->span.start_ns - one->span.children_ns,
        .self_bytes = one->span.self_bytes,
        .total_bytes = one->span.total_bytes,
        .allocations = one->span.total_allocations,
    };
}

vst_status oracle_span_at(oracle *view, uint32_t thread, uint32_t depth,
                          int64_t time_ns, vst_view_span *span,
                          vst_error *error)
{
    const oracle_thread *of = thread_of(view, thread);
    const oracle_span *one =
        of != NULL ? find_at(of, depth, time_ns - view->offset_ns) : NULL;

    if (one == NULL)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    fill(view, one, span);
    if (one->span.args_len) {
        span->args = malloc(one->span.args_len);
        if (span->args == NULL)
            return vst_error_set(error, VST_E_NOMEM, 0, 0);
        memcpy(span->args, view->text + one->args_at, one->span.args_len);
        span->args_len = one->span.args_len;
    }
    if (one->span.flags & VST_SPAN_ASYNC || depth == 0)
        return VST_OK;
    span->parents = calloc(depth, sizeof *span->parents);
    if (span->parents == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (uint32_t i = 0; i < depth; i++) {
        const oracle_span *parent = find_around(of, i, &one->span);
        if (parent != NULL)
            span->parents[span->parent_count++] = (vst_view_parent){
                parent->span.id, parent->span.start_ns + view->offset_ns,
                parent->span.end_ns + view->offset_ns};
    }
    return VST_OK;
}

static bool is_among(const vst_view_ids *ids, vst_id id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id)
            return true;
    return false;
}

__extension__ typedef unsigned __int128 u128;

vst_status oracle_find(oracle *view, const vst_view_range *range,
                       const vst_view_ids *ids, uint32_t *counts,
                       vst_error *error)
{
    int64_t from = range->from_ns - view->offset_ns;
    int64_t to = range->to_ns - view->offset_ns;

    memset(counts, 0, range->pixels * sizeof *counts);
    for (size_t i = 0; i < view->thread_count; i++) {
        const oracle_thread *thread = &view->threads[i];
        if (!is_wanted(range, thread->number))
            continue;
        for (size_t j = 0; j < thread->count; j++) {
            const vst_span *span = &thread->spans[j].span;
            if (span->start_ns < from || span->start_ns >= to ||
                !is_among(ids, span->id))
                continue;
            counts[(u128)(span->start_ns - from) * range->pixels /
                   (u128)(to - from)]++;
        }
    }
    return vst_error_set(error, VST_OK, 0, 0);
}

vst_status oracle_next(oracle *view, const vst_view_range *range,
                       const vst_view_ids *ids, bool back, vst_view_span *span,
                       vst_error *error)
{
    const oracle_span *best = NULL;
    int64_t from = range->from_ns - view->offset_ns;

    for (size_t i = 0; i < view->thread_count; i++) {
        const oracle_thread *thread = &view->threads[i];
        if (!is_wanted(range, thread->number))
            continue;
        for (size_t j = 0; j < thread->count; j++) {
            const oracle_span *one = &thread->spans[j];
            int64_t start = one->span.start_ns;
            if (!is_among(ids, one->span.id) ||
                (back ? start >= from : start <= from))
                continue;
            if (best == NULL || (back ? start > best->span.start_ns
                                      : start < best->span.start_ns))
                best = one;
        }
    }
    if (best == NULL)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    fill(view, best, span);
    return vst_error_set(error, VST_OK, 0, 0);
}

static int64_t clipped(const vst_span *span, int64_t from, int64_t to)
{
    int64_t start = span->start_ns > from ? span->start_ns : from;
    int64_t end = span->end_ns < to ? span->end_ns : to;

    return end > start ? end - start : 0;
}

/* Returns the row of a span, and the rows of all its callers; -1: no memory. */
static int64_t row_of(oracle *view, const oracle_span *one,
                      const oracle_span **by_serial, vst__map64 *rows_of,
                      vst_view_flame_row **rows, size_t *count,
                      size_t *capacity)
{
    const oracle_span *caller = by_serial[one->span.parent];
    int64_t parent = caller != NULL ? row_of(view, caller, by_serial, rows_of,
                                             rows, count, capacity)
                                    : -1;
    uint64_t *place =
        vst__map64_put(rows_of, (uint64_t)(parent + 1) << 32 | one->span.id);

    if (place == NULL)
        return -1;
    if (*place == 0) {
        vst_view_flame_row *grown =
            vst__grow(*rows, capacity, *count + 1, sizeof *grown);
        if (grown == NULL)
            return -1;
        *rows = grown;
        grown[(*count)++] =
            (vst_view_flame_row){.parent = parent, .id = one->span.id};
        *place = *count;
    }
    return (int64_t)*place - 1;
}

vst_status oracle_flame(oracle *view, const vst_view_range *range,
                        vst_view_flame_row **rows, size_t *count,
                        vst_error *error)
{
    const oracle_span **by_serial = calloc(view->spans + 1, sizeof *by_serial);
    vst__map64 rows_of = {NULL, 0, 0};
    size_t capacity = 0;

    *rows = NULL;
    *count = 0;
    if (by_serial == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; i < view->thread_count; i++)
        for (size_t j = 0; j < view->threads[i].count; j++)
            by_serial[view->threads[i].spans[j].span.serial] =
                &view->threads[i].spans[j];
    for (size_t i = 0; i < view->thread_count; i++) {
        const oracle_thread *thread = &view->threads[i];

        for (size_t j = 0; j < thread->count; j++) {
            const oracle_span *one = &thread->spans[j];
            int64_t ns = clipped(&one->span, range->from_ns, range->to_ns);
            int64_t row;

            if (one->span.end_ns < range->from_ns ||
                one->span.start_ns >= range->to_ns ||
                (one->span.flags & VST_SPAN_ASYNC) ||
                !is_wanted(range, thread->number))
                continue;
            row =
                row_of(view, one, by_serial, &rows_of, rows, count, &capacity);
            (*rows)[row].count++;
            (*rows)[row].total_ns += ns;
            (*rows)[row].self_ns += ns;
            (*rows)[row].self_bytes += one->span.self_bytes;
            if ((*rows)[row].parent >= 0)
                (*rows)[(*rows)[row].parent].self_ns -= ns;
        }
    }
    free(by_serial);
    vst__map64_free(&rows_of);
    return vst_error_set(error, VST_OK, 0, 0);
}
