/* The buffered file of output.h, on C's streams. There are two buffers: while
 * the exporter fills one, a helper thread compresses and writes the other, so
 * an export takes the longer of the two times and not their sum. If no thread
 * can be started, the exporter's thread does both.
 *
 * One thread at a time uses an output; the helper touches only the buffer that
 * it was handed. */
#include "export/output/output.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "export/output/output_gzip.h"
#include "os/os.h"
#include "store/reader.h"

enum {
    BUFFER_SIZE = 512 * 1024,
    NAME_TRIES = 100,
    /* Room for ".<pid>.<try>.tmp" and its NUL. */
    NAME_MORE = 40,
    TIMES_MAX = 2048 /* limit of the output, in sizes of the traces */
};

#define LIMIT_MIN ((uint64_t)64 << 20)

struct vst__output_file {
    FILE *stream;
    char *temporary; /* NULL: written in place, because it is a device */
    int filling;     /* index of the exporter's buffer */
    bool has_helper;
    pthread_t helper;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy;    /* guarded by lock: the helper has a buffer */
    bool ended;   /* guarded by lock: no more buffers will come */
    bool last;    /* guarded by lock: the helper's buffer is the last one */
    size_t count; /* guarded by lock: bytes in the helper's buffer */

    /* Belongs to the thread that writes: the helper while busy, else the
     * exporter. */
    vst__gzip *gzip; /* NULL: not compressed */
    uint64_t limit;  /* most bytes, before compression */
    uint64_t taken;  /* bytes so far, before compression */
    uint64_t written;
    uint64_t reserved; /* storage was reserved up to here */
    vst_status status;
    int sys_errno;
    char buffers[2][BUFFER_SIZE];
};

static int open_temporary(struct vst__output_file *file, const char *path)
{
    size_t size = strlen(path) + NAME_MORE;

    if (vst__os_file_is_device(path)) {
        file->stream = fopen(path, "wbe");
        return file->stream != NULL ? 0 : errno;
    }
    file->temporary = malloc(size);
    if (file->temporary == NULL)
        return ENOMEM;
    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(file->temporary, size, "%s.%u.%d.tmp", path,
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

static vst_status write_file(void *ctx, const void *bytes, size_t count)
{
    struct vst__output_file *file = ctx;

    vst__os_file_reserve(fileno(file->stream), file->written,
                         file->written + count, &file->reserved);
    errno = 0;
    if (count == 0 || fwrite(bytes, 1, count, file->stream) == count) {
        file->written += count;
        return VST_OK;
    }
    file->sys_errno = errno;
    return errno == ENOSPC || errno == EFBIG || errno == EDQUOT ? VST_E_NOSPACE
                                                                : VST_E_IO;
}

/* Writes a whole buffer, unless an earlier one failed. */
static void write_buffer(struct vst__output_file *file, const char *bytes,
                         size_t count, bool last)
{
    if (file->status != VST_OK)
        return;
    file->taken += count;
    if (file->taken > file->limit) {
        file->status = VST_E_OUTPUT;
        return;
    }
    file->status = file->gzip != NULL
                       ? vst__gzip_compress(file->gzip, bytes, count, last,
                                            write_file, file)
                       : write_file(file, bytes, count);
}

/* ---- the helper ---------------------------------------------------------- */

static void *output_help(void *ctx)
{
    struct vst__output_file *file = ctx;

    pthread_mutex_lock(&file->lock);
    for (;;) {
        const char *bytes;
        size_t count;
        bool last;

        while (!file->busy && !file->ended)
            pthread_cond_wait(&file->changed, &file->lock);
        if (!file->busy)
            break;
        bytes = file->buffers[!file->filling];
        count = file->count;
        last = file->last;
        pthread_mutex_unlock(&file->lock);
        write_buffer(file, bytes, count, last);
        pthread_mutex_lock(&file->lock);
        file->busy = false;
        pthread_cond_signal(&file->changed);
    }
    pthread_mutex_unlock(&file->lock);
    return NULL;
}

/* Blocks all signals in the helper, which must not take the program's. */
static void start_helper(struct vst__output_file *file)
{
    sigset_t all, before;

    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    file->has_helper =
        pthread_create(&file->helper, NULL, output_help, file) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Waits until the helper has no buffer. Call with the lock held. */
static void wait_idle(struct vst__output_file *file)
{
    while (file->busy)
        pthread_cond_wait(&file->changed, &file->lock);
}

static void stop_helper(struct vst__output_file *file)
{
    if (file->has_helper) {
        pthread_mutex_lock(&file->lock);
        wait_idle(file);
        file->ended = true;
        pthread_cond_signal(&file->changed);
        pthread_mutex_unlock(&file->lock);
        pthread_join(file->helper, NULL);
    }
    pthread_cond_destroy(&file->changed);
    pthread_mutex_destroy(&file->lock);
}

/* ---- the exporter's side ------------------------------------------------- */

vst_status vst__output_create(const char *path, bool gzip, vst__output *output,
                              vst_error *error)
{
    struct vst__output_file *file = malloc(sizeof *file);
    int failed;

    if (file == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    memset(file, 0, offsetof(struct vst__output_file, buffers));
    file->limit = UINT64_MAX;
    if (gzip && (file->gzip = vst__gzip_create()) == NULL) {
        free_file(file);
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    }
    failed = open_temporary(file, path);
    if (failed != 0) {
        free_file(file);
        return vst_error_set(error, failed == ENOMEM ? VST_E_NOMEM : VST_E_IO,
                             failed, 0);
    }
    /* This file has its own buffer. */
    setvbuf(file->stream, NULL, _IONBF, 0);
    start_helper(file);
    output->file = file;
    output->path = path;
    output->at = file->buffers[0];
    output->end = output->at + BUFFER_SIZE;
    output->status = VST_OK;
    return VST_OK;
}

void vst__output_expect(vst__output *output, vst_trace *const *traces,
                        size_t count)
{
    uint64_t limit = LIMIT_MIN;

    for (size_t i = 0; i < count; i++)
        limit += TIMES_MAX * traces[i]->valid_end;
    output->file->limit = limit;
}

static void output_drain(vst__output *output, bool last)
{
    struct vst__output_file *file = output->file;
    char *bytes = file->buffers[file->filling];
    size_t count = (size_t)(output->at - bytes);

    if (file->has_helper) {
        pthread_mutex_lock(&file->lock);
        wait_idle(file);
        output->status = file->status;
        file->filling = !file->filling;
        file->count = count;
        file->last = last;
        file->busy = true;
        pthread_cond_signal(&file->changed);
        pthread_mutex_unlock(&file->lock);
    } else {
        write_buffer(file, bytes, count, last);
        output->status = file->status;
    }
    output->at = file->buffers[file->filling];
    output->end = output->at + BUFFER_SIZE;
}

void vst__output_flush(vst__output *output)
{
    output_drain(output, false);
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
            output_drain(output, false);
    }
}

void vst__output_utf8(vst__output *output, const char *bytes, size_t count,
                      const char *(*replacement)(unsigned char c))
{
    const unsigned char *at = (const unsigned char *)bytes, *from = at;
    const unsigned char *end = at + count;

    while (at != end) {
        size_t length = vst__json_utf8(at, end);
        const char *text = length == 0   ? "\xef\xbf\xbd"
                           : length == 1 ? replacement(*at)
                                         : NULL;

        if (text == NULL) {
            at += length;
            continue;
        }
        vst__output_write(output, (const char *)from, (size_t)(at - from));
        vst__output_text(output, text);
        from = ++at;
    }
    vst__output_write(output, (const char *)from, (size_t)(at - from));
}

vst_status vst__output_finish(vst__output *output, vst_status status,
                              vst_error *error)
{
    struct vst__output_file *file = output->file;

    if (status == VST_OK)
        output_drain(output, true);
    stop_helper(file);
    output->status = file->status;
    if (file->reserved > file->written)
        vst__os_file_truncate(fileno(file->stream), file->written);
    if (fclose(file->stream) != 0 && output->status == VST_OK) {
        file->sys_errno = errno;
        output->status = VST_E_IO;
    }
    if (status == VST_OK && output->status == VST_OK &&
        file->temporary != NULL && rename(file->temporary, output->path) != 0) {
        file->sys_errno = errno;
        output->status = VST_E_IO;
    }
    /* Any other error is in *error already. */
    if (output->status != VST_OK) {
        status = output->status;
        vst_error_set(error, status, file->sys_errno, 0);
    }
    if (status != VST_OK && file->temporary != NULL)
        remove(file->temporary);
    output->file = NULL;
    free_file(file);
    return status;
}
