/* The index data of one thread while its records are walked: sums, checkpoints,
 * losses and counters. Used by builders of an index, whether of a finished
 * trace or of one that grows. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "view/index_build.h"

static vst_status part_take_loss(void *ctx, const vst_loss *loss)
{
    vst__thread_part *part = ctx;
    vst__index_loss *losses = vst__grow(part->losses, &part->loss_capacity,
                                        part->loss_count + 1, sizeof *losses);

    if (losses == NULL)
        return VST_E_NOMEM;
    part->losses = losses;
    losses[part->loss_count++] =
        (vst__index_loss){(uint32_t)loss->kind, loss->thread, loss->start_ns,
                          loss->end_ns, loss->records};
    return VST_OK;
}

static vst_status take_counter(void *ctx, const vst_counter *counter)
{
    vst__thread_part *part = ctx;

    return vst__tracks_add(&part->tracks, VST_TRACK_COUNTER, counter->id,
                           counter->thread, counter->time_ns, counter->value);
}

static vst_status take_moved(void *ctx, int64_t start_ns, int64_t time_ns)
{
    vst__thread_part *part = ctx;

    if (!VST_RESERVE(part->moves, part->move_count + 1, part->move_capacity))
        return VST_E_NOMEM;
    part->moves[part->move_count++] = (vst__index_move){start_ns, time_ns};
    return VST_OK;
}

static int part_by_start(const void *a, const void *b)
{
    const vst__index_move *x = a, *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void vst__index_sort_moves(vst__index_move *moves, size_t count)
{
    if (count > 1)
        qsort(moves, count, sizeof *moves, part_by_start);
}

static bool is_same(const vst__open *a, const vst__open *b)
{
    return a->start_ns == b->start_ns && a->id == b->id && a->pair == b->pair &&
           a->flags == b->flags;
}

/* Returns how many frames two checkpoints share. A frame that is open in both
 * has the same frames below it. */
static size_t find_kept(const vst__open *before, size_t before_count,
                        const vst__open *now, size_t count)
{
    size_t low = 0, high = before_count < count ? before_count : count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_same(&before[middle], &now[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether to keep a checkpoint: no more frames are kept than there are
 * words. A call is new in one checkpoint only, but if two stacks alternate, all
 * of their frames are new in each. Without a checkpoint, a walk begins further
 * back. */
static bool is_worth_it(const vst__stretch_part *part, size_t fresh,
                        uint64_t words)
{
    return part->frame_count + fresh <= words;
}

vst_status vst__index_add_checkpoint(vst__stretch_part *part,
                                     vst__last_open *last,
                                     const vst__place *place, uint64_t words)
{
    size_t kept =
        find_kept(last->frames, last->count, place->open, place->open_count);
    size_t fresh = place->open_count - kept;
    vst__checkpoint *checkpoints;
    vst__open *frames, *open;

    if (!is_worth_it(part, fresh, words))
        return VST_OK;
    checkpoints = vst__grow(part->checkpoints, &part->capacity, part->count + 1,
                            sizeof *checkpoints);
    frames = vst__grow(part->frames, &part->frame_capacity,
                       part->frame_count + fresh + 1, sizeof *frames);
    open = vst__grow(last->frames, &last->capacity, place->open_count + 1u,
                     sizeof *open);

    if (checkpoints != NULL)
        part->checkpoints = checkpoints;
    if (frames != NULL)
        part->frames = frames;
    if (open != NULL)
        last->frames = open;
    if (checkpoints == NULL || frames == NULL || open == NULL)
        return VST_E_NOMEM;
    checkpoints[part->count++] = (vst__checkpoint){
        .segment = place->segment,
        .word = place->word,
        .ticks = place->ticks,
        .records = place->records,
        .last_ns = place->last_ns,
        .bytes = place->bytes,
        .allocations = place->allocations,
        .words = words,
        .first_frame = part->frame_count,
        .kept = (uint32_t)kept,
        .open_count = place->open_count,
        .delivered = place->delivered,
    };
    if (fresh != 0) {
        memcpy(frames + part->frame_count, place->open + kept,
               fresh * sizeof *frames);
        memcpy(open + kept, place->open + kept, fresh * sizeof *open);
    }
    part->frame_count += fresh;
    last->count = place->open_count;
    return VST_OK;
}

vst_status vst__index_add_spans(vst__thread_part *part, vst__pyramid *pyramid,
                                const vst__walk *walk)
{
    vst__index_thread *thread = &part->thread;
    vst_status status = VST_OK;

    for (size_t i = 0; i < walk->span_count; i++) {
        const vst__walk_span *span = &walk->spans[i];

        if (span->start_ns < thread->start_ns || thread->spans == 0)
            thread->start_ns = span->start_ns;
        if (span->end_ns > thread->end_ns || thread->spans == 0)
            thread->end_ns = span->end_ns;
        thread->spans++;
        if (span->depth >= thread->levels && !(span->flags & VST_SPAN_ASYNC))
            thread->levels = span->depth + 1;
        status = vst__pyramid_add(pyramid, span);
        if (status != VST_OK)
            break;
    }
    return status;
}

vst_sink vst__index_sink(vst__thread_part *part)
{
    static const vst_sink_inside inside = {.moved = take_moved};

    return (vst_sink){.ctx = part,
                      .loss = part_take_loss,
                      .counter = take_counter,
                      .inside = &inside};
}

void vst__thread_part_free(vst__thread_part *part)
{
    free(part->blocks);
    free(part->losses);
    free(part->moves);
    vst__tracks_free(&part->tracks);
}

void vst__stretch_part_free(vst__stretch_part *part)
{
    free(part->checkpoints);
    free(part->frames);
}
