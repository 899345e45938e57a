/* An index as a file: which trace it belongs to, and whether it is complete.
 * After loading, nothing in it points outside, even if the file is hostile. Any
 * thread. */
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "view/index.h"

/* Valid times are closer to 1970 (clockmap.c), so that differences fit. */
#define TIME_LIMIT ((int64_t)1 << 62)

/* ---- sums ---------------------------------------------------------------- */

#define MULTIPLIER 0x9e3779b97f4a7c15u

/* The checksum protects against accidents, not against attackers. Each step can
 * be undone, so two texts that differ in one word never have equal sums. */
void vst__index_sum_begin(vst__index_sum_state *state, uint64_t sum)
{
    *state = (vst__index_sum_state){{sum, 1, 2, 3}, 0};
}

void vst__index_sum_add(vst__index_sum_state *state, const void *bytes,
                        size_t count)
{
    const unsigned char *at = bytes;
    uint64_t *lanes = state->lanes, word;
    size_t i = 0;

    for (; i + VST_INDEX_SUM_STEP <= count; i += VST_INDEX_SUM_STEP)
        for (size_t lane = 0; lane < 4; lane++) {
            memcpy(&word, at + i + 8 * lane, sizeof word);
            lanes[lane] = (lanes[lane] ^ word) * MULTIPLIER;
            lanes[lane] ^= lanes[lane] >> 29;
        }
    for (; i < count; i++)
        lanes[i & 3] = (lanes[i & 3] ^ at[i]) * MULTIPLIER;
    state->count += count;
}

uint64_t vst__index_sum_end(const vst__index_sum_state *state)
{
    uint64_t sum = state->count;

    for (size_t lane = 0; lane < 4; lane++)
        sum = (sum ^ state->lanes[lane]) * MULTIPLIER;
    return sum ^ sum >> 32;
}

uint64_t vst__index_checksum(const void *bytes, size_t count, uint64_t sum)
{
    vst__index_sum_state state;

    vst__index_sum_begin(&state, sum);
    vst__index_sum_add(&state, bytes, count);
    return vst__index_sum_end(&state);
}

static uint64_t index_file_add(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * MULTIPLIER;
    return sum ^ sum >> 29;
}

vst_status vst__index_identify(vst_trace *trace, const vst__stretch *stretches,
                               size_t count, vst__index_identity *identity)
{
    uint64_t sum = 0;
    int failed;

    memset(identity, 0, sizeof *identity);
    memcpy(identity->trace_id, trace->header.trace_id,
           sizeof identity->trace_id);
    identity->checksum = trace->header.checksum;
    identity->state = trace->header.state;
    identity->clip = trace->clip;
    identity->file_size = trace->source.file_size;
    failed = vst__os_file_modified(trace->source.fd, &identity->modified_ns);
    for (size_t i = 0; i < count; i++) {
        const vst__stretch *stretch = &stretches[i];

        identity->words += stretch->words;
        sum = index_file_add(sum, stretch->thread);
        sum = index_file_add(sum, stretch->window->last);
        for (size_t j = 0; j < stretch->segment_count; j++) {
            const vst__segment *segment = &stretch->segments[j];
            sum = index_file_add(sum, segment->offset);
            sum = index_file_add(sum, segment->words);
            sum = index_file_add(sum, segment->start);
            sum = index_file_add(sum, segment->sequence);
        }
    }
    for (size_t i = 0; i < trace->clock.count; i++) {
        sum = index_file_add(sum, trace->clock.pieces[i].start);
        sum = index_file_add(sum, (uint64_t)(trace->clock.pieces[i].base_ns -
                                             trace->clock.offset_ns));
        sum = index_file_add(sum, trace->clock.pieces[i].mult);
    }
    identity->segments = sum;
    return failed == 0 ? VST_OK : VST_E_IO;
}

/* ---- checks of the content ----------------------------------------------- */

uint64_t vst__index_header_sum(const vst__index_header *header)
{
    vst__index_header plain = *header;

    plain.checksum = 0;
    return vst__index_checksum(&plain, sizeof plain, 0);
}

uint64_t vst__index_sum(const unsigned char *bytes, size_t size)
{
    vst__index_header header;

    memcpy(&header, bytes, sizeof header);
    return vst__index_checksum(bytes + sizeof header, size - sizeof header,
                               vst__index_header_sum(&header));
}

/* Returns whether a file of that size may have this header. */
static bool is_header(const vst__index_header *header, uint64_t size)
{
    return memcmp(header->magic, VST_INDEX_MAGIC, sizeof header->magic) == 0 &&
           header->version == VST_INDEX_VERSION &&
           header->byte_order == VST_FILE_BYTE_ORDER && header->size == size;
}

static bool is_in(uint64_t first, uint64_t count, uint64_t all)
{
    return first <= all && count <= all - first;
}

static bool is_table(const vst__index *index, const vst__index_table *table,
                     size_t size)
{
    return table->offset % 8 == 0 && table->offset >= sizeof *index->header &&
           table->offset <= index->size &&
           table->count <= (index->size - table->offset) / size;
}

static bool find_tables(vst__index *index)
{
    const vst__index_header *header = index->header;

#define FIND(name, type)                                                       \
    if (!is_table(index, &header->name, sizeof(type)))                         \
        return false;                                                          \
    index->name =                                                              \
        (const type *)(const void *)(index->bytes + header->name.offset);
    VST_INDEX_TABLES(FIND)
#undef FIND
    return true;
}

static bool is_time(int64_t time_ns)
{
    return time_ns > -TIME_LIMIT && time_ns < TIME_LIMIT;
}

static bool are_threads(const vst__index *index, const vst_trace *trace)
{
    const vst__index_header *header = index->header;

    if (header->threads.count != trace->thread_count)
        return false;
    for (size_t i = 0; i < header->threads.count; i++) {
        const vst__index_thread *thread = &index->threads[i];

        if (thread->number != trace->threads[i].number ||
            thread->level_count >= VST_LEVELS_MAX ||
            thread->off_stack > VST_LANES_MAX ||
            thread->levels > trace->block.file_size / 8 ||
            thread->threshold_ns < 0 ||
            thread->threshold_ns > TIME_LIMIT >> 2 * thread->level_count ||
            !is_time(thread->start_ns) || !is_time(thread->end_ns) ||
            !is_in(thread->first_stream, thread->streams,
                   header->streams.count) ||
            !is_in(thread->first_move, thread->moves, header->moves.count))
            return false;
    }
    for (size_t i = 0; i < header->streams.count; i++)
        if (!is_in(index->streams[i].first_block, index->streams[i].blocks,
                   header->blocks.count))
            return false;
    for (size_t i = 0; i < header->blocks.count; i++)
        if (!is_in(index->blocks[i].offset, index->blocks[i].bytes,
                   index->size) ||
            !is_time(index->blocks[i].start_ns))
            return false;
    return true;
}

static bool are_checkpoints(const vst__index *index,
                            const vst__index_stretch *kept,
                            const vst__stretch *stretch)
{
    const vst__index_header *header = index->header;
    const vst__checkpoint *checkpoint =
        index->checkpoints + kept->first_checkpoint;
    uint32_t before = 0;

    for (uint64_t i = 0; i < kept->checkpoints; i++, checkpoint++) {
        if (checkpoint->segment >= stretch->segment_count ||
            checkpoint->word >= stretch->segments[checkpoint->segment].words ||
            checkpoint->kept > before ||
            checkpoint->kept > checkpoint->open_count ||
            checkpoint->words > stretch->words ||
            !is_time(checkpoint->last_ns) ||
            !is_in(checkpoint->first_frame,
                   checkpoint->open_count - checkpoint->kept,
                   header->frames.count))
            return false;
        before = checkpoint->open_count;
    }
    return true;
}

static bool are_stretches(const vst__index *index,
                          const vst__stretch *stretches, size_t count)
{
    const vst__index_header *header = index->header;

    if (header->stretches.count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const vst__index_stretch *kept = &index->stretches[i];

        if (kept->words != stretches[i].words ||
            !is_in(kept->first_checkpoint, kept->checkpoints,
                   header->checkpoints.count) ||
            !are_checkpoints(index, kept, &stretches[i]))
            return false;
    }
    for (size_t i = 0; i < header->frames.count; i++)
        if (!is_time(index->frames[i].start_ns) ||
            index->frames[i].id > VST_ID_MAX ||
            index->frames[i].flags & (VST_FRAME_DEAD | VST_FRAME_UNSEEN))
            return false;
    return true;
}

static bool are_tracks(const vst__index *index)
{
    const vst__index_header *header = index->header;

    for (size_t i = 0; i < header->tracks.count; i++)
        if (!is_in(index->tracks[i].first_point, index->tracks[i].points,
                   header->points.count) ||
            index->tracks[i].kind < VST_TRACK_COUNTER ||
            index->tracks[i].kind > VST_TRACK_FRAMEWORK)
            return false;
    for (size_t i = 0; i < header->points.count; i++)
        if (!is_time(index->points[i].first_ns) ||
            !is_time(index->points[i].last_ns))
            return false;
    for (size_t i = 0; i < header->losses.count; i++)
        if (!is_time(index->losses[i].start_ns) ||
            !is_time(index->losses[i].end_ns) || index->losses[i].kind > 3)
            return false;
    return true;
}

/* Returns a size that no valid index reaches. */
static uint64_t size_limit(const vst_trace *trace)
{
    return 20 * trace->block.file_size + ((uint64_t)64 << 20);
}

/* Copies the file into our own memory. The header is checked before all of the
 * memory is allocated; bytes that are cut off meanwhile make the checksum
 * wrong. */
static vst_status read_whole(vst__index *index, int fd, const vst_trace *trace,
                             const vst__index_identity *identity)
{
    vst__index_header header;
    uint64_t size;
    size_t got;
    unsigned char *bytes;

    if (vst__os_file_size(fd, &size) != 0 ||
        vst__os_file_read(fd, &header, sizeof header, 0, &got) != 0)
        return VST_E_IO;
    if (got < sizeof header || !is_header(&header, size) ||
        size > size_limit(trace) ||
        memcmp(&header.identity, identity, sizeof *identity) != 0)
        return VST_E_DAMAGED;
    bytes = malloc((size_t)size);
    if (bytes == NULL)
        return VST_E_NOMEM;
    index->bytes = bytes;
    index->size = (size_t)size;
    index->header = (const vst__index_header *)(const void *)bytes;
    if (vst__os_file_read(fd, bytes, index->size, 0, &got) != 0)
        return VST_E_IO;
    if (got != index->size ||
        memcmp(index->header, &header, sizeof header) != 0 ||
        header.checksum != vst__index_sum(bytes, index->size))
        return VST_E_DAMAGED;
    return VST_OK;
}

vst_status vst__index_load(vst__index *index, int fd, const vst_trace *trace,
                           const vst__index_identity *identity,
                           const vst__stretch *stretches, size_t count)
{
    vst_status status;

    memset(index, 0, sizeof *index);
    status = read_whole(index, fd, trace, identity);
    if (status == VST_OK &&
        !(find_tables(index) && are_threads(index, trace) &&
          are_stretches(index, stretches, count) && are_tracks(index)))
        status = VST_E_DAMAGED;
    if (status != VST_OK)
        vst__index_unload(index);
    return status;
}

void vst__index_unload(vst__index *index)
{
    free((void *)(uintptr_t)index->bytes);
    memset(index, 0, sizeof *index);
}
