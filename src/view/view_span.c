/* The span at a place. A walk from the checkpoint before finds the span; a long
 * span's other end is found in a level of the index; a replay finds its
 * content. If the span has very many records, only its edges are read. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/view_span.h"

enum { HEAD_NS = 1 }; /* for a span that is not replayed: read until it began */

typedef struct found {
    int64_t start_ns, end_ns; /* end_ns is INT64_MAX while unknown */
    vst_id id;
    uint32_t flags;
    bool is;
} found;

typedef struct looking {
    vst_view *view;
    vst__pass pass;
    const vst__index_thread *thread;
    size_t stretch;
    uint32_t depth;
    int64_t time_ns;
    found *at; /* by depth, up to and including the wanted one */
} looking;

/* ---- finding the span ---------------------------------------------------- */

/* A span of no width covers its start. */
static bool span_covers(int64_t start_ns, int64_t end_ns, int64_t time_ns)
{
    return start_ns <= time_ns &&
           (time_ns < end_ns || (time_ns == start_ns && time_ns == end_ns));
}

static void take_batch(looking *self)
{
    const vst__walk *walk = &self->pass.walk;

    for (size_t i = 0; i < walk->span_count; i++) {
        const vst__walk_span *span = &walk->spans[i];
        found *at = self->at + span->depth;

        if (span->flags & VST_SPAN_ASYNC || span->depth > self->depth ||
            !span_covers(span->start_ns, span->end_ns, self->time_ns))
            continue;
        *at =
            (found){span->start_ns, span->end_ns, span->id, span->flags, true};
    }
}

static vst_status take_open(looking *self)
{
    size_t count;
    const vst__open *open = vst__walk_open_spans(&self->pass.walk, &count);

    if (open == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count && i <= self->depth; i++)
        if (open[i].start_ns <= self->time_ns &&
            vst__pass_is_on_stack(&self->pass, self->thread, &open[i]))
            self->at[i] =
                (found){open[i].start_ns, INT64_MAX, open[i].id,
                        open[i].flags & ~(uint32_t)VST_FRAME_OWN, true};
    return VST_OK;
}

/* Looks for the end of a long span in the levels, which keep long spans
 * unmerged. */
static bool find_in_levels(const looking *self, uint32_t depth, found *at)
{
    vst__runs runs;
    vst__run run;

    if (self->thread->level_count == 0 || depth >= VST_ROWS_MAX ||
        !vst__runs_open(&runs, &self->view->index, self->thread, depth, 1,
                        at->start_ns))
        return false;
    while (vst__runs_next(&runs, &run) && run.start_ns <= at->start_ns)
        if (run.start_ns == at->start_ns && run.count == 1 &&
            vst__import_fold_is_same(self->view->reading.imports, run.id,
                                     at->id) &&
            run.end_ns > self->time_ns) {
            at->id = run.id;
            at->end_ns = run.end_ns;
            at->flags = run.flags;
            return true;
        }
    return false;
}

static size_t unknown_ends(looking *self)
{
    size_t unknown = 0;

    for (uint32_t i = 0; i <= self->depth; i++)
        if (self->at[i].is && self->at[i].end_ns == INT64_MAX &&
            !find_in_levels(self, i, &self->at[i]))
            unknown++;
    return unknown;
}

/* Walks on until all short spans have ended. A frame whose end is not found
 * there, for example because records were dropped, is not shown as a span. */
static vst_status find_ends(looking *self)
{
    vst_status status = VST_OK;
    size_t unknown = unknown_ends(self);
    bool ends = self->pass.walk.finished;

    if (unknown == 0 || ends)
        return VST_OK;
    /* The previous walk may have stopped at its last segment. */
    status = vst__pass_open(&self->pass, self->stretch, self->time_ns,
                            INT64_MAX / 4);
    while (status == VST_OK && unknown != 0 && !ends) {
        const vst__walk *walk = &self->pass.walk;

        status = vst__pass_next(&self->pass, INT64_MAX / 4, &ends);
        for (size_t i = 0; status == VST_OK && i < walk->span_count; i++) {
            const vst__walk_span *span = &walk->spans[i];
            found *at = self->at + span->depth;

            if (span->flags & VST_SPAN_ASYNC || span->depth > self->depth ||
                !at->is || at->end_ns != INT64_MAX ||
                at->start_ns != span->start_ns ||
                span->end_ns <= self->time_ns || /* it has no width */
                !vst__import_fold_is_same(self->view->reading.imports, at->id,
                                          span->id))
                continue;
            at->id = span->id;
            at->end_ns = span->end_ns;
            at->flags = span->flags;
            unknown--;
        }
    }
    for (uint32_t i = 0; i <= self->depth; i++)
        self->at[i].is &= self->at[i].end_ns != INT64_MAX;
    return status;
}

static vst_status find_in_stretch(looking *self)
{
    bool ends = false;
    vst_status status = vst__pass_open(&self->pass, self->stretch,
                                       self->time_ns, self->time_ns);

    memset(self->at, 0, ((size_t)self->depth + 1) * sizeof *self->at);
    while (status == VST_OK && !ends) {
        status = vst__pass_next(&self->pass, self->time_ns, &ends);
        if (status == VST_OK)
            take_batch(self);
    }
    if (status == VST_OK && !self->pass.walk.finished)
        status = take_open(self);
    if (status == VST_OK && self->at[self->depth].is)
        status = find_ends(self);
    return status;
}

/* Looks in all of the thread's stretches. */
static vst_status find_on_stack(looking *self)
{
    vst_view *view = self->view;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < view->stretch_count; i++) {
        if (view->stretches[i].thread != self->thread->number ||
            !vst__view_touches(view, i, self->time_ns, self->time_ns))
            continue;
        self->stretch = i;
        status = find_in_stretch(self);
        if (status == VST_OK && self->at[self->depth].is)
            return VST_OK;
    }
    return status == VST_OK ? VST_E_ARGUMENT : status;
}

/* ---- spans of very many records ------------------------------------------ */

/* Sums up the time of the spans of a depth that begin in a range, and what was
 * allocated before the range ends. */
static vst_status sum_children(looking *self, uint32_t depth, int64_t from_ns,
                               int64_t to_ns, int64_t *sum_ns)
{
    bool ends = false;
    vst_status status =
        vst__pass_open(&self->pass, self->stretch, from_ns, to_ns);

    while (status == VST_OK && !ends) {
        status = vst__pass_next(&self->pass, to_ns, &ends);
        if (status == VST_OK)
            *sum_ns += vst__pass_time(&self->pass, depth, from_ns, to_ns);
    }
    return status;
}

/* Sums up the runs of the row below: runs inside the span, and the inner part
 * of runs at its edges. */
static vst_status children_of(looking *self, const found *at, int64_t *sum_ns)
{
    vst__runs runs;
    vst__run run;
    vst_status status = VST_OK;

    if (!vst__runs_open(&runs, &self->view->index, self->thread,
                        self->depth + 1, 1, at->start_ns))
        return VST_OK;
    while (status == VST_OK && vst__runs_next(&runs, &run) &&
           run.start_ns < at->end_ns) {
        if (run.start_ns >= at->start_ns && run.end_ns <= at->end_ns)
            *sum_ns += run.busy_ns;
        else if (run.end_ns > at->start_ns)
            status = sum_children(
                self, self->depth + 1,
                run.start_ns > at->start_ns ? run.start_ns : at->start_ns,
                run.end_ns < at->end_ns ? run.end_ns : at->end_ns, sum_ns);
    }
    return status;
}

static vst_status allocated_until(looking *self, int64_t time_ns,
                                  uint64_t *bytes, uint64_t *allocations)
{
    vst__walk *walk = &self->pass.walk;
    vst_status status;
    bool ends = false;

    walk->count_until_ns = time_ns;
    status = vst__pass_open(&self->pass, self->stretch, time_ns, time_ns);
    while (status == VST_OK && !ends)
        status = vst__pass_next(&self->pass, time_ns, &ends);
    walk->count_until_ns = INT64_MAX;
    *bytes = walk->bytes;
    *allocations = walk->allocations;
    return status;
}

/* Reads the arguments, which are recorded when a span begins. */
static vst_status args_of(looking *self, const found *at, vst_view_span *span)
{
    vst__walk *walk = &self->pass.walk;
    vst_status status;
    bool ends = false;

    walk->always_matcher = walk->keep_args = true;
    status = vst__pass_open(&self->pass, self->stretch, at->start_ns,
                            at->start_ns + HEAD_NS);
    while (status == VST_OK && !ends)
        status = vst__pass_next(&self->pass, at->start_ns + HEAD_NS, &ends);
    for (size_t i = self->depth;
         status == VST_OK && walk->matcher != NULL && i < walk->matcher->count;
         i++) { /* the frame is deeper if imports are folded */
        const vst__frame *frame = &walk->matcher->frames[i];
        if (frame->args != 0 && frame->start_ns == at->start_ns)
            status = vst__view_keep_args(
                span, walk->matcher->args[frame->args - 1].bytes,
                walk->matcher->args[frame->args - 1].count);
    }
    walk->always_matcher = walk->keep_args = false;
    return status;
}

static vst_status read_edges(looking *self, const found *at,
                             vst_view_span *span)
{
    uint64_t bytes = 0, allocations = 0;
    int64_t children_ns = 0;
    vst_status status = children_of(self, at, &children_ns);

    span->self_ns = at->end_ns - at->start_ns - children_ns;
    span->self_bytes = vst_trace_has_memory(self->view->trace) ? UINT64_MAX : 0;
    if (status == VST_OK && span->self_bytes != 0)
        status = allocated_until(self, at->start_ns, &bytes, &allocations);
    if (status == VST_OK && span->self_bytes != 0)
        status = allocated_until(self, at->end_ns, &span->total_bytes,
                                 &span->allocations);
    span->total_bytes -= bytes;
    span->allocations -= allocations;
    return status == VST_OK ? args_of(self, at, span) : status;
}

/* ---- the answer ---------------------------------------------------------- */

static void span_fill(const vst_view *view, const found *at,
                      vst_view_span *span)
{
    span->id = at->id;
    span->flags = at->flags;
    span->start_ns = at->start_ns + view->offset_ns;
    span->end_ns = at->end_ns + view->offset_ns;
    span->self_ns = at->end_ns - at->start_ns;
}

static vst_status fill_parents(looking *self, vst_view_span *span)
{
    if (self->depth == 0)
        return VST_OK;
    span->parents = calloc(self->depth, sizeof *span->parents);
    if (span->parents == NULL)
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < self->depth; i++)
        if (self->at[i].is)
            span->parents[span->parent_count++] = (vst_view_parent){
                self->at[i].id, self->at[i].start_ns + self->view->offset_ns,
                self->at[i].end_ns + self->view->offset_ns};
    return VST_OK;
}

static vst_status span_answer_stack(looking *self, vst_view_span *span)
{
    vst_status status;
    const found *at;

    self->at = calloc((size_t)self->depth + 1, sizeof *self->at);
    if (self->at == NULL)
        return VST_E_NOMEM;
    status = find_on_stack(self);
    if (status != VST_OK)
        return status;
    at = &self->at[self->depth];
    span_fill(self->view, at, span);
    status = fill_parents(self, span);
    if (status != VST_OK)
        return status;
    if (self->thread->level_count == 0 || self->depth + 1 >= VST_ROWS_MAX ||
        vst__view_words(self->view, self->stretch, at->start_ns, at->end_ns) <=
            self->view->span_words_max) {
        vst__view_wanted wanted = {at->start_ns, at->end_ns, at->id,
                                   self->depth, false};
        return vst__view_replay(&self->pass, self->stretch, &wanted,
                                at->start_ns, at->end_ns, span);
    }
    return read_edges(self, at, span);
}

/* Fills the content of a span off the stack, if a stretch has its record. */
static vst_status read_lane_span(looking *self, const found *at, size_t number,
                                 vst_view_span *span)
{
    vst_view *view = self->view;
    vst__view_wanted wanted = {at->start_ns, at->end_ns, at->id, 0, true};

    if (view->stretches[number].thread != self->thread->number ||
        !vst__view_touches(view, number, at->start_ns, at->end_ns) ||
        vst__view_words(view, number, at->start_ns, at->end_ns) >
            view->span_words_max)
        return VST_OK;
    return vst__view_replay(&self->pass, number, &wanted, at->start_ns,
                            at->end_ns, span);
}

static vst_status span_answer_lane(looking *self, uint32_t lane,
                                   vst_view_span *span)
{
    vst_view *view = self->view;
    found at = {.is = false};
    vst_status status = VST_OK;
    vst__runs runs;
    vst__run run;

    if (!vst__runs_open(&runs, &view->index, self->thread,
                        VST_ROW_OFF_STACK | lane, 0, self->time_ns))
        return VST_E_ARGUMENT;
    while (vst__runs_next(&runs, &run) && run.start_ns <= self->time_ns)
        if (span_covers(run.start_ns, run.end_ns, self->time_ns))
            at = (found){run.start_ns, run.end_ns, run.id, run.flags, true};
    if (!at.is)
        return VST_E_ARGUMENT;
    span_fill(view, &at, span);
    for (size_t i = 0; status == VST_OK && i < view->stretch_count; i++)
        status = read_lane_span(self, &at, i, span);
    return status;
}

/* Answers a question about a row; the caller has entered the view. */
static vst_status span_look(vst_view *view, uint32_t number, uint32_t depth,
                            int64_t time_ns, vst_view_span *span, bool only_end,
                            vst_error *error)
{
    looking self = {.view = view, .depth = depth};
    vst_view_range range = {.from_ns = time_ns, .pixels = 1};
    vst_view_range clean;
    vst_status status;

    range.to_ns = time_ns < INT64_MAX ? time_ns + 1 : time_ns;
    self.thread = vst__index_thread_find(&view->index, number);
    if (self.thread == NULL ||
        vst__view_clean_range(view, &range, &clean) != VST_OK ||
        depth >= self.thread->levels + self.thread->off_stack)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    self.time_ns = clean.from_ns;
    vst__view_enter(view);
    status = vst__pass_init(&self.pass, view);
    span->thread = number;
    span->depth = depth;
    if (status == VST_OK && depth >= self.thread->levels) {
        status = span_answer_lane(&self, depth - self.thread->levels, span);
    } else if (status == VST_OK && only_end) {
        self.at = calloc((size_t)depth + 1, sizeof *self.at);
        status = self.at != NULL ? find_on_stack(&self) : VST_E_NOMEM;
        if (status == VST_OK)
            span_fill(view, &self.at[depth], span);
    } else if (status == VST_OK) {
        status = span_answer_stack(&self, span);
    }
    status = vst__pass_error(&self.pass, status, error);
    vst__pass_free(&self.pass);
    vst__view_leave(view);
    free(self.at);
    return status;
}

vst_status vst__view_span_at(vst_view *view, uint32_t thread, uint32_t depth,
                             int64_t time_ns, vst_view_span *span,
                             vst_error *error)
{
    vst_status status;

    memset(span, 0, sizeof *span);
    status = span_look(view, thread, depth, time_ns, span, false, error);
    if (status != VST_OK)
        vst__view_span_free(span);
    return status;
}

vst_status vst__view_find_end(vst_view *view, vst_view_span *span,
                              vst_error *error)
{
    return span_look(view, span->thread, span->depth, span->start_ns, span,
                     true, error);
}

void vst__view_span_free(vst_view_span *span)
{
    free(span->args);
    free(span->parents);
    memset(span, 0, sizeof *span);
}
