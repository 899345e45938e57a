/* The sliding view of block.h. It handles bytes and knows nothing about their
 * meaning. One thread at a time. */
#include "store/block.h"

#include <stdlib.h>
#include <string.h>

void vst__block_init(vst__block *block, vst__source *source)
{
    memset(block, 0, sizeof *block);
    block->source = source;
    block->file_size = source->size;
    block->size = VST_BLOCK_SIZE;
}

void vst__block_free(vst__block *block)
{
    free(block->bytes);
    block->bytes = NULL;
    block->capacity = block->count = 0;
}

static vst_status block_refill(vst__block *block, uint64_t offset, size_t least)
{
    uint64_t start = offset & ~(uint64_t)7;
    uint64_t left = block->file_size - start;
    size_t wanted = least + 8 > block->size ? least + 8 : block->size;
    vst_status status;

    if (wanted > left)
        wanted = (size_t)left;
    block->count = 0;
    if (wanted > block->capacity) {
        unsigned char *bytes = realloc(block->bytes, wanted);
        if (bytes == NULL)
            return VST_E_NOMEM;
        block->bytes = bytes;
        block->capacity = wanted;
    }
    block->offset = start;
    status = vst__source_read(block->source, block->bytes, wanted, start,
                              &block->count);
    block->sys_errno = block->source->sys_errno;
    if (status != VST_OK)
        block->count = 0;
    return status;
}

static bool block_holds(const vst__block *block, uint64_t offset,
                        uint64_t least)
{
    return offset >= block->offset && offset - block->offset <= block->count &&
           block->count - (offset - block->offset) >= least;
}

vst_status vst__block_view(vst__block *block, uint64_t offset, size_t least,
                           const unsigned char **at, size_t *got)
{
    *at = NULL;
    *got = 0;
    if (offset >= block->file_size)
        return VST_OK;
    if (least > block->file_size - offset)
        least = (size_t)(block->file_size - offset);
    if (!block_holds(block, offset, least)) {
        vst_status status = block_refill(block, offset, least);
        if (status != VST_OK)
            return status;
        /* The file became shorter since we asked for its size. */
        if (!block_holds(block, offset, 0))
            return VST_OK;
    }
    *at = block->bytes + (offset - block->offset);
    *got = block->count - (size_t)(offset - block->offset);
    return VST_OK;
}
