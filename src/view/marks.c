/* See <vestige/marks.h>. One thread makes it, any may ask. */
#include <vestige/marks.h>

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct vst_marks {
    vst_mark *all; /* by thread, then time */
    size_t count, capacity;
    char *text;
    size_t text_size, text_capacity;
    uint64_t left_out;
};

/* ---- reading ------------------------------------------------------------- */

/* What exceptions have to say is in the mark itself. */
static vst_status keep_args(vst_marks *marks, const vst_instant *instant,
                            vst_mark *mark)
{
    size_t size = instant->args_len;
    char *grown;

    if (instant->end != VST_NO_EXCEPTION || size == 0 ||
        size > VST_MARKS_TEXT_MAX - marks->text_size)
        return VST_OK;
    grown = vst__grow(marks->text, &marks->text_capacity,
                      marks->text_size + size, 1);
    if (grown == NULL)
        return VST_E_NOMEM;
    marks->text = grown;
    memcpy(grown + marks->text_size, instant->args, size);
    mark->args = marks->text_size;
    mark->args_len = (uint32_t)size;
    marks->text_size += size;
    return VST_OK;
}

static vst_status add(void *ctx, const vst_instant *instant)
{
    vst_marks *marks = ctx;
    vst_mark *grown;

    if (marks->count == VST_MARKS_MAX) {
        marks->left_out++;
        return VST_OK;
    }
    grown = vst__grow(marks->all, &marks->capacity, marks->count + 1,
                      sizeof *grown);
    if (grown == NULL)
        return VST_E_NOMEM;
    marks->all = grown;
    grown[marks->count] = (vst_mark){.time_ns = instant->time_ns,
                                     .id = instant->id,
                                     .thread = instant->thread,
                                     .end = instant->end,
                                     .raised_in = instant->raised_in,
                                     .caught_in = instant->caught_in};
    return keep_args(marks, instant, &grown[marks->count++]);
}

static int by_thread(const void *a, const void *b)
{
    const vst_mark *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

vst_status vst_marks_create(vst_trace *trace, vst_marks **result,
                            vst_error *error)
{
    vst_marks *marks = calloc(1, sizeof *marks);
    const vst_sink sink = {.ctx = marks, .no_args = true, .instant = add};
    vst_status status;

    *result = NULL;
    if (marks == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst_trace_replay(trace, VST_WINDOW_ALL, NULL, &sink, error);
    if (status != VST_OK) {
        vst_marks_destroy(marks);
        return status;
    }
    if (marks->count != 0)
        qsort(marks->all, marks->count, sizeof *marks->all, by_thread);
    *result = marks;
    return VST_OK;
}

void vst_marks_destroy(vst_marks *marks)
{
    if (marks == NULL)
        return;
    free(marks->all);
    free(marks->text);
    free(marks);
}

/* ---- asking -------------------------------------------------------------- */

const vst_mark *vst_marks_all(const vst_marks *marks, size_t *count)
{
    *count = marks->count;
    return marks->all;
}

const char *vst_marks_text(const vst_marks *marks)
{
    return marks->text;
}

uint64_t vst_marks_left_out(const vst_marks *marks)
{
    return marks->left_out;
}

/* The first mark of a thread at this time or later. */
static size_t first_from(const vst_marks *marks, uint32_t thread, int64_t ns)
{
    const vst_mark wanted = {.thread = thread, .time_ns = ns};
    size_t low = 0, high = marks->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by_thread(&marks->all[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t vst_marks_between(const vst_marks *marks, uint32_t thread,
                         int64_t from_ns, int64_t to_ns, size_t *first)
{
    size_t end = first_from(marks, thread, to_ns);

    *first = first_from(marks, thread, from_ns);
    return end > *first ? end - *first : 0;
}

/* In which part of a range a time lies that is in the range. */
static uint32_t part_of(int64_t ns, int64_t from_ns, int64_t to_ns,
                        uint32_t parts)
{
    double share = (double)(ns - from_ns) / (double)(to_ns - from_ns);
    uint32_t part = (uint32_t)(share * parts);

    return part < parts ? part : parts - 1;
}

size_t vst_marks_draw(const vst_marks *marks, uint32_t thread, int64_t from_ns,
                      int64_t to_ns, uint32_t parts, vst_mark_cell *cells)
{
    size_t first, found = 0;
    size_t count = vst_marks_between(marks, thread, from_ns, to_ns, &first);

    for (size_t i = first; i < first + count; i++) {
        const vst_mark *mark = &marks->all[i];
        uint32_t part = part_of(mark->time_ns, from_ns, to_ns, parts);

        if (found == 0 || cells[found - 1].part != part)
            cells[found++] = (vst_mark_cell){.part = part, .id = mark->id};
        cells[found - 1].marks++;
        cells[found - 1].exceptions += mark->end != VST_NO_EXCEPTION;
        cells[found - 1].not_caught += mark->end == VST_EXCEPTION_NOT_CAUGHT;
    }
    return found;
}

static int by_number(const void *a, const void *b)
{
    vst_id x = *(const vst_id *)a, y = *(const vst_id *)b;

    return (x > y) - (x < y);
}

static bool is_among(const vst_view_ids *ids, vst_id id)
{
    return ids->count != 0 &&
           bsearch(&id, ids->ids, ids->count, sizeof id, by_number) != NULL;
}

void vst_marks_find(const vst_marks *marks, const vst_view_ids *ids,
                    int64_t from_ns, int64_t to_ns, uint32_t parts,
                    uint32_t *counts)
{
    for (size_t i = 0; i < marks->count; i++) {
        const vst_mark *mark = &marks->all[i];

        if (mark->time_ns >= from_ns && mark->time_ns < to_ns &&
            is_among(ids, mark->id))
            counts[part_of(mark->time_ns, from_ns, to_ns, parts)]++;
    }
}

const vst_mark *vst_marks_next(const vst_marks *marks, const vst_view_ids *ids,
                               int64_t time_ns, bool back)
{
    const vst_mark *best = NULL;

    for (size_t i = 0; i < marks->count; i++) {
        const vst_mark *mark = &marks->all[i];

        if (back ? mark->time_ns >= time_ns : mark->time_ns <= time_ns)
            continue;
        if (best != NULL && (back ? mark->time_ns <= best->time_ns
                                  : mark->time_ns >= best->time_ns))
            continue;
        if (is_among(ids, mark->id))
            best = mark;
    }
    return best;
}
