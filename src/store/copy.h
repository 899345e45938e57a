/* Copies of a trace file: of one that is still being written, or of one whose
 * process died. The parts are copy.c (chunks that stay valid), complete.c (what
 * a stop would have done to them) and, put together, snapshot.c and recover.c.
 *
 * One thread at a time for each file written; the file that is copied may be
 * written meanwhile by its recorder, which is neither asked nor held up. */
#ifndef VST_STORE_COPY_H
#define VST_STORE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/clock.h>
#include <vestige/status.h>

#include "store/source.h"

/* ---- copy.c ------------------------------------------------------------- */

/* Writes, but not past the process's limit on file sizes: that would raise a
 * signal in the program. */
vst_status vst__copy_write(int fd, const void *bytes, size_t count,
                           uint64_t offset, vst_error *error);

/* Copies the chunks of `from` into the empty file `to`: records, the newest
 * first, then definitions in their order. Chunks that are reused meanwhile are
 * left out, and, where chunks can be read alone, those that ended earlier than
 * window_ns (0: no bound) before the newest. */
vst_status vst__copy_chunks(vst__source *from, int to, uint64_t window_ns,
                            vst_error *error);

/* ---- complete.c --------------------------------------------------------- */

typedef struct vst__ending {
    /* When a window that is open ends, unless a record is later; ticks 0: it
     * ends with its last record. */
    vst_clock_sample at;
    const char *note; /* JSON of the metadata "vestige.snapshot", or NULL */
} vst__ending;

/* Seals chunks, closes windows and marks the file finished. */
vst_status vst__copy_complete(int fd, const vst__ending *ending,
                              vst_error *error);

/* ---- snapshot.c --------------------------------------------------------- */

/* Writes a finished copy of the file behind fd to path, which appears there
 * when all of it is written. */
vst_status vst__snapshot(int fd, const char *path, bool overwrite,
                         uint64_t window_ns, const char *note,
                         vst_error *error);

#endif
