/* compress.h without zstd: creating always fails, so the other functions are
 * never called. */
#include "store/compress.h"

vst_status vst__compressor_create(int level, vst__compressor **compressor)
{
    (void)level;
    *compressor = NULL;
    return VST_E_NO_ZSTD;
}

void vst__compressor_destroy(vst__compressor *compressor)
{
    (void)compressor;
}

vst_status vst__compress(vst__compressor *compressor, const void *bytes,
                         size_t count, void *to, size_t room, size_t *written)
{
    (void)compressor, (void)bytes, (void)count, (void)to, (void)room;
    *written = 0;
    return VST_E_NO_ZSTD;
}

vst_status vst__decompressor_create(vst__decompressor **decompressor)
{
    *decompressor = NULL;
    return VST_E_NO_ZSTD;
}

void vst__decompressor_destroy(vst__decompressor *decompressor)
{
    (void)decompressor;
}

vst_status vst__decompress(vst__decompressor *decompressor, const void *bytes,
                           size_t count, void *to, size_t size)
{
    (void)decompressor, (void)bytes, (void)count, (void)to, (void)size;
    return VST_E_NO_ZSTD;
}
