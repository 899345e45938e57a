/* Forgets what a bounded file has dropped, so that the index stays as small as
 * the file, however long it is followed. Runs when at least half of the block
 * bytes are useless, so each byte is moved once on average. One thread at a
 * time. */
#include <stdlib.h>
#include <string.h>

#include "base/map64.h"
#include "view/follow/live.h"

/* bytes of useless blocks below which nothing is moved */
enum { WORTH_IT = 1 << 16 };

/* ---- blocks -------------------------------------------------------------- */

/* A block ends where the next one of its row and level begins. Marks blocks
 * that end before from_ns by setting VST_LIVE_OLD in their level, and sums up
 * their bytes. */
static bool mark_old(vst__pyramid *pyramid, int64_t from_ns, uint64_t *bytes)
{
    /* (row, level) -> start of the next later block */
    vst__map64 next = {NULL, 0, 0};
    bool marked = true;

    for (size_t i = pyramid->block_count; marked && i-- != 0;) {
        vst__block_of *block = &pyramid->blocks[i];
        uint64_t *place =
            vst__map64_put(&next, (uint64_t)block->row << 32 | block->level);

        marked = place != NULL;
        if (!marked)
            break;
        if (*place != 0 && (int64_t)*place <= from_ns) {
            *bytes += block->block.bytes;
            block->level |= VST_LIVE_OLD;
        }
        *place = (uint64_t)block->block.start_ns;
    }
    vst__map64_free(&next);
    return marked;
}

static void live_unmark(vst__pyramid *pyramid)
{
    for (size_t i = 0; i < pyramid->block_count; i++)
        pyramid->blocks[i].level &= ~VST_LIVE_OLD;
}

/* Drops the marked blocks, and moves the bytes of the others. */
static void keep_rest(vst__pyramid *pyramid, const unsigned char *from,
                      unsigned char *to, size_t *count)
{
    size_t kept = 0;

    for (size_t i = 0; i < pyramid->block_count; i++) {
        vst__block_of block = pyramid->blocks[i];

        if (block.level & VST_LIVE_OLD)
            continue;
        memcpy(to + *count, from + block.block.offset, block.block.bytes);
        block.block.offset = *count;
        *count += block.block.bytes;
        block.order = kept;
        pyramid->blocks[kept++] = block;
    }
    pyramid->block_count = kept;
}

static bool forget_blocks(vst__live *live, int64_t from_ns)
{
    vst__live_bytes *bytes = &live->bytes;
    unsigned char *rest = NULL;
    uint64_t old = 0;
    size_t count = 0;
    bool marked = true;

    for (size_t i = 0; marked && i < live->thread_count; i++)
        marked = mark_old(&live->threads[i]->pyramid, from_ns, &old);
    if (marked && old > WORTH_IT && old > bytes->count / 2)
        rest = malloc(bytes->count - old + 1);
    for (size_t i = 0; i < live->thread_count; i++)
        if (rest != NULL)
            keep_rest(&live->threads[i]->pyramid, bytes->bytes, rest, &count);
        else
            live_unmark(&live->threads[i]->pyramid);
    if (rest == NULL)
        return false;
    free(bytes->bytes);
    *bytes = (vst__live_bytes){rest, count, bytes->count - old + 1, 0};
    return true;
}

/* ---- checkpoints, moves and losses --------------------------------------- */

/* Forgets checkpoints in segments that are gone, and their frames. The first
 * one that is left gets all of its frames. */
static void forget_checkpoints(vst__live_stretch *stretch)
{
    vst__stretch_part *part = &stretch->part;
    size_t first = 0, gone;
    vst__open *whole;

    while (first < part->count &&
           part->checkpoints[first].segment < stretch->dropped)
        first++;
    if (first == 0 || first == part->count)
        return;
    whole = vst__live_frames(part, first);
    if (whole == NULL)
        return;
    /* Moves the frames of checkpoint first + 1 and later behind the frames of
     * `first`. */
    gone = first + 1 < part->count ? part->checkpoints[first + 1].first_frame
                                   : part->frame_count;
    if (part->checkpoints[first].open_count <= gone) {
        size_t all = part->checkpoints[first].open_count;

        memcpy(part->frames, whole, all * sizeof *whole);
        memmove(part->frames + all, part->frames + gone,
                (part->frame_count - gone) * sizeof *whole);
        part->frame_count -= gone - all;
        part->checkpoints[first].first_frame = 0;
        part->checkpoints[first].kept = 0;
        for (size_t i = first + 1; i < part->count; i++)
            part->checkpoints[i].first_frame -= gone - all;
        memmove(part->checkpoints, part->checkpoints + first,
                (part->count - first) * sizeof *part->checkpoints);
        part->count -= first;
    }
    free(whole);
}

static void forget_losses(vst__thread_part *part, int64_t from_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < part->loss_count; i++)
        if (part->losses[i].end_ns >= from_ns)
            part->losses[kept++] = part->losses[i];
    part->loss_count = kept;
}

static void forget_moves(vst__thread_part *part, int64_t from_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < part->move_count; i++)
        if (part->moves[i].moved_ns >= from_ns)
            part->moves[kept++] = part->moves[i];
    part->move_count = kept;
}

void vst__live_forget(vst__live *live)
{
    vst_trace_info info;

    vst_trace_get_info(live->following.trace, &info);
    if (!forget_blocks(live, info.start_ns))
        return;
    for (size_t i = 0; i < live->thread_count; i++) {
        forget_losses(&live->threads[i]->part, info.start_ns);
        forget_moves(&live->threads[i]->part, info.start_ns);
    }
    for (size_t i = 0; i < live->following.count; i++)
        if (live->following.followers[i]->user_data != NULL)
            forget_checkpoints(live->following.followers[i]->user_data);
}
