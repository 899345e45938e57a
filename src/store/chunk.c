/* The rules of format.h about a single chunk header: see chunk.h. */
#include "store/chunk.h"

#include <stddef.h>
#include <zlib.h>

bool vst__chunk_is_valid(const vst_chunk_header *chunk)
{
    return chunk->magic == VST_CHUNK_MAGIC &&
           chunk->size % VST_CHUNK_ALIGN == 0 &&
           chunk->size >= VST_CHUNK_ALIGN &&
           chunk->size <= VST_CHUNK_SIZE_MAX &&
           crc32(0, (const unsigned char *)chunk,
                 offsetof(vst_chunk_header, checksum)) == chunk->checksum;
}

uint64_t vst__chunk_extent(const vst_chunk_header *chunk)
{
    uint64_t used = sizeof *chunk + (uint64_t)chunk->used * sizeof(uint64_t);

    return chunk->used != 0 && used < chunk->size ? used : chunk->size;
}

uint32_t vst__sane_slot_size(uint32_t size)
{
    return size % VST_CHUNK_ALIGN == 0 && size <= VST_CHUNK_SIZE_MAX &&
                   (size & (size - 1)) == 0
               ? size
               : 0;
}
