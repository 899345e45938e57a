/* gzip with zlib, for builds without isa-l. One thread at a time. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/output/output_gzip.h"

enum { LEVEL = 1, GZIP_WINDOW = 15 + 16, MEMORY = 8, OUT_SIZE = 256 * 1024 };

struct vst__gzip {
    z_stream stream;
    unsigned char out[OUT_SIZE];
};

vst__gzip *vst__gzip_create(void)
{
    vst__gzip *gzip = malloc(sizeof *gzip);

    if (gzip == NULL)
        return NULL;
    memset(&gzip->stream, 0, sizeof gzip->stream);
    if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return NULL;
    }
    return gzip;
}

void vst__gzip_destroy(vst__gzip *gzip)
{
    if (gzip != NULL)
        deflateEnd(&gzip->stream);
    free(gzip);
}

vst_status vst__gzip_compress(vst__gzip *gzip, const void *bytes, size_t count,
                              bool last, vst__gzip_write_fn write, void *ctx)
{
    z_stream *stream = &gzip->stream;

    /* zlib does not write to its input; its declaration lacks the const. */
    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)count;
    do {
        vst_status status;

        stream->next_out = gzip->out;
        stream->avail_out = OUT_SIZE;
        if (deflate(stream, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
            return VST_E_IO;
        status = write(ctx, gzip->out, OUT_SIZE - stream->avail_out);
        if (status != VST_OK)
            return status;
    } while (stream->avail_out == 0);
    return VST_OK;
}
