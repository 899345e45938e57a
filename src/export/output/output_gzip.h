/* gzip, with the library that the build found: output_gzip_isal.c or
 * output_gzip_zlib.c. One thread at a time. */
#ifndef VST_EXPORT_OUTPUT_GZIP_H
#define VST_EXPORT_OUTPUT_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include <vestige/status.h>

typedef struct vst__gzip vst__gzip;

/* Receives compressed bytes. */
typedef vst_status (*vst__gzip_write_fn)(void *ctx, const void *bytes,
                                         size_t count);

vst__gzip *vst__gzip_create(void); /* returns NULL if memory ran out */
void vst__gzip_destroy(vst__gzip *gzip);
/* Compresses bytes; the last call also writes the trailer. */
vst_status vst__gzip_compress(vst__gzip *gzip, const void *bytes, size_t count,
                              bool last, vst__gzip_write_fn write, void *ctx);

#endif
