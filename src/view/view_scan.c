/* Questions that look at every span of a range: how many spans per pixel, the
 * next span, and the tree of calls. */
#include <stdlib.h>
#include <string.h>

#include "view/view_span.h"

__extension__ typedef unsigned __int128 u128;

/* Larger ids are ignored; ids of functions are small numbers. */
enum { SET_MAX = 1 << 24 };

typedef struct id_set {
    unsigned char *bits;
    vst_id max;
} id_set;

static vst_status make_set(id_set *set, const vst_view_ids *ids)
{
    set->max = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] > set->max && ids->ids[i] < SET_MAX)
            set->max = ids->ids[i];
    set->bits = calloc(set->max / 8 + 1, 1);
    if (set->bits == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] <= set->max)
            set->bits[ids->ids[i] / 8] |=
                (unsigned char)(1u << (ids->ids[i] & 7));
    return VST_OK;
}

static bool scan_has(const id_set *set, vst_id id)
{
    return id <= set->max && set->bits[id / 8] >> (id & 7) & 1;
}

/* ---- all spans of a range ------------------------------------------------ */

/* Called for each span that begins in the range; end_ns is INT64_MAX if it ends
 * behind it. */
typedef struct scan {
    vst_view *view;
    vst_view_range range;
    vst__pass pass;
    id_set set;
    void (*span)(void *ctx, const vst__index_thread *thread,
                 const vst__walk_span *span);
    void *ctx;
} scan;

static void scan_check_span(scan *self, const vst__index_thread *thread,
                            const vst__walk_span *span)
{
    if (span->start_ns >= self->range.from_ns &&
        span->start_ns < self->range.to_ns && scan_has(&self->set, span->id))
        self->span(self->ctx, thread, span);
}

static vst_status scan_check_open(scan *self, const vst__index_thread *thread)
{
    size_t count;
    const vst__open *open = vst__walk_open_spans(&self->pass.walk, &count);

    if (open == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (vst__pass_is_on_stack(&self->pass, thread, &open[i]))
            scan_check_span(self, thread,
                            &(vst__walk_span){.start_ns = open[i].start_ns,
                                              .end_ns = INT64_MAX,
                                              .id = open[i].id,
                                              .depth = (uint32_t)i});
    return VST_OK;
}

static vst_status scan_stretch(scan *self, const vst__index_thread *thread,
                               size_t number)
{
    vst_status status = vst__pass_open(&self->pass, number, self->range.from_ns,
                                       self->range.to_ns);
    bool ends = false;

    while (status == VST_OK && !ends) {
        const vst__walk *walk = &self->pass.walk;

        status = vst__pass_next(&self->pass, self->range.to_ns, &ends);
        for (size_t i = 0; status == VST_OK && i < walk->span_count; i++)
            if (!(walk->spans[i].flags & VST_SPAN_ASYNC))
                scan_check_span(self, thread, &walk->spans[i]);
    }
    if (status == VST_OK && !self->pass.walk.finished)
        status = scan_check_open(self, thread);
    return status;
}

/* Looks at the spans off the stack, which the index has. */
static void scan_lanes(scan *self, const vst__index_thread *thread)
{
    for (uint32_t i = 0; i < thread->off_stack; i++) {
        vst__runs runs;
        vst__run run;

        if (!vst__runs_open(&runs, &self->view->index, thread,
                            VST_ROW_OFF_STACK | i, 0, self->range.from_ns))
            continue;
        while (vst__runs_next(&runs, &run) && run.start_ns < self->range.to_ns)
            scan_check_span(self, thread,
                            &(vst__walk_span){.start_ns = run.start_ns,
                                              .end_ns = run.end_ns,
                                              .id = run.id,
                                              .flags = run.flags,
                                              .depth = thread->levels + i});
    }
}

static vst_status scan_threads(scan *self)
{
    vst_view *view = self->view;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < view->stretch_count; i++) {
        const vst__index_thread *thread =
            vst__index_thread_find(&view->index, view->stretches[i].thread);

        if (thread != NULL && vst__view_wants(&self->range, thread->number) &&
            vst__view_touches(view, i, self->range.from_ns, self->range.to_ns))
            status = scan_stretch(self, thread, i);
    }
    for (size_t i = 0; i < view->index.header->threads.count; i++)
        if (status == VST_OK &&
            vst__view_wants(&self->range, view->index.threads[i].number))
            scan_lanes(self, &view->index.threads[i]);
    return status;
}

static void expect_words(vst__pass *pass, const vst_view_range *range)
{
    vst_view *view = pass->view;

    pass->progress = range->progress;
    pass->progress_ctx = range->progress_ctx;
    for (size_t i = 0; i < view->stretch_count; i++)
        if (vst__view_wants(range, view->stretches[i].thread) &&
            vst__view_touches(view, i, range->from_ns, range->to_ns))
            pass->words_total +=
                vst__view_words(view, i, range->from_ns, range->to_ns);
}

/* ---- counts per pixel ---------------------------------------------------- */

typedef struct counting {
    const vst_view_range *range;
    uint32_t *counts;
} counting;

static void count_span(void *ctx, const vst__index_thread *thread,
                       const vst__walk_span *span)
{
    counting *self = ctx;
    const vst_view_range *range = self->range;

    (void)thread;
    self->counts[(u128)(span->start_ns - range->from_ns) * range->pixels /
                 (u128)(range->to_ns - range->from_ns)]++;
}

vst_status vst__view_find(vst_view *view, const vst_view_range *range,
                          const vst_view_ids *ids, uint32_t *counts,
                          vst_error *error)
{
    counting ctx = {.counts = counts};
    scan self = {.view = view, .span = count_span, .ctx = &ctx};
    vst_status status = vst__view_clean_range(view, range, &self.range);

    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    ctx.range = &self.range;
    memset(counts, 0, range->pixels * sizeof *counts);
    vst__view_enter(view);
    status = vst__pass_init(&self.pass, view);
    if (status == VST_OK)
        status = make_set(&self.set, ids);
    if (status == VST_OK) {
        expect_words(&self.pass, &self.range);
        status = scan_threads(&self);
    }
    status = vst__pass_error(&self.pass, status, error);
    vst__pass_free(&self.pass);
    vst__view_leave(view);
    free(self.set.bits);
    return status;
}

/* ---- the next span ------------------------------------------------------- */

typedef struct searching {
    bool back, found;
    const vst__index_thread *thread;
    vst__walk_span best;
} searching;

static void compare_span(void *ctx, const vst__index_thread *thread,
                         const vst__walk_span *span)
{
    searching *self = ctx;

    if (self->found && (self->back ? span->start_ns <= self->best.start_ns
                                   : span->start_ns >= self->best.start_ns))
        return;
    self->found = true;
    self->thread = thread;
    self->best = *span;
}

/* Looks at growing stretches of time until one has a match. */
static vst_status scan_search(scan *self, int64_t at_ns)
{
    const searching *found = self->ctx;
    vst_trace_info *info = &self->view->info;
    int64_t first_ns = info->start_ns - VST_VIEW_EDGE_NS;
    int64_t last_ns = info->end_ns + VST_VIEW_EDGE_NS;
    int64_t step_ns = (last_ns - first_ns) / 4096 + 1000;
    vst_status status = VST_OK;

    if (!found->back && at_ns < first_ns)
        at_ns = first_ns;
    if (found->back && at_ns > last_ns)
        at_ns = last_ns;
    while (status == VST_OK && !found->found &&
           (found->back ? at_ns > first_ns : at_ns < last_ns)) {
        self->range.from_ns = found->back ? at_ns - step_ns : at_ns;
        self->range.to_ns = found->back ? at_ns : at_ns + step_ns;
        status = scan_threads(self);
        at_ns = found->back ? self->range.from_ns : self->range.to_ns;
        if (step_ns < (last_ns - first_ns) / 16)
            step_ns *= 2;
    }
    return status;
}

vst_status vst__view_next(vst_view *view, const vst_view_range *range,
                          const vst_view_ids *ids, bool back,
                          vst_view_span *span, vst_error *error)
{
    searching ctx = {.back = back};
    scan self = {.view = view, .span = compare_span, .ctx = &ctx};
    vst_view_range whole = *range;
    vst_status status;

    whole.pixels = 1;
    if (whole.from_ns == INT64_MAX)
        whole.from_ns--;
    whole.to_ns = whole.from_ns + 1;
    memset(span, 0, sizeof *span);
    status = vst__view_clean_range(view, &whole, &self.range);
    if (status != VST_OK)
        return vst_error_set(error, status, 0, 0);
    vst__view_enter(view);
    status = vst__pass_init(&self.pass, view);
    if (status == VST_OK)
        status = make_set(&self.set, ids);
    if (status == VST_OK) {
        self.pass.progress = range->progress;
        self.pass.progress_ctx = range->progress_ctx;
        self.pass.words_total = view->index.header->identity.words;
        status = scan_search(&self, self.range.from_ns + !back);
    }
    if (status == VST_OK && !ctx.found)
        status = VST_E_ARGUMENT;
    status = vst__pass_error(&self.pass, status, error);
    vst__pass_free(&self.pass);
    vst__view_leave(view);
    free(self.set.bits);
    if (status != VST_OK)
        return status;
    *span = (vst_view_span){
        .id = ctx.best.id,
        .thread = ctx.thread->number,
        .depth = ctx.best.depth,
        .flags = ctx.best.flags,
        .start_ns = ctx.best.start_ns + view->offset_ns,
        .end_ns = ctx.best.end_ns,
    };
    if (ctx.best.end_ns != INT64_MAX) {
        span->end_ns += view->offset_ns;
        return VST_OK;
    }
    return vst__view_find_end(view, span, error);
}

/* ---- the tree of calls --------------------------------------------------- */

static vst_status flame_stretch(vst__pass *pass, size_t number,
                                const vst_view_range *range)
{
    vst_status status =
        vst__pass_open(pass, number, range->from_ns, range->to_ns);
    bool ends = false;

    while (status == VST_OK && !ends)
        status = vst__pass_next(pass, range->to_ns, &ends);
    vst__flame_end(pass->walk.tree);
    return status;
}

vst_status vst__view_flame(vst_view *view, const vst_view_range *range,
                           vst_view_flame_row **rows, size_t *count,
                           vst_error *error)
{
    vst_view_range clean, whole = *range;
    vst__flame tree = {0};
    vst__pass pass;
    vst_status status;

    *rows = NULL;
    *count = 0;
    whole.pixels = 1;
    if (vst__view_clean_range(view, &whole, &clean) != VST_OK)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    tree.from_ns = clean.from_ns;
    tree.to_ns = clean.to_ns;
    tree.imports = view->reading.imports;
    vst__view_enter(view);
    status = vst__pass_init(&pass, view);
    pass.walk.tree = &tree;
    if (status == VST_OK)
        expect_words(&pass, &clean);
    for (size_t i = 0; status == VST_OK && i < view->stretch_count; i++)
        if (vst__view_wants(range, view->stretches[i].thread) &&
            vst__view_touches(view, i, clean.from_ns, clean.to_ns))
            status = flame_stretch(&pass, i, &clean);
    status = vst__pass_error(&pass, status, error);
    vst__pass_free(&pass);
    vst__view_leave(view);
    if (status == VST_OK) {
        vst__flame_finish(&tree);
        *rows = tree.rows;
        *count = tree.count;
        tree.rows = NULL;
    }
    vst__flame_free(&tree);
    return status;
}
