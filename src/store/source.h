/* The reader's bytes: a trace file as it was written, or a packed file, which
 * shows exactly the bytes of its original. The layers above do not see the
 * difference. One thread at a time. */
#ifndef VST_STORE_SOURCE_H
#define VST_STORE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

typedef struct vst__source {
    int fd;
    uint64_t size;              /* size of the trace when it was opened */
    uint64_t file_size;         /* size of the file that holds the trace */
    struct vst__packed *packed; /* NULL if the file itself is the trace */
    bool cut;                   /* a packed file that is incomplete */
    int sys_errno;              /* errno of the last VST_E_IO */
} vst__source;

/* Finds out which kind the file is. The source owns the descriptor from here
 * on, even if this fails, so close the source in any case. */
vst_status vst__source_open(vst__source *source, int fd, vst_error *error);
void vst__source_close(vst__source *source);

/* Reads fewer bytes than asked for only at the end of the trace. */
vst_status vst__source_read(vst__source *source, void *bytes, size_t count,
                            uint64_t offset, size_t *got);

#endif
