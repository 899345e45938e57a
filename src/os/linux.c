/* os.h for Linux. Any thread. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* Uses the system call: glibc has gettid() since 2.30, and our wheels are for
 * 2.28 and later. */
uint64_t vst__os_thread_id(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

uint64_t vst__os_thread_handle(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

unsigned vst__os_processors(void)
{
    cpu_set_t set;
    int count = 0;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

uint32_t vst__os_process_id(void)
{
    return (uint32_t)getpid();
}

uint32_t vst__os_user_id(void)
{
    return (uint32_t)geteuid();
}

void vst__os_random(void *bytes, size_t count)
{
    uint64_t seed;

    if (getrandom(bytes, count, GRND_NONBLOCK) == (ssize_t)count)
        return;
    /* The kernel's random pool is not ready yet. A trace id only needs to be
     * unlikely to repeat, and this seed is. */
    seed = (uint64_t)getpid() << 32 ^ (uintptr_t)bytes;
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] =
            (uint8_t)((seed = seed * 6364136223846793005u + 1) >> 56);
}

/* ---- threads ------------------------------------------------------------- */

/* Makes a thread get a quarter of the time that a thread of ordinary priority
 * gets. */
void vst__os_thread_defer(void)
{
    id_t tid = (id_t)vst__os_thread_id();

    setpriority(PRIO_PROCESS, tid, getpriority(PRIO_PROCESS, tid) + 5);
}

/* A futex instead of a semaphore, because glibc has waits by the monotonic
 * clock since 2.30. The exchanges make everything stored before the set visible
 * after the wait. */
void vst__os_event_set(uint32_t *event)
{
    __atomic_exchange_n(event, 1, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, event, FUTEX_WAKE_PRIVATE, 1);
}

void vst__os_event_wait(uint32_t *event, uint64_t timeout_ns)
{
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    while (__atomic_exchange_n(event, 0, __ATOMIC_ACQ_REL) == 0)
        if (syscall(SYS_futex, event, FUTEX_WAIT_PRIVATE, 0,
                    timeout_ns != UINT64_MAX ? &timeout : NULL) != 0 &&
            errno == ETIMEDOUT)
            return;
}

int vst__os_thread_exit_hook(vst__os_exit *hook, void (*fn)(void *arg))
{
    _Static_assert(sizeof *hook == sizeof(pthread_key_t), "a hook is a key");
    return pthread_key_create(hook, fn);
}

void vst__os_thread_exit_arg(vst__os_exit hook, void *arg)
{
    pthread_setspecific(hook, arg);
}

void vst__os_wait(const uint32_t *word, uint32_t value, uint64_t ns)
{
    const struct timespec most = {(time_t)(ns / 1000000000),
                                  (long)(ns % 1000000000)};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0);
}

void vst__os_wake(const uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int vst__os_fork_hooks(void (*before)(void), void (*parent)(void),
                       void (*child)(void))
{
    return pthread_atfork(before, parent, child);
}

/* ---- files --------------------------------------------------------------- */

/* Moves a recording's descriptor away from the number of a closed standard
 * stream; otherwise the program would print into the recording. */
static int leave_standard_streams(int *fd)
{
    int other, failed;

    if (*fd < 0 || *fd > 2)
        return *fd < 0 ? errno : 0;
    other = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    failed = other < 0 ? errno : 0;
    close(*fd);
    *fd = other;
    return failed;
}

int vst__os_file_create(const char *path, bool overwrite, int *fd)
{
    if (overwrite && unlink(path) != 0 && errno != ENOENT)
        return errno;
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return leave_standard_streams(fd);
}

void vst__os_file_remove(const char *path)
{
    unlink(path);
}

bool vst__os_file_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

bool vst__os_file_is_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Not every file system can rename without replacing, but each can link. */
int vst__os_file_rename(const char *from, const char *to, bool overwrite)
{
    if (overwrite)
        return rename(from, to) == 0 ? 0 : errno;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to,
                RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (link(from, to) != 0)
        return errno;
    unlink(from);
    return 0;
}

/* Returns whether the file is on a local disk. Zero-filled pages of a tmpfs
 * would take memory instead. */
static bool is_on_disk(int fd)
{
    struct statfs fs;
    const char *name;

    return fstatfs(fd, &fs) == 0 &&
           vst__os_disk_of((uint32_t)fs.f_type, &name) == VST_DISK_LOCAL;
}

/* Returns whether a folder lies on a disk that must not be asked. */
static bool is_on_slow_disk(const char *folder)
{
    vst__os_mounts *mounts = vst__os_mounts_read(VST_OS_MOUNTS);
    bool slow = mounts != NULL && vst__os_mounts_slow(mounts, folder) != NULL;

    vst__os_mounts_free(mounts);
    return slow;
}

int vst__os_file_create_temporary(int *fd)
{
    const char *folder = getenv("VESTIGE_TMPDIR");
    char path[PATH_MAX];
    int length;

    if (folder == NULL || !*folder)
        folder = getenv("TMPDIR");
    if (folder == NULL || !*folder)
        folder = "/tmp";
    else if (is_on_slow_disk(folder))
        return ENOTSUP;
    length = snprintf(path, sizeof path, "%s/vestige-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return ENAMETOOLONG;
    *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return errno;
    unlink(path);
    if (is_on_disk(*fd))
        return leave_standard_streams(fd);
    close(*fd);
    return ENOTSUP;
}

int vst__os_file_create_in_memory(int *fd)
{
    *fd = memfd_create("vestige", MFD_CLOEXEC);
    return leave_standard_streams(fd);
}

/* Without O_NONBLOCK, open() would wait forever on a pipe without a writer. */
static int open_regular(const char *path, int flags, int *fd)
{
    struct stat st;
    int failed = 0;

    *fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0)
        return errno;
    if (fstat(*fd, &st) != 0)
        failed = errno;
    else if (!S_ISREG(st.st_mode))
        failed = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
    if (failed != 0)
        close(*fd);
    return failed;
}

int vst__os_file_open(const char *path, int *fd)
{
    return open_regular(path, O_RDONLY, fd);
}

int vst__os_file_open_to_write(const char *path, int *fd)
{
    return open_regular(path, O_RDWR | O_NOFOLLOW, fd);
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

int vst__os_file_modified(int fd, int64_t *time_ns)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return errno;
    *time_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return 0;
}

void vst__os_file_identify(int fd, vst__os_identity *identity)
{
    struct stat st = {.st_ino = 0};

    fstat(fd, &st);
    *identity = (vst__os_identity){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
}

bool vst__os_file_is(int fd, const vst__os_identity *identity, uint64_t *size)
{
    struct stat st = {.st_ino = 0};

    if (fstat(fd, &st) != 0)
        return false;
    if (size != NULL)
        *size = (uint64_t)st.st_size;
    return (uint64_t)st.st_dev == identity->device &&
           (uint64_t)st.st_ino == identity->inode;
}

int vst__os_file_truncate(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size) == 0 ? 0 : errno;
}

/* EINVAL means that the file is not on a disk, so there is nothing to sync. */
int vst__os_file_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

/* Keeps the owner of another user's file if we are permitted to. Removes the
 * group's permissions if the copy would have a different group. */
void vst__os_file_copy_access(int from, int to, bool to_write)
{
    struct stat st;
    mode_t mode;

    if (fstat(from, &st) != 0)
        return;
    mode = st.st_mode & (to_write ? 0777 : 0744);
    if (fchown(to, (uid_t)-1, st.st_gid) != 0)
        mode &= (mode_t)~0070;
    if (fchown(to, st.st_uid, (gid_t)-1) != 0)
        errno = 0; /* the file is ours then */
    fchmod(to, mode);
}

bool vst__os_file_is_as_safe(int fd, int other)
{
    struct stat st, like;

    return fstat(fd, &st) == 0 && fstat(other, &like) == 0 &&
           (st.st_mode & 0022) == 0 &&
           (st.st_uid == geteuid() || st.st_uid == like.st_uid);
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

int vst__os_file_may_reach(uint64_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                   limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur
               ? EFBIG
               : 0;
}

/* Allocates by writing zeros: then the pages are in memory, in large folios if
 * the file system has them, and mapping them is cheap. The parts are not as
 * large as possible, because ext4 goes over all blocks of a page's folio to
 * make the page writable, and because large free blocks of memory are cold. For
 * 1.6 GB on Linux 6.18, parts of 1 MiB took 1.2 s of system time at best and
 * 2.6 s in the median, parts of 256 KiB 0.7 s and 1.6 s, parts of 128 KiB 0.9 s
 * and 2.0 s. The function checks the file size limit first, because growing a
 * file past that limit would send SIGXFSZ to the program. */
int vst__os_file_allocate(int fd, uint64_t offset, uint64_t size)
{
    static char zeros[256 * 1024]; /* never written, so it costs no memory */

    if (vst__os_file_may_reach(offset + size) != 0)
        return EFBIG;
    while (size) {
        size_t part = size < sizeof zeros ? (size_t)size : sizeof zeros;
        int failed = vst__os_file_write(fd, zeros, part, offset);

        if (failed != 0)
            return failed;
        offset += part;
        size -= part;
    }
    return 0;
}

/* Reserves as much again as the file has: for 215 MB on ext4, that saves a
 * quarter of the system time. */
void vst__os_file_reserve(int fd, uint64_t end, uint64_t need,
                          uint64_t *reserved)
{
    const uint64_t least = 2 * 1024 * 1024, most = 64 * 1024 * 1024;
    uint64_t from = *reserved < end ? end : *reserved;
    uint64_t ahead = end < most ? end : most;

    if (end < least || need <= *reserved)
        return;
    *reserved = is_on_disk(fd) && fallocate(fd, FALLOC_FL_KEEP_SIZE,
                                            (off_t)from, (off_t)ahead) == 0
                    ? from + ahead
                    : UINT64_MAX;
}

void vst__os_unmap(const void *address, size_t size)
{
    munmap((void *)(uintptr_t)address, size);
}

int vst__os_map_shared(int fd, size_t size, void **address)
{
    *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return *address != MAP_FAILED ? 0 : errno;
}
