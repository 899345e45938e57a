/* zstd, or its absence: the build has compress_zstd.c or compress_none.c.
 * Without zstd, creating a compressor or decompressor returns VST_E_NO_ZSTD.
 * One thread at a time for each. */
#ifndef VST_STORE_COMPRESS_H
#define VST_STORE_COMPRESS_H

#include <stddef.h>

#include <vestige/status.h>

typedef struct vst__compressor vst__compressor;
typedef struct vst__decompressor vst__decompressor;

vst_status vst__compressor_create(int level, vst__compressor **compressor);
void vst__compressor_destroy(vst__compressor *compressor);
/* Compresses into `room` bytes; *written is how many were used. */
vst_status vst__compress(vst__compressor *compressor, const void *bytes,
                         size_t count, void *to, size_t room, size_t *written);

vst_status vst__decompressor_create(vst__decompressor **decompressor);
void vst__decompressor_destroy(vst__decompressor *decompressor);
/* Returns VST_E_DAMAGED if the result does not have exactly `size` bytes. */
vst_status vst__decompress(vst__decompressor *decompressor, const void *bytes,
                           size_t count, void *to, size_t size);

#endif
