/* Copies the chunks of a trace file, which its process may be writing at the
 * same time. Takes no lock of the recorder: everything is read through the
 * descriptor, and the format's rules for torn files make the copy valid.
 *
 * - Records first, definitions after: a definition is in the file before the
 *   first record that uses it, so every name that was copied is defined.
 * - A header is read before the payload and again after it. If it says that the
 *   chunk is sealed, the chunk's words are final. If it is another header by
 *   then, the chunk was reused meanwhile (see format.h), and the copy drops it.
 * - Words that were stored while their chunk was copied may be missing from the
 *   copy; the first zero word ends the chunk.
 * - The words of a chunk that is not sealed are read twice: the copy ends with
 *   the last record that was equal both times. Later records may have been
 *   stored, or taken back, during the reading (see live.h).
 *
 * Any thread, for a file of its own. */
#include "store/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/live.h"

enum {
    BLOCK = 256 * 1024,
    /* how often chunks that replaced lost ones are copied at most */
    ROUNDS = 8,
};

/* A chunk to copy. */
typedef struct place {
    uint64_t offset;
    uint64_t room; /* how many of its bytes the file has */
    vst_chunk_header header;
} place;

typedef struct copier {
    vst__source *from;
    int to;
    vst_file_header header; /* header of the copy */
    uint64_t end;           /* where the next chunk of the copy goes */
    uint32_t sequence;      /* sequence numbers below this one were seen */
    bool outrun;            /* a chunk was reused before it was copied */
    place *places;
    size_t count, capacity;
    unsigned char *block;
    vst_error *error;
} copier;

/* ---- bytes --------------------------------------------------------------- */

static vst_status copy_fail(vst_error *error, int sys_errno, uint64_t offset)
{
    bool full =
        sys_errno == ENOSPC || sys_errno == EFBIG || sys_errno == EDQUOT;

    return vst_error_set(error, full ? VST_E_NOSPACE : VST_E_IO, sys_errno,
                         offset);
}

vst_status vst__copy_write(int fd, const void *bytes, size_t count,
                           uint64_t offset, vst_error *error)
{
    int failed = vst__os_file_may_reach(offset + count);

    if (failed == 0)
        failed = vst__os_file_write(fd, bytes, count, offset);
    return failed == 0 ? VST_OK : copy_fail(error, failed, offset);
}

static vst_status read_at(const copier *self, void *bytes, size_t count,
                          uint64_t offset, size_t *got)
{
    vst_status status = vst__source_read(self->from, bytes, count, offset, got);

    return status == VST_OK ? VST_OK
                            : vst_error_set(self->error, status,
                                            self->from->sys_errno, offset);
}

/* Reads the size again, because a file that is being written grows. */
static vst_status size_now(const copier *self, uint64_t *size)
{
    int failed = 0;

    *size = self->from->size;
    if (self->from->packed == NULL)
        failed = vst__os_file_size(self->from->fd, size);
    return failed == 0 ? VST_OK : copy_fail(self->error, failed, 0);
}

static vst_status truncate_copy(const copier *self, uint64_t size)
{
    int failed = vst__os_file_may_reach(size);

    if (failed == 0)
        failed = vst__os_file_truncate(self->to, size);
    return failed == 0 ? VST_OK : copy_fail(self->error, failed, size);
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    return count == 0 ||
           (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* ---- choosing chunks ----------------------------------------------------- */

/* Reads a header; if it is being written, a second reading finds it
 * complete. */
static vst_status read_chunk_header(const copier *self, uint64_t offset,
                                    vst_chunk_header *header, bool *valid)
{
    int tries = 2;
    vst_status status;

    do {
        size_t got;
        memset(header, 0, sizeof *header);
        status = read_at(self, header, sizeof *header, offset, &got);
        *valid = status == VST_OK && got == sizeof *header &&
                 vst__chunk_is_valid(header);
    } while (status == VST_OK && !*valid && header->magic != 0 && --tries != 0);
    return status;
}

static vst_status copy_add_place(copier *self, const place *found)
{
    if (!VST_RESERVE(self->places, self->count + 1, self->capacity))
        return vst_error_set(self->error, VST_E_NOMEM, 0, 0);
    self->places[self->count++] = *found;
    return VST_OK;
}

/* Returns whether the end of a damaged file cuts the chunk. */
static bool is_cut(const place *chunk)
{
    return chunk->room < vst__chunk_extent(&chunk->header);
}

/* Sorts chunks by the order in which they were begun. A chunk that is cut comes
 * last, so the end of the copy cuts it too. */
static int oldest_first(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (is_cut(x) != is_cut(y))
        return is_cut(x) - is_cut(y);
    if (x->header.sequence != y->header.sequence)
        return x->header.sequence < y->header.sequence ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Sorts the newest first. The oldest chunks may be reused before we copy them,
 * so a copy lacks at most its beginning. Chunks that are still being written
 * come before all others, because a thread that waits may have begun its chunk
 * long ago. */
static int newest_first(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if ((x->header.used == 0) != (y->header.used == 0))
        return x->header.used == 0 ? -1 : 1;
    return oldest_first(b, a);
}

/* Notes the chunks that hold records, or (records false) the other chunks. */
static vst_status find_chunks(copier *self, uint32_t slot_size, bool records)
{
    uint64_t offset = VST_FILE_HEADER_SIZE, size;
    vst_status status = size_now(self, &size);

    if (status != VST_OK)
        return status;
    self->count = 0;
    while (offset < size) {
        place found = {.offset = offset, .room = size - offset};
        bool valid;

        status = read_chunk_header(self, offset, &found.header, &valid);
        if (status == VST_OK && !valid) {
            if (slot_size == 0)
                break;
            offset += slot_size;
            continue;
        }
        if (found.room > found.header.size)
            found.room = found.header.size;
        if (status == VST_OK && (found.header.kind == VST_CHUNK_RECORDS &&
                                 !is_cut(&found)) == records)
            status = copy_add_place(self, &found);
        if (status != VST_OK)
            return status;
        offset += found.room;
    }
    if (self->count > 1)
        qsort(self->places, self->count, sizeof *self->places,
              records ? newest_first : oldest_first);
    return VST_OK;
}

/* Finds out whether every chunk of records lists the calls that were open when
 * it began. In a file, all chunks do or none does; chunks of switches are
 * ignored. */
static vst_status can_be_read_alone(const copier *self, bool *alone)
{
    uint64_t word = 0;
    size_t got;

    *alone = false;
    for (size_t i = 0; i < self->count && word == 0; i++) {
        const place *chunk = &self->places[i];
        vst_status status = VST_OK;

        if (chunk->header.thread != VST_THREAD_SWITCHES)
            status = read_at(self, &word, sizeof word,
                             chunk->offset + sizeof(vst_chunk_header), &got);
        if (status != VST_OK)
            return status;
    }
    *alone = vst_word_kind(word) == VST_ESCAPE &&
             vst_word_escape_type(word) == VST_ESCAPE_CHECKPOINT;
    return VST_OK;
}

static bool is_sealed(const vst_chunk_header *header)
{
    return header->used != 0 &&
           header->used <= (header->size - sizeof *header) / sizeof(uint64_t);
}

/* Returns the moment before which nothing is wanted; 0 if everything is wanted.
 * The window is counted from the last record, as a reader counts it, and the
 * newest time in a header is not later than the last record. The window is not
 * counted from a time after the walk began, because if a thread's chunk was
 * sealed before that, the walk also saw the thread's next chunk. */
static vst_ticks window_begins(const copier *self, uint64_t window_ns,
                               vst_ticks walk)
{
    double ticks = (double)window_ns * self->header.ticks_per_second / 1e9;
    vst_ticks newest = 0;

    for (size_t i = 0; i < self->count; i++) {
        const vst_chunk_header *header = &self->places[i].header;
        if (header->sample.ticks > newest)
            newest = header->sample.ticks;
        if (is_sealed(header) && header->last > newest)
            newest = header->last;
    }
    if (newest > walk)
        newest = walk;
    return ticks < (double)newest ? newest - (vst_ticks)ticks : 0;
}

static void leave_out_before(copier *self, vst_ticks moment)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->count; i++) {
        const vst_chunk_header *header = &self->places[i].header;
        if (is_sealed(header) && header->last != 0 && header->last < moment)
            self->header.dropped += header->used;
        else
            self->places[kept++] = self->places[i];
    }
    self->count = kept;
}

/* ---- copying chunks ------------------------------------------------------ */

/* Copies a chunk's payload; zeros stay a hole in the file. */
static vst_status copy_payload(const copier *self, const place *chunk)
{
    uint64_t extent = vst__chunk_extent(&chunk->header);
    uint64_t at = sizeof(vst_chunk_header);

    if (extent > chunk->room)
        extent = chunk->room;
    while (at < extent) {
        size_t count = extent - at < BLOCK ? (size_t)(extent - at) : BLOCK;
        vst_status status =
            read_at(self, self->block, count, chunk->offset + at, &count);

        if (status == VST_OK && count != 0 && !is_zero(self->block, count))
            status = vst__copy_write(self->to, self->block, count,
                                     self->end + at, self->error);
        if (status != VST_OK)
            return status;
        if (count == 0) /* another process cut the file meanwhile */
            break;
        at += count;
    }
    return VST_OK;
}

/* Compares the copied chunk with the file's words now, and cuts the copy before
 * the first record or entry that differs. */
static vst_status copy_cut_changed(const copier *self, const place *chunk)
{
    const size_t half = BLOCK / 2;
    unsigned char *seen = self->block + half;
    uint64_t extent = chunk->header.size, at = sizeof(vst_chunk_header);
    /* offsets of the record that is compared, and of the bytes behind it */
    uint64_t record = at, next = at;

    if (extent > chunk->room)
        extent = chunk->room;
    while (at < extent) {
        size_t count = extent - at < half ? (size_t)(extent - at) : half;
        size_t got;
        vst_status status =
            read_at(self, self->block, count, chunk->offset + at, &count);
        int failed =
            vst__os_file_read(self->to, seen, count, self->end + at, &got);

        if (status != VST_OK || failed != 0)
            return status != VST_OK
                       ? status
                       : copy_fail(self->error, failed, self->end + at);
        count -= count % 8;
        if (count == 0) /* another process cut the file meanwhile */
            break;
        memset(seen + got, 0, got < count ? count - got : 0);
        for (size_t i = 0; i < count; i += 8) {
            if (at + i == next) {
                record = next;
                next += vst__live_size(&chunk->header, seen + i) & ~UINT64_C(7);
            }
            if (record == next || memcmp(self->block + i, seen + i, 8) != 0)
                return truncate_copy(self, self->end + record);
        }
        at += count;
    }
    return VST_OK;
}

static vst_status copy_chunk(copier *self, const place *chunk)
{
    vst_chunk_header header = chunk->header, now;
    bool valid;
    vst_status status = copy_payload(self, chunk);

    if (status == VST_OK && header.used == 0)
        status = copy_cut_changed(self, chunk);
    if (status == VST_OK)
        status = read_chunk_header(self, chunk->offset, &now, &valid);
    if (status != VST_OK)
        return status;
    if (!valid || !vst__live_header(&header, &now)) {
        self->header.dropped += header.used;
        self->outrun = true;
        return truncate_copy(self, self->end);
    }
    status = vst__copy_write(self->to, &header, sizeof header, self->end,
                             self->error);
    self->end += is_cut(chunk) ? chunk->room : header.size;
    return status;
}

static vst_status copy_all_places(copier *self)
{
    for (size_t i = 0; i < self->count; i++) {
        vst_status status = copy_chunk(self, &self->places[i]);
        if (status != VST_OK)
            return status;
    }
    return VST_OK;
}

/* Keeps only chunks that no earlier round has copied. */
static void keep_unseen(copier *self)
{
    uint32_t next = self->sequence;
    size_t kept = 0;

    for (size_t i = 0; i < self->count; i++) {
        uint32_t sequence = self->places[i].header.sequence;
        if (sequence >= next)
            next = sequence + 1;
        if (sequence >= self->sequence)
            self->places[kept++] = self->places[i];
    }
    self->count = kept;
    self->sequence = next;
}

static vst_status copy_records(copier *self, uint32_t slot_size,
                               uint64_t window_ns)
{
    vst_ticks now = vst_clock_ticks();
    bool alone = slot_size != 0;
    vst_status status = find_chunks(self, slot_size, true);

    if (status == VST_OK && !alone)
        status = can_be_read_alone(self, &alone);
    if (status == VST_OK && slot_size != 0)
        keep_unseen(self);
    if (status == VST_OK && alone && window_ns != 0)
        leave_out_before(self, window_begins(self, window_ns, now));
    return status == VST_OK ? copy_all_places(self) : status;
}

/* Repeats until no chunk was reused while it was copied, because the chunk that
 * took its place is newer. */
static vst_status copy_all_records(copier *self, uint32_t slot_size,
                                   uint64_t window_ns)
{
    vst_status status = VST_OK;

    for (int i = 0; status == VST_OK && i < ROUNDS; i++) {
        self->outrun = false;
        status = copy_records(self, slot_size, window_ns);
        if (!self->outrun)
            break;
    }
    return status;
}

static vst_status copy_all(copier *self, uint64_t window_ns)
{
    vst_file_header *header = &self->header;
    uint32_t slot_size;
    size_t got;
    vst_status status = read_at(self, header, sizeof *header, 0, &got);

    if (status == VST_OK && got < sizeof *header)
        status = vst_error_set(self->error, VST_E_DAMAGED, 0, got);
    if (status != VST_OK)
        return status;
    slot_size = vst__sane_slot_size(header->slot_size);
    header->slot_size = 0; /* the chunks of the copy are not reused any more */
    if (window_ns != 0 && (header->keep_ns == 0 || window_ns < header->keep_ns))
        header->keep_ns = window_ns;
    self->end = VST_FILE_HEADER_SIZE;
    status = copy_all_records(self, slot_size, window_ns);
    if (status == VST_OK)
        status = find_chunks(self, slot_size, false);
    if (status == VST_OK)
        status = copy_all_places(self);
    if (status == VST_OK)
        status =
            vst__copy_write(self->to, header, sizeof *header, 0, self->error);
    return status == VST_OK ? truncate_copy(self, self->end) : status;
}

vst_status vst__copy_chunks(vst__source *from, int to, uint64_t window_ns,
                            vst_error *error)
{
    copier self = {.from = from, .to = to, .error = error};
    vst_status status;

    self.block = malloc(BLOCK);
    if (self.block == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    status = copy_all(&self, window_ns);
    free(self.block);
    free(self.places);
    return status;
}
