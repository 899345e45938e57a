/* Reads a trace while it grows: adds what was recorded since the last look, at
 * a cost that does not grow with the file. In an unbounded file, only chunks
 * that are not sealed can change, and new chunks follow the last. In a bounded
 * file, chunks come and go, so every header is read; a chunk is known by its
 * place and its sequence number. Records are read before definitions, whose
 * entries precede the records that use them, so a reader can name everything
 * that it reads. One thread at a time uses a trace. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/live.h"

/* ---- the file ------------------------------------------------------------ */

/* Takes the fields of a header that may change. */
static vst_status read_header_again(vst_trace *trace, vst_error *error)
{
    const size_t fixed = offsetof(vst_file_header, state);
    vst_file_header before = trace->header;
    vst_status status = vst__trace_read_header(trace, error);

    if (status == VST_OK && memcmp(&before, &trace->header, fixed) == 0)
        return VST_OK;
    trace->header = before;
    if (status == VST_E_IO)
        return status;
    return vst_error_set(error, VST_E_DAMAGED, 0, 0);
}

/* Reads the file's size. A finished file ends with the last words that it uses;
 * any other file does not become shorter by itself. */
static vst_status read_size_again(vst_trace *trace, vst_error *error)
{
    uint64_t size;
    int failed = vst__os_file_size(trace->source.fd, &size);

    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    if (size < trace->source.size && trace->header.state != VST_FILE_FINISHED)
        return vst_error_set(error, VST_E_DAMAGED, 0, size);
    trace->source.size = trace->source.file_size = size;
    trace->block.file_size = size;
    trace->block.count = 0; /* the block shows bytes that were read earlier */
    return VST_OK;
}

/* ---- chunks -------------------------------------------------------------- */

static vst__known_chunk *
add_known(vst_trace *trace, const vst_chunk_header *chunk, uint64_t offset)
{
    vst__known_chunk *known;

    if (!VST_RESERVE(trace->known, trace->known_count + 1,
                     trace->known_capacity))
        return NULL;
    known = &trace->known[trace->known_count++];
    *known = (vst__known_chunk){
        .offset = offset, .sequence = chunk->sequence, .kind = chunk->kind};
    return known;
}

static vst_status take_records(vst_trace *trace, const vst_chunk_header *chunk,
                               uint64_t room, vst__known_chunk *known)
{
    if (known->sealed || chunk->kind != VST_CHUNK_RECORDS)
        return VST_OK;
    return vst__segments_grow(trace, chunk, room, known);
}

static vst_status grow_add_chunk(vst_trace *trace,
                                 const vst_chunk_header *chunk, uint64_t offset,
                                 uint64_t room)
{
    vst__known_chunk *known = add_known(trace, chunk, offset);
    vst_status status;

    if (known == NULL)
        return VST_E_NOMEM;
    status = vst__clockmap_add(&trace->clock, &chunk->sample);
    return status == VST_OK ? take_records(trace, chunk, room, known) : status;
}

/* ---- an unbounded file --------------------------------------------------- */

static vst_status grow_known(vst_trace *trace)
{
    vst_status status = VST_OK;

    for (size_t i = 0; status == VST_OK && i < trace->known_count; i++) {
        uint64_t offset = trace->known[i].offset, room;
        vst_chunk_header chunk;
        bool found;

        status = vst__trace_find_chunk(trace, &offset, &chunk, &room, &found);
        if (status == VST_OK && found)
            status = take_records(trace, &chunk, room, &trace->known[i]);
    }
    return status;
}

static vst_status grow_find_new(vst_trace *trace)
{
    for (;;) {
        uint64_t room;
        vst_chunk_header chunk;
        bool found;
        vst_status status = vst__trace_find_chunk(trace, &trace->grow_at,
                                                  &chunk, &room, &found);

        if (status == VST_OK && found)
            status = grow_add_chunk(trace, &chunk, trace->grow_at, room);
        if (status != VST_OK || !found)
            return status;
        trace->valid_end = trace->grow_at + room;
        trace->grow_at += chunk.size;
    }
}

/* Removes chunks that cannot change any more. */
static void forget_sealed(vst_trace *trace)
{
    size_t kept = 0;

    for (size_t i = 0; i < trace->known_count; i++)
        if (!trace->known[i].sealed)
            trace->known[kept++] = trace->known[i];
    trace->known_count = kept;
}

/* ---- a bounded file ------------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
    const vst__known_chunk *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Finds a chunk by its place, among the first `count`. */
static vst__known_chunk *find_known(const vst_trace *trace, size_t count,
                                    uint64_t offset)
{
    vst__known_chunk key = {.offset = offset};

    return count != 0
               ? bsearch(&key, trace->known, count, sizeof key, by_offset)
               : NULL;
}

/* Keeps known chunks that the walk did not meet: while a header is being
 * changed, the chunks behind it are not found for a moment, though they
 * exist. */
static vst_status keep_present(vst_trace *trace, size_t before,
                               const unsigned char *met)
{
    size_t kept = 0;

    for (size_t i = 0; i < trace->known_count; i++) {
        const vst__known_chunk *known = &trace->known[i];
        bool present = i >= before || met[i];
        vst_chunk_header chunk;

        if (!present) {
            vst_status status =
                vst__trace_read_chunk(trace, known->offset, &chunk, &present);
            if (status != VST_OK)
                return status;
            present = present && chunk.sequence == known->sequence;
        }
        if (present)
            trace->known[kept++] = *known;
    }
    trace->known_count = kept;
    if (kept > 1)
        qsort(trace->known, kept, sizeof *trace->known, by_offset);
    return VST_OK;
}

static void drop_segments(vst_trace *trace)
{
    size_t kept = 0;

    for (size_t i = 0; i < trace->segment_count; i++) {
        const vst__segment *segment = &trace->segments[i];
        const vst__known_chunk *known =
            find_known(trace, trace->known_count, segment->header);

        if (known != NULL && known->sequence == segment->sequence)
            trace->segments[kept++] = *segment;
    }
    if (kept != trace->segment_count)
        trace->sorted = 0;
    trace->segment_count = kept;
}

static vst_status walk_slots(vst_trace *trace, size_t before,
                             unsigned char *met)
{
    uint64_t offset = VST_FILE_HEADER_SIZE, room;
    vst_chunk_header chunk;
    bool found;

    for (;;) {
        vst_status status =
            vst__trace_find_chunk(trace, &offset, &chunk, &room, &found);
        vst__known_chunk *known;

        if (status != VST_OK || !found)
            return status;
        known = find_known(trace, before, offset);
        if (known != NULL && known->sequence == chunk.sequence) {
            met[known - trace->known] = 1;
            status = take_records(trace, &chunk, room, known);
        } else {
            status = grow_add_chunk(trace, &chunk, offset, room);
        }
        if (status != VST_OK)
            return status;
        offset += room;
        if (offset > trace->valid_end)
            trace->valid_end = offset;
    }
}

static vst_status grow_bounded(vst_trace *trace)
{
    size_t before = trace->known_count;
    unsigned char *met = calloc(before + 1, 1);
    vst_status status;

    if (met == NULL)
        return VST_E_NOMEM;
    trace->damaged = false;
    status = walk_slots(trace, before, met);
    if (status == VST_OK)
        status = keep_present(trace, before, met);
    if (status == VST_OK)
        drop_segments(trace);
    free(met);
    return status;
}

/* ---- definitions --------------------------------------------------------- */

static int grow_by_time(const void *a, const void *b)
{
    const vst__known_chunk *x = *(vst__known_chunk *const *)a;
    const vst__known_chunk *y = *(vst__known_chunk *const *)b;

    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static vst_status grow_entries(vst_trace *trace, vst__known_chunk *known)
{
    uint64_t offset = known->offset, room, read = 0;
    vst_chunk_header chunk;
    vst_status status;
    bool found;

    status = vst__trace_find_chunk(trace, &offset, &chunk, &room, &found);
    if (status != VST_OK || !found || offset != known->offset ||
        room < sizeof chunk + known->entries)
        return status;
    status = vst__entries_add(trace, offset + sizeof chunk + known->entries,
                              room - sizeof chunk - known->entries, &read);
    known->entries += read;
    /* A chunk is sealed after its last entry. */
    known->sealed = chunk.used != 0;
    return status;
}

static vst_status grow_definitions(vst_trace *trace)
{
    vst__known_chunk **found =
        malloc((trace->known_count + 1) * sizeof(vst__known_chunk *));
    vst_status status = VST_OK;
    size_t count = 0;

    if (found == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < trace->known_count; i++)
        if (trace->known[i].kind != VST_CHUNK_RECORDS &&
            !trace->known[i].sealed)
            found[count++] = &trace->known[i];
    if (count > 1)
        qsort(found, count, sizeof *found, grow_by_time);
    for (size_t i = 0; status == VST_OK && i < count; i++)
        if (found[i]->kind == VST_CHUNK_DEFINITIONS)
            status = grow_entries(trace, found[i]);
    free(found);
    return status;
}

/* ---- growing the whole trace --------------------------------------------- */

/* Resets the fields that vst__segments_finish computes again. */
static void reset_windows(vst_trace *trace)
{
    for (size_t i = 0; i < trace->window_count; i++) {
        vst__window *window = &trace->windows[i];

        window->first = window->began;
        window->last = window->closed ? window->ended : 0;
        window->words = 0;
        window->complete = 0;
    }
}

static vst_status build_clock(vst_trace *trace)
{
    const vst_file_header *header = &trace->header;

    return trace->clock.count == 0
               ? vst__clockmap_build(&trace->clock, header->ticks_per_second,
                                     &header->start)
               : vst__clockmap_extend(&trace->clock, header->ticks_per_second);
}

static vst_status grow_take_changes(vst_trace *trace)
{
    vst_status status;

    reset_windows(trace);
    if (trace->slot_size != 0) {
        status = grow_bounded(trace);
    } else {
        status = grow_known(trace);
        if (status == VST_OK)
            status = grow_find_new(trace);
    }
    if (status == VST_OK)
        status = grow_definitions(trace);
    if (status == VST_OK && trace->slot_size == 0)
        forget_sealed(trace);
    /* Finishing a file cuts off the unused end of its last chunk. */
    if (trace->valid_end > trace->block.file_size)
        trace->valid_end = trace->block.file_size;
    if (status == VST_OK)
        status = vst__segments_finish(trace);
    if (status == VST_OK)
        status = build_clock(trace);
    return status == VST_OK ? vst__trace_show_all(trace) : status;
}

vst_status vst__trace_grow(vst_trace *trace, vst_error *error)
{
    vst_status status = read_header_again(trace, error);

    if (status == VST_OK)
        status = read_size_again(trace, error);
    if (status != VST_OK)
        return status;
    status = grow_take_changes(trace);
    return vst_error_set(error, status, trace->block.sys_errno, 0);
}

static vst_status grow_open_file(vst_trace *trace, const char *path,
                                 vst_error *error)
{
    int fd, failed = vst__os_file_open(path, &fd);
    vst_status status;

    trace->source.fd = -1;
    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    status = vst__source_open(&trace->source, fd, error);
    vst__block_init(&trace->block, &trace->source);
    vst__clockmap_init(&trace->clock);
    if (status == VST_OK)
        status = vst__trace_read_header(trace, error);
    if (status != VST_OK)
        return status;
    trace->growing = true;
    trace->slot_size = vst__sane_slot_size(trace->header.slot_size);
    trace->grow_at = trace->valid_end = VST_FILE_HEADER_SIZE;
    if (trace->source.packed != NULL)
        return vst_error_set(error, VST_E_STATE, 0, 0);
    return vst_error_set(error, grow_take_changes(trace),
                         trace->block.sys_errno, 0);
}

vst_status vst__trace_open_growing(const char *path, vst_trace **out,
                                   vst_error *error)
{
    vst_trace *trace = calloc(1, sizeof *trace);
    vst_status status;

    vst_error_set(error, VST_OK, 0, 0);
    if (trace == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = grow_open_file(trace, path, error);
    if (status != VST_OK) {
        vst_trace_close(trace);
        return status;
    }
    *out = trace;
    return VST_OK;
}
