/* How libFuzzer changes a trace file: mostly within one header or the used part
 * of one chunk, since the rest of a page is zeros, and mostly with the
 * checksums set right again, since without that a change gets no further than
 * these. */
#include <string.h>
#include <zlib.h>

#include "store/format.h"
#include "target.h"

enum { PART = 1024, CHUNKS_MAX = 64 };

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size,
                               unsigned seed);

static void fix_checksum(uint8_t *at, size_t checksum)
{
    uint32_t sum = (uint32_t)crc32(0, at, (uInt)checksum);

    memcpy(at + checksum, &sum, sizeof sum);
}

/* Where chunks begin, by the sizes that their headers claim. */
static size_t find_chunks(const uint8_t *bytes, size_t size, size_t *chunks)
{
    size_t count = 0, offset = VST_FILE_HEADER_SIZE;

    while (count < CHUNKS_MAX && offset + sizeof(vst_chunk_header) <= size) {
        vst_chunk_header header;

        memcpy(&header, bytes + offset, sizeof header);
        if (header.magic != VST_CHUNK_MAGIC) { /* an empty slot, perhaps */
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

/* Changes one part without moving what lies behind it. */
static void mutate_part(uint8_t *bytes, size_t size, unsigned seed)
{
    size_t chunks[CHUNKS_MAX + 1], count = find_chunks(bytes, size, chunks + 1);
    size_t at, part;
    uint8_t copy[PART] = {0};

    chunks[0] = 0;
    at = chunks[seed % (count + 1)];
    if (at != 0 && seed >> 8 & 3) /* what is in it, not its header */
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
    mutate_part(bytes, size, seed / 16);
    if (seed % 16 != 0)
        fix_checksums(bytes, size);
    return size;
}
