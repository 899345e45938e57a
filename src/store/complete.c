/* Finishes a copy of a trace file whose process died or still runs: seals the
 * chunks, closes the windows, and marks the header as finished. All decisions
 * come from the copy, so the original may still be written. One thread at a
 * time for each file. */
#include "store/copy.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "os/os.h"
#include "store/reader.h"

#define NOTE_KEY "vestige.snapshot"

/* The copy, after all its bytes were written. */
typedef struct copy {
    int fd;
    vst_trace *trace;
    const vst__ending *ending;
    /* header of its last chunk; all zero if it has none */
    vst_chunk_header last;
    uint64_t last_offset;
    uint32_t sequence; /* sequence number of the next chunk */
    vst_error *error;
} copy;

static vst_status truncate_at(const copy *self, uint64_t size)
{
    int failed = vst__os_file_truncate(self->fd, size);

    return failed == 0 ? VST_OK
                       : vst_error_set(self->error, VST_E_IO, failed, size);
}

/* Sets `used` to the number of words that the entries of a DEFINITIONS chunk
 * take. */
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

/* Sets `used` and `segments` as the writer would have left them. If the
 * original was cut inside an entry, that entry is removed, because the zeros
 * that follow would make it look whole. */
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
    return vst__copy_write(
        self->fd, &chunk->used, sizeof chunk->used + sizeof chunk->segments,
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
        if (chunk.sequence >= self->sequence)
            self->sequence = chunk.sequence + 1;
        offset += room;
    }
    return VST_OK;
}

/* ---- entries that are added ---------------------------------------------- */

/* If the caller gave no moment, the chunk gets a clock sample that the file
 * already has, so times do not change. */
static void begin_definitions(const copy *self, vst_chunk_header *chunk,
                              uint32_t size, size_t used)
{
    bool told = self->ending->at.ticks != 0;

    *chunk = (vst_chunk_header){
        .magic = VST_CHUNK_MAGIC,
        .kind = VST_CHUNK_DEFINITIONS,
        .window = self->last.window,
        .size = size,
        .sample = told ? self->ending->at : self->last.sample,
        .sequence = self->sequence,
        .used = (uint32_t)(used / sizeof(uint64_t)),
        .segments = 1,
    };
    chunk->checksum = (uint32_t)crc32(0, (const unsigned char *)chunk,
                                      offsetof(vst_chunk_header, checksum));
}

static size_t entry_size(size_t a_len, size_t b_len)
{
    return (sizeof(vst_file_entry) + a_len + b_len + 7) & ~(size_t)7;
}

/* Makes the entry that the stop would have written. If the program still
 * records, the stop that is to come ends the last window, at the given moment
 * or with a later record. */
static vst_file_entry *complete_end_window(const copy *self,
                                           const vst__window *window,
                                           vst_file_entry *entry)
{
    const vst_trace *trace = self->trace;
    /* 0 would mean that the window is open */
    vst_ticks last = window->last != 0 ? window->last : 1;

    if (window == &trace->windows[trace->window_count - 1] &&
        self->ending->at.ticks > last)
        last = self->ending->at.ticks;
    *entry = (vst_file_entry){
        .size = sizeof *entry,
        .kind = VST_ENTRY_WINDOW,
        .id = window->number,
        .x = window->began,
        .y = last,
    };
    return entry + 1;
}

static void put_note(const char *note, vst_file_entry *entry)
{
    size_t key_len = strlen(NOTE_KEY), note_len = strlen(note);
    char *bytes = (char *)(entry + 1);

    *entry = (vst_file_entry){
        .size = (uint32_t)entry_size(key_len, note_len),
        .kind = VST_ENTRY_METADATA,
        .a_len = (uint32_t)key_len,
        .b_len = (uint32_t)note_len,
    };
    memcpy(bytes, NOTE_KEY, key_len);
    memcpy(bytes + key_len, note, note_len);
}

static vst_status complete_append(copy *self, const vst_chunk_header *chunk)
{
    self->last_offset = self->last_offset != 0
                            ? self->last_offset + self->last.size
                            : VST_FILE_HEADER_SIZE;
    self->last = *chunk;
    return vst__copy_write(self->fd, chunk, (size_t)vst__chunk_extent(chunk),
                           self->last_offset, self->error);
}

static vst_status add_entries(copy *self)
{
    const vst_trace *trace = self->trace;
    const char *note = self->ending->note;
    size_t used = note != NULL ? entry_size(strlen(NOTE_KEY), strlen(note)) : 0,
           size;
    vst_file_entry *entry;
    vst_chunk_header *chunk;
    vst_status status;

    for (size_t i = 0; i < trace->window_count; i++)
        used += trace->windows[i].closed ? 0 : sizeof *entry;
    if (used == 0)
        return VST_OK;
    size = sizeof *chunk + used + VST_CHUNK_ALIGN - 1;
    size -= size % VST_CHUNK_ALIGN;
    if (size > VST_CHUNK_SIZE_MAX)
        return vst_error_set(self->error, VST_E_ARGUMENT, 0, 0);
    chunk = calloc(1, size);
    if (chunk == NULL)
        return vst_error_set(self->error, VST_E_NOMEM, 0, 0);
    begin_definitions(self, chunk, (uint32_t)size, used);
    entry = (vst_file_entry *)(void *)(chunk + 1);
    for (size_t i = 0; i < trace->window_count; i++)
        if (!trace->windows[i].closed)
            entry = complete_end_window(self, &trace->windows[i], entry);
    if (note != NULL)
        put_note(note, entry);
    status = complete_append(self, chunk);
    free(chunk);
    return status;
}

/* Ends the file with the words of its last chunk. If the original was cut
 * inside a chunk, the rest of that chunk is zeros. */
static vst_status complete_finish(copy *self)
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
    return vst__copy_write(self->fd, &header.state,
                           sizeof header - offsetof(vst_file_header, state),
                           offsetof(vst_file_header, state), self->error);
}

vst_status vst__copy_complete(int fd, const vst__ending *ending,
                              vst_error *error)
{
    copy self = {.fd = fd, .ending = ending, .error = error};
    vst_status status = vst_trace_open_fd(fd, &self.trace, error);

    if (status != VST_OK)
        return status;
    status = seal_chunks(&self);
    if (status == VST_OK)
        status = add_entries(&self);
    if (status == VST_OK)
        status = complete_finish(&self);
    vst_trace_close(self.trace);
    return status;
}
