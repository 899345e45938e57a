/* The trace file being written: a chunk provider for the recorder. Functions
 * that write are called with the recorder's lock held, except
 * vst__file_finish(), at which time the recorder calls nothing. */
#ifndef VST_STORE_WRITER_H
#define VST_STORE_WRITER_H

#include <stdbool.h>

#include "base/provider.h"

typedef struct vst__file vst__file;

/* How much the file may hold; 0: no limit. The oldest records are dropped
 * first. The recorder enforces the last member; the file only notes it. */
typedef struct vst__file_bounds {
    uint64_t max_size; /* bytes; VST_E_ARGUMENT if too small */
    uint64_t keep_ns;  /* how long records are kept, in ns */
    uint64_t min_duration_ns;
} vst__file_bounds;

/* If path is NULL: an unlinked temporary file, or memory if there is no
 * disk. */
vst_status vst__file_create(const char *path, bool overwrite,
                            const vst__file_bounds *bounds, vst__file **file,
                            vst_error *error);
const vst_chunk_provider *vst__file_provider(vst__file *file);
int vst__file_descriptor(const vst__file *file);
/* Returns whether another process truncated the file while it was written. Such
 * a file takes no more records, and is left as it is. */
bool vst__file_was_cut(const vst__file *file);

vst_status vst__file_begin_window(vst__file *file, vst_error *error);
void vst__file_end_window(vst__file *file);
/* Cuts the file to the size that is used, and marks it finished. */
vst_status vst__file_finish(vst__file *file, vst_error *error);
/* Closes the file; in a forked child, without changing it. */
void vst__file_destroy(vst__file *file);

#endif
