/* Writes a snapshot: a finished copy of a trace that is being recorded. Any
 * thread, several at a time. */
#include "os/os.h"
#include "store/copy.h"
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
