/* See track.h. */
#include "view/track.h"

#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

#include "base/grow.h"

void vst__tracks_free(vst__tracks *tracks)
{
    for (size_t i = 0; i < tracks->count; i++)
        free(tracks->tracks[i].points);
    free(tracks->tracks);
    memset(tracks, 0, sizeof *tracks);
}

static vst__track *track_find(vst__tracks *tracks, vst__track_kind kind,
                              vst_id id, uint32_t thread)
{
    vst__track *track;

    for (size_t i = tracks->count; i-- != 0;) {
        track = &tracks->tracks[i];
        if (track->kind == (uint32_t)kind && track->id == id &&
            track->thread == thread)
            return track;
    }
    track = vst__grow(tracks->tracks, &tracks->capacity, tracks->count + 1,
                      sizeof *track);
    if (track == NULL)
        return NULL;
    tracks->tracks = track;
    track += tracks->count++;
    *track = (vst__track){
        .kind = (uint32_t)kind, .id = id, .thread = thread, .every = 1};
    return track;
}

static void track_merge_point(vst__track_point *point,
                              const vst__track_point *next)
{
    point->last_ns = next->last_ns;
    point->last = next->last;
    if (next->min < point->min)
        point->min = next->min;
    if (next->max > point->max)
        point->max = next->max;
}

/* Halves the number of points: each then stands for twice as many values. */
static void track_halve(vst__track *track)
{
    size_t half = track->count / 2;

    for (size_t i = 0; i < half; i++) {
        track->points[i] = track->points[2 * i];
        track_merge_point(&track->points[i], &track->points[2 * i + 1]);
    }
    track->count = half;
    track->every *= 2;
    track->in_last = track->every;
}

vst_status vst__tracks_add(vst__tracks *tracks, vst__track_kind kind, vst_id id,
                           uint32_t thread, int64_t time_ns, double value)
{
    vst__track_point point = {time_ns, time_ns, value, value, value};
    vst__track *track = track_find(tracks, kind, id, thread);
    vst__track_point *points;

    if (track == NULL)
        return VST_E_NOMEM;
    if (track->count != 0 && track->in_last < track->every) {
        track_merge_point(&track->points[track->count - 1], &point);
        track->in_last++;
        return VST_OK;
    }
    if (track->count == VST_TRACK_POINTS_MAX)
        track_halve(track);
    points = vst__grow(track->points, &track->capacity, track->count + 1,
                       sizeof *points);
    if (points == NULL)
        return VST_E_NOMEM;
    track->points = points;
    points[track->count++] = point;
    track->in_last = 1;
    return VST_OK;
}

/* ---- memory -------------------------------------------------------------- */

static vst_status take_event(void *ctx, const vst_memory_event *event)
{
    bool framework = event->kind == VST_MEMORY_FRAMEWORK ||
                     event->kind == VST_MEMORY_FRAMEWORK_FREE;

    return vst__tracks_add(ctx,
                           framework ? VST_TRACK_FRAMEWORK : VST_TRACK_MEMORY,
                           0, 0, event->time_ns, (double)event->live_bytes);
}

vst_status vst__tracks_read_memory(vst__tracks *tracks, vst_trace *trace,
                                   vst_error *error)
{
    vst_memory_sink sink = {.ctx = tracks, .event = take_event};

    if (!vst_trace_has_memory(trace))
        return VST_OK;
    return vst_trace_replay_memory(trace, VST_WINDOW_ALL, &sink, error);
}
