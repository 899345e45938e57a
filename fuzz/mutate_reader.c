/* Changes trace files for libFuzzer: mostly inside a header or the used part of
 * a chunk, because the rest of a page is zeros, and mostly with corrected
 * checksums, because readers refuse other files early. */
#include <stdbool.h>
#include <string.h>

#include "store/format.h"
#include "sums.h"
#include "target.h"

enum { PART = 1024, CHUNKS_MAX = 64 };

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                               unsigned seed);

/* Finds where chunks begin, by the sizes in their headers. */
static size_t find_chunks(const uint8_t *bytes, size_t size, size_t *chunks)
{
    size_t count = 0, offset = VST_FILE_HEADER_SIZE;

    while (count < CHUNKS_MAX && offset + sizeof(vst_chunk_header) <= size) {
        vst_chunk_header header;

        memcpy(&header, bytes + offset, sizeof header);
        if (header.magic != VST_CHUNK_MAGIC) { /* perhaps an empty slot */
            offset += VST_CHUNK_ALIGN;
            continue;
        }
        chunks[count++] = offset;
        offset += header.size < VST_CHUNK_ALIGN ? VST_CHUNK_ALIGN : header.size;
    }
    return count;
}

static void fix_checksums(uint8_t *bytes, size_t size)
{
    size_t chunks[CHUNKS_MAX], count = find_chunks(bytes, size, chunks);

    if (size >= sizeof(vst_file_header))
        fix_checksum(bytes, offsetof(vst_file_header, checksum));
    for (size_t i = 0; i < count; i++)
        fix_checksum(bytes + chunks[i], offsetof(vst_chunk_header, checksum));
}

/* ---- packed -------------------------------------------------------------- */

static bool is_packed(const uint8_t *bytes, size_t size)
{
    return size >= sizeof(vst_pack_header) &&
           memcmp(bytes, VST_PACK_MAGIC, sizeof VST_PACK_MAGIC - 1) == 0;
}

/* Finds where frames begin, by the sizes in their heads. */
static size_t find_frames(const uint8_t *bytes, size_t size, size_t *frames)
{
    size_t count = 0, at = sizeof(vst_pack_header);

    while (count < CHUNKS_MAX && at + sizeof(vst_pack_frame) <= size) {
        vst_pack_frame head;

        memcpy(&head, bytes + at, sizeof head);
        frames[count++] = at;
        at += sizeof head + head.packed_size;
    }
    return count;
}

static void fix_packed(uint8_t *bytes, size_t size)
{
    size_t frames[CHUNKS_MAX], count = find_frames(bytes, size, frames);

    fix_checksum(bytes, offsetof(vst_pack_header, checksum));
    for (size_t i = 0; i < count; i++)
        fix_frame(bytes + frames[i], size - frames[i]);
}

/* Corrects the checksums of a head, or of all parts; rarely leaves them
 * wrong. */
static size_t mutate_packed(uint8_t *bytes, size_t size, size_t max_size,
                            unsigned seed)
{
    size_t frames[CHUNKS_MAX], count = find_frames(bytes, size, frames);

    if (seed % 2 != 0 && count != 0) {
        uint8_t *at = bytes + frames[seed / 16 % count];
        LLVMFuzzerMutate(at, offsetof(vst_pack_frame, checksum),
                         offsetof(vst_pack_frame, checksum));
    } else {
        size = LLVMFuzzerMutate(bytes, size, max_size);
    }
    if (seed / 2 % 8 != 0 && is_packed(bytes, size))
        fix_packed(bytes, size);
    return size;
}

/* ---- plain --------------------------------------------------------------- */

/* Changes one part without moving the bytes behind it. */
static void mutate_part(uint8_t *bytes, size_t size, unsigned seed)
{
    size_t chunks[CHUNKS_MAX + 1], count = find_chunks(bytes, size, chunks + 1);
    size_t at, part;
    uint8_t copy[PART] = {0};

    chunks[0] = 0;
    at = chunks[seed % (count + 1)];
    if (at != 0 && seed >> 8 & 3) /* the payload, not the header */
        at += sizeof(vst_chunk_header);
    part = at < size ? size - at : 0;
    if (part > PART >> (seed >> 10 & 3))
        part = PART >> (seed >> 10 & 3);
    if (part == 0)
        return;
    memcpy(copy, bytes + at, part);
    LLVMFuzzerMutate(copy, part, part);
    memcpy(bytes + at, copy, part);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                               unsigned seed)
{
    if (seed % 16 == 0)
        return LLVMFuzzerMutate(bytes, size, max_size);
    seed /= 16;
    if (is_packed(bytes, size))
        return mutate_packed(bytes, size, max_size, seed);
    mutate_part(bytes, size, seed / 16);
    if (seed % 16 != 0)
        fix_checksums(bytes, size);
    return size;
}
