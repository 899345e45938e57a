/* Writes files under a temporary name and renames them: see whole.h. It knows
 * nothing about the files' content. Any thread, several at a time. */
#include "store/whole.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

enum { NAME_MORE = 40 /* for ".<pid>-<number>.tmp" and its NUL */ };

static uint32_t last_number; /* atomic, relaxed: numbers only have to differ */

static vst_status whole_fail(vst_error *error, int sys_errno)
{
    return vst_error_set(error, sys_errno == EEXIST ? VST_E_EXISTS : VST_E_IO,
                         sys_errno, 0);
}

static vst_status write_file(const char *name, vst__fill_fn fill, void *ctx,
                             vst_error *error)
{
    int fd, failed = vst__os_file_create(name, true, &fd);
    vst_status status;

    if (failed != 0)
        return whole_fail(error, failed);
    status = fill(ctx, fd, error);
    vst__os_file_close(fd);
    if (status != VST_OK)
        vst__os_file_remove(name);
    return status;
}

vst_status vst__write_whole(const char *path, bool overwrite, vst__fill_fn fill,
                            void *ctx, vst_error *error)
{
    size_t size = strlen(path) + NAME_MORE;
    vst_status status;
    char *name;
    int failed;

    if (!overwrite && vst__os_file_exists(path))
        return whole_fail(error, EEXIST);
    name = malloc(size);
    if (name == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    snprintf(name, size, "%s.%u-%u.tmp", path, (unsigned)vst__os_process_id(),
             (unsigned)__atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED));
    status = write_file(name, fill, ctx, error);
    failed = status == VST_OK ? vst__os_file_rename(name, path, overwrite) : 0;
    if (failed != 0) {
        vst__os_file_remove(name);
        status = whole_fail(error, failed);
    }
    free(name);
    return status;
}
