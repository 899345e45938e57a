/* Reads a file that may be written at this moment: see live.h. */
#include "store/live.h"

#include <stddef.h>
#include <string.h>

#include "store/stream.h"

bool vst__live_header(vst_chunk_header *chunk, const vst_chunk_header *later)
{
    if (memcmp(chunk, later, offsetof(vst_chunk_header, used)) != 0)
        return false;
    chunk->segments = chunk->used != 0 ? later->segments : 1;
    chunk->last = chunk->used != 0 ? later->last : 0;
    return true;
}

uint64_t vst__live_size(const vst_chunk_header *chunk, const void *first)
{
    uint64_t word;

    memcpy(&word, first, sizeof word);
    if (chunk->kind == VST_CHUNK_DEFINITIONS) {
        uint32_t size;
        memcpy(&size, first, sizeof size);
        return size;
    }
    return word == 0 ? 0 : vst__stream_words(word) * sizeof word;
}

vst_status vst__live_entries(vst_trace *trace, uint64_t offset, uint64_t *room)
{
    const vst_chunk_header kind = {.kind = VST_CHUNK_DEFINITIONS};
    uint64_t left = *room, size = 0;
    vst_status status;

    do {
        const unsigned char *bytes;
        size_t got;

        offset += size;
        left -= size;
        status = vst__block_view(&trace->block, offset, 8, &bytes, &got);
        size = status == VST_OK && got >= 8 ? vst__live_size(&kind, bytes) : 0;
    } while (size != 0 && size <= left);
    *room -= left;
    trace->block.count = 0; /* the block shows bytes that were read too early */
    return status;
}

vst_status vst__live_is_reused(vst_trace *trace, const vst__segment *segment,
                               bool *reused)
{
    vst_chunk_header header;
    size_t got;
    vst_status status;

    *reused = false;
    if (!segment->guarded)
        return VST_OK;
    status = vst__source_read(&trace->source, &header, sizeof header,
                              segment->header, &got);
    *reused = got != sizeof header || header.magic != VST_CHUNK_MAGIC ||
              header.sequence != segment->sequence;
    return status;
}
