/* A file that is written locally and copied to a slow disk: which files those
 * are, and where their records are. writer.h says which threads call these
 * functions. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "store/writer_chunks.h"

/* How long a reader in this process waits for the copier. */
#define CATCH_UP_NS UINT64_C(2000000000)
/* Without /proc, nothing tells whether a disk may stall. */
#define UNKNOWN_DISK "an unknown disk"

/* Returns the name of the file system if a folder lies on a slow disk. */
static const char *find_slow(const char *folder)
{
    vst__os_mounts *mounts = vst__os_mounts_read(VST_OS_MOUNTS);
    const char *name = UNKNOWN_DISK;
    vst__os_place place;

    if (mounts != NULL) {
        name = vst__os_mounts_slow(mounts, folder);
        vst__os_mounts_free(mounts);
        if (name == NULL && vst__os_place_of(folder, &place) == 0 &&
            place.disk == VST_DISK_SLOW)
            name = place.name;
    }
    return name;
}

void vst__file_choose_storage(vst__file *file, const char *path,
                              vst_storage_mode mode)
{
    const char *name = NULL;
    char *folder, *slash;

    file->file_system = "";
    file->is_copied = path != NULL && mode == VST_STORAGE_COPIED;
    if (path == NULL || mode != VST_STORAGE_AUTO)
        return;
    folder = vst__os_absolute(path);
    slash = folder != NULL ? strrchr(folder, '/') : NULL;
    if (slash != NULL) {
        slash[slash == folder] = 0;
        name = find_slow(folder);
    }
    file->is_copied = name != NULL;
    if (name != NULL)
        file->file_system = name;
    free(folder);
}

static vst_status copy_failed(vst_error *error, int failed)
{
    return vst_error_set(error, failed == EEXIST ? VST_E_EXISTS : VST_E_IO,
                         failed, 0);
}

vst_status vst__file_begin_copy(vst__file *file, const char *path,
                                const char *copier, vst_error *error)
{
    int failed = vst__copying_begin(path, copier, &file->copying);

    file->fd = file->copying.local.fd;
    return failed == 0 ? VST_OK : copy_failed(error, failed);
}

vst_status vst__file_start_copy(vst__file *file, bool overwrite,
                                vst_error *error)
{
    int failed = vst__copying_start(&file->copying, overwrite);

    return failed == 0 ? VST_OK : copy_failed(error, failed);
}

static uint64_t storage_freed(const vst__file *file)
{
    const vst__copy_note *note = file->copying.note;

    /* pairs with the addition in mirror.c */
    return note != NULL ? __atomic_load_n(&note->freed, __ATOMIC_ACQUIRE) : 0;
}

bool vst__file_is_full(const vst__file *file, uint64_t need)
{
    uint64_t freed = storage_freed(file);

    return need > freed && need - freed > file->copying.local.limit;
}

void vst__file_get_storage(const vst__file *file, vst_session_storage *storage)
{
    const vst__copying *copying = &file->copying;
    const vst__copy_note *note = copying->note;

    *storage = (vst_session_storage){.is_copied = file->is_copied,
                                     .file_system = file->file_system};
    if (!file->is_copied || note == NULL)
        return;
    storage->local = copying->local.path;
    storage->is_complete =
        __atomic_load_n(&note->stage, __ATOMIC_ACQUIRE) == VST_COPY_COMPLETE;
    storage->is_freed = storage_freed(file) != 0;
    storage->sys_errno =
        (int)__atomic_load_n(&note->sys_errno, __ATOMIC_RELAXED);
    storage->copier_errno = copying->sys_errno;
}

bool vst__file_wait_storage(vst__file *file, uint64_t timeout_ns)
{
    return !file->is_copied || vst__copying_wait(&file->copying, timeout_ns);
}

/* Only an unbounded recording that is larger than the local disk allows is read
 * from its target, which may wait for the disk. */
vst_status vst__file_readable(vst__file *file, int *fd, vst_error *error)
{
    int failed;

    *fd = file->fd;
    if (!file->is_copied || storage_freed(file) == 0)
        return VST_OK;
    if (!vst__copying_catch_up(&file->copying, CATCH_UP_NS))
        return vst_error_set(error, VST_E_IO, ETIMEDOUT, 0);
    failed = vst__os_file_open(file->copying.target, fd);
    return failed == 0 ? VST_OK : vst_error_set(error, VST_E_IO, failed, 0);
}

void vst__file_readable_close(const vst__file *file, int fd)
{
    if (fd != file->fd)
        vst__os_file_close(fd);
}
