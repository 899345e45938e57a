/* compress.h with zstd. Compresses whole frames, so the size that a frame
 * claims allocates nothing. One thread at a time for each. */
#include <zstd.h>

#include "store/compress.h"

/* Both types are zstd's own contexts under our names. */
static ZSTD_CCtx *compress_context(vst__compressor *compressor)
{
    return (ZSTD_CCtx *)(void *)compressor;
}

static ZSTD_DCtx *decompress_context(vst__decompressor *decompressor)
{
    return (ZSTD_DCtx *)(void *)decompressor;
}

vst_status vst__compressor_create(int level, vst__compressor **compressor)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();

    *compressor = (vst__compressor *)(void *)context;
    if (context == NULL)
        return VST_E_NOMEM;
    if (!ZSTD_isError(
            ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)))
        return VST_OK;
    ZSTD_freeCCtx(context);
    *compressor = NULL;
    return VST_E_ARGUMENT;
}

void vst__compressor_destroy(vst__compressor *compressor)
{
    ZSTD_freeCCtx(compress_context(compressor));
}

vst_status vst__compress(vst__compressor *compressor, const void *bytes,
                         size_t count, void *to, size_t room, size_t *written)
{
    *written =
        ZSTD_compress2(compress_context(compressor), to, room, bytes, count);
    /* The output has room, so the only possible failure is a lack of memory. */
    return ZSTD_isError(*written) ? VST_E_NOMEM : VST_OK;
}

vst_status vst__decompressor_create(vst__decompressor **decompressor)
{
    *decompressor = (vst__decompressor *)(void *)ZSTD_createDCtx();
    return *decompressor != NULL ? VST_OK : VST_E_NOMEM;
}

void vst__decompressor_destroy(vst__decompressor *decompressor)
{
    ZSTD_freeDCtx(decompress_context(decompressor));
}

vst_status vst__decompress(vst__decompressor *decompressor, const void *bytes,
                           size_t count, void *to, size_t size)
{
    size_t made = ZSTD_decompressDCtx(decompress_context(decompressor), to,
                                      size, bytes, count);

    return made == size ? VST_OK : VST_E_DAMAGED;
}
