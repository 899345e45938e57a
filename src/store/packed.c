/* Reads a packed file (format.h). Opening reads every frame and its checksum,
 * so the readable size is known from then on: the frames up to the first
 * invalid one. Frames are unpacked on demand and a few are kept, because replay
 * reads thread after thread, and one frame may hold chunks of several threads.
 * The sizes that a file claims allocate at most one frame, of 1 MiB. One thread
 * at a time. */
#include "store/packed.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/grow.h"
#include "os/os.h"
#include "store/compress.h"
#include "store/format.h"
#include "store/transform.h"

/* How many unpacked frames are kept. A thread's chunks double from 16 KiB to 1
 * MiB, so the chunks of hundreds of threads that ran together lie in 7 rows of
 * frames, one for each size, and each row is read in the order of the threads.
 * Measured with 1,000 threads: replay takes 1.9 s with one frame kept, 1.5 s
 * with 8, 1.3 s with 16; with 200 threads the number makes no difference. */
enum { KEPT = 8 };

#define NO_FRAME SIZE_MAX

typedef struct frame {
    uint64_t start; /* position in the original */
    uint64_t at;    /* position of its head in the packed file */
} frame;

typedef struct kept_frame {
    size_t index; /* NO_FRAME if empty */
    uint64_t used;
    unsigned char *bytes;
    size_t capacity;
} kept_frame;

struct vst__packed {
    int fd;
    uint64_t file_size;
    uint64_t size; /* readable size of the original */
    frame *frames;
    size_t frame_count, frame_capacity;
    kept_frame kept[KEPT];
    /* counts up; the frame with the smallest value was not used for longest */
    uint64_t uses;
    vst__decompressor *decompressor;
    unsigned char *packed; /* a frame's bytes in the file */
    size_t packed_capacity;
    /* a frame's unpacked bytes before its words are joined */
    unsigned char *split;
    size_t split_capacity;
    int sys_errno;
};

/* Makes room for `count` bytes; the old content is lost. */
static vst_status packed_make_room(unsigned char **bytes, size_t *capacity,
                                   size_t count)
{
    if (count <= *capacity)
        return VST_OK;
    free(*bytes);
    *bytes = malloc(count);
    *capacity = *bytes != NULL ? count : 0;
    return *bytes != NULL ? VST_OK : VST_E_NOMEM;
}

/* Returns VST_E_DAMAGED if the file has fewer bytes. */
static vst_status read_exactly(vst__packed *self, void *bytes, size_t count,
                               uint64_t at)
{
    size_t got;

    self->sys_errno = vst__os_file_read(self->fd, bytes, count, at, &got);
    if (self->sys_errno != 0)
        return VST_E_IO;
    return got == count ? VST_OK : VST_E_DAMAGED;
}

/* ---- frames -------------------------------------------------------------- */

static bool has_possible_sizes(const vst__packed *self,
                               const vst_pack_frame *head, uint64_t at)
{
    return head->raw_size >= 1 && head->raw_size <= VST_PACK_RAW_MAX &&
           head->packed_size >= 1 && head->packed_size <= VST_PACK_PACKED_MAX &&
           head->packed_size <= self->file_size - at - sizeof *head;
}

/* Reads the frame at a place in the file into self->packed. Returns
 * VST_E_DAMAGED if the frame is not valid. */
static vst_status read_frame(vst__packed *self, uint64_t at,
                             vst_pack_frame *head)
{
    vst_status status = read_exactly(self, head, sizeof *head, at);
    uLong sum;

    if (status != VST_OK)
        return status;
    if (!has_possible_sizes(self, head, at) ||
        (head->transform != VST_PACK_PLAIN &&
         head->transform != VST_PACK_SPLIT))
        return VST_E_DAMAGED;
    status = packed_make_room(&self->packed, &self->packed_capacity,
                              head->packed_size);
    if (status == VST_OK)
        status = read_exactly(self, self->packed, head->packed_size,
                              at + sizeof *head);
    if (status != VST_OK)
        return status;
    sum = crc32(0, (const unsigned char *)head,
                offsetof(vst_pack_frame, checksum));
    sum = crc32(sum, self->packed, head->packed_size);
    return sum == head->checksum ? VST_OK : VST_E_DAMAGED;
}

/* Notes all frames up to the first invalid one. */
static vst_status find_frames(vst__packed *self, uint64_t size)
{
    uint64_t at = sizeof(vst_pack_header);

    while (self->size < size) {
        vst_pack_frame head;
        frame *frames;
        vst_status status = read_frame(self, at, &head);

        if (status == VST_OK && head.raw_size > size - self->size)
            status = VST_E_DAMAGED;
        if (status != VST_OK)
            return status == VST_E_DAMAGED ? VST_OK : status;
        frames = vst__grow(self->frames, &self->frame_capacity,
                           self->frame_count + 1, sizeof *frames);
        if (frames == NULL)
            return VST_E_NOMEM;
        self->frames = frames;
        frames[self->frame_count++] = (frame){self->size, at};
        self->size += head.raw_size;
        at += sizeof head + head.packed_size;
    }
    return VST_OK;
}

/* ---- opening ------------------------------------------------------------- */

static vst_status read_header(vst__packed *self, vst_pack_header *header,
                              vst_error *error)
{
    vst_status status = read_exactly(self, header, sizeof *header, 0);

    if (status != VST_OK)
        return vst_error_set(error, status, self->sys_errno, self->file_size);
    if (header->byte_order != VST_FILE_BYTE_ORDER)
        return vst_error_set(error, VST_E_UNSUPPORTED, 0,
                             offsetof(vst_pack_header, byte_order));
    if (header->version != VST_PACK_VERSION)
        return vst_error_set(error, VST_E_VERSION, 0,
                             offsetof(vst_pack_header, version));
    if (crc32(0, (const unsigned char *)header,
              offsetof(vst_pack_header, checksum)) != header->checksum)
        return vst_error_set(error, VST_E_DAMAGED, 0,
                             offsetof(vst_pack_header, checksum));
    return VST_OK;
}

vst_status vst__packed_open(int fd, uint64_t file_size, vst__packed **packed,
                            uint64_t *size, bool *cut, vst_error *error)
{
    vst__packed *self = calloc(1, sizeof *self);
    vst_pack_header header;
    vst_status status;

    *packed = self; /* closing the source closes it */
    if (self == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    self->fd = fd;
    self->file_size = file_size;
    for (size_t i = 0; i < KEPT; i++)
        self->kept[i].index = NO_FRAME;
    status = read_header(self, &header, error);
    if (status != VST_OK)
        return status;
    status = vst__decompressor_create(&self->decompressor);
    if (status == VST_OK)
        status = find_frames(self, header.size);
    /* the file does not even have the trace's header */
    if (status == VST_OK && self->size == 0)
        status = VST_E_DAMAGED;
    *size = self->size;
    *cut = self->size < header.size;
    return status == VST_OK
               ? VST_OK
               : vst_error_set(error, status, self->sys_errno,
                               status == VST_E_DAMAGED ? sizeof header : 0);
}

void vst__packed_close(vst__packed *packed)
{
    if (packed == NULL)
        return;
    for (size_t i = 0; i < KEPT; i++)
        free(packed->kept[i].bytes);
    vst__decompressor_destroy(packed->decompressor);
    free(packed->frames);
    free(packed->packed);
    free(packed->split);
    free(packed);
}

/* ---- reading ------------------------------------------------------------- */

/* Returns the frame with this offset of the original, which must be inside
 * it. */
static size_t packed_find_frame(const vst__packed *self, uint64_t offset)
{
    size_t low = 0, high = self->frame_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (self->frames[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t end_of(const vst__packed *self, size_t index)
{
    return index + 1 < self->frame_count ? self->frames[index + 1].start
                                         : self->size;
}

static vst_status packed_unpack(vst__packed *self, size_t index,
                                kept_frame *kept)
{
    size_t size = (size_t)(end_of(self, index) - self->frames[index].start);
    vst_pack_frame head;
    vst_status status = read_frame(self, self->frames[index].at, &head);

    /* the file was changed meanwhile */
    if (status == VST_OK && head.raw_size != size)
        status = VST_E_DAMAGED;
    if (status == VST_OK)
        status = packed_make_room(&kept->bytes, &kept->capacity, size);
    if (status == VST_OK && head.transform == VST_PACK_SPLIT)
        status = packed_make_room(&self->split, &self->split_capacity, size);
    if (status != VST_OK)
        return status;
    if (head.transform == VST_PACK_PLAIN)
        return vst__decompress(self->decompressor, self->packed,
                               head.packed_size, kept->bytes, size);
    status = vst__decompress(self->decompressor, self->packed, head.packed_size,
                             self->split, size);
    if (status == VST_OK)
        vst__transform_join(self->split, size, kept->bytes);
    return status;
}

/* Returns the frame, unpacked; it replaces the frame that was not used for
 * longest. */
static vst_status keep_frame(vst__packed *self, size_t index,
                             const kept_frame **found)
{
    kept_frame *oldest = &self->kept[0];
    vst_status status;

    for (size_t i = 0; i < KEPT; i++) {
        kept_frame *kept = &self->kept[i];

        if (kept->index == index) {
            kept->used = ++self->uses;
            *found = kept;
            return VST_OK;
        }
        if (kept->used < oldest->used)
            oldest = kept;
    }
    oldest->index = NO_FRAME;
    status = packed_unpack(self, index, oldest);
    if (status != VST_OK)
        return status;
    oldest->index = index;
    oldest->used = ++self->uses;
    *found = oldest;
    return VST_OK;
}

vst_status vst__packed_read(vst__packed *packed, void *bytes, size_t count,
                            uint64_t offset, size_t *got, int *sys_errno)
{
    *got = 0;
    *sys_errno = 0;
    while (*got < count && offset < packed->size) {
        size_t index = packed_find_frame(packed, offset);
        size_t part = (size_t)(end_of(packed, index) - offset);
        const kept_frame *kept;
        vst_status status = keep_frame(packed, index, &kept);

        if (status != VST_OK) {
            *sys_errno = packed->sys_errno;
            return status;
        }
        if (part > count - *got)
            part = count - *got;
        memcpy((unsigned char *)bytes + *got,
               kept->bytes + (offset - packed->frames[index].start), part);
        *got += part;
        offset += part;
    }
    return VST_OK;
}
