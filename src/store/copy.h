/* Copies of a trace file that is still being written, or whose process died.
 * copy.c copies the chunks that stay valid, and complete.c adds what a stop
 * would have written; snapshot.c and recover.c put the two together. One thread
 * at a time for each file written. The recorder may write the original
 * meanwhile; it is neither asked nor delayed. */
#ifndef VST_STORE_COPY_H
#define VST_STORE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/clock.h>
#include <vestige/status.h>

#include "store/source.h"

/* ---- copy.c -------------------------------------------------------------- */

/* Writes, unless the process's limit on file sizes forbids it: writing past the
 * limit would raise a signal in the program. */
vst_status vst__copy_write(int fd, const void *bytes, size_t count,
                           uint64_t offset, vst_error *error);

/* Copies the chunks of `from` into the empty file `to`: first records, newest
 * first, then definitions in their order. Leaves out chunks that are reused
 * meanwhile, and, if each chunk can be read alone, chunks that ended more than
 * window_ns before the newest (0: no limit). */
vst_status vst__copy_chunks(vst__source *from, int to, uint64_t window_ns,
                            vst_error *error);

/* ---- complete.c ---------------------------------------------------------- */

typedef struct vst__ending {
    /* The end of an open window, unless a record is later. If ticks is 0, the
     * window ends with its last record. */
    vst_clock_sample at;
    const char *note; /* JSON of the metadata "vestige.snapshot", or NULL */
} vst__ending;

/* Seals the chunks, closes the windows, and marks the file finished. */
vst_status vst__copy_complete(int fd, const vst__ending *ending,
                              vst_error *error);

/* ---- snapshot.c ---------------------------------------------------------- */

/* Writes a finished copy of the file behind fd. The copy appears at `path` when
 * it is complete. */
vst_status vst__snapshot(int fd, const char *path, bool overwrite,
                         uint64_t window_ns, const char *note,
                         vst_error *error);

/* Writes a snapshot whose path lies on a slow disk: into a local file, which a
 * copier (copying.h) copies to `path` meanwhile. */
vst_status vst__snapshot_copied(int fd, const char *path, bool overwrite,
                                uint64_t window_ns, const char *note,
                                const char *copier, vst_error *error);

#endif
