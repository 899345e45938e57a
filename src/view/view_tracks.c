/* Curves and losses, which are shown below the rows. Curves of counters are in
 * the index; curves of memory are read when they are first asked for. */
#include <stdlib.h>

#include "view/pass.h"

static vst_status read_memory(vst_view *view, const vst_view_range *range,
                              vst_error *error)
{
    vst_status status = VST_OK;

    if (!vst_trace_has_memory(view->trace) || view->live != NULL)
        return VST_OK;
    pthread_mutex_lock(&view->lock);
    if (!view->has_memory_tracks) {
        vst_trace_set_progress(view->trace, range->progress,
                               range->progress_ctx);
        status = vst__tracks_read_memory(&view->memory, view->trace, error);
        vst_trace_set_progress(view->trace, NULL, NULL);
        view->has_memory_tracks = status == VST_OK;
        if (status != VST_OK)
            vst__tracks_free(&view->memory);
    }
    pthread_mutex_unlock(&view->lock);
    return status;
}

static vst_status tracks_show(const vst_view *view, const vst_view_range *range,
                              vst_view_series *series)
{
    const vst__index *index = &view->index;
    size_t kept = (size_t)index->header->tracks.count;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < kept; i++) {
        const vst__index_track *track = &index->tracks[i];
        vst__track of = {
            .kind = track->kind,
            .id = track->id,
            .thread = track->thread,
            .count = (size_t)track->points,
            /* const is cast away; nothing is added to this track. */
            .points = (vst__track_point *)(uintptr_t)(index->points +
                                                      track->first_point),
        };

        status = vst__track_show(&of, range->from_ns, range->to_ns,
                                 range->pixels, &series[i]);
    }
    for (size_t i = 0; status == VST_OK && i < view->memory.count; i++)
        status =
            vst__track_show(&view->memory.tracks[i], range->from_ns,
                            range->to_ns, range->pixels, &series[kept + i]);
    return status;
}

vst_status vst__view_counters(vst_view *view, const vst_view_range *range,
                              vst_view_series **series, size_t *count,
                              vst_error *error)
{
    vst_view_range clean;
    vst_status status = vst__view_clean_range(view, range, &clean);

    *series = NULL;
    *count = 0;
    vst_error_set(error, VST_OK, 0, 0);
    if (status == VST_OK) {
        status = read_memory(view, range, error);
        if (status != VST_OK)
            return status;
        *count = (size_t)view->index.header->tracks.count + view->memory.count;
        *series = calloc(*count + 1, sizeof **series);
        status =
            *series != NULL ? tracks_show(view, &clean, *series) : VST_E_NOMEM;
    }
    if (status != VST_OK) {
        vst__view_series_free(*series, *series != NULL ? *count : 0);
        *series = NULL;
        *count = 0;
    }
    return vst_error_set(error, status, 0, 0);
}

vst_status vst__view_losses(vst_view *view, const vst_view_range *range,
                            vst_loss **losses, size_t *count, vst_error *error)
{
    const vst__index *index = &view->index;
    vst_view_range clean, whole = *range;

    whole.pixels = 1;
    *losses = NULL;
    *count = 0;
    if (vst__view_clean_range(view, &whole, &clean) != VST_OK)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    *losses = calloc((size_t)index->header->losses.count + 1, sizeof **losses);
    if (*losses == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; i < index->header->losses.count; i++) {
        const vst__index_loss *loss = &index->losses[i];

        if (loss->end_ns < clean.from_ns || loss->start_ns > clean.to_ns ||
            !vst__view_wants(range, loss->thread))
            continue;
        (*losses)[(*count)++] = (vst_loss){
            .kind = (vst_loss_kind)loss->kind,
            .thread = loss->thread,
            .start_ns = loss->start_ns + view->offset_ns,
            .end_ns = loss->end_ns + view->offset_ns,
            .records = loss->records,
        };
    }
    return vst_error_set(error, VST_OK, 0, 0);
}
