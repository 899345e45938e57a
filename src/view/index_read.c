/* Looks things up in a loaded index: threads, rows at a level, checkpoints. Any
 * thread, several concurrently. */
#include <string.h>

#include "base/grow.h"
#include "view/index.h"

#define TIME_LIMIT ((int64_t)1 << 62)

const vst__index_thread *vst__index_thread_find(const vst__index *index,
                                                uint32_t number)
{
    size_t low = 0, high = (size_t)index->header->threads.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (index->threads[middle].number == number)
            return &index->threads[middle];
        if (index->threads[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int64_t vst__index_threshold(const vst__index_thread *thread, uint32_t level)
{
    return level == 0 ? 0 : thread->threshold_ns << 2 * (level - 1);
}

/* ---- runs ---------------------------------------------------------------- */

static const vst__index_stream *find_stream(const vst__index *index,
                                            const vst__index_thread *thread,
                                            uint32_t row, uint32_t level)
{
    const vst__index_stream *streams = index->streams + thread->first_stream;
    size_t low = 0, high = (size_t)thread->streams;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const vst__index_stream *stream = &streams[middle];

        if (stream->row == row && stream->level == level)
            return stream;
        if (stream->row < row || (stream->row == row && stream->level < level))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void open_block(vst__runs *runs)
{
    runs->at = runs->index->bytes + runs->block->offset;
    runs->limit = runs->at + runs->block->bytes;
    runs->left = runs->block->runs;
    runs->before_ns = runs->block->start_ns;
    runs->block++;
}

bool vst__runs_open(vst__runs *runs, const vst__index *index,
                    const vst__index_thread *thread, uint32_t row,
                    uint32_t level, int64_t from_ns)
{
    const vst__index_stream *stream = find_stream(index, thread, row, level);
    size_t low = 0, high;

    if (stream == NULL || stream->blocks == 0)
        return false;
    *runs = (vst__runs){.index = index,
                        .block = index->blocks + stream->first_block};
    runs->end = runs->block + stream->blocks;
    high = (size_t)stream->blocks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (runs->block[middle].start_ns <= from_ns)
            low = middle;
        else
            high = middle;
    }
    runs->block += low;
    open_block(runs);
    return true;
}

/* Returns false if the number does not end within the block. */
static bool index_get(vst__runs *runs, uint64_t *value)
{
    const unsigned char *at = runs->at;
    unsigned shift = 0;

    *value = 0;
    do {
        if (at == runs->limit || shift > 63)
            return false;
        *value |= (uint64_t)(*at & 0x7f) << shift;
        shift += 7;
    } while (*at++ & 0x80);
    runs->at = at;
    return true;
}

bool vst__runs_next(vst__runs *runs, vst__run *run)
{
    uint64_t gap, width, idle, id, more;
    int64_t start_ns;

    while (runs->left == 0) {
        if (runs->block == runs->end)
            return false;
        open_block(runs);
    }
    if (!index_get(runs, &gap) || !index_get(runs, &width) ||
        !index_get(runs, &idle) || !index_get(runs, &id) ||
        !index_get(runs, &more))
        return false;
    start_ns =
        (int64_t)((uint64_t)runs->before_ns + (gap >> 1 ^ (0 - (gap & 1))));
    if (start_ns < -TIME_LIMIT || start_ns > TIME_LIMIT ||
        width > (uint64_t)TIME_LIMIT || idle > width)
        return false;
    *run = (vst__run){
        .start_ns = start_ns,
        .end_ns = start_ns + (int64_t)width,
        .busy_ns = (int64_t)(width - idle),
        .count = id & 1 ? 1 : more,
        .votes = (int64_t)(width - idle) + 1,
        .id = (vst_id)(id >> 1 & VST_ID_MAX),
        .flags = id & 1 ? (uint32_t)more : 0,
    };
    if (run->end_ns > TIME_LIMIT)
        return false;
    runs->before_ns = run->end_ns;
    runs->left--;
    return true;
}

/* ---- moves --------------------------------------------------------------- */

bool vst__index_is_moved(const vst__index *index,
                         const vst__index_thread *thread, int64_t start_ns,
                         int64_t time_ns)
{
    const vst__index_move *moves = index->moves + thread->first_move;
    size_t low = 0, high = (size_t)thread->moves;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (moves[middle].start_ns < start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    /* A frame with an equal start that was moved earlier is another frame: it
     * was gone when this one began. */
    for (; low < thread->moves && moves[low].start_ns == start_ns; low++)
        if (moves[low].moved_ns >= time_ns)
            return true;
    return false;
}

/* ---- checkpoints --------------------------------------------------------- */

int64_t vst__checkpoint_before(const vst__index *index, size_t stretch,
                               int64_t from_ns)
{
    const vst__index_stretch *of = &index->stretches[stretch];
    const vst__checkpoint *all = index->checkpoints + of->first_checkpoint;
    size_t low = 0, high = (size_t)of->checkpoints;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all[middle].last_ns < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return (int64_t)low - 1;
}

vst_status vst__checkpoint_place(const vst__index *index, size_t stretch,
                                 int64_t number, vst__place *place,
                                 vst__open **open, size_t *capacity)
{
    const vst__checkpoint *all =
        index->checkpoints + index->stretches[stretch].first_checkpoint;
    const vst__checkpoint *at = all + number;
    uint32_t wanted = at->open_count;
    vst__open *grown =
        vst__grow(*open, capacity, (size_t)wanted + 1, sizeof *grown);

    if (grown == NULL)
        return VST_E_NOMEM;
    *open = grown;
    *place = (vst__place){
        .segment = at->segment,
        .word = at->word,
        .ticks = at->ticks,
        .records = at->records,
        .last_ns = at->last_ns,
        .bytes = at->bytes,
        .allocations = at->allocations,
        .delivered = at->delivered,
        .open_count = wanted,
        .open = grown,
    };
    /* Go back to the checkpoints in which the frames were new. */
    for (; wanted != 0; at--) {
        if (at->kept < wanted) {
            memcpy(grown + at->kept, index->frames + at->first_frame,
                   (wanted - at->kept) * sizeof *grown);
            wanted = at->kept;
        }
        if (at == all)
            break;
    }
    return VST_OK;
}
