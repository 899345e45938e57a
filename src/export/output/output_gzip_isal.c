/* gzip with isa-l's igzip, about three times as fast as zlib's fastest level.
 * One thread at a time. */
#include <stdlib.h>

#include <isa-l/igzip_lib.h>

#include "export/output/output_gzip.h"

enum { LEVEL = 1, LEVEL_SIZE = ISAL_DEF_LVL1_DEFAULT, OUT_SIZE = 256 * 1024 };

struct vst__gzip {
    struct isal_zstream stream;
    uint8_t level[LEVEL_SIZE];
    uint8_t out[OUT_SIZE];
};

vst__gzip *vst__gzip_create(void)
{
    vst__gzip *gzip = malloc(sizeof *gzip);

    if (gzip == NULL)
        return NULL;
    isal_deflate_init(&gzip->stream);
    gzip->stream.level = LEVEL;
    gzip->stream.level_buf = gzip->level;
    gzip->stream.level_buf_size = LEVEL_SIZE;
    gzip->stream.gzip_flag = IGZIP_GZIP;
    return gzip;
}

void vst__gzip_destroy(vst__gzip *gzip)
{
    free(gzip);
}

vst_status vst__gzip_compress(vst__gzip *gzip, const void *bytes, size_t count,
                              bool last, vst__gzip_write_fn write, void *ctx)
{
    struct isal_zstream *stream = &gzip->stream;

    /* igzip does not write to its input; its declaration lacks the const. */
    stream->next_in = (uint8_t *)(uintptr_t)bytes;
    stream->avail_in = (uint32_t)count;
    stream->end_of_stream = last;
    do {
        vst_status status;

        stream->next_out = gzip->out;
        stream->avail_out = OUT_SIZE;
        if (isal_deflate(stream) != COMP_OK)
            return VST_E_IO;
        status = write(ctx, gzip->out, OUT_SIZE - stream->avail_out);
        if (status != VST_OK)
            return status;
    } while (stream->avail_out == 0 || stream->avail_in != 0);
    return VST_OK;
}
