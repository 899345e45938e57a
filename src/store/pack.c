/* Packs a trace file, and unpacks it (format.h), frame by frame, whatever its
 * bytes are. The borders of frames, and whether words are split, follow the
 * chunks only for better compression; reading depends on neither. Chunks of one
 * kind share a frame, as many as fit.
 *
 * Measured with zstd 1.5.4 at level 3 on traces of Python programs (pytest, ast
 * and json, threads, loops of calls): split words take 0.3 to 1.1 bytes a
 * record at 400 to 1,000 MB/s, words that are not split 0.5 to 1.5 bytes at 260
 * to 370 MB/s. Levels 1 and 9 give 1.0 to 1.05 and 0.87 to 0.92 of that size,
 * at 1.0 to 1.7 and 0.2 of the speed. Splitting ids into bytes too, or leaving
 * out the ids of exits that follow from their enters, changes less than 3 %.
 *
 * Records of memory, from a program that parses, makes JSON and keeps objects:
 * 14.3 bytes a record become 2.1, with native frames 2.6; of four threads, 13.8
 * become 2.4. With random calls and 1.4 bytes of noise in each time, 12.3
 * become 4.1. A transform of their own would not be worth its code.
 *
 * One thread at a time for each file written. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "os/os.h"
#include "os/progress.h"
#include "store/compress.h"
#include "store/reader.h"
#include "store/transform.h"
#include "store/whole.h"

/* The state of one vst_trace_pack or vst_trace_unpack. */
typedef struct packing {
    vst_trace *from;
    int fd;
    vst_status (*write)(struct packing *self);
    uint64_t offset;  /* how many of the trace's bytes are done */
    uint64_t written; /* how many bytes of the new file are written */
    const vst_pack_options *options;
    int64_t next_progress_ns;
    vst_error *error;

    /* For packing: the kind of the bytes behind `offset`. */
    uint64_t run_end; /* end of the bytes of that kind */
    vst_pack_transform run_transform;
    vst__compressor *compressor;
    unsigned char *raw;
    unsigned char *split;
    unsigned char *packed;
} packing;

static vst_status pack_report_progress(packing *self)
{
    const vst_pack_options *options = self->options;
    double done = (double)self->offset / (double)self->from->source.size;

    return vst__progress_report(options->progress, options->progress_ctx,
                                &self->next_progress_ns, done) == VST_OK
               ? VST_OK
               : vst_error_set(self->error, VST_E_CANCELLED, 0, 0);
}

static vst_status pack_append(packing *self, const void *bytes, size_t count)
{
    int failed = vst__os_file_write(self->fd, bytes, count, self->written);

    if (failed != 0)
        return vst_error_set(self->error,
                             failed == ENOSPC || failed == EFBIG ||
                                     failed == EDQUOT
                                 ? VST_E_NOSPACE
                                 : VST_E_IO,
                             failed, self->written);
    self->written += count;
    return VST_OK;
}

/* Reads exactly `count` bytes of the trace; fails if the file became
 * shorter. */
static vst_status read_exactly(packing *self, void *bytes, size_t count,
                               uint64_t offset)
{
    vst__source *source = &self->from->source;
    size_t got;
    vst_status status = vst__source_read(source, bytes, count, offset, &got);

    if (status == VST_OK && got < count)
        status = VST_E_DAMAGED;
    return status == VST_OK ? VST_OK
                            : vst_error_set(self->error, status,
                                            source->sys_errno, offset + got);
}

/* ---- packing ------------------------------------------------------------- */

static bool is_chunk_size(uint64_t size)
{
    return size != 0 && size % VST_CHUNK_ALIGN == 0 &&
           size <= VST_CHUNK_SIZE_MAX;
}

/* Finds how far the bytes at `offset` are of one kind, and of which kind: the
 * file's header, a chunk, an empty slot of a bounded file, or everything that
 * is left. */
static vst_status find_run(packing *self, uint64_t offset, uint64_t *end,
                           vst_pack_transform *transform)
{
    uint64_t size = self->from->source.size, length = size - offset;
    uint64_t slot = self->from->header.slot_size;
    vst_chunk_header chunk = {0};

    *transform = VST_PACK_PLAIN;
    if (offset == 0) {
        length = VST_FILE_HEADER_SIZE;
    } else if (size - offset >= sizeof chunk) {
        vst_status status = read_exactly(self, &chunk, sizeof chunk, offset);

        if (status != VST_OK)
            return status;
        if (chunk.magic == VST_CHUNK_MAGIC && is_chunk_size(chunk.size)) {
            length = chunk.size;
            if (chunk.kind == VST_CHUNK_RECORDS)
                *transform = VST_PACK_SPLIT;
        } else if (is_chunk_size(slot)) {
            length = slot;
            *transform = VST_PACK_SPLIT;
        }
    }
    *end = length < size - offset ? offset + length : size;
    return VST_OK;
}

/* Chooses how many bytes the next frame takes. */
static vst_status choose_frame(packing *self, size_t *count,
                               vst_pack_transform *transform)
{
    uint64_t most = self->offset + VST_PACK_RAW_MAX, end = self->run_end;
    vst_status status = VST_OK;

    if (end == self->offset)
        status = find_run(self, self->offset, &end, &self->run_transform);
    *transform = self->run_transform;
    self->run_end = end;
    while (status == VST_OK && end < most && end < self->from->source.size) {
        vst_pack_transform next;

        status = find_run(self, end, &self->run_end, &next);
        if (status != VST_OK || next != *transform || self->run_end > most) {
            self->run_end = end; /* the next call looks at these bytes again */
            break;
        }
        end = self->run_end;
    }
    *count = (size_t)((end < most ? end : most) - self->offset);
    return status;
}

static vst_status pack_frame(packing *self)
{
    const unsigned char *bytes = self->raw;
    vst_pack_frame head = {0};
    vst_pack_transform transform;
    size_t count, packed;
    uLong sum;
    vst_status status = choose_frame(self, &count, &transform);

    if (status == VST_OK)
        status = read_exactly(self, self->raw, count, self->offset);
    if (status != VST_OK)
        return status;
    if (transform == VST_PACK_SPLIT) {
        vst__transform_split(self->raw, count, self->split);
        bytes = self->split;
    }
    status = vst__compress(self->compressor, bytes, count, self->packed,
                           VST_PACK_PACKED_MAX, &packed);
    if (status != VST_OK)
        return vst_error_set(self->error, status, 0, 0);
    head.raw_size = (uint32_t)count;
    head.packed_size = (uint32_t)packed;
    head.transform = transform;
    sum = crc32(0, (const unsigned char *)&head,
                offsetof(vst_pack_frame, checksum));
    head.checksum = (uint32_t)crc32(sum, self->packed, (uInt)packed);
    self->offset += count;
    status = pack_append(self, &head, sizeof head);
    return status == VST_OK ? pack_append(self, self->packed, packed) : status;
}

static vst_status pack_frames(packing *self)
{
    vst_pack_header header = {
        .version = VST_PACK_VERSION,
        .byte_order = VST_FILE_BYTE_ORDER,
        .size = self->from->source.size,
    };
    vst_status status;

    memcpy(header.magic, VST_PACK_MAGIC, sizeof header.magic);
    header.checksum = (uint32_t)crc32(0, (const unsigned char *)&header,
                                      offsetof(vst_pack_header, checksum));
    status = pack_append(self, &header, sizeof header);
    while (status == VST_OK && self->offset < header.size) {
        status = pack_frame(self);
        if (status == VST_OK)
            status = pack_report_progress(self);
    }
    return status;
}

static vst_status pack(packing *self)
{
    int level = self->options->level;
    vst_status status = vst__compressor_create(
        level != 0 ? level : VST_PACK_LEVEL, &self->compressor);

    self->raw = malloc(VST_PACK_RAW_MAX);
    self->split = malloc(VST_PACK_RAW_MAX);
    self->packed = malloc(VST_PACK_PACKED_MAX);
    if (status == VST_OK &&
        (self->raw == NULL || self->split == NULL || self->packed == NULL))
        status = VST_E_NOMEM;
    if (status == VST_OK)
        status = pack_frames(self);
    else
        vst_error_set(self->error, status, 0, 0);
    vst__compressor_destroy(self->compressor);
    free(self->raw);
    free(self->split);
    free(self->packed);
    return status;
}

/* ---- unpacking ----------------------------------------------------------- */

static vst_status pack_unpack(packing *self)
{
    vst__block *block = &self->from->block;
    vst_status status = VST_OK;

    while (status == VST_OK && self->offset < block->file_size) {
        const unsigned char *bytes;
        size_t got;

        status =
            vst__block_view(block, self->offset, VST_BLOCK_SIZE, &bytes, &got);
        if (status != VST_OK)
            return vst_error_set(self->error, status, block->sys_errno,
                                 self->offset);
        self->offset += got;
        status = pack_append(self, bytes, got);
        if (status == VST_OK)
            status = pack_report_progress(self);
    }
    return status;
}

/* ---- the files ----------------------------------------------------------- */

/* Writes the file, and syncs it to the disk. */
static vst_status pack_fill(void *ctx, int fd, vst_error *error)
{
    packing *self = ctx;
    vst_status status;
    int failed;

    self->fd = fd;
    vst__os_file_copy_access(self->from->source.fd, fd, true);
    status = self->write(self);
    if (status != VST_OK)
        return status;
    failed = vst__os_file_sync(fd);
    if (failed == 0)
        return VST_OK;
    return vst_error_set(
        error, failed == ENOSPC || failed == EDQUOT ? VST_E_NOSPACE : VST_E_IO,
        failed, 0);
}

/* Checks whether this trace can be packed or unpacked at all. */
static vst_status pack_check(const vst_trace *trace,
                             vst_status (*write)(packing *self),
                             const vst_pack_options *options, vst_error *error)
{
    if (options->level < 0 || options->level > VST_PACK_LEVEL_MAX)
        return vst_error_set(error, VST_E_ARGUMENT, 0, 0);
    if ((trace->source.packed != NULL) != (write == pack_unpack))
        return vst_error_set(error, VST_E_STATE, 0, 0);
    if (trace->source.cut)
        return vst_error_set(error, VST_E_DAMAGED, 0, trace->source.size);
    return VST_OK;
}

static vst_status pack_convert(const char *from, const char *to,
                               vst_status (*write)(packing *self),
                               const vst_pack_options *options,
                               vst_error *error)
{
    static const vst_pack_options defaults = {0};
    packing self = {.options = options != NULL ? options : &defaults,
                    .write = write,
                    .error = error};
    vst_status status = vst_trace_open(from, &self.from, error);

    if (status != VST_OK)
        return status;
    status = pack_check(self.from, write, self.options, error);
    if (status == VST_OK)
        status = vst__write_whole(to, self.options->overwrite, pack_fill, &self,
                                  error);
    vst_trace_close(self.from);
    /* Opening the file reports a damaged tail, for the original and for the
     * result. */
    if (status == VST_OK)
        vst_error_set(error, VST_OK, 0, 0);
    return status;
}

vst_status vst_trace_pack(const char *from, const char *to,
                          const vst_pack_options *options, vst_error *error)
{
    return pack_convert(from, to, pack, options, error);
}

vst_status vst_trace_unpack(const char *from, const char *to,
                            const vst_pack_options *options, vst_error *error)
{
    return pack_convert(from, to, pack_unpack, options, error);
}
