/* Pickles, written sequentially: opcodes of protocol 2, with everything that a
 * memory snapshot repeats (keys, frames, lists of frames) kept in the reader's
 * memo. One thread at a time. */
#ifndef VST_EXPORT_MEMORY_PICKLE_H
#define VST_EXPORT_MEMORY_PICKLE_H

#include <stdint.h>

#include "export/output/output.h"

/* Strings that are written once and then taken from the memo, by number. */
enum {
    VST_PICKLE_ACTION,
    VST_PICKLE_ADDR,
    VST_PICKLE_ADDRESS,
    VST_PICKLE_ALLOC,
    VST_PICKLE_BLOCKS,
    VST_PICKLE_DEVICE,
    VST_PICKLE_FILENAME,
    VST_PICKLE_FRAMES,
    VST_PICKLE_FREE_COMPLETED,
    VST_PICKLE_FREE_REQUESTED,
    VST_PICKLE_INACTIVE,
    VST_PICKLE_ACTIVE,
    VST_PICKLE_LINE,
    VST_PICKLE_NAME,
    VST_PICKLE_REQUESTED_SIZE,
    VST_PICKLE_SIZE,
    VST_PICKLE_STATE,
    VST_PICKLE_STREAM,
    VST_PICKLE_TIME_US,
    VST_PICKLE_TOTAL_SIZE,
    VST_PICKLE_ACTIVE_SIZE,
    VST_PICKLE_ALLOCATED_SIZE,
    VST_PICKLE_SEGMENT_TYPE,
    VST_PICKLE_LARGE,
    VST_PICKLE_THREAD,
    VST_PICKLE_ALLOCATOR,
    VST_PICKLE_WEIGHT,
    VST_PICKLE_STRINGS
};

typedef struct vst__pickle {
    vst__output *output;
    uint32_t memo;    /* the next free number */
    uint64_t written; /* a bit for each string above that was written */
} vst__pickle;

static inline void vst__pickle_op(vst__pickle *pickle, char op)
{
    *vst__output_reserve(pickle->output, 1) = op;
    pickle->output->at++;
}

void vst__pickle_int(vst__pickle *pickle, uint64_t value);
void vst__pickle_float(vst__pickle *pickle, double value);
/* Writes a string; replaces invalid UTF-8. */
void vst__pickle_string(vst__pickle *pickle, const char *bytes, size_t count);
/* stores the top of the reader's stack */
void vst__pickle_put(vst__pickle *pickle, uint32_t memo);
void vst__pickle_get(vst__pickle *pickle, uint32_t memo);
/* Writes one of the strings above. */
void vst__pickle_word(vst__pickle *pickle, uint32_t word);

static inline void vst__pickle_member(vst__pickle *pickle, uint32_t key,
                                      uint64_t value)
{
    vst__pickle_word(pickle, key);
    vst__pickle_int(pickle, value);
}

/* A block that is live at the end; its frames are in the memo. */
typedef struct vst__pickle_block {
    uint64_t address, size;
    uint32_t frames;
} vst__pickle_block;

/* memory_pickle_blocks.c: sorts the blocks, and writes segments of blocks that
 * lie close together, as items of a list. */
void vst__pickle_segments(vst__pickle *pickle, vst__pickle_block *blocks,
                          size_t count, uint32_t device);

#endif
