/* The calls of faults.h. The linker names them: __wrap_x is called in place of
 * x, __real_x is x. A name ends in 64 where the C library has a variant for
 * large files. */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "base/heap.h"

const struct fault_told faults_told[FAULT_KINDS] = {
    [FAULT_MEMORY] = {VST_E_NOMEM, ENOMEM},
    [FAULT_MMAP] = {VST_E_NOMEM, ENOMEM},
    [FAULT_MADVISE] = {VST_E_NOSPACE, EFAULT},
    [FAULT_PWRITE] = {VST_E_NOSPACE, ENOSPC},
    [FAULT_FTRUNCATE] = {VST_E_IO, EIO},
    [FAULT_PREAD] = {VST_E_IO, EIO},
    [FAULT_OPEN] = {VST_E_IO, EMFILE},
    [FAULT_FWRITE] = {VST_E_NOSPACE, ENOSPC},
    [FAULT_RENAME] = {VST_E_IO, EIO},
    [FAULT_THREAD] = {VST_OK, EAGAIN},
};

static atomic_int armed = FAULT_KINDS; /* the kind of call that fails */
static atomic_uint calls, failed_at;
static atomic_bool paused;
static bool lasts; /* whether all later calls fail, too; constant while armed,
                    * as is `with` */
static int with;

void faults_begin(fault_kind kind, unsigned n, bool lasting, int error)
{
    calls = 0;
    failed_at = n;
    lasts = lasting;
    with = error;
    armed = (int)kind;
}

void faults_pause(bool pauses)
{
    paused = pauses;
}

bool faults_end(void)
{
    armed = FAULT_KINDS;
    return calls >= failed_at;
}

static bool fails(fault_kind kind)
{
    unsigned call;

    if (armed != (int)kind || paused)
        return false;
    call = ++calls;
    if (call < failed_at || (call > failed_at && !lasts))
        return false;
    errno = with;
    return true;
}

/* ---- memory ------------------------------------------------------------- */

/* The core's own heap calls malloc, so the heap fails like any other caller. */
__attribute__((constructor)) static void use_malloc(void)
{
    vst__heap_is_malloc = true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : __real_realloc(memory, size);
}

/* ---- mappings ----------------------------------------------------------- */

void *__real_mmap64(void *at, size_t size, int access, int flags, int fd,
                    off_t offset);
int __real_madvise(void *at, size_t size, int advice);
void *__wrap_mmap64(void *at, size_t size, int access, int flags, int fd,
                    off_t offset);
int __wrap_madvise(void *at, size_t size, int advice);

void *__wrap_mmap64(void *at, size_t size, int access, int flags, int fd,
                    off_t offset)
{
    if (fails(FAULT_MMAP))
        return MAP_FAILED;
    return __real_mmap64(at, size, access, flags, fd, offset);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    return fails(FAULT_MADVISE) ? -1 : __real_madvise(at, size, advice);
}

/* ---- files -------------------------------------------------------------- */

ssize_t __real_pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t __real_pread64(int fd, void *bytes, size_t count, off_t at);
int __real_ftruncate64(int fd, off_t size);
int __real_fsync(int fd);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t at);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fsync(int fd);

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t at)
{
    return fails(FAULT_PWRITE) ? -1 : __real_pwrite64(fd, bytes, count, at);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t at)
{
    return fails(FAULT_PREAD) ? -1 : __real_pread64(fd, bytes, count, at);
}

int __wrap_ftruncate64(int fd, off_t size)
{
    return fails(FAULT_FTRUNCATE) ? -1 : __real_ftruncate64(fd, size);
}

int __wrap_fsync(int fd)
{
    return fails(FAULT_FSYNC) ? -1 : __real_fsync(fd);
}

int __real_open64(const char *path, int flags, ...);
int __real_mkostemp64(char *path, int flags);
int __real_memfd_create(const char *name, unsigned flags);
int __real_fcntl64(int fd, int command, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_mkostemp64(char *path, int flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_fcntl64(int fd, int command, ...);

int __wrap_open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list more;

    if (flags & O_CREAT) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return fails(FAULT_OPEN) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_mkostemp64(char *path, int flags)
{
    return fails(FAULT_OPEN) ? -1 : __real_mkostemp64(path, flags);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return fails(FAULT_OPEN) ? -1 : __real_memfd_create(name, flags);
}

/* The core uses fcntl only to duplicate descriptors. */
int __wrap_fcntl64(int fd, int command, ...)
{
    va_list more;
    int argument;

    va_start(more, command);
    argument = va_arg(more, int);
    va_end(more);
    return fails(FAULT_OPEN) ? -1 : __real_fcntl64(fd, command, argument);
}

/* ---- streams and threads ------------------------------------------------ */

FILE *__real_fopen64(const char *path, const char *mode);
size_t __real_fwrite(const void *items, size_t size, size_t count, FILE *to);
int __real_rename(const char *from, const char *to);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *arg);
FILE *__wrap_fopen64(const char *path, const char *mode);
size_t __wrap_fwrite(const void *items, size_t size, size_t count, FILE *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *arg);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    return fails(FAULT_OPEN) ? NULL : __real_fopen64(path, mode);
}

size_t __wrap_fwrite(const void *items, size_t size, size_t count, FILE *to)
{
    return fails(FAULT_FWRITE) ? 0 : __real_fwrite(items, size, count, to);
}

int __wrap_rename(const char *from, const char *to)
{
    return fails(FAULT_RENAME) ? -1 : __real_rename(from, to);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *arg)
{
    return fails(FAULT_THREAD)
               ? with
               : __real_pthread_create(thread, attributes, run, arg);
}

int faults_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    return __real_pthread_create(thread, NULL, run, arg);
}
