/* Going over all loaded libraries, to change where they call to. It allocates
 * nothing but pages, and takes no lock that a hook of an allocator takes. */
#ifndef VST_MEMORY_SCAN_H
#define VST_MEMORY_SCAN_H

#include <vestige/memory.h>

#include "objects/objects.h"

typedef struct vst__scan_counts {
    uint64_t objects, patched, left_alone;
} vst__scan_counts;

/* What scans do from now on: hooks go in, if there are any, and libraries are
 * told to recording, if there is one. */
void vst__scan_begin(const vst__hook *hooks, size_t count,
                     const void *malloc_in_use, vst_recording *recording);
/* Looks at what was loaded since the last one. */
void vst__scan(void);
/* Takes all hooks out, wherever they still are. */
void vst__scan_end(const vst__hook *hooks, size_t count,
                   vst__scan_counts *counts);
void vst__scan_after_fork(void);

#endif
