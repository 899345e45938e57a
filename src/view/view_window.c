/* Draws a window: rows from the records if there are few, from a level of the
 * index if there are many. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/pass.h"
#include "view/picture.h"

/* The rows of a thread while its records are read. */
typedef struct row {
    vst__run *runs;
    size_t count, capacity;
} row;

typedef struct drawing {
    vst_view *view;
    vst_view_range range;
    vst__picture picture;
    vst__pass pass;
    row *rows;
    size_t row_count, row_capacity;
    uint32_t level;   /* the coarsest level that was used */
    uint64_t share;   /* how many words may be read per thread */
    int64_t pixel_ns; /* duration of a pixel; what is shorter may be merged */
} drawing;

/* ---- from the records ---------------------------------------------------- */

static vst_status add_to_row(drawing *self, size_t depth, const vst__run *run)
{
    row *rows = self->rows;
    vst__run *runs;

    if (run->end_ns < self->range.from_ns ||
        run->start_ns > self->range.to_ns ||
        (self->range.max_depth != 0 && depth >= self->range.max_depth))
        return VST_OK;
    if (depth >= self->row_count) {
        rows = vst__grow(rows, &self->row_capacity, depth + 1, sizeof *rows);
        if (rows == NULL)
            return VST_E_NOMEM;
        self->rows = rows;
        memset(rows + self->row_count, 0,
               (depth + 1 - self->row_count) * sizeof *rows);
        self->row_count = depth + 1;
    }
    rows += depth;
    if (rows->count != 0 &&
        run->end_ns - run->start_ns < self->picture.pixel_ns &&
        vst__run_merge(&rows->runs[rows->count - 1], run,
                       self->picture.pixel_ns))
        return VST_OK;
    runs =
        vst__grow(rows->runs, &rows->capacity, rows->count + 1, sizeof *runs);
    if (runs == NULL)
        return VST_E_NOMEM;
    rows->runs = runs;
    runs[rows->count++] = *run;
    return VST_OK;
}

static vst_status add_batch(drawing *self)
{
    const vst__walk *walk = &self->pass.walk;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < walk->span_count; i++) {
        const vst__walk_span *span = &walk->spans[i];
        vst__run run = vst__run_of_span(span->start_ns, span->end_ns, span->id,
                                        span->flags);

        if (!(span->flags & VST_SPAN_ASYNC)) /* lanes have the others */
            status = add_to_row(self, span->depth, &run);
    }
    return status;
}

/* Adds spans that continue behind the window. */
static vst_status add_open(drawing *self, const vst__index_thread *thread)
{
    size_t count;
    const vst__open *open = vst__walk_open_spans(&self->pass.walk, &count);
    vst_status status = open != NULL ? VST_OK : VST_E_NOMEM;

    if (self->pass.walk.finished)
        return VST_OK;
    for (size_t i = 0; status == VST_OK && i < count; i++) {
        int64_t end_ns = self->range.to_ns + 1;
        vst__run run;

        if (open[i].start_ns > self->range.to_ns ||
            !vst__pass_is_on_stack(&self->pass, thread, &open[i]))
            continue;
        run = vst__run_of_span(open[i].start_ns, end_ns, open[i].id,
                               open[i].flags & ~(uint32_t)VST_FRAME_OWN);
        status = add_to_row(self, i, &run);
    }
    return status;
}

static vst_status read_stretch(drawing *self, const vst__index_thread *thread,
                               size_t number)
{
    int64_t to_ns = self->range.to_ns;
    vst_status status =
        vst__pass_open(&self->pass, number, self->range.from_ns, to_ns);
    bool ends = false;

    while (status == VST_OK && !ends) {
        status = vst__pass_next(&self->pass, to_ns, &ends);
        if (status == VST_OK)
            status = add_batch(self);
    }
    return status == VST_OK ? add_open(self, thread) : status;
}

static vst_status draw_records(drawing *self, const vst__index_thread *thread)
{
    vst_status status = VST_OK;

    for (size_t i = 0; i < self->view->stretch_count && status == VST_OK; i++)
        if (self->view->stretches[i].thread == thread->number &&
            vst__view_touches(self->view, i, self->range.from_ns,
                              self->range.to_ns))
            status = read_stretch(self, thread, i);
    for (size_t i = 0; i < self->row_count; i++) {
        row *from = &self->rows[i];

        if (status == VST_OK && from->count != 0)
            status = vst__picture_row_begin(&self->picture, thread->number,
                                            (uint32_t)i, false);
        for (size_t j = 0; status == VST_OK && j < from->count; j++)
            status = vst__picture_add(&self->picture, &from->runs[j]);
        from->count = 0;
    }
    return status;
}

/* ---- from a level -------------------------------------------------------- */

static uint32_t choose_level(const drawing *self,
                             const vst__index_thread *thread, uint32_t least)
{
    uint32_t level = least;

    while (level < thread->level_count &&
           vst__index_threshold(thread, level + 1) <= self->pixel_ns)
        level++;
    return level;
}

static vst_status draw_row(drawing *self, const vst__index_thread *thread,
                           uint32_t kept_as, uint32_t depth, uint32_t level)
{
    bool off_stack = (kept_as & VST_ROW_OFF_STACK) != 0;
    vst__runs runs;
    vst__run run;
    vst_status status;

    if (!vst__runs_open(&runs, &self->view->index, thread, kept_as, level,
                        self->range.from_ns))
        return VST_OK;
    if (level > self->level)
        self->level = level;
    status = vst__picture_row_begin(&self->picture, thread->number, depth,
                                    off_stack);
    while (status == VST_OK && vst__runs_next(&runs, &run) &&
           run.start_ns <= self->range.to_ns)
        status = vst__picture_add(&self->picture, &run);
    return status;
}

static vst_status draw_levels(drawing *self, const vst__index_thread *thread)
{
    uint32_t level = choose_level(self, thread, 1);
    vst_status status = VST_OK;

    for (uint32_t i = 0; status == VST_OK && i < thread->levels; i++) {
        if (i >= VST_ROWS_MAX ||
            (self->range.max_depth != 0 && i >= self->range.max_depth))
            break;
        status = draw_row(self, thread, i, i, level);
    }
    return status;
}

static vst_status draw_lanes(drawing *self, const vst__index_thread *thread,
                             uint32_t level)
{
    vst_status status = VST_OK;

    for (uint32_t i = 0; status == VST_OK && i < thread->off_stack; i++)
        status = draw_row(self, thread, VST_ROW_OFF_STACK | i,
                          thread->levels + i, level);
    return status;
}

/* ---- threads ------------------------------------------------------------- */

static uint64_t words_of(drawing *self, const vst__index_thread *thread)
{
    uint64_t words = 0;

    for (size_t i = 0; i < self->view->stretch_count; i++)
        if (self->view->stretches[i].thread == thread->number &&
            vst__view_touches(self->view, i, self->range.from_ns,
                              self->range.to_ns))
            words += vst__view_words(self->view, i, self->range.from_ns,
                                     self->range.to_ns);
    return words;
}

static vst_status draw_thread(drawing *self, const vst__index_thread *thread)
{
    uint64_t words = words_of(self, thread);
    uint32_t level = 0;
    vst_status status = VST_OK;

    if (thread->level_count == 0 || words <= self->share) {
        if (words != 0)
            status = draw_records(self, thread);
    } else {
        level = choose_level(self, thread, 0);
        status = draw_levels(self, thread);
    }
    return status == VST_OK ? draw_lanes(self, thread, level) : status;
}

/* Decides how much may be read of each thread, and how finely its rows are
 * drawn: each row gets its part of the room in an answer. */
static void window_plan(drawing *self)
{
    const vst__index *index = &self->view->index;
    int64_t width_ns = self->range.to_ns - self->range.from_ns, fine_ns;
    uint64_t threads = 0, rows = 0, all = 0;

    for (size_t i = 0; i < index->header->threads.count; i++) {
        const vst__index_thread *thread = &index->threads[i];
        uint64_t words, levels = thread->levels;

        if (!vst__view_wants(&self->range, thread->number))
            continue;
        words = words_of(self, thread);
        if (words == 0)
            continue;
        if (self->range.max_depth != 0 && levels > self->range.max_depth)
            levels = self->range.max_depth;
        all += words;
        rows += levels + thread->off_stack;
        threads++;
    }
    self->share = all <= self->view->window_words_max
                      ? UINT64_MAX
                      : self->view->window_words_max / threads;
    self->pixel_ns = self->picture.pixel_ns;
    fine_ns = (int64_t)((double)width_ns * (double)rows / VST_VIEW_RECTS_MAX);
    if (fine_ns > self->pixel_ns)
        self->pixel_ns = fine_ns < width_ns ? fine_ns : width_ns;
}

static vst_status window_draw(drawing *self)
{
    const vst__index *index = &self->view->index;
    vst_status status = VST_OK;

    window_plan(self);
    for (size_t i = 0; status == VST_OK && i < index->header->threads.count;
         i++)
        if (vst__view_wants(&self->range, index->threads[i].number))
            status = draw_thread(self, &index->threads[i]);
    return status;
}

vst_status vst__view_window(vst_view *view, const vst_view_range *range,
                            void **bytes, size_t *count, vst_error *error)
{
    drawing self = {.view = view};
    vst_status status = vst__view_clean_range(view, range, &self.range);

    *bytes = NULL;
    *count = 0;
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    vst__view_enter(view);
    vst__picture_init(&self.picture, self.range.from_ns, self.range.to_ns,
                      range->pixels);
    status = vst__pass_init(&self.pass, view);
    if (status == VST_OK)
        status = window_draw(&self);
    if (status == VST_OK)
        status = vst__picture_encode(&self.picture, self.level, view->offset_ns,
                                     bytes, count);
    status = vst__pass_error(&self.pass, status, error);
    vst__pass_free(&self.pass);
    vst__view_leave(view);
    vst__picture_free(&self.picture);
    for (size_t i = 0; i < self.row_count; i++)
        free(self.rows[i].runs);
    free(self.rows);
    return status;
}
