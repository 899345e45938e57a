/* The two kinds of source.h; what is in a packed file is packed.c's to know.
 * One thread at a time. */
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

/* Another thread or process may be storing what is read here. The fence puts
 * reads in order: one that follows sees all that was stored before what this
 * one saw. It pairs with the release of every store that commits: of a word
 * (vst_store_word), of an entry's size, of a chunk's magic and `used`; and with
 * the barrier that removes a magic. Within one read there is no order: who
 * needs it reads twice. */
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
