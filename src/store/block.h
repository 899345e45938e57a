/* A sliding view of a trace, through which the reader looks at one block at a
 * time. Reading copies into our own memory instead of mapping, because a
 * mapping of a file that somebody truncates raises SIGBUS in the reading
 * program, and because memory is then bounded by the block, whatever size a
 * chunk claims to have. The copy costs less than the page faults of a mapping.
 * One thread at a time. */
#ifndef VST_STORE_BLOCK_H
#define VST_STORE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

#include "store/source.h"

#define VST_BLOCK_SIZE ((size_t)256 * 1024)

typedef struct vst__block {
    vst__source *source;
    uint64_t file_size; /* when the trace was opened */
    size_t size;        /* how many bytes are read together */
    unsigned char *bytes;
    size_t capacity;
    uint64_t offset; /* position of bytes[0] in the file, a multiple of 8 */
    size_t count;
    int sys_errno; /* errno of the last VST_E_IO */
} vst__block;

void vst__block_init(vst__block *block, vst__source *source);
void vst__block_free(vst__block *block);

/* Shows the bytes at `offset`: at least `least` of them, fewer only if the file
 * ends. They stay valid until the next call; *at is 8-byte aligned if `offset`
 * is. */
vst_status vst__block_view(vst__block *block, uint64_t offset, size_t least,
                           const unsigned char **at, size_t *got);

#endif
