/* Reads how much of the process is in RAM, with system calls only, because
 * callers are inside allocators, on threads that may be cancelled. Any
 * thread. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t vst__os_page_size(void)
{
    return (size_t)getauxval(AT_PAGESZ);
}

/* Reads the beginning of a file as a string; empty if the file cannot be
 * read. */
static void read_text(const char *path, char *text, size_t size)
{
    int error = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long length = fd >= 0 ? syscall(SYS_read, fd, text, size - 1) : 0;

    if (fd >= 0)
        syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = 0;
    errno = error;
}

/* Reads a number and moves past it; returns 0 if there is no number. */
static uint64_t take_number(const char **text)
{
    uint64_t number = 0;

    while (**text == ' ' || **text == '\t')
        ++*text;
    for (; **text >= '0' && **text <= '9'; ++*text)
        number = number * 10 + (uint64_t)(**text - '0');
    return number;
}

vst__os_resident vst__os_resident_now(void)
{
    char text[128];
    const char *at = text;
    uint64_t resident, files;

    read_text("/proc/self/statm", text, sizeof text);
    take_number(&at); /* skip the size of the address space */
    resident = take_number(&at);
    files = take_number(&at);
    return (vst__os_resident){resident * vst__os_page_size(),
                              files * vst__os_page_size()};
}

uint64_t vst__os_resident_peak(void)
{
    char text[4096];
    const char *at;

    read_text("/proc/self/status", text, sizeof text);
    at = strstr(text, "\nVmHWM:");
    if (at == NULL)
        return 0;
    at += strlen("\nVmHWM:");
    return take_number(&at) * 1024;
}

bool vst__os_pages_resident(uintptr_t start, size_t size, unsigned char *pages)
{
    int error = errno;
    bool is_known = syscall(SYS_mincore, start, size, pages) == 0;

    errno = error;
    return is_known;
}
