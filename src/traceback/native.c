/* Native frames by libunwind, which remembers how each place was unwound, by
 * thread: a frame seen before costs a few memory accesses. Any thread, signal
 * handlers too.
 *
 * What libunwind takes while it works: memory from mmap(), never malloc(), for
 * a thread's first capture; for a place not seen before a lock of its own, with
 * signals blocked, and the lock that dl_iterate_phdr() takes, which glibc holds
 * while it links a library into its lists and not while it runs constructors
 * or looks up symbols. A thread inside of dlopen() that waits for the
 * interpreter's lock is so no danger. */
#define UNW_LOCAL_ONLY
#include "traceback/traceback.h"

#include <libunwind.h>
#include <limits.h>
#include <string.h>

size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max)
{
    int got =
        unw_backtrace((void **)addresses, max < INT_MAX ? (int)max : INT_MAX);
    size_t count = got > 0 ? (size_t)got : 0, own = 0;

    /* However many frames of ours the compiler made of it. */
    while (own < count && own < VST_NATIVE_OWN_MAX &&
           addresses[own] != (uintptr_t)from)
        own++;
    if (own == count || own == VST_NATIVE_OWN_MAX)
        return 0;
    memmove(addresses, addresses + own, (count - own) * sizeof *addresses);
    return count - own;
}

bool vst_traceback_has_native(void)
{
    return true;
}
