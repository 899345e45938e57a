/* Opens a trace file: checks its header, walks the chunk headers up to the
 * first that is not valid, and has segments.c and entries.c take in what the
 * chunks hold. Works on finished files, on files being written and on torn
 * ones; nothing in a file is believed further than the file's real size.
 *
 * Reading is done by replay. One thread at a time uses a trace. */
#include "store/reader.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "os/os.h"

/* Slower or faster than any clock that counts: damage. */
#define TICKS_PER_SECOND_MIN 1e3
#define TICKS_PER_SECOND_MAX 1e12

static bool checksum_is(const void *bytes, size_t count, uint32_t checksum)
{
    return crc32(0, bytes, (uInt)count) == checksum;
}

/* The order of the checks is that of the format: a newer file may have put its
 * checksum elsewhere, so its version is looked at first. */
static vst_status read_header(vst_trace *trace, vst_error *error)
{
    vst_file_header *header = &trace->header;
    size_t got;
    int failed = vst__os_file_read(trace->fd, header, sizeof *header, 0, &got);

    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    if (got < sizeof header->magic ||
        memcmp(header->magic, VST_FILE_MAGIC, sizeof header->magic) != 0)
        return vst_error_set(error, VST_E_NOT_A_TRACE, 0, 0);
    if (got < sizeof *header)
        return vst_error_set(error, VST_E_DAMAGED, 0, got);
    if (header->byte_order != VST_FILE_BYTE_ORDER)
        return vst_error_set(error, VST_E_UNSUPPORTED, 0,
                             offsetof(vst_file_header, byte_order));
    if (header->version > VST_FILE_VERSION)
        return vst_error_set(error, VST_E_VERSION, 0,
                             offsetof(vst_file_header, version));
    if (!checksum_is(header, offsetof(vst_file_header, checksum),
                     header->checksum))
        return vst_error_set(error, VST_E_DAMAGED, 0,
                             offsetof(vst_file_header, checksum));
    if (header->header_size != VST_FILE_HEADER_SIZE)
        return vst_error_set(error, VST_E_DAMAGED, 0,
                             offsetof(vst_file_header, header_size));
    if (!isfinite(header->ticks_per_second) ||
        header->ticks_per_second < TICKS_PER_SECOND_MIN ||
        header->ticks_per_second > TICKS_PER_SECOND_MAX)
        return vst_error_set(error, VST_E_DAMAGED, 0,
                             offsetof(vst_file_header, ticks_per_second));
    return VST_OK;
}

bool vst__chunk_is_valid(const vst_chunk_header *chunk)
{
    return chunk->magic == VST_CHUNK_MAGIC &&
           chunk->size % VST_CHUNK_ALIGN == 0 &&
           chunk->size >= VST_CHUNK_ALIGN &&
           chunk->size <= VST_CHUNK_SIZE_MAX &&
           checksum_is(chunk, offsetof(vst_chunk_header, checksum),
                       chunk->checksum);
}

static vst_status take_chunk(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room)
{
    vst_status status = vst__clockmap_add(&trace->clock, &chunk->sample);

    if (status != VST_OK)
        return status;
    switch (chunk->kind) {
    case VST_CHUNK_RECORDS:
        return vst__segments_add(trace, chunk, offset, room);
    case VST_CHUNK_DEFINITIONS:
        return vst__entries_add(trace, offset + sizeof *chunk,
                                room - sizeof *chunk);
    default: /* of a newer writer */
        return VST_OK;
    }
}

uint64_t vst__chunk_extent(const vst_chunk_header *chunk)
{
    uint64_t used = sizeof *chunk + (uint64_t)chunk->used * sizeof(uint64_t);

    return chunk->used != 0 && used < chunk->size ? used : chunk->size;
}

/* Leaves the offset where the valid part of the file ends in valid_end. A last
 * chunk that the end of the file cuts is read as far as it goes. */
static vst_status walk_chunks(vst_trace *trace, vst_error *error)
{
    uint64_t size = trace->block.file_size;
    uint64_t offset = VST_FILE_HEADER_SIZE;

    while (offset < size) {
        vst_chunk_header chunk = {0};
        uint64_t room = size - offset;
        vst_status status;
        size_t got;
        int failed =
            vst__os_file_read(trace->fd, &chunk, sizeof chunk, offset, &got);

        if (failed != 0)
            return vst_error_set(error, VST_E_IO, failed, offset);
        if (got < sizeof chunk || !vst__chunk_is_valid(&chunk)) {
            trace->damaged = chunk.magic != 0;
            break;
        }
        if (room > chunk.size)
            room = chunk.size;
        status = take_chunk(trace, &chunk, offset, room);
        if (status != VST_OK)
            return vst_error_set(error, status, trace->block.sys_errno, offset);
        trace->damaged = room < vst__chunk_extent(&chunk);
        offset += room;
    }
    trace->valid_end = offset;
    return VST_OK;
}

static vst_status load(vst_trace *trace, vst_error *error)
{
    uint64_t size;
    vst_status status;
    int failed = vst__os_file_size(trace->fd, &size);

    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    vst__block_init(&trace->block, trace->fd, size);
    vst__clockmap_init(&trace->clock);
    status = read_header(trace, error);
    if (status == VST_OK)
        status = walk_chunks(trace, error);
    if (status != VST_OK)
        return status;
    if (trace->damaged && trace->valid_end == VST_FILE_HEADER_SIZE)
        return vst_error_set(error, VST_E_DAMAGED, 0, trace->valid_end);
    status = vst__segments_finish(trace);
    if (status == VST_OK)
        status =
            vst__clockmap_build(&trace->clock, trace->header.ticks_per_second,
                                &trace->header.start);
    if (status != VST_OK)
        return vst_error_set(error, status, trace->block.sys_errno, 0);
    /* Opened, but a tail could not be used: tell where it begins. */
    if (trace->damaged)
        vst_error_set(error, VST_E_DAMAGED, 0, trace->valid_end);
    return VST_OK;
}

static vst_status open_owned(int fd, vst_trace **out, vst_error *error)
{
    vst_trace *trace = calloc(1, sizeof *trace);
    vst_status status;

    if (trace == NULL) {
        vst__os_file_close(fd);
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    }
    trace->fd = fd;
    status = load(trace, error);
    if (status != VST_OK) {
        vst_trace_close(trace);
        return status;
    }
    *out = trace;
    return VST_OK;
}

vst_status vst_trace_open(const char *path, vst_trace **trace, vst_error *error)
{
    int fd, failed = vst__os_file_open(path, &fd);

    vst_error_set(error, VST_OK, 0, 0);
    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    return open_owned(fd, trace, error);
}

vst_status vst_trace_open_fd(int fd, vst_trace **trace, vst_error *error)
{
    int copy, failed = vst__os_file_duplicate(fd, &copy);

    vst_error_set(error, VST_OK, 0, 0);
    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    return open_owned(copy, trace, error);
}

void vst_trace_close(vst_trace *trace)
{
    if (trace == NULL)
        return;
    vst__entries_free(trace);
    free(trace->segments);
    vst__clockmap_free(&trace->clock);
    vst__block_free(&trace->block);
    vst__os_file_close(trace->fd);
    free(trace);
}

/* A finished file that is shorter or longer than it says. */
static bool has_wrong_size(const vst_trace *trace)
{
    return trace->header.state == VST_FILE_FINISHED &&
           trace->valid_end != trace->header.size;
}

/* Stopped, every window closed, and all of it there. */
static bool is_clean(const vst_trace *trace)
{
    const vst_file_header *header = &trace->header;

    for (size_t i = 0; i < trace->window_count; i++)
        if (!trace->windows[i].closed)
            return false;
    return header->state != VST_FILE_RECORDING && !trace->damaged &&
           !has_wrong_size(trace);
}

void vst_trace_get_info(const vst_trace *trace, vst_trace_info *info)
{
    /* Converting remembers a piece of the map, which is not seen outside. */
    vst__clockmap *clock = (vst__clockmap *)(uintptr_t)&trace->clock;
    const vst_file_header *header = &trace->header;

    memset(info, 0, sizeof *info);
    info->version = header->version;
    info->pid = header->pid;
    memcpy(info->trace_id, header->trace_id, sizeof info->trace_id);
    info->clean = is_clean(trace);
    if (trace->damaged || has_wrong_size(trace))
        info->damaged_at = trace->valid_end;
    info->windows = (uint32_t)trace->window_count;
    info->lost = header->lost;
    info->bytes = trace->block.file_size;
    info->clock = header->clock_kind == VST_CLOCK_TSC ? VST_CLOCK_TSC
                                                      : VST_CLOCK_MONOTONIC;
    for (size_t i = 0; i < trace->thread_count; i++) {
        info->words += trace->threads[i].words;
        info->threads += trace->threads[i].words != 0;
    }
    info->start_ns = info->end_ns =
        vst__clockmap_to_ns(clock, header->start.ticks);
    if (trace->window_count != 0) {
        const vst__window *windows = trace->windows;
        info->start_ns = vst__clockmap_to_ns(clock, windows[0].first);
        info->end_ns =
            vst__clockmap_to_ns(clock, windows[trace->window_count - 1].last);
    }
}
