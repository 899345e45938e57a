/* Writes a snapshot: a finished copy of a trace that is being recorded. Any
 * thread, several at a time. */
#include <errno.h>

#include "os/os.h"
#include "store/copy.h"
#include "store/copying.h"
#include "store/format.h"
#include "store/whole.h"

typedef struct snapshot {
    vst__source from;
    uint64_t window_ns;
    vst__ending ending;
} snapshot;

static vst_status snapshot_fill(void *ctx, int fd, vst_error *error)
{
    snapshot *self = ctx;
    vst_status status =
        vst__copy_chunks(&self->from, fd, self->window_ns, error);

    return status == VST_OK ? vst__copy_complete(fd, &self->ending, error)
                            : status;
}

vst_status vst__snapshot(int fd, const char *path, bool overwrite,
                         uint64_t window_ns, const char *note, vst_error *error)
{
    snapshot self = {
        .from = {.fd = fd},
        .window_ns = window_ns,
        .ending = {.note = note},
    };

    vst_clock_sample_now(&self.ending.at);
    return vst__write_whole(path, overwrite, snapshot_fill, &self, error);
}

static vst_status snapshot_begin(vst__copying *copying, const char *path,
                                 bool overwrite, const char *copier,
                                 vst_error *error)
{
    int failed = vst__copying_begin(path, copier, copying);

    if (failed == 0)
        failed = vst__os_file_truncate(copying->local.fd, VST_FILE_HEADER_SIZE);
    if (failed == 0)
        failed = vst__copying_start(copying, overwrite);
    if (failed == 0)
        return VST_OK;
    return vst_error_set(error, failed == EEXIST ? VST_E_EXISTS : VST_E_IO,
                         failed, 0);
}

vst_status vst__snapshot_copied(int fd, const char *path, bool overwrite,
                                uint64_t window_ns, const char *note,
                                const char *copier, vst_error *error)
{
    snapshot self = {
        .from = {.fd = fd},
        .window_ns = window_ns,
        .ending = {.note = note},
    };
    vst__copying copying;
    vst_status status =
        snapshot_begin(&copying, path, overwrite, copier, error);

    vst_clock_sample_now(&self.ending.at);
    if (status == VST_OK)
        status = snapshot_fill(&self, copying.local.fd, error);
    if (status == VST_OK)
        vst__copying_hurry(&copying);
    vst__copying_end(&copying, status != VST_OK);
    if (copying.local.fd >= 0)
        vst__os_file_close(copying.local.fd);
    return status;
}
