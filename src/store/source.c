/* The two kinds of source.h; packed.c reads packed files. One thread at a
 * time. */
#include "store/source.h"

#include <string.h>

#include "base/fence.h"
#include "os/os.h"
#include "store/format.h"
#include "store/packed.h"

vst_status vst__source_open(vst__source *source, int fd, vst_error *error)
{
    char magic[sizeof VST_PACK_MAGIC - 1];
    size_t got;
    int failed;

    *source = (vst__source){.fd = fd};
    failed = vst__os_file_size(fd, &source->file_size);
    if (failed == 0)
        failed = vst__os_file_read(fd, magic, sizeof magic, 0, &got);
    if (failed != 0)
        return vst_error_set(error, VST_E_IO, failed, 0);
    source->size = source->file_size;
    if (got < sizeof magic || memcmp(magic, VST_PACK_MAGIC, sizeof magic) != 0)
        return VST_OK;
    return vst__packed_open(fd, source->file_size, &source->packed,
                            &source->size, &source->cut, error);
}

void vst__source_close(vst__source *source)
{
    vst__packed_close(source->packed);
    source->packed = NULL;
    vst__os_file_close(source->fd);
}

/* Another thread or process may be storing the bytes that are read here. The
 * fence orders reads: a later read sees everything that was stored before what
 * this read saw. The fence pairs with the release of every store that commits
 * (a word in vst_store_word, an entry's size, a chunk's magic and `used`), and
 * with the barrier that removes a magic. Bytes within one read have no order; a
 * caller that needs one reads twice. */
vst_status vst__source_read(vst__source *source, void *bytes, size_t count,
                            uint64_t offset, size_t *got)
{
    int failed;

    if (source->packed != NULL)
        return vst__packed_read(source->packed, bytes, count, offset, got,
                                &source->sys_errno);
    failed = vst__os_file_read(source->fd, bytes, count, offset, got);
    vst__fence_acquire();
    if (failed == 0)
        return VST_OK;
    source->sys_errno = failed;
    return VST_E_IO;
}
