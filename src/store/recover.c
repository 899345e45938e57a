/* Makes a finished file of one whose process died. No reader needs it: it is
 * for those who keep a trace, or hand it on.
 *
 * The valid part is copied byte for byte. Then the copy is opened, and what the
 * process had no time for is done to it: chunks are sealed, windows closed, the
 * header says finished. All of it is decided from the copy, so that the
 * original may be one that is still being written.
 *
 * One thread at a time for each file written. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "os/os.h"
#include "store/reader.h"

enum { NAME_MORE = 24 /* for ".<pid>.tmp" and its NUL */ };

/* The copy, once all of its bytes are there. */
typedef struct copy {
    int fd;
    vst_trace *trace;
    vst_chunk_header last; /* its last chunk, all zero if there is none */
    uint64_t last_offset;
    vst_error *error;
} copy;

static vst_status write_at(int fd, const void *bytes, size_t count,
                           uint64_t offset, vst_error *error)
{
    int failed = vst__os_file_write(fd, bytes, count, offset);

    if (failed == 0)
        return VST_OK;
    return vst_error_set(error,
                         failed == ENOSPC || failed == EFBIG || failed == EDQUOT
                             ? VST_E_NOSPACE
                             : VST_E_IO,
                         failed, offset);
}

static vst_status copy_bytes(vst_trace *from, int to, vst_error *error)
{
    uint64_t offset = 0;

    while (offset < from->valid_end) {
        const unsigned char *bytes;
        size_t got;
        vst_status status =
            vst__block_view(&from->block, offset, VST_BLOCK_SIZE, &bytes, &got);

        if (status != VST_OK)
            return vst_error_set(error, status, from->block.sys_errno, offset);
        if (got > from->valid_end - offset)
            got = (size_t)(from->valid_end - offset);
        if (got == 0) /* somebody cut it meanwhile */
            break;
        status = write_at(to, bytes, got, offset, error);
        if (status != VST_OK)
            return status;
        offset += got;
    }
    return VST_OK;
}

/* ---- the copy ------------------------------------------------------------ */

static vst_status truncate_at(const copy *self, uint64_t size)
{
    int failed = vst__os_file_truncate(self->fd, size);

    return failed == 0 ? VST_OK
                       : vst_error_set(self->error, VST_E_IO, failed, size);
}

/* Sets `used` to the words that a DEFINITIONS chunk's entries take. */
static vst_status measure_entries(vst_trace *trace, vst_chunk_header *chunk,
                                  uint64_t offset, uint64_t room)
{
    uint64_t used = sizeof *chunk;
    const char *strings;
    vst_file_entry entry;
    vst_status status;

    do {
        status = vst__entry_read(trace, offset + used, room - used, &entry,
                                 &strings);
        used += entry.size;
    } while (status == VST_OK && entry.size != 0);
    chunk->used = (uint32_t)((used - sizeof *chunk) / sizeof(uint64_t));
    return status;
}

/* `used` and `segments`, as the writer would have left them. Half an entry
 * where the original was cut goes, or the zeros to come would make it whole. */
static vst_status seal_chunk(copy *self, vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room)
{
    vst_status status = VST_OK;

    if (chunk->kind == VST_CHUNK_RECORDS)
        status = vst__segments_measure(self->trace, chunk, offset, room);
    else if (chunk->kind == VST_CHUNK_DEFINITIONS)
        status = measure_entries(self->trace, chunk, offset, room);
    if (status != VST_OK)
        return vst_error_set(self->error, status, self->trace->block.sys_errno,
                             offset);
    if (chunk->kind == VST_CHUNK_DEFINITIONS && room < chunk->size)
        status = truncate_at(self, offset + sizeof *chunk +
                                       chunk->used * sizeof(uint64_t));
    if (status != VST_OK)
        return status;
    return write_at(self->fd, &chunk->used,
                    sizeof chunk->used + sizeof chunk->segments,
                    offset + offsetof(vst_chunk_header, used), self->error);
}

static vst_status seal_chunks(copy *self)
{
    uint64_t offset = VST_FILE_HEADER_SIZE, room;

    for (;;) {
        vst_chunk_header chunk;
        bool found;
        vst_status status =
            vst__trace_find_chunk(self->trace, &offset, &chunk, &room, &found);

        if (status != VST_OK)
            return vst_error_set(self->error, status,
                                 self->trace->block.sys_errno, offset);
        if (!found)
            break;
        status = seal_chunk(self, &chunk, offset, room);
        if (status != VST_OK)
            return status;
        self->last = chunk;
        self->last_offset = offset;
        offset += room;
    }
    return VST_OK;
}

/* Its sample of the clock is one that the file has already: times stay as they
 * are. */
static void begin_definitions(const copy *self, vst_chunk_header *chunk,
                              uint32_t size, size_t entries)
{
    *chunk = (vst_chunk_header){
        .magic = VST_CHUNK_MAGIC,
        .kind = VST_CHUNK_DEFINITIONS,
        .window = self->last.window,
        .size = size,
        .sample = self->last.sample,
        .sequence = self->last.sequence + 1,
        .used = (uint32_t)(entries * sizeof(vst_file_entry) / 8),
        .segments = 1,
    };
    chunk->checksum = (uint32_t)crc32(0, (const unsigned char *)chunk,
                                      offsetof(vst_chunk_header, checksum));
}

/* The entry that the stop would have written: it ends with its last record. */
static void end_window(const vst__window *window, vst_file_entry *entry)
{
    *entry = (vst_file_entry){
        .size = sizeof *entry,
        .kind = VST_ENTRY_WINDOW,
        .id = window->number,
        .x = window->first,
        .y = window->last != 0 ? window->last : 1, /* 0 would mean open */
    };
}

static vst_status close_windows(copy *self)
{
    const vst_trace *trace = self->trace;
    size_t open = 0, count = 0, size;
    vst_file_entry *entries;
    vst_chunk_header *chunk;
    vst_status status;

    for (size_t i = 0; i < trace->window_count; i++)
        open += !trace->windows[i].closed;
    if (open == 0)
        return VST_OK;
    size = sizeof *chunk + open * sizeof *entries + VST_CHUNK_ALIGN - 1;
    size -= size % VST_CHUNK_ALIGN;
    chunk = calloc(1, size);
    if (chunk == NULL)
        return vst_error_set(self->error, VST_E_NOMEM, 0, 0);
    begin_definitions(self, chunk, (uint32_t)size, open);
    entries = (vst_file_entry *)(void *)(chunk + 1);
    for (size_t i = 0; i < trace->window_count; i++)
        if (!trace->windows[i].closed)
            end_window(&trace->windows[i], &entries[count++]);
    self->last_offset += self->last.size;
    self->last = *chunk;
    status = write_at(self->fd, chunk, (size_t)vst__chunk_extent(chunk),
                      self->last_offset, self->error);
    free(chunk);
    return status;
}

/* The file ends with what its last chunk holds; where the original was cut
 * inside of one, the rest of that is zeros. */
static vst_status finish(copy *self)
{
    vst_file_header header = self->trace->header;
    size_t windows = self->trace->window_count;
    vst_status status;

    header.state = VST_FILE_FINISHED;
    header.size = VST_FILE_HEADER_SIZE;
    if (self->last_offset != 0)
        header.size = self->last_offset + vst__chunk_extent(&self->last);
    if (windows != 0)
        header.windows = self->trace->windows[windows - 1].number + 1;
    status = truncate_at(self, header.size);
    if (status != VST_OK)
        return status;
    return write_at(self->fd, &header.state,
                    sizeof header - offsetof(vst_file_header, state),
                    offsetof(vst_file_header, state), self->error);
}

static vst_status complete(int fd, vst_error *error)
{
    copy self = {.fd = fd, .error = error};
    vst_status status = vst_trace_open_fd(fd, &self.trace, error);

    if (status != VST_OK)
        return status;
    status = seal_chunks(&self);
    if (status == VST_OK)
        status = close_windows(&self);
    if (status == VST_OK)
        status = finish(&self);
    vst_trace_close(self.trace);
    return status;
}

/* ---- the files ----------------------------------------------------------- */

static vst_status write_copy(vst_trace *from, const char *name, bool overwrite,
                             vst_error *error)
{
    int fd, failed = vst__os_file_create(name, overwrite, &fd);
    vst_status status;

    if (failed != 0)
        return vst_error_set(error, failed == EEXIST ? VST_E_EXISTS : VST_E_IO,
                             failed, 0);
    status = copy_bytes(from, fd, error);
    if (status == VST_OK)
        status = complete(fd, error);
    vst__os_file_close(fd);
    if (status != VST_OK)
        remove(name);
    return status;
}

/* What is overwritten, which may be the original itself, stays until all of
 * the new file is there. */
static vst_status replace(vst_trace *from, const char *to, vst_error *error)
{
    size_t size = strlen(to) + NAME_MORE;
    char *name = malloc(size);
    vst_status status;

    if (name == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    snprintf(name, size, "%s.%u.tmp", to, (unsigned)vst__os_process_id());
    status = write_copy(from, name, true, error);
    if (status == VST_OK && rename(name, to) != 0) {
        status = vst_error_set(error, VST_E_IO, errno, 0);
        remove(name);
    }
    free(name);
    return status;
}

vst_status vst_trace_recover(const char *from, const char *to, bool overwrite,
                             vst_error *error)
{
    vst_trace *trace;
    vst_status status = vst_trace_open(from, &trace, error);

    if (status != VST_OK)
        return status;
    status = overwrite ? replace(trace, to, error)
                       : write_copy(trace, to, false, error);
    vst_trace_close(trace);
    /* That a damaged tail was left out is told by opening the original. */
    if (status == VST_OK)
        vst_error_set(error, VST_OK, 0, 0);
    return status;
}
