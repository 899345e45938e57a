/* Makes a finished file from the file of a process that died. No reader needs
 * this; it is for keeping a trace or handing it on. The valid part is copied,
 * byte for byte if the chunks stand in order, and complete.c adds the end. The
 * original may still be written. One thread at a time for each file written. */
#include "os/os.h"
#include "store/copy.h"
#include "store/reader.h"
#include "store/whole.h"

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
        if (got == 0) /* another process cut the file meanwhile */
            break;
        status = vst__copy_write(to, bytes, got, offset, error);
        if (status != VST_OK)
            return status;
        offset += got;
    }
    return VST_OK;
}

/* Returns whether the file's chunks may change while we read. */
static bool is_changing(const vst_file_header *header)
{
    return header->slot_size != 0 || (header->min_duration_ns != 0 &&
                                      header->state == VST_FILE_RECORDING);
}

static vst_status recover_fill(void *ctx, int fd, vst_error *error)
{
    vst_trace *from = ctx;
    vst_status status;

    vst__os_file_copy_access(from->source.fd, fd, true);
    status = is_changing(&from->header)
                 ? vst__copy_chunks(&from->source, fd, 0, error)
                 : copy_bytes(from, fd, error);
    if (status != VST_OK)
        return status;
    return vst__copy_complete(fd, &(vst__ending){.note = NULL}, error);
}

vst_status vst_trace_recover(const char *from, const char *to, bool overwrite,
                             vst_error *error)
{
    vst_trace *trace;
    vst_status status = vst_trace_open(from, &trace, error);

    if (status != VST_OK)
        return status;
    status = vst__write_whole(to, overwrite, recover_fill, trace, error);
    vst_trace_close(trace);
    /* Opening the original has reported the damaged tail that is left out
     * here. */
    if (status == VST_OK)
        vst_error_set(error, VST_OK, 0, 0);
    return status;
}
