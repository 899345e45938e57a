/* See followers.h. */
#include "view/follow/followers.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- followers ----------------------------------------------------------- */

static int followers_order(const vst__follower *follower, uint32_t window,
                           uint32_t thread)
{
    if (follower->window != window)
        return follower->window < window ? -1 : 1;
    return (follower->thread > thread) - (follower->thread < thread);
}

static void free_follower(vst__follower *follower)
{
    follower->walk.decoder = NULL; /* all followers share the decoder */
    vst__walk_free(&follower->walk);
    free(follower);
}

static vst_status followers_insert(vst__following *following, size_t at,
                                   const vst__stretch *stretch)
{
    vst__follower *made;
    vst_status status;

    if (!VST_RESERVE(following->followers, following->count + 1,
                     following->capacity))
        return VST_E_NOMEM;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return VST_E_NOMEM;
    status = vst__walk_init(&made->walk, &following->reading);
    vst__decoder_destroy(made->walk.decoder);
    if (status != VST_OK) {
        free_follower(made);
        return status;
    }
    made->walk.decoder = following->decoder;
    made->walk.goes_on = true;
    made->window = stretch->window->number;
    made->thread = stretch->thread;
    memmove(following->followers + at + 1, following->followers + at,
            (following->count - at) * sizeof(vst__follower *));
    following->followers[at] = made;
    following->count++;
    return VST_OK;
}

/* Gives each stretch its follower; both lists have the same order. */
static vst_status followers_match(vst__following *following)
{
    size_t at = 0;

    for (size_t i = 0; i < following->count; i++)
        following->followers[i]->stretch = NULL;
    for (size_t i = 0; i < following->stretch_count; i++) {
        const vst__stretch *stretch = &following->stretches[i];
        uint32_t window = stretch->window->number;

        while (at < following->count &&
               followers_order(following->followers[at], window,
                               stretch->thread) < 0)
            at++;
        if (at == following->count ||
            followers_order(following->followers[at], window,
                            stretch->thread) != 0) {
            vst_status status = followers_insert(following, at, stretch);
            if (status != VST_OK)
                return status;
        }
        following->followers[at]->stretch = stretch;
    }
    return VST_OK;
}

static vst_status followers_look(vst__following *following)
{
    vst_status status;

    free(following->stretches);
    status = vst__stretches_find(following->trace, &following->stretches,
                                 &following->stretch_count);
    vst__reading_init(&following->reading, following->trace);
    return status == VST_OK ? followers_match(following) : status;
}

/* ---- all followers ------------------------------------------------------- */

vst_status vst__following_open(vst__following *following, const char *path,
                               vst_error *error)
{
    vst_status status = vst__trace_open_growing(path, &following->trace, error);

    if (status != VST_OK)
        return status;
    following->decoder = vst__decoder_create();
    if (following->decoder == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    return vst_error_set(error, followers_look(following), 0, 0);
}

void vst__following_close(vst__following *following)
{
    for (size_t i = 0; i < following->count; i++)
        free_follower(following->followers[i]);
    free(following->followers);
    free(following->stretches);
    vst__decoder_destroy(following->decoder);
    vst_trace_close(following->trace);
    memset(following, 0, sizeof *following);
}

vst_status vst__following_grow(vst__following *following, vst_error *error)
{
    vst_status status = vst__trace_grow(following->trace, error);

    return status == VST_OK
               ? vst_error_set(error, followers_look(following), 0, 0)
               : status;
}

/* ---- one follower -------------------------------------------------------- */

vst_status vst__follower_begin(const vst__following *following,
                               vst__follower *follower, bool *more)
{
    vst__walk *walk = &follower->walk;

    *more = follower->stretch != NULL;
    if (!*more)
        return VST_OK;
    if (follower->begun)
        return vst__walk_resume(walk, follower->stretch, &following->reading,
                                &follower->stop, more);
    follower->begun = true;
    walk->source = following->reading.source;
    walk->clock = following->reading.clock;
    walk->block.file_size = following->trace->block.file_size;
    return vst__walk_open(walk, follower->stretch, NULL, SIZE_MAX);
}

vst_status vst__follower_next(vst__follower *follower, bool *more)
{
    vst__walk *walk = &follower->walk;
    uint64_t before = vst__walk_words(walk);
    bool ends;
    vst_status status = vst__walk_next(walk, &ends);

    follower->words += vst__walk_words(walk) - before;
    *more = status == VST_OK && !ends;
    if (!*more) {
        follower->words -= walk->decoder->before_shown;
        vst__walk_stop(walk, &follower->stop);
    }
    return status;
}

void vst__follower_end(vst__follower *follower)
{
    vst__walk_rest(&follower->walk);
}
