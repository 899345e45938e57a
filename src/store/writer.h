/* The trace file being written: a chunk provider for the recorder. Functions
 * that write are called with the recorder's lock held, except
 * vst__file_finish(), at which time the recorder calls nothing. */
#ifndef VST_STORE_WRITER_H
#define VST_STORE_WRITER_H

#include <stdbool.h>

#include <vestige/session.h>

#include "base/provider.h"

typedef struct vst__file vst__file;

/* How much the file may hold; 0: no limit. The oldest records are dropped
 * first. The recorder enforces the last member; the file only notes it. */
typedef struct vst__file_bounds {
    uint64_t max_size; /* bytes; VST_E_ARGUMENT if too small */
    uint64_t keep_ns;  /* how long records are kept, in ns */
    uint64_t min_duration_ns;
} vst__file_bounds;

/* How the file is written; see session.h. */
typedef struct vst__file_storage {
    vst_storage_mode mode;
    const char *copier;
} vst__file_storage;

/* If path is NULL: an unlinked temporary file, or memory if there is no
 * disk. */
vst_status vst__file_create(const char *path, bool overwrite,
                            const vst__file_bounds *bounds,
                            const vst__file_storage *storage, vst__file **file,
                            vst_error *error);
/* Removes a file in which nothing was recorded yet. */
void vst__file_discard(vst__file *file, const char *path);
const vst_chunk_provider *vst__file_provider(vst__file *file);
/* Returns whether another process truncated the file while it was written. Such
 * a file takes no more records, and is left as it is. */
bool vst__file_was_cut(const vst__file *file);

vst_status vst__file_begin_window(vst__file *file, vst_error *error);
void vst__file_end_window(vst__file *file);
/* Cuts the file to the size that is used, and marks it finished. */
vst_status vst__file_finish(vst__file *file, vst_error *error);
/* Closes the file; in a forked child, without changing it. */
void vst__file_destroy(vst__file *file);

/* ---- writer_storage.c: a file that is copied ------------------------------ */

void vst__file_get_storage(const vst__file *file, vst_session_storage *storage);
bool vst__file_wait_storage(vst__file *file, uint64_t timeout_ns);
/* Gets a descriptor from which everything that was recorded can be read: the
 * file's own, or the target's. Release it with vst__file_readable_close. */
vst_status vst__file_readable(vst__file *file, int *fd, vst_error *error);
void vst__file_readable_close(const vst__file *file, int fd);

#endif
