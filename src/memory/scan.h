/* Goes over all loaded libraries, to change which functions they call. It
 * allocates only pages, and takes no lock that a hook of an allocator takes. */
#ifndef VST_MEMORY_SCAN_H
#define VST_MEMORY_SCAN_H

#include <vestige/memory.h>

#include "objects/objects.h"

typedef struct vst__scan_counts {
    uint64_t objects, patched, left_alone;
} vst__scan_counts;

/* Says what scans do from now on: install the hooks, if there are any, and
 * define libraries in the recording, if it is not NULL. */
void vst__scan_begin(const vst__hook *hooks, size_t count,
                     const void *malloc_in_use, vst_recording *recording);
/* Looks at libraries that were loaded since the last scan. */
void vst__scan(void);
/* Takes out all hooks that are still in place. */
void vst__scan_end(const vst__hook *hooks, size_t count,
                   vst__scan_counts *counts);
void vst__scan_after_fork(void);

#endif
