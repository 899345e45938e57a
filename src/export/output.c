/* The buffered file of output.h, on C's own streams: nothing here asks more of
 * the system than C11 does. One thread at a time. */
#include "export/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/output_gzip.h"
#include "os/os.h"

enum {
    BUFFER_SIZE = 512 * 1024,
    NAME_TRIES = 100,
    /* For ".<pid>.<try>.tmp" and its NUL. */
    NAME_MORE = 40
};

struct vst__output_file {
    FILE *stream;
    vst__gzip *gzip; /* NULL: plain */
    const char *path; /* the caller's */
    char *temporary;
    int sys_errno;
    char buffer[BUFFER_SIZE];
};

static int open_temporary(struct vst__output_file *file)
{
    size_t size = strlen(file->path) + NAME_MORE;

    file->temporary = malloc(size);
    if (file->temporary == NULL)
        return ENOMEM;
    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(file->temporary, size, "%s.%u.%d.tmp", file->path,
                 (unsigned)vst__os_process_id(), i);
        file->stream = fopen(file->temporary, "wbx");
        if (file->stream != NULL)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return errno;
}

static void free_file(struct vst__output_file *file)
{
    vst__gzip_destroy(file->gzip);
    free(file->temporary);
    free(file);
}

vst_status vst__output_create(const char *path, bool gzip, vst__output *output,
                              vst_error *error)
{
    struct vst__output_file *file = malloc(sizeof *file);
    int failed;

    if (file == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    file->stream = NULL;
    file->gzip = NULL;
    file->temporary = NULL;
    file->path = path;
    file->sys_errno = 0;
    if (gzip && (file->gzip = vst__gzip_create()) == NULL) {
        free_file(file);
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    }
    failed = open_temporary(file);
    if (failed != 0) {
        free_file(file);
        return vst_error_set(error, failed == ENOMEM ? VST_E_NOMEM : VST_E_IO,
                             failed, 0);
    }
    /* The buffer is ours. */
    setvbuf(file->stream, NULL, _IONBF, 0);
    output->file = file;
    output->at = file->buffer;
    output->end = file->buffer + BUFFER_SIZE;
    output->status = VST_OK;
    return VST_OK;
}

static vst_status write_file(void *ctx, const void *bytes, size_t count)
{
    struct vst__output_file *file = ctx;

    errno = 0;
    if (count == 0 || fwrite(bytes, 1, count, file->stream) == count)
        return VST_OK;
    file->sys_errno = errno;
    return errno == ENOSPC || errno == EFBIG || errno == EDQUOT ? VST_E_NOSPACE
                                                                : VST_E_IO;
}

static void drain(vst__output *output, bool last)
{
    struct vst__output_file *file = output->file;
    size_t count = (size_t)(output->at - file->buffer);

    output->at = file->buffer;
    if (output->status != VST_OK)
        return;
    output->status =
        file->gzip != NULL
            ? vst__gzip_compress(file->gzip, file->buffer, count, last,
                                 write_file, file)
            : write_file(file, file->buffer, count);
}

void vst__output_flush(vst__output *output)
{
    drain(output, false);
}

void vst__output_write(vst__output *output, const char *bytes, size_t count)
{
    while (count != 0) {
        size_t room = (size_t)(output->end - output->at);
        size_t part = count < room ? count : room;

        memcpy(output->at, bytes, part);
        output->at += part;
        bytes += part;
        count -= part;
        if (count != 0)
            drain(output, false);
    }
}

vst_status vst__output_finish(vst__output *output, vst_status status,
                              vst_error *error)
{
    struct vst__output_file *file = output->file;

    if (status == VST_OK)
        drain(output, true);
    if (fclose(file->stream) != 0 && output->status == VST_OK) {
        file->sys_errno = errno;
        output->status = VST_E_IO;
    }
    if (status == VST_OK && output->status == VST_OK &&
        rename(file->temporary, file->path) != 0) {
        file->sys_errno = errno;
        output->status = VST_E_IO;
    }
    /* Other trouble was told by whoever met it. */
    if (output->status != VST_OK) {
        status = output->status;
        vst_error_set(error, status, file->sys_errno, 0);
    }
    if (status != VST_OK)
        remove(file->temporary);
    output->file = NULL;
    free_file(file);
    return status;
}
