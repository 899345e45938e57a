/* The tables of an index (index.h) in memory, made again each time the trace
 * has grown. They are a hundredth of the size of the blocks, which stay. In
 * these tables, runs and calls that are still open end at the trace's end. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/follow/live.h"

/* A growing table. */
typedef struct table {
    char *items;
    size_t count, capacity;
} table;

static vst_status live_add(table *to, const void *items, size_t count,
                           size_t size)
{
    char *grown = vst__grow(to->items, &to->capacity, to->count + count, size);

    if (grown == NULL)
        return VST_E_NOMEM;
    to->items = grown;
    if (count != 0)
        memcpy(grown + to->count * size, items, count * size);
    to->count += count;
    return VST_OK;
}

typedef struct tables {
#define TABLE(name, type) table name;
    VST_INDEX_TABLES(TABLE)
#undef TABLE
} tables;

#define ADD(to, items, count) live_add(&(to), (items), (count), sizeof *(items))

void vst__live_unpublish(vst__live *live)
{
#define FREE(name, type) free((void *)(uintptr_t)live->index.name);
    VST_INDEX_TABLES(FREE)
#undef FREE
    memset(&live->index, 0, sizeof live->index);
    live->bytes.count = live->bytes.stay;
}

void vst__live_break(vst__live *live)
{
    vst__live_unpublish(live);
    memset(&live->header, 0, sizeof live->header);
    live->index.header = &live->header;
    live->broken = true;
}

/* ---- threads ------------------------------------------------------------- */

/* Adds the open calls, innermost first, as if they ended now. */
static vst_status add_open(vst__live *live, vst__index_thread *thread,
                           vst__pyramid *pyramid)
{
    const vst__following *following = &live->following;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < following->count; i++) {
        vst__follower *follower = following->followers[i];
        vst__clockmap clock = following->reading.clock;
        const vst__open *open;
        size_t count;
        int64_t end_ns;

        if (follower->thread != thread->number || follower->stretch == NULL)
            continue;
        open = vst__walk_open_spans(&follower->walk, &count);
        if (open == NULL)
            return VST_E_NOMEM;
        end_ns = vst__clockmap_to_ns(&clock, follower->stretch->window->last);
        while (status == VST_OK && count-- != 0) {
            vst__walk_span span = {
                .start_ns = open[count].start_ns,
                .end_ns = end_ns,
                .id = open[count].id,
                .flags = (open[count].flags & ~(uint32_t)VST_FRAME_OWN) |
                         VST_SPAN_OPEN_AT_END,
                .depth = (uint32_t)count,
            };
            if (open[count].flags & VST_FRAME_DEAD)
                continue;
            if (thread->spans++ == 0 || span.start_ns < thread->start_ns)
                thread->start_ns = span.start_ns;
            if (span.end_ns > thread->end_ns)
                thread->end_ns = span.end_ns;
            if (span.depth >= thread->levels)
                thread->levels = span.depth + 1;
            status = vst__pyramid_add(pyramid, &span);
        }
    }
    return status;
}

/* Makes a stream of the blocks of each row and level. */
static vst_status add_streams(tables *to, const vst__pyramid *pyramid,
                              vst__index_thread *thread)
{
    vst_status status = VST_OK;

    thread->first_stream = to->streams.count;
    for (size_t i = 0, next; status == VST_OK && i < pyramid->block_count;
         i = next) {
        const vst__block_of *first = &pyramid->blocks[i];
        vst__index_stream stream = {first->row, first->level, to->blocks.count,
                                    0};

        for (next = i; status == VST_OK && next < pyramid->block_count &&
                       pyramid->blocks[next].row == first->row &&
                       pyramid->blocks[next].level == first->level;
             next++) {
            status = ADD(to->blocks, &pyramid->blocks[next].block, 1);
            stream.blocks++;
        }
        if (status == VST_OK)
            status = ADD(to->streams, &stream, 1);
    }
    thread->streams = to->streams.count - thread->first_stream;
    return status;
}

static vst_status add_moves(tables *to, const vst__thread_part *part,
                            vst__index_thread *thread)
{
    vst_status status = VST_OK;

    thread->first_move = to->moves.count;
    thread->moves = part->move_count;
    if (part->move_count != 0)
        status = ADD(to->moves, part->moves, part->move_count);
    if (status == VST_OK && part->move_count != 0)
        vst__index_sort_moves((vst__index_move *)(void *)to->moves.items +
                                  thread->first_move,
                              part->move_count);
    return status;
}

static vst_status live_add_thread(vst__live *live, tables *to,
                                  const vst__live_thread *of, uint32_t number)
{
    vst__index_thread thread = {.number = number};
    vst__pyramid ended;
    vst_status status = VST_OK;

    if (of != NULL) {
        thread = of->part.thread;
        if (!vst__pyramid_copy(&ended, &of->pyramid, vst__live_append,
                               &live->bytes))
            status = VST_E_NOMEM;
        if (status == VST_OK)
            status = add_open(live, &thread, &ended);
        if (status == VST_OK)
            status = vst__pyramid_finish(&ended);
        thread.off_stack = ended.lane_count;
        if (status == VST_OK)
            status = add_streams(to, &ended, &thread);
        if (status == VST_OK)
            status = add_moves(to, &of->part, &thread);
        vst__pyramid_free(&ended);
    }
    live->header.spans += thread.spans;
    return status == VST_OK ? ADD(to->threads, &thread, 1) : status;
}

static vst_status add_threads(vst__live *live, tables *to)
{
    const vst_trace *trace = live->following.trace;
    vst_status status = VST_OK;
    size_t at = 0;

    for (size_t i = 0; status == VST_OK && i < trace->thread_count; i++) {
        uint32_t number = trace->threads[i].number;
        const vst__live_thread *thread = NULL;

        while (at < live->thread_count &&
               live->threads[at]->part.thread.number < number)
            at++;
        if (at < live->thread_count &&
            live->threads[at]->part.thread.number == number)
            thread = live->threads[at];
        status = live_add_thread(live, to, thread, number);
    }
    return status;
}

/* ---- the other tables ---------------------------------------------------- */

vst__open *vst__live_frames(const vst__stretch_part *part, size_t number)
{
    const vst__checkpoint *at = &part->checkpoints[number];
    uint32_t wanted = at->open_count;
    vst__open *frames = malloc((wanted + 1u) * sizeof *frames);

    if (frames == NULL)
        return NULL;
    for (; wanted != 0; at--) {
        if (at->kept < wanted) {
            memcpy(frames + at->kept, part->frames + at->first_frame,
                   (wanted - at->kept) * sizeof *frames);
            wanted = at->kept;
        }
        if (at == part->checkpoints)
            break;
    }
    return frames;
}

static vst_status add_whole(tables *to, const vst__stretch_part *part,
                            vst__checkpoint *checkpoint, size_t number)
{
    vst__open *frames = vst__live_frames(part, number);
    vst_status status;

    if (frames == NULL)
        return VST_E_NOMEM;
    checkpoint->kept = 0;
    checkpoint->first_frame = to->frames.count;
    status = ADD(to->frames, frames, checkpoint->open_count);
    free(frames);
    return status;
}

/* Adds the checkpoints of a stretch. Leaves out those in segments that a
 * bounded file dropped; the first one that is left gets all of its frames.
 * Counts words again from the stretch's present beginning. */
static vst_status add_checkpoints(tables *to, const vst__follower *follower,
                                  vst__index_stretch *of)
{
    const vst__live_stretch *stretch = follower->user_data;
    const vst__stretch_part *part = &stretch->part;
    size_t first = 0, frames = to->frames.count, segment = 0;
    uint64_t words = 0; /* words before the checkpoint's segment */
    vst_status status = ADD(to->frames, part->frames, part->frame_count);

    while (first < part->count &&
           part->checkpoints[first].segment < stretch->dropped)
        first++;
    for (size_t i = first; status == VST_OK && i < part->count; i++) {
        vst__checkpoint checkpoint = part->checkpoints[i];

        checkpoint.segment -= stretch->dropped;
        checkpoint.first_frame += frames;
        while (segment < checkpoint.segment)
            words += follower->stretch->segments[segment++].words;
        checkpoint.words = words + checkpoint.word;
        if (i == first && first != 0)
            status = add_whole(to, part, &checkpoint, i);
        if (status == VST_OK)
            status = ADD(to->checkpoints, &checkpoint, 1);
        of->checkpoints++;
    }
    return status;
}

static vst_status add_stretches(const vst__live *live, tables *to)
{
    const vst__following *following = &live->following;
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < following->count; i++) {
        const vst__follower *follower = following->followers[i];
        vst__index_stretch of = {.first_checkpoint = to->checkpoints.count};

        if (follower->stretch == NULL)
            continue;
        of.words = follower->stretch->words;
        status = add_checkpoints(to, follower, &of);
        if (status == VST_OK)
            status = ADD(to->stretches, &of, 1);
    }
    return status;
}

static vst_status add_tracks(const vst__live *live, tables *to)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < live->thread_count; i++) {
        const vst__thread_part *part = &live->threads[i]->part;

        status = ADD(to->losses, part->losses, part->loss_count);
        for (size_t j = 0; status == VST_OK && j < part->tracks.count; j++) {
            const vst__track *track = &part->tracks.tracks[j];
            vst__index_track kept = {track->kind,      track->id,
                                     track->thread,    0,
                                     to->points.count, track->count};

            status = ADD(to->tracks, &kept, 1);
            if (status == VST_OK)
                status = ADD(to->points, track->points, track->count);
        }
    }
    return status;
}

vst_status vst__live_publish(vst__live *live)
{
    const vst__following *following = &live->following;
    vst__index *index = &live->index;
    tables to = {0};
    vst_status status;

    memset(&live->header, 0, sizeof live->header);
    live->bytes.stay = live->bytes.count;
    status = add_threads(live, &to);
    if (status == VST_OK)
        status = add_stretches(live, &to);
    if (status == VST_OK)
        status = add_tracks(live, &to);
#define TAKE(name, type)                                                       \
    index->name = (const type *)(const void *)to.name.items;                   \
    live->header.name.count = to.name.count;
    VST_INDEX_TABLES(TAKE)
#undef TAKE
    for (size_t i = 0; i < following->stretch_count; i++)
        live->header.identity.words += following->stretches[i].words;
    live->header.size = live->bytes.count;
    index->header = &live->header;
    index->bytes = live->bytes.bytes;
    index->size = live->bytes.count;
    if (status != VST_OK || live->broken)
        vst__live_break(live);
    return status;
}
