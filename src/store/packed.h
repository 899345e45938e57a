/* Reads a packed file: shows the bytes of the original. One thread at a
 * time. */
#ifndef VST_STORE_PACKED_H
#define VST_STORE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

typedef struct vst__packed vst__packed;

/* The caller keeps fd. *size is how much of the original can be read, *cut
 * whether that is less than the original had. */
vst_status vst__packed_open(int fd, uint64_t file_size, vst__packed **packed,
                            uint64_t *size, bool *cut, vst_error *error);
void vst__packed_close(vst__packed *packed);

/* See vst__source_read. */
vst_status vst__packed_read(vst__packed *packed, void *bytes, size_t count,
                            uint64_t offset, size_t *got, int *sys_errno);

#endif
