/* The levels of one thread while its index is built: spans go in, blocks of
 * runs come out. One thread at a time. */
#ifndef VST_VIEW_PYRAMID_H
#define VST_VIEW_PYRAMID_H

#include "view/index.h"
#include "view/run.h"

/* Appends the bytes of a block, and sets *offset to their place in the file. */
typedef vst_status (*vst__append_fn)(void *ctx, const void *bytes, size_t count,
                                     uint64_t *offset);

/* A row of a level: the open run, and the unfinished block. */
typedef struct vst__level_row {
    vst__run run;
    unsigned char *bytes;
    uint32_t count, capacity;
    uint32_t runs;
    int64_t start_ns, before_ns;
} vst__level_row;

typedef struct vst__level {
    int64_t threshold_ns;
    vst__level_row *rows;
    size_t count, capacity;
} vst__level;

typedef struct vst__block_of {
    uint32_t row, level;
    size_t order;
    vst__index_block block;
} vst__block_of;

typedef struct vst__pyramid {
    vst__append_fn append;
    void *append_ctx;
    uint32_t level_count;
    vst__level stack[VST_LEVELS_MAX]; /* [0] is level 1 */
    vst__level lanes[VST_LEVELS_MAX]; /* [0] is level 0 */
    int64_t lane_ends[VST_LANES_MAX];
    uint32_t lane_count;
    vst__block_of *blocks;
    size_t block_count, block_capacity;
    size_t held; /* bytes of unfinished blocks */
} vst__pyramid;

void vst__pyramid_init(vst__pyramid *pyramid, int64_t threshold_ns,
                       uint32_t level_count, vst__append_fn append, void *ctx);
void vst__pyramid_free(vst__pyramid *pyramid);
/* Makes a copy that can be finished while the original goes on; its blocks go
 * to another place. Returns false if memory ran out; the copy must be freed in
 * any case. */
bool vst__pyramid_copy(vst__pyramid *copy, const vst__pyramid *pyramid,
                       vst__append_fn append, void *ctx);
vst_status vst__pyramid_add(vst__pyramid *pyramid, const vst__walk_span *span);
/* Writes what is left, and sorts the blocks. */
vst_status vst__pyramid_finish(vst__pyramid *pyramid);

#endif
