/* Opens a trace file: checks its header, walks the headers of chunks up to the
 * first invalid one, and lets segments.c and entries.c read the chunks. Works
 * on finished files, on files that are being written, and on torn files; no
 * field of a file is trusted beyond the file's real size. Replay reads the
 * records. One thread at a time uses a trace. */

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/live.h"

/* Every clock that vestige uses is within these limits; a file with another
 * rate is damaged. */
#define TICKS_PER_SECOND_MIN 1e3
#define TICKS_PER_SECOND_MAX 1e12

static bool checksum_is(const void *bytes, size_t count, uint32_t checksum)
{
    return crc32(0, bytes, (uInt)count) == checksum;
}

/* Checks in the order of the format. The version comes before the checksum,
 * because a newer file may have its checksum elsewhere. */
vst_status vst__trace_read_header(vst_trace *trace, vst_error *error)
{
    vst_file_header *header = &trace->header;
    size_t got;
    vst_status status =
        vst__source_read(&trace->source, header, sizeof *header, 0, &got);

    if (status != VST_OK)
        return vst_error_set(error, status, trace->source.sys_errno, 0);
    if (got < sizeof header->magic ||
        memcmp(header->magic, VST_FILE_MAGIC, sizeof header->magic) != 0)
        return vst_error_set(error, VST_E_NOT_A_TRACE, 0, 0);
    if (got < sizeof *header)
        return vst_error_set(error, VST_E_DAMAGED, 0, got);
    if (header->byte_order != VST_FILE_BYTE_ORDER)
        return vst_error_set(error, VST_E_UNSUPPORTED, 0,
                             offsetof(vst_file_header, byte_order));
    if (header->version != VST_FILE_VERSION)
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

/* ---- walking ------------------------------------------------------------- */

static vst_status look_at_header(vst_trace *trace, uint64_t offset,
                                 vst_chunk_header *chunk, bool *valid)
{
    size_t got;
    vst_status status;

    memset(chunk, 0, sizeof *chunk);
    status =
        vst__source_read(&trace->source, chunk, sizeof *chunk, offset, &got);
    *valid =
        status == VST_OK && got == sizeof *chunk && vst__chunk_is_valid(chunk);
    if (status != VST_OK)
        trace->block.sys_errno = trace->source.sys_errno;
    return status;
}

/* Reads a header again if it was being changed during the first reading;
 * storing a header takes only an instant. */
vst_status vst__trace_read_chunk(vst_trace *trace, uint64_t offset,
                                 vst_chunk_header *chunk, bool *valid)
{
    int tries = vst__trace_is_live(trace) ? 3 : 1;
    vst_chunk_header later;
    vst_status status;

    do {
        bool is_there;

        status = look_at_header(trace, offset, chunk, valid);
        if (status != VST_OK || !*valid || !vst__trace_is_live(trace))
            continue;
        status = look_at_header(trace, offset, &later, &is_there);
        *valid = is_there && vst__live_header(chunk, &later);
        if (!*valid)
            *chunk = later;
    } while (status == VST_OK && !*valid && chunk->magic != 0 && --tries != 0);
    return status;
}

static void note_damage(vst_trace *trace, uint64_t offset)
{
    if (!trace->damaged)
        trace->damaged_at = offset;
    trace->damaged = true;
}

/* Returns how much of a chunk the file has. A file that is being recorded
 * may have grown since it was opened, so a chunk that seems cut is looked at
 * again. */
static uint64_t room_for(vst_trace *trace, uint64_t offset,
                         const vst_chunk_header *chunk)
{
    uint64_t room = trace->block.file_size - offset, size;

    if (room < vst__chunk_extent(chunk) && trace->source.packed == NULL &&
        vst__os_file_size(trace->source.fd, &size) == 0 &&
        size > trace->block.file_size) {
        trace->block.file_size = trace->source.size = size;
        room = size - offset;
    }
    return room < chunk->size ? room : chunk->size;
}

/* Returns whether the file may be changing here. Behind a missing header, old
 * words of a reused chunk may lie; and words of a live chunk may lie where a
 * header was when the walk found the chunk before it. */
static bool is_being_changed(vst_trace *trace)
{
    vst_chunk_header before;
    bool valid;

    return trace->slot_size != 0 && trace->header.state != VST_FILE_FINISHED &&
           trace->found_at != 0 &&
           vst__trace_read_chunk(trace, trace->found_at, &before, &valid) ==
               VST_OK &&
           (!valid || before.sequence != trace->found_sequence);
}

vst_status vst__trace_find_chunk(vst_trace *trace, uint64_t *offset,
                                 vst_chunk_header *chunk, uint64_t *room,
                                 bool *found)
{
    bool in_hole = false; /* whether we are behind a header without a magic */

    *found = false;
    while (*offset < trace->block.file_size) {
        vst_status status = vst__trace_read_chunk(trace, *offset, chunk, found);

        if (status != VST_OK)
            return status;
        if (*found) {
            *room = room_for(trace, *offset, chunk);
            trace->found_at = *offset;
            trace->found_sequence = chunk->sequence;
            return VST_OK;
        }
        if (chunk->magic == 0)
            in_hole = trace->slot_size != 0 &&
                      trace->header.state != VST_FILE_FINISHED;
        else if (!in_hole && !is_being_changed(trace))
            note_damage(trace, *offset);
        if (trace->slot_size == 0)
            break;
        *offset += trace->slot_size;
    }
    return VST_OK;
}

/* Takes a chunk of records. In a file that is being recorded, its slot may have
 * been given to other records meanwhile; then the chunk is ignored. */
static vst_status take_records(vst_trace *trace, const vst_chunk_header *chunk,
                               uint64_t offset, uint64_t room)
{
    size_t before = trace->segment_count;
    vst_status status = vst__segments_add(trace, chunk, offset, room);
    vst_chunk_header now;
    bool valid;

    if (status == VST_OK && before != trace->segment_count &&
        trace->segments[before].guarded) {
        status = vst__trace_read_chunk(trace, offset, &now, &valid);
        if (status == VST_OK && (!valid || now.sequence != chunk->sequence))
            trace->segment_count = before;
    }
    return status;
}

/* A DEFINITIONS chunk that is to be read. */
typedef struct definitions {
    uint64_t offset, room;
    uint32_t sequence;
} definitions;

static int definitions_by_time(const void *a, const void *b)
{
    const definitions *x = a, *y = b;

    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Reads the definitions of a bounded file, whose chunks are not in order of
 * time and may have come since the walk began. Reading them last makes sure
 * that all records have their names. */
static vst_status take_definitions_in_time(vst_trace *trace)
{
    definitions *found = NULL;
    size_t count = 0, capacity = 0;
    uint64_t offset = VST_FILE_HEADER_SIZE, room;
    vst_status status = VST_OK;
    vst_chunk_header chunk;
    bool any;

    while (status == VST_OK) {
        status = vst__trace_find_chunk(trace, &offset, &chunk, &room, &any);
        if (status != VST_OK || !any)
            break;
        if (chunk.kind == VST_CHUNK_DEFINITIONS) {
            if (!VST_RESERVE(found, count + 1, capacity)) {
                status = VST_E_NOMEM;
                break;
            }
            found[count++] = (definitions){offset, room, chunk.sequence};
        }
        offset += room;
    }
    if (count > 1)
        qsort(found, count, sizeof *found, definitions_by_time);
    for (size_t i = 0; status == VST_OK && i < count; i++)
        status = vst__entries_add(trace, found[i].offset + sizeof chunk,
                                  found[i].room - sizeof chunk, NULL);
    free(found);
    return status;
}

static vst_status take_chunk(vst_trace *trace, const vst_chunk_header *chunk,
                             uint64_t offset, uint64_t room)
{
    vst_status status = vst__clockmap_add(&trace->clock, &chunk->sample);

    if (status != VST_OK)
        return status;
    switch (chunk->kind) {
    case VST_CHUNK_RECORDS:
        return take_records(trace, chunk, offset, room);
    case VST_CHUNK_DEFINITIONS:
        if (trace->slot_size != 0)
            return VST_OK;
        return vst__entries_add(trace, offset + sizeof *chunk,
                                room - sizeof *chunk, NULL);
    default: /* a chunk of a newer writer */
        return VST_OK;
    }
}

/* Sets valid_end to the end of the last chunk. If the file's end cuts the last
 * chunk, that chunk is read up to the end. */
static vst_status walk_chunks(vst_trace *trace, vst_error *error)
{
    uint64_t offset = VST_FILE_HEADER_SIZE, room;
    vst_chunk_header chunk;
    vst_status status;
    bool found;

    trace->valid_end = offset;
    for (;;) {
        status = vst__trace_find_chunk(trace, &offset, &chunk, &room, &found);
        if (status != VST_OK || !found)
            break;
        status = take_chunk(trace, &chunk, offset, room);
        if (status != VST_OK)
            break;
        trace->valid_end = offset + room;
        if (room < vst__chunk_extent(&chunk))
            note_damage(trace, trace->valid_end);
        offset += room;
    }
    if (trace->source.cut)
        note_damage(trace, trace->valid_end);
    if (status == VST_OK && trace->slot_size != 0)
        status = take_definitions_in_time(trace);
    if (status != VST_OK)
        return vst_error_set(error, status, trace->block.sys_errno, offset);
    return VST_OK;
}

/* ---- range --------------------------------------------------------------- */

bool vst__window_is_gone(const vst_trace *trace, const vst__window *window)
{
    return window->ended < trace->clip || window->kept > trace->until ||
           trace->until < trace->clip ||
           (window->segment_count == 0 && trace->header.dropped != 0);
}

static void reader_show(vst_trace *trace, vst_ticks from, vst_ticks until)
{
    trace->clip = from > trace->keep_clip ? from : trace->keep_clip;
    trace->until = until;
    for (size_t i = 0; i < trace->window_count; i++) {
        vst__window *window = &trace->windows[i];

        window->first = window->kept;
        if (window->first < trace->clip)
            window->first =
                trace->clip < window->ended ? trace->clip : window->ended;
        window->last = window->ended;
        if (window->last > until)
            window->last = until > window->first ? until : window->first;
    }
}

void vst_trace_set_range(vst_trace *trace, int64_t from_ns, int64_t to_ns)
{
    vst_ticks from = 0, until = UINT64_MAX;

    if (from_ns != INT64_MIN)
        from = vst__clockmap_to_ticks(&trace->clock, from_ns);
    if (to_ns != INT64_MAX)
        until = vst__clockmap_to_ticks(&trace->clock, to_ns + 1);
    if (to_ns != INT64_MAX && until != 0)
        until--;
    reader_show(trace, from, until);
}

void vst_trace_set_by_running(vst_trace *trace, bool by_running)
{
    trace->by_running = by_running;
}

void vst_trace_set_compensated(vst_trace *trace, bool compensated)
{
    trace->compensated = compensated;
}

bool vst__trace_is_compensated(const vst_trace *trace)
{
    return trace->compensated;
}

/* A file bounded in time may hold older records than it was asked to keep. */
vst_status vst__trace_show_all(vst_trace *trace)
{
    uint64_t keep_ns = trace->header.keep_ns;
    vst_ticks last;
    vst_status status;

    trace->until = UINT64_MAX;
    if (keep_ns == 0 || keep_ns > INT64_MAX / 2)
        return VST_OK;
    status = vst__segments_last(trace, &last);
    if (status == VST_OK && last != 0) {
        int64_t last_ns = vst__clockmap_to_ns(&trace->clock, last);
        trace->keep_clip =
            vst__clockmap_to_ticks(&trace->clock, last_ns - (int64_t)keep_ns);
        reader_show(trace, 0, UINT64_MAX);
    }
    return status;
}

static vst_status reader_load(vst_trace *trace, int fd, vst_error *error)
{
    vst_status status = vst__source_open(&trace->source, fd, error);

    vst__block_init(&trace->block, &trace->source);
    vst__clockmap_init(&trace->clock);
    if (status == VST_OK)
        status = vst__trace_read_header(trace, error);
    trace->slot_size = vst__sane_slot_size(trace->header.slot_size);
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
    if (status == VST_OK)
        status = vst__trace_show_all(trace);
    if (status != VST_OK)
        return vst_error_set(error, status, trace->block.sys_errno, 0);
    /* The trace is open, but its tail cannot be used; report where the tail
     * begins. */
    if (trace->damaged)
        vst_error_set(error, VST_E_DAMAGED, 0, trace->damaged_at);
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
    status = reader_load(trace, fd, error);
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
    free(trace->known);
    vst__clockmap_free(&trace->clock);
    vst__block_free(&trace->block);
    vst__source_close(&trace->source);
    free(trace);
}

vst_status vst_trace_set_offset(vst_trace *trace, int64_t offset_ns)
{
    return vst__clockmap_set_offset(&trace->clock, offset_ns);
}
