/* See live.h: reads the new records, each thread's by its follower. */
#include "view/follow/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { NS_BITS = 60 }; /* threshold of the coarsest level: 2^60 ns */

vst_status vst__live_append(void *ctx, const void *bytes, size_t count,
                            uint64_t *offset)
{
    vst__live_bytes *to = ctx;

    if (!VST_RESERVE(to->bytes, to->count + count, to->capacity))
        return VST_E_NOMEM;
    memcpy(to->bytes + to->count, bytes, count);
    *offset = to->count;
    to->count += count;
    return VST_OK;
}

/* ---- threads ------------------------------------------------------------- */

static void free_thread(vst__live_thread *thread)
{
    vst__thread_part_free(&thread->part);
    vst__pyramid_free(&thread->pyramid);
    free(thread);
}

static void free_stretch(vst__live_stretch *stretch)
{
    if (stretch == NULL)
        return;
    vst__stretch_part_free(&stretch->part);
    free(stretch->last.frames);
    free(stretch);
}

static vst__live_thread *find_thread(vst__live *live, uint32_t number)
{
    vst__live_thread **threads, *made;
    size_t at = live->thread_count;

    while (at != 0 && live->threads[at - 1]->part.thread.number > number)
        at--;
    if (at != 0 && live->threads[at - 1]->part.thread.number == number)
        return live->threads[at - 1];
    threads = vst__grow(live->threads, &live->thread_capacity,
                        live->thread_count + 1, sizeof(vst__live_thread *));
    if (threads == NULL)
        return NULL;
    live->threads = threads;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->part.thread.number = number;
    vst__pyramid_init(&made->pyramid, 0, 0, vst__live_append, &live->bytes);
    memmove(threads + at + 1, threads + at,
            (live->thread_count++ - at) * sizeof(vst__live_thread *));
    threads[at] = made;
    return made;
}

/* ---- levels -------------------------------------------------------------- */

/* A thread of few records has no levels. When it has more records, it is read
 * again from its beginning, and gets enough levels for any length of run. */
static void begin_levels(vst__live *live, vst__live_thread *thread,
                         vst__follower *first)
{
    vst__index_thread kept = {.number = thread->part.thread.number,
                              .level_count = 1};

    kept.threshold_ns = vst__index_find_threshold(&first->walk, first->stretch);
    if (kept.threshold_ns == 0)
        return;
    while (kept.level_count < VST_LEVELS_MAX - 1 &&
           kept.threshold_ns < (int64_t)1
                                   << (NS_BITS - 2 * (int)kept.level_count))
        kept.level_count++;
    vst__thread_part_free(&thread->part);
    vst__pyramid_free(&thread->pyramid);
    thread->part = (vst__thread_part){.thread = kept};
    vst__pyramid_init(&thread->pyramid, kept.threshold_ns, kept.level_count,
                      vst__live_append, &live->bytes);
    for (size_t i = 0; i < live->following.count; i++) {
        vst__follower *follower = live->following.followers[i];

        if (follower->thread != kept.number)
            continue;
        follower->begun = false;
        free_stretch(follower->user_data);
        follower->user_data = NULL;
    }
}

static void choose_levels(vst__live *live, vst__live_thread *thread)
{
    vst__follower *most = NULL;
    uint64_t words = 0;

    if (thread->part.thread.level_count != 0)
        return;
    for (size_t i = 0; i < live->following.count; i++) {
        vst__follower *follower = live->following.followers[i];

        if (follower->thread != thread->part.thread.number ||
            follower->stretch == NULL)
            continue;
        words += follower->stretch->words;
        if (most == NULL || follower->stretch->words > most->stretch->words)
            most = follower;
    }
    if (words > VST_PYRAMID_RECORDS)
        begin_levels(live, thread, most);
}

/* ---- stretches ----------------------------------------------------------- */

/* Counts segments that a bounded file has dropped; they were the oldest. */
static void note_segments(vst__live_stretch *stretch, const vst__stretch *now)
{
    size_t known = 0;

    while (known < now->segment_count && stretch->segments != 0 &&
           now->segments[known].start <= stretch->newest)
        known++;
    if (stretch->segments > known)
        stretch->dropped += stretch->segments - known;
    stretch->segments = now->segment_count;
    stretch->newest = now->segments[now->segment_count - 1].start;
}

static vst_status note_place(vst__live_stretch *stretch, const vst__walk *walk)
{
    vst__place place;

    if (stretch->read < stretch->next || walk->last_ns == INT64_MIN ||
        !vst__walk_place(walk, &place))
        return VST_OK;
    stretch->next = stretch->read + VST_CHECKPOINT_RECORDS;
    place.segment += stretch->dropped;
    return vst__index_add_checkpoint(&stretch->part, &stretch->last, &place,
                                     stretch->read);
}

static vst_status read_stretch(vst__live *live, vst__live_thread *thread,
                               vst__follower *follower)
{
    vst_sink event_sink = vst__index_sink(&thread->part);
    vst__live_stretch *stretch = follower->user_data;
    vst_status status;
    bool more;

    if (stretch == NULL) {
        stretch = follower->user_data = calloc(1, sizeof *stretch);
        if (stretch == NULL)
            return VST_E_NOMEM;
        stretch->next = VST_CHECKPOINT_RECORDS;
    }
    note_segments(stretch, follower->stretch);
    follower->walk.event_sink = &event_sink;
    status = vst__follower_begin(&live->following, follower, &more);
    while (status == VST_OK && more) {
        uint64_t before = vst__walk_words(&follower->walk);

        /* Note the place before each batch: no walk may begin at the trace's
         * end. */
        status = note_place(stretch, &follower->walk);
        if (status == VST_OK)
            status = vst__follower_next(follower, &more);
        stretch->read += vst__walk_words(&follower->walk) - before;
        if (status == VST_OK)
            status = vst__index_add_spans(&thread->part, &thread->pyramid,
                                          &follower->walk);
    }
    follower->walk.event_sink = NULL;
    thread->part.thread.has_tasks |= follower->walk.has_tasks;
    vst__follower_end(follower);
    return status;
}

/* ---- the whole trace ----------------------------------------------------- */

static vst_status read_all(vst__live *live, vst_error *error)
{
    vst__following *following = &live->following;
    vst_status status = VST_OK;

    for (size_t i = 0; i < live->thread_count; i++)
        live->threads[i]->part.thread.records = 0;
    for (size_t i = 0; status == VST_OK && i < following->count; i++) {
        vst__follower *follower = following->followers[i];
        vst__live_thread *thread = find_thread(live, follower->thread);

        if (thread == NULL)
            status = VST_E_NOMEM;
        else
            choose_levels(live, thread);
    }
    for (size_t i = 0; status == VST_OK && i < following->count; i++) {
        vst__follower *follower = following->followers[i];

        if (follower->stretch != NULL)
            status = read_stretch(live, find_thread(live, follower->thread),
                                  follower);
        if (status != VST_OK)
            return vst_error_set(error, status, follower->walk.block.sys_errno,
                                 0);
    }
    return vst_error_set(error, status, 0, 0);
}

/* Publishes what could be read, even after an error. */
static vst_status read_and_publish(vst__live *live, vst_error *error)
{
    vst_status status, published;

    vst__live_unpublish(live);
    status = read_all(live, error);
    vst__live_forget(live);
    published = vst__live_publish(live);
    return status == VST_OK ? vst_error_set(error, published, 0, 0) : status;
}

vst_status vst__live_open(vst__live **out, const char *path, vst_error *error)
{
    vst__live *live = calloc(1, sizeof *live);
    vst_status status;

    *out = live;
    if (live == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = vst__following_open(&live->following, path, error);
    return status == VST_OK ? read_and_publish(live, error) : status;
}

vst_status vst__live_grow(vst__live *live, vst_error *error)
{
    vst_status status = vst__following_grow(&live->following, error);

    if (status == VST_OK)
        return read_and_publish(live, error);
    /* VST_E_DAMAGED (the file was cut or replaced) is found before anything
     * moves. */
    if (status != VST_E_DAMAGED)
        vst__live_break(live);
    return status;
}

void vst__live_close(vst__live *live)
{
    if (live == NULL)
        return;
    vst__live_unpublish(live);
    for (size_t i = 0; i < live->following.count; i++)
        free_stretch(live->following.followers[i]->user_data);
    for (size_t i = 0; i < live->thread_count; i++)
        free_thread(live->threads[i]);
    free(live->threads);
    free(live->bytes.bytes);
    vst__following_close(&live->following);
    free(live);
}

vst_trace *vst__live_trace(const vst__live *live)
{
    return live->following.trace;
}

const vst__reading *vst__live_reading(const vst__live *live)
{
    return &live->following.reading;
}

vst__stretch *vst__live_stretches(const vst__live *live, size_t *count)
{
    *count = live->broken ? 0 : live->following.stretch_count;
    return live->following.stretches;
}

const vst__index *vst__live_index(const vst__live *live)
{
    return &live->index;
}
