/* Hooks of the calls that make, change and end mappings. Any thread of the
 * program, in any state. As in hooks.c, a hook calls the original exactly once
 * and reports the result.
 *
 * A mapping without access, or one for which the system sets no memory aside,
 * reserves address space: it counts as memory once mprotect() opens it, or once
 * its pages are found to be in use. Pages that madvise() gives back are
 * reserved again. */
#include "memory/hooks.h"

#include <stdarg.h>

#include "memory/funnel.h"
#include "memory/reserved.h"
#include "os/os.h"

#define HERE __builtin_return_address(0) /* the caller of the hook */

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

struct vst__real_maps vst__real_maps;
#define real vst__real_maps

/* MAP_NORESERVE has a meaning only for private memory. */
static bool is_reservation(int access, int flags)
{
    const int unbacked = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    return access == PROT_NONE || (flags & unbacked) == unbacked;
}

static void report_mapping(void *mapping, size_t size, int access, int flags,
                           const void *from)
{
    uintptr_t at = (uintptr_t)mapping;
    bool reserves = is_reservation(access, flags);

    vst__memory_mapped(at, size, reserves ? VST_RANGE_RESERVED : 0, from);
    if (reserves)
        vst__reserved_add(at, size, access != PROT_NONE);
    else if (vst__reserved_any())
        vst__reserved_remove(at, size);
}

/* Part of each hook, so that native stacks have no more frames of ours. */
static inline __attribute__((always_inline)) void *
map(__typeof__(&mmap) original, void *at, size_t size, int access, int flags,
    int fd, off_t offset, const void *from)
{
    bool outermost;
    void *mapping;

    if (!vst__memory_is_on())
        return original(at, size, access, flags, fd, offset);
    outermost = vst_memory_enter();
    if (outermost && flags & MAP_FIXED)
        vst__memory_look((uintptr_t)at, size);
    mapping = original(at, size, access, flags, fd, offset);
    if (outermost && mapping != MAP_FAILED)
        report_mapping(mapping, size, access, flags, from);
    vst_memory_leave();
    return mapping;
}

void *vst__hook_mmap(void *at, size_t size, int access, int flags, int fd,
                     off_t offset)
{
    return map(real.mmap, at, size, access, flags, fd, offset, HERE);
}

void *vst__hook_mmap64(void *at, size_t size, int access, int flags, int fd,
                       off_t offset)
{
    return map(real.mmap64, at, size, access, flags, fd, offset, HERE);
}

/* munmap may fail, so it is reported afterwards, with the time from before. */
int vst__hook_munmap(void *at, size_t size)
{
    bool outermost;
    vst_ticks before;
    int result;

    if (!vst__memory_is_on())
        return real.munmap(at, size);
    outermost = vst_memory_enter();
    if (outermost)
        vst__memory_look((uintptr_t)at, size);
    before = vst_clock_ticks();
    result = real.munmap(at, size);
    if (outermost && result == 0) {
        vst__memory_unmapped((uintptr_t)at, size, before);
        if (vst__reserved_any())
            vst__reserved_remove((uintptr_t)at, size);
    }
    vst_memory_leave();
    return result;
}

/* Reports a moved mapping, which is reserved or usable as before. If the old
 * size was 0, the old mapping stays. */
static void report_moved(uintptr_t old, size_t old_size, uintptr_t at,
                         size_t size, const vst__range *reserved,
                         vst_ticks before, const void *from)
{
    if (old_size) {
        vst__memory_unmapped(old, old_size, before);
        if (vst__reserved_any())
            vst__reserved_remove(old, old_size);
    }
    vst__memory_mapped(at, size, reserved != NULL ? VST_RANGE_RESERVED : 0,
                       from);
    if (reserved != NULL)
        vst__reserved_add(at, size, reserved->is_open);
}

/* The last argument exists only with MREMAP_FIXED. */
void *vst__hook_mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list more;
    vst__range part;
    bool reserves = false;
    void *at, *mapping;
    bool outermost;
    vst_ticks before;

    va_start(more, flags);
    at = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (!vst__memory_is_on())
        return real.mremap(old, old_size, size, flags, at);
    outermost = vst_memory_enter();
    if (outermost && vst__reserved_any()) {
        reserves = vst__reserved_find(
            (uintptr_t)old, vst__reserved_end((uintptr_t)old, 1), &part);
        vst__memory_look((uintptr_t)old, old_size);
    }
    before = vst_clock_ticks();
    mapping = real.mremap(old, old_size, size, flags, at);
    if (outermost && mapping != MAP_FAILED)
        report_moved((uintptr_t)old, old_size, (uintptr_t)mapping, size,
                     reserves ? &part : NULL, before, HERE);
    vst_memory_leave();
    return mapping;
}

/* ---- access of mappings -------------------------------------------------- */

/* Reports that a range without access became accessible, so from now on it can
 * be in use. musl accepts an address inside a page. */
static void report_opened(uintptr_t start, size_t size, const void *from)
{
    uintptr_t end = vst__reserved_end(start, size);
    vst__range part;

    start -= start % vst__os_page_size();
    for (; vst__reserved_find(start, end, &part); start = part.end) {
        if (part.is_open)
            continue;
        vst__reserved_remove(part.start, part.end - part.start);
        vst__memory_mapped(part.start, part.end - part.start, VST_RANGE_CHANGES,
                           from);
    }
}

/* Pages whose access is taken away stay in memory. */
int vst__hook_mprotect(void *at, size_t size, int access)
{
    bool outermost;
    int result;

    if (!vst__memory_is_on())
        return real.mprotect(at, size, access);
    outermost = vst_memory_enter();
    result = real.mprotect(at, size, access);
    if (outermost && result == 0 && access != PROT_NONE && vst__reserved_any())
        report_opened((uintptr_t)at, size, HERE);
    vst_memory_leave();
    return result;
}

static bool gives_back(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE ||
           advice == MADV_REMOVE || advice == MADV_DONTNEED_LOCKED;
}

int vst__hook_madvise(void *at, size_t size, int advice)
{
    bool outermost;
    vst_ticks before;
    int result;
    uintptr_t start;

    if (!gives_back(advice) || !vst__memory_is_on())
        return real.madvise(at, size, advice);
    outermost = vst_memory_enter();
    if (outermost)
        vst__memory_look((uintptr_t)at, size);
    before = vst_clock_ticks();
    result = real.madvise(at, size, advice);
    start = (uintptr_t)at;
    if (outermost && result == 0 && size != 0) {
        size = vst__reserved_end(start, size) - start;
        vst__memory_given_back(start, size, before);
        vst__reserved_add(start, size, true);
    }
    vst_memory_leave();
    return result;
}
