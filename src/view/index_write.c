/* Writes an index (index.h): blocks as they come, then the tables, the checksum
 * last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "store/format.h"
#include "view/index_build.h"

enum { BUFFER = 1 << 20 };

/* Returns the largest size of an index. Usually it is a tenth of its trace, but
 * two alternating stacks can make many spans of few words. */
static uint64_t limit_of(const vst_trace *trace)
{
    return 4 * trace->valid_end + (8 << 20);
}

vst_status vst__index_writer_init(vst__index_writer *writer, int fd,
                                  const vst_trace *trace)
{
    *writer = (vst__index_writer){.fd = fd, .limit = limit_of(trace)};
    pthread_mutex_init(&writer->lock, NULL);
    writer->offset = sizeof(vst__index_header);
    writer->buffer = malloc(BUFFER);
    return writer->buffer != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__index_writer_free(vst__index_writer *writer)
{
    pthread_mutex_destroy(&writer->lock);
    free(writer->buffer);
}

static void write_at(vst__index_writer *writer, const void *bytes, size_t count,
                     uint64_t offset)
{
    int failed = 0;

    if (writer->status != VST_OK)
        return;
    failed = vst__os_file_may_reach(offset + count);
    if (failed == 0)
        failed = vst__os_file_write(writer->fd, bytes, count, offset);
    if (failed != 0) {
        writer->status = VST_E_IO;
        writer->sys_errno = failed;
    }
}

/* The buffer holds the bytes from offset - count on. */
static void index_flush(vst__index_writer *writer)
{
    write_at(writer, writer->buffer, writer->count,
             writer->offset - writer->count);
    writer->count = 0;
}

vst_status vst__index_append(void *ctx, const void *bytes, size_t count,
                             uint64_t *offset)
{
    vst__index_writer *writer = ctx;
    vst_status status;

    pthread_mutex_lock(&writer->lock);
    if (writer->offset + count > writer->limit && writer->status == VST_OK)
        writer->status = VST_E_OUTPUT;
    if (writer->count + count > BUFFER)
        index_flush(writer);
    *offset = writer->offset;
    if (count > BUFFER) {
        write_at(writer, bytes, count, writer->offset);
    } else if (count != 0) {
        memcpy(writer->buffer + writer->count, bytes, count);
        writer->count += count;
    }
    writer->offset += count;
    status = writer->status;
    pthread_mutex_unlock(&writer->lock);
    return status;
}

/* ---- tables -------------------------------------------------------------- */

static void index_append(vst__index_writer *writer, const void *bytes,
                         size_t count)
{
    uint64_t offset;

    vst__index_append(writer, bytes, count, &offset);
}

static uint64_t index_align(vst__index_writer *writer)
{
    index_append(writer, (const char[8]){0}, (8 - writer->offset % 8) % 8);
    return writer->offset;
}

static void write_blocks(vst__index_writer *writer, vst__index_header *header,
                         const vst__index_parts *parts)
{
    header->blocks.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++)
        for (size_t j = 0; j < parts->threads[i].block_count; j++) {
            index_append(writer, &parts->threads[i].blocks[j].block,
                         sizeof(vst__index_block));
            header->blocks.count++;
        }
}

static void write_moves(vst__index_writer *writer, vst__index_header *header,
                        const vst__index_parts *parts)
{
    header->moves.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++) {
        vst__thread_part *part = &parts->threads[i];

        vst__index_sort_moves(part->moves, part->move_count);
        index_append(writer, part->moves,
                     part->move_count * sizeof *part->moves);
        part->thread.first_move = header->moves.count;
        part->thread.moves = part->move_count;
        header->moves.count += part->move_count;
    }
}

/* Makes a stream of the blocks of each row and level. */
static void write_streams(vst__index_writer *writer, vst__index_header *header,
                          const vst__index_parts *parts)
{
    uint64_t block = 0;

    header->streams.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++) {
        vst__thread_part *part = &parts->threads[i];

        part->thread.first_stream = header->streams.count;
        for (size_t j = 0, next; j < part->block_count; j = next) {
            const vst__block_of *first = &part->blocks[j];
            vst__index_stream stream = {first->row, first->level, block, 0};

            for (next = j; next < part->block_count &&
                           part->blocks[next].row == first->row &&
                           part->blocks[next].level == first->level;
                 next++)
                stream.blocks++;
            block += stream.blocks;
            index_append(writer, &stream, sizeof stream);
            header->streams.count++;
        }
        part->thread.streams =
            header->streams.count - part->thread.first_stream;
    }
    header->threads.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++)
        index_append(writer, &parts->threads[i].thread,
                     sizeof(vst__index_thread));
    header->threads.count = parts->thread_count;
}

static void write_checkpoints(vst__index_writer *writer,
                              vst__index_header *header,
                              const vst__index_parts *parts)
{
    header->checkpoints.offset = index_align(writer);
    for (size_t i = 0; i < parts->job->stretch_count; i++) {
        vst__stretch_part *part = &parts->stretches[i];

        for (size_t j = 0; j < part->count; j++)
            part->checkpoints[j].first_frame += header->frames.count;
        index_append(writer, part->checkpoints,
                     part->count * sizeof *part->checkpoints);
        header->checkpoints.count += part->count;
        header->frames.count += part->frame_count;
    }
    header->frames.offset = index_align(writer);
    for (size_t i = 0; i < parts->job->stretch_count; i++)
        index_append(writer, parts->stretches[i].frames,
                     parts->stretches[i].frame_count * sizeof(vst__open));
    header->stretches.offset = index_align(writer);
    header->stretches.count = parts->job->stretch_count;
    for (uint64_t i = 0, first = 0; i < header->stretches.count; i++) {
        vst__index_stretch stretch = {first, parts->stretches[i].count,
                                      parts->job->stretches[i].words};
        index_append(writer, &stretch, sizeof stretch);
        first += stretch.checkpoints;
    }
}

static void write_tracks(vst__index_writer *writer, vst__index_header *header,
                         const vst__index_parts *parts)
{
    header->losses.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++) {
        index_append(writer, parts->threads[i].losses,
                     parts->threads[i].loss_count * sizeof(vst__index_loss));
        header->losses.count += parts->threads[i].loss_count;
    }
    header->tracks.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++)
        for (size_t j = 0; j < parts->threads[i].tracks.count; j++) {
            const vst__track *track = &parts->threads[i].tracks.tracks[j];
            vst__index_track kept = {track->kind,          track->id,
                                     track->thread,        0,
                                     header->points.count, track->count};
            index_append(writer, &kept, sizeof kept);
            header->tracks.count++;
            header->points.count += track->count;
        }
    header->points.offset = index_align(writer);
    for (size_t i = 0; i < parts->thread_count; i++)
        for (size_t j = 0; j < parts->threads[i].tracks.count; j++) {
            const vst__track *track = &parts->threads[i].tracks.tracks[j];
            index_append(writer, track->points,
                         track->count * sizeof *track->points);
        }
}

static void write_far_ends(vst__index_writer *writer, vst__index_header *header,
                           const vst__index_job *job)
{
    header->far_ends.offset = index_align(writer);
    if (job->far_ends == NULL)
        return;
    for (size_t i = 0; i < job->trace->window_count; i++) {
        const vst__map64 *ends = &job->far_ends[i].ends;

        for (size_t j = 0; j < ends->capacity; j++) {
            vst__index_far_end end = {i, ends->entries[j].key,
                                      (int64_t)ends->entries[j].value};
            if (!ends->entries[j].full)
                continue;
            index_append(writer, &end, sizeof end);
            header->far_ends.count++;
        }
    }
}

/* The checksum covers the file's content, which is read back through the
 * buffer, now empty. */
static vst_status sum_of_file(vst__index_writer *writer,
                              const vst__index_header *header, uint64_t *sum)
{
    uint64_t offset = sizeof *header;
    vst__index_sum_state state;

    _Static_assert(BUFFER % VST_INDEX_SUM_STEP == 0, "parts are whole steps");
    vst__index_sum_begin(&state, vst__index_header_sum(header));
    while (offset < header->size) {
        uint64_t left = header->size - offset;
        size_t part = left < BUFFER ? (size_t)left : BUFFER, got;

        writer->sys_errno =
            vst__os_file_read(writer->fd, writer->buffer, part, offset, &got);
        if (writer->sys_errno != 0 || got != part)
            return VST_E_IO;
        vst__index_sum_add(&state, writer->buffer, part);
        offset += part;
    }
    *sum = vst__index_sum_end(&state);
    return VST_OK;
}

static void index_seal(vst__index_writer *writer, vst__index_header *header)
{
    index_flush(writer);
    header->size = writer->offset;
    write_at(writer, header, sizeof *header, 0);
    if (writer->status == VST_OK)
        writer->status = sum_of_file(writer, header, &header->checksum);
    write_at(writer, header, sizeof *header, 0);
}

vst_status vst__index_write(vst__index_writer *writer,
                            const vst__index_parts *parts)
{
    vst__index_header header = {
        .version = VST_INDEX_VERSION,
        .byte_order = VST_FILE_BYTE_ORDER,
        .identity = *parts->job->identity,
    };

    memcpy(header.magic, VST_INDEX_MAGIC, sizeof header.magic);
    for (size_t i = 0; i < parts->thread_count; i++)
        header.spans += parts->threads[i].thread.spans;
    write_blocks(writer, &header, parts);
    write_moves(writer, &header, parts);
    write_streams(writer, &header, parts);
    write_checkpoints(writer, &header, parts);
    write_tracks(writer, &header, parts);
    write_far_ends(writer, &header, parts->job);
    index_align(writer);
    index_seal(writer, &header);
    return writer->status;
}
