/* os.h for Linux: memory for callers that must not use an allocator, and a
 * barrier that one thread causes in all threads. Any thread, even inside any
 * allocator. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

void *vst__os_pages(size_t size)
{
    int error = errno;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    errno = error;
    return pages == MAP_FAILED ? NULL : pages;
}

void vst__os_pages_forget(void *pages, size_t size)
{
    madvise(pages, size, MADV_DONTNEED);
}

bool vst__os_barrier_prepare(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
                   0) == 0;
}

void vst__os_barrier(void)
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
