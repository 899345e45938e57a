/* The trace file being written: a chunk provider for the recorder. What writes
 * is called under the recorder's lock, but for vst__file_finish(): by then the
 * recorder calls nothing. */
#ifndef VST_STORE_WRITER_H
#define VST_STORE_WRITER_H

#include <stdbool.h>

#include "base/provider.h"

typedef struct vst__file vst__file;

/* What the file may hold; 0: any amount. The oldest records go first. The last
 * is the recorder's business, and only noted. */
typedef struct vst__file_bounds {
    uint64_t max_size; /* bytes; VST_E_ARGUMENT if too few */
    uint64_t keep_ns;  /* records of so long */
    uint64_t min_duration_ns;
} vst__file_bounds;

/* path NULL: an unlinked temporary file, or memory where there is no disk. */
vst_status vst__file_create(const char *path, bool overwrite,
                            const vst__file_bounds *bounds, vst__file **file,
                            vst_error *error);
const vst_chunk_provider *vst__file_provider(vst__file *file);
int vst__file_descriptor(const vst__file *file);
/* Whether another process truncated it while it was written. It takes no more
 * records, and is left as it is. */
bool vst__file_was_cut(const vst__file *file);

vst_status vst__file_begin_window(vst__file *file, vst_error *error);
void vst__file_end_window(vst__file *file);
/* Cuts the file to what is used and marks it finished. */
vst_status vst__file_finish(vst__file *file, vst_error *error);
/* Closes the file; in a forked child, without touching it. */
void vst__file_destroy(vst__file *file);

#endif
