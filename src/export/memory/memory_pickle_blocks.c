/* The segments of a memory snapshot: the blocks that are live at the end,
 * sorted by address. Blocks that lie close together form one segment, and the
 * gaps between them are inactive blocks, because a segment must be as long as
 * the sum of its blocks. One thread at a time. */
#include <stdlib.h>

#include "export/memory/memory_pickle.h"

/* The largest gap inside a segment: a heap of many small blocks becomes a few
 * segments, without joining distant parts. */
#define GAP_MAX ((uint64_t)1 << 20)

static int by_address(const void *a, const void *b)
{
    const vst__pickle_block *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

static void put_block(vst__pickle *pickle, uint64_t address, uint64_t size,
                      uint64_t requested, uint32_t frames)
{
    vst__pickle_op(pickle, '}');
    vst__pickle_op(pickle, '(');
    vst__pickle_member(pickle, VST_PICKLE_ADDRESS, address);
    vst__pickle_member(pickle, VST_PICKLE_SIZE, size);
    vst__pickle_member(pickle, VST_PICKLE_REQUESTED_SIZE, requested);
    vst__pickle_word(pickle, VST_PICKLE_STATE);
    vst__pickle_word(pickle,
                     requested != 0 ? VST_PICKLE_ACTIVE : VST_PICKLE_INACTIVE);
    vst__pickle_word(pickle, VST_PICKLE_FRAMES);
    if (frames != 0)
        vst__pickle_get(pickle, frames);
    else
        vst__pickle_op(pickle, ']');
    vst__pickle_op(pickle, 'u');
}

static uint64_t blocks_add(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

/* Returns the size of a block's part at `end` or behind, which earlier blocks
 * do not cover. Blocks may overlap if a free was not seen. */
static uint64_t rest_of(const vst__pickle_block *block, uint64_t end)
{
    uint64_t stop = blocks_add(block->address, block->size);

    if (stop <= end)
        return 0;
    return block->address >= end ? block->size : stop - end;
}

static void put_blocks(vst__pickle *pickle, const vst__pickle_block *blocks,
                       size_t count)
{
    uint64_t end = blocks[0].address;

    vst__pickle_op(pickle, ']');
    vst__pickle_op(pickle, '(');
    for (size_t i = 0; i < count; i++) {
        uint64_t rest = rest_of(&blocks[i], end);

        if (rest == 0)
            continue;
        if (blocks[i].address > end)
            put_block(pickle, end, blocks[i].address - end, 0, 0);
        end = blocks[i].address > end ? blocks[i].address : end;
        put_block(pickle, end, rest, rest, blocks[i].frames);
        end = blocks_add(end, rest);
        if (i % 1000 == 999) {
            vst__pickle_op(pickle, 'e');
            vst__pickle_op(pickle, '(');
        }
    }
    vst__pickle_op(pickle, 'e');
}

void vst__pickle_segments(vst__pickle *pickle, vst__pickle_block *blocks,
                          size_t count, uint32_t device)
{
    size_t next;

    qsort(blocks, count, sizeof *blocks, by_address);
    for (size_t i = 0; i < count; i = next) {
        uint64_t end = blocks[i].address, active = 0;

        for (next = i; next < count; next++) {
            uint64_t rest = rest_of(&blocks[next], end);

            if (blocks[next].address > end &&
                blocks[next].address - end > GAP_MAX)
                break;
            active += rest;
            if (rest != 0)
                end = blocks_add(blocks[next].address, blocks[next].size);
        }
        if (active == 0)
            continue;
        vst__pickle_op(pickle, '}');
        vst__pickle_op(pickle, '(');
        vst__pickle_member(pickle, VST_PICKLE_DEVICE, device);
        vst__pickle_member(pickle, VST_PICKLE_ADDRESS, blocks[i].address);
        vst__pickle_member(pickle, VST_PICKLE_TOTAL_SIZE,
                           end - blocks[i].address);
        vst__pickle_member(pickle, VST_PICKLE_ALLOCATED_SIZE, active);
        vst__pickle_member(pickle, VST_PICKLE_ACTIVE_SIZE, active);
        vst__pickle_member(pickle, VST_PICKLE_REQUESTED_SIZE, active);
        vst__pickle_member(pickle, VST_PICKLE_STREAM, 0);
        vst__pickle_word(pickle, VST_PICKLE_SEGMENT_TYPE);
        vst__pickle_word(pickle, VST_PICKLE_LARGE);
        vst__pickle_word(pickle, VST_PICKLE_FRAMES);
        vst__pickle_op(pickle, ']');
        vst__pickle_word(pickle, VST_PICKLE_BLOCKS);
        put_blocks(pickle, blocks + i, next - i);
        vst__pickle_op(pickle, 'u');
        vst__pickle_op(pickle, 'a');
    }
}
