/* A walk through a part of a trace, from the checkpoint before it. Every
 * question that is answered from records begins here. */
#include <stdlib.h>
#include <string.h>

#include "os/progress.h"
#include "view/pass.h"

void vst__view_enter(vst_view *view)
{
    if (view->reading.source.packed != NULL)
        pthread_mutex_lock(&view->lock);
}

void vst__view_leave(vst_view *view)
{
    if (view->reading.source.packed != NULL)
        pthread_mutex_unlock(&view->lock);
}

/* Limits a time to the range of valid times, so that differences fit. */
static int64_t pass_clean_time(int64_t time_ns, int64_t offset_ns)
{
    const int64_t limit = (int64_t)1 << 61;

    if (time_ns < -limit)
        time_ns = -limit;
    if (time_ns > limit)
        time_ns = limit;
    return time_ns - offset_ns;
}

vst_status vst__view_clean_range(const vst_view *view,
                                 const vst_view_range *range,
                                 vst_view_range *clean)
{
    *clean = *range;
    clean->from_ns = pass_clean_time(range->from_ns, view->offset_ns);
    clean->to_ns = pass_clean_time(range->to_ns, view->offset_ns);
    return clean->to_ns > clean->from_ns && range->pixels != 0 &&
                   range->pixels <= VST_VIEW_PIXELS_MAX
               ? VST_OK
               : VST_E_ARGUMENT;
}

bool vst__view_wants(const vst_view_range *range, uint32_t thread)
{
    if (range->threads == NULL)
        return true;
    for (size_t i = 0; i < range->thread_count; i++)
        if (range->threads[i] == thread)
            return true;
    return false;
}

bool vst__view_touches(vst_view *view, size_t stretch, int64_t from_ns,
                       int64_t to_ns)
{
    const vst__stretch *of = &view->stretches[stretch];
    vst__clockmap clock = view->reading.clock;

    return vst__clockmap_to_ns(&clock, of->window->last) + VST_VIEW_EDGE_NS >=
               from_ns &&
           vst__clockmap_to_ns(&clock, of->window->began) - VST_VIEW_EDGE_NS <=
               to_ns;
}

/* Returns the index of the first checkpoint behind to_ns, or the number of
 * checkpoints if there is none. */
static uint64_t checkpoint_behind(const vst_view *view, size_t stretch,
                                  int64_t to_ns)
{
    return (uint64_t)(vst__checkpoint_before(&view->index, stretch, to_ns + 1) +
                      1);
}

uint64_t vst__view_words(const vst_view *view, size_t stretch, int64_t from_ns,
                         int64_t to_ns)
{
    const vst__index_stretch *of = &view->index.stretches[stretch];
    const vst__checkpoint *all = view->index.checkpoints + of->first_checkpoint;
    int64_t first = vst__checkpoint_before(&view->index, stretch, from_ns);
    uint64_t last = checkpoint_behind(view, stretch, to_ns);
    uint64_t before = first >= 0 ? all[first].words : 0;
    uint64_t behind = last < of->checkpoints ? all[last].words : of->words;

    return behind > before ? behind - before : 0;
}

vst_status vst__pass_init(vst__pass *pass, vst_view *view)
{
    memset(pass, 0, sizeof *pass);
    pass->view = view;
    return vst__walk_init(&pass->walk, &view->reading);
}

void vst__pass_free(vst__pass *pass)
{
    vst__walk_free(&pass->walk);
    free(pass->open);
}

vst_status vst__pass_open(vst__pass *pass, size_t stretch, int64_t from_ns,
                          int64_t to_ns)
{
    const vst__index *index = &pass->view->index;
    const vst__index_stretch *of = &index->stretches[stretch];
    int64_t number = vst__checkpoint_before(index, stretch, from_ns);
    uint64_t behind = checkpoint_behind(pass->view, stretch, to_ns);
    size_t last = SIZE_MAX;
    vst__place place;
    vst_status status;

    /* Read further than to_ns, for callers that continue until something ends.
     * Read one more segment, too: a batch that goes past to_ns may be the last
     * of its segment, but may be the walk's last only where the stretch ends.
     */
    behind += of->first_checkpoint;
    if (behind < of->first_checkpoint + of->checkpoints)
        last = (size_t)index->checkpoints[behind].segment + 1;
    if (number < 0)
        return vst__walk_open(&pass->walk, &pass->view->stretches[stretch],
                              NULL, last);
    status = vst__checkpoint_place(index, stretch, number, &place, &pass->open,
                                   &pass->open_capacity);
    if (status != VST_OK)
        return status;
    return vst__walk_open(&pass->walk, &pass->view->stretches[stretch], &place,
                          last);
}

static vst_status pass_report_progress(vst__pass *pass)
{
    double done;

    if (pass->words_total == 0)
        return VST_OK;
    done = (double)pass->words / (double)pass->words_total;
    return vst__progress_report(pass->progress, pass->progress_ctx,
                                &pass->next_progress_ns, done < 1 ? done : 1);
}

/* Returns up to when the records have been read. */
static int64_t pass_time_read(const vst__walk *walk)
{
    return walk->plain ? walk->last_ns : walk->matcher->last_ns;
}

/* Returns a time before which no further span ends: calls that were open before
 * a gap may turn out to have ended in it. */
static int64_t pass_complete_ns(const vst__walk *walk)
{
    const vst_matcher *matcher = walk->plain ? NULL : walk->matcher;

    return matcher != NULL && (matcher->in_gap || matcher->after_gap)
               ? matcher->gap_ns
               : pass_time_read(walk);
}

vst_status vst__pass_next(vst__pass *pass, int64_t to_ns, bool *ends)
{
    uint64_t before = vst__walk_words(&pass->walk);
    vst_status status = vst__walk_next(&pass->walk, ends);

    pass->words += vst__walk_words(&pass->walk) - before;
    if (pass_complete_ns(&pass->walk) > to_ns)
        *ends = true;
    return status == VST_OK ? pass_report_progress(pass) : status;
}

bool vst__pass_is_on_stack(const vst__pass *pass,
                           const vst__index_thread *thread,
                           const vst__open *open)
{
    if (open->flags & VST_FRAME_DEAD)
        return false;
    return !(open->flags & VST_FRAME_BEGIN) ||
           !vst__index_is_moved(&pass->view->index, thread, open->start_ns,
                                pass_time_read(&pass->walk));
}

int64_t vst__pass_time(const vst__pass *pass, uint32_t depth, int64_t from_ns,
                       int64_t to_ns)
{
    int64_t sum_ns = 0;

    for (size_t i = 0; i < pass->walk.span_count; i++) {
        const vst__walk_span *span = &pass->walk.spans[i];

        if (span->depth == depth && !(span->flags & VST_SPAN_ASYNC) &&
            span->start_ns >= from_ns && span->end_ns <= to_ns)
            sum_ns += span->end_ns - span->start_ns;
    }
    return sum_ns;
}

vst_status vst__pass_error(const vst__pass *pass, vst_status status,
                           vst_error *error)
{
    return vst_error_set(
        error, status, status == VST_E_IO ? pass->walk.block.sys_errno : 0, 0);
}
