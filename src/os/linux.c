/* os.h for Linux. Any thread. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef RAMFS_MAGIC
#define RAMFS_MAGIC 0x858458f6
#endif

uint64_t vst__os_thread_id(void)
{
    return (uint64_t)gettid();
}

uint64_t vst__os_thread_handle(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

uint32_t vst__os_process_id(void)
{
    return (uint32_t)getpid();
}

void vst__os_random(void *bytes, size_t count)
{
    if (getrandom(bytes, count, GRND_NONBLOCK) == (ssize_t)count)
        return;
    /* Before the kernel's pool is ready: unlikely to repeat, which is all a
     * trace id asks for. */
    uint64_t seed = (uint64_t)getpid() << 32 ^ (uintptr_t)bytes;
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] =
            (uint8_t)((seed = seed * 6364136223846793005u + 1) >> 56);
}

/* ---- threads ----------------------------------------------------------- */

int vst__os_thread_exit_hook(vst__os_exit *hook, void (*fn)(void *arg))
{
    _Static_assert(sizeof *hook == sizeof(pthread_key_t), "a hook is a key");
    return pthread_key_create(hook, fn);
}

void vst__os_thread_exit_arg(vst__os_exit hook, void *arg)
{
    pthread_setspecific(hook, arg);
}

int vst__os_fork_hooks(void (*before)(void), void (*parent)(void),
                       void (*child)(void))
{
    return pthread_atfork(before, parent, child);
}

/* ---- files ------------------------------------------------------------- */

int vst__os_file_create(const char *path, bool overwrite, int *fd)
{
    if (overwrite && unlink(path) != 0 && errno != ENOENT)
        return errno;
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *fd < 0 ? errno : 0;
}

void vst__os_file_remove(const char *path)
{
    unlink(path);
}

/* Zero-filled pages of a tmpfs are memory in disguise. */
static bool is_on_disk(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC &&
           fs.f_type != RAMFS_MAGIC;
}

int vst__os_file_create_temporary(int *fd)
{
    const char *folder = getenv("VESTIGE_TMPDIR");
    char path[PATH_MAX];

    if (!folder || !*folder)
        folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    int length = snprintf(path, sizeof path, "%s/vestige-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return ENAMETOOLONG;
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return errno;
    unlink(path);
    if (is_on_disk(*fd))
        return 0;
    close(*fd);
    return ENOTSUP;
}

int vst__os_file_create_in_memory(int *fd)
{
    *fd = memfd_create("vestige", MFD_CLOEXEC);
    return *fd < 0 ? errno : 0;
}

int vst__os_file_open(const char *path, int *fd)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return errno;
    if (fstat(*fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(*fd);
        return EISDIR;
    }
    return 0;
}

int vst__os_file_duplicate(int fd, int *copy)
{
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return *copy < 0 ? errno : 0;
}

void vst__os_file_close(int fd)
{
    close(fd);
}

int vst__os_file_size(int fd, uint64_t *size)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return errno;
    *size = (uint64_t)st.st_size;
    return 0;
}

int vst__os_file_truncate(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size) == 0 ? 0 : errno;
}

int vst__os_file_read(int fd, void *bytes, size_t count, uint64_t offset,
                      size_t *got)
{
    *got = 0;
    while (*got < count) {
        ssize_t n = pread(fd, (char *)bytes + *got, count - *got,
                          (off_t)(offset + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return 0;
}

int vst__os_file_write(int fd, const void *bytes, size_t count, uint64_t offset)
{
    const char *at = bytes;

    while (count) {
        ssize_t n = pwrite(fd, at, count, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        at += n;
        count -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

/* By writing zeros: the pages are in memory then, in large folios where the
 * file system has them, which makes mapping them cheap. The limit is asked for
 * before the kernel is: growing a file past it would send SIGXFSZ to a program
 * that did nothing wrong. */
int vst__os_file_allocate(int fd, uint64_t offset, uint64_t size)
{
    static char zeros[1 << 20]; /* never touched: costs no memory */
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && offset + size > limit.rlim_cur)
        return EFBIG;
    while (size) {
        size_t part = size < sizeof zeros ? (size_t)size : sizeof zeros;
        ssize_t n = pwrite(fd, zeros, part, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Kernels before 5.14 cannot make pages writable ahead; there each is made so
 * when it is first written. */
int vst__os_map_shared(int fd, uint64_t offset, size_t size, void **address)
{
    *address =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (*address == MAP_FAILED)
        return errno;
    if (madvise(*address, size, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
        return 0;
    int error = errno;
    munmap(*address, size);
    return error;
}

void vst__os_unmap(const void *address, size_t size)
{
    munmap((void *)(uintptr_t)address, size);
}
