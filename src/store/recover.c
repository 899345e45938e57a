/* Makes a finished file of one whose process died. No reader needs it: it is
 * for those who keep a trace, or hand it on.
 *
 * The valid part is copied, byte for byte where chunks stand in order, and
 * complete.c makes the rest of it. The original may be one that is still being
 * written.
 *
 * One thread at a time for each file written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "store/copy.h"
#include "store/reader.h"

enum { NAME_MORE = 24 /* for ".<pid>.tmp" and its NUL */ };

static vst_status copy_bytes(vst_trace *from, int to, vst_error *error)
{
    uint64_t offset = 0;

    while (offset < from->valid_end) {
        const unsigned char *bytes;
        size_t got;
        vst_status status =
            vst__block_view(&from->block, offset, VST_BLOCK_SIZE, &bytes, &got);

        if (status != VST_OK)
            return vst_error_set(error, status, from->block.sys_errno, offset);
        if (got > from->valid_end - offset)
            got = (size_t)(from->valid_end - offset);
        if (got == 0) /* somebody cut it meanwhile */
            break;
        status = vst__copy_write(to, bytes, got, offset, error);
        if (status != VST_OK)
            return status;
        offset += got;
    }
    return VST_OK;
}

static vst_status write_copy(vst_trace *from, const char *name, bool overwrite,
                             vst_error *error)
{
    int fd, failed = vst__os_file_create(name, overwrite, &fd);
    vst_status status;

    if (failed != 0)
        return vst_error_set(error, failed == EEXIST ? VST_E_EXISTS : VST_E_IO,
                             failed, 0);
    status = from->header.slot_size == 0
                 ? copy_bytes(from, fd, error)
                 : vst__copy_chunks(&from->source, fd, 0, error);
    if (status == VST_OK)
        status = vst__copy_complete(fd, &(vst__ending){.note = NULL}, error);
    vst__os_file_close(fd);
    if (status != VST_OK)
        remove(name);
    return status;
}

/* What is overwritten, which may be the original itself, stays until all of
 * the new file is there. */
static vst_status replace(vst_trace *from, const char *to, vst_error *error)
{
    size_t size = strlen(to) + NAME_MORE;
    char *name = malloc(size);
    vst_status status;

    if (name == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    snprintf(name, size, "%s.%u.tmp", to, (unsigned)vst__os_process_id());
    status = write_copy(from, name, true, error);
    if (status == VST_OK && rename(name, to) != 0) {
        status = vst_error_set(error, VST_E_IO, errno, 0);
        remove(name);
    }
    free(name);
    return status;
}

vst_status vst_trace_recover(const char *from, const char *to, bool overwrite,
                             vst_error *error)
{
    vst_trace *trace;
    vst_status status = vst_trace_open(from, &trace, error);

    if (status != VST_OK)
        return status;
    status = overwrite ? replace(trace, to, error)
                       : write_copy(trace, to, false, error);
    vst_trace_close(trace);
    /* That a damaged tail was left out is told by opening the original. */
    if (status == VST_OK)
        vst_error_set(error, VST_OK, 0, 0);
    return status;
}
