/* Reads how memory is protected from the kernel's list of mappings. Any thread;
 * allocates nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "objects/objects.h"
#include "os/os.h"

enum { FIRST_RANGES = 4096, HEAD_MAX = 64 };

/* Parses the beginning of a line: 7f0123456000-7f0123457000 r-xp */
static bool protection_parse(const char *head, size_t length,
                             struct vst__protected_range *range)
{
    uintptr_t values[2] = {0, 0};
    int which = 0;
    size_t i = 0;

    for (; i < length && head[i] != ' '; i++) {
        char c = head[i];
        if (c == '-' && which == 0)
            which = 1;
        else if (c >= '0' && c <= '9')
            values[which] = values[which] << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            values[which] = values[which] << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return false;
    }
    if (which == 0 || i + 4 > length)
        return false;
    range->start = values[0];
    range->end = values[1];
    range->access = (head[i + 1] == 'r' ? PROT_READ : 0) |
                    (head[i + 2] == 'w' ? PROT_WRITE : 0) |
                    (head[i + 3] == 'x' ? PROT_EXEC : 0);
    return true;
}

static bool protection_add(vst__protection *p,
                           const struct vst__protected_range *range)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : FIRST_RANGES;
        void *ranges = vst__os_pages(capacity * sizeof *p->ranges);
        size_t count;
        if (ranges == NULL)
            return false;
        if (p->count)
            memcpy(ranges, p->ranges, p->count * sizeof *p->ranges);
        count = p->count;
        vst__protection_free(p);
        p->ranges = ranges;
        p->capacity = capacity;
        p->count = count;
    }
    p->ranges[p->count++] = *range;
    return true;
}

bool vst__protection_read(vst__protection *p)
{
    struct vst__protected_range range;
    char part[4096], head[HEAD_MAX];
    size_t length = 0;
    bool fine = true;
    ssize_t got = 0;
    int fd;

    *p = (vst__protection){.ranges = NULL};
    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (fine && ((got = read(fd, part, sizeof part)) > 0 ||
                    (got < 0 && errno == EINTR)))
        for (ssize_t i = 0; i < got && fine; i++) {
            if (part[i] == '\n') {
                fine = protection_parse(head, length, &range) &&
                       protection_add(p, &range);
                length = 0;
            } else if (length < HEAD_MAX) {
                head[length++] = part[i];
            }
        }
    close(fd);
    if (fine && got == 0)
        return true;
    vst__protection_free(p);
    return false;
}

void vst__protection_free(vst__protection *p)
{
    if (p->ranges != NULL)
        vst__os_unmap(p->ranges, p->capacity * sizeof *p->ranges);
    *p = (vst__protection){.ranges = NULL};
}

int vst__protection_at(const vst__protection *p, uintptr_t address)
{
    size_t low = 0, high = p->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (address < p->ranges[middle].start)
            high = middle;
        else if (address >= p->ranges[middle].end)
            low = middle + 1;
        else
            return p->ranges[middle].access;
    }
    return -1;
}
