/* Where the reader has its bytes from: a trace file as it was written, or a
 * packed one, which shows exactly the bytes that it was packed from. The layers
 * above do not know the difference. One thread at a time. */
#ifndef VST_STORE_SOURCE_H
#define VST_STORE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

typedef struct vst__source {
    int fd;
    uint64_t size;              /* of the trace, when it was opened */
    uint64_t file_size;         /* of the file that holds it */
    struct vst__packed *packed; /* NULL: the file is the trace */
    bool cut;                   /* a packed file that is not whole */
    int sys_errno;              /* of the last VST_E_IO */
} vst__source;

/* Looks at what kind it is. The descriptor is the source's from here on, also
 * where this fails: close it all the same. */
vst_status vst__source_open(vst__source *source, int fd, vst_error *error);
void vst__source_close(vst__source *source);

/* Fewer bytes than asked for only where the trace ends. */
vst_status vst__source_read(vst__source *source, void *bytes, size_t count,
                            uint64_t offset, size_t *got);

#endif
