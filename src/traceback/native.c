/* Native frames by libunwind, which remembers for each thread how each place
 * was unwound: a frame seen before costs a few memory accesses. Any thread,
 * even in signal handlers.
 *
 * libunwind is loaded, not linked, because it has a second copy of the
 * functions with which C++ throws exceptions: linked, these would come before
 * the compiler's own functions in programs that link vestige. If the system has
 * no libunwind, we look in the folder VST_UNWIND_BUNDLED, relative to the file
 * with this code, where a wheel has it. Without libunwind there are no native
 * frames.
 *
 * While it works, libunwind takes memory from mmap(), never from malloc(), for
 * a thread's first capture; and for a place not seen before, a lock of its own
 * with signals blocked, and the lock of dl_iterate_phdr(), which glibc holds
 * while it links a library into its lists, but not while it runs constructors
 * or looks up symbols. So a thread inside dlopen() that waits for the
 * interpreter's lock does no harm.
 *
 * A fork would copy those locks in whatever state they are. Therefore a fork
 * waits until no thread is in here; threads that come meanwhile get no native
 * frames. */
#define UNW_LOCAL_ONLY
#include "traceback/traceback.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/at_fork.h"
#include "os/os.h"

/* The wait is limited, because a signal handler may fork after it interrupted a
 * thread that is in here. */
enum { FORK_WAITS_MAX = 100000 };

int (*vst__native_backtrace)(void **addresses, int max);
VST_AT_FORK atomic_uint vst__native_inside;
VST_AT_FORK atomic_bool vst__native_is_forking;

static void native_before_fork(void)
{
    atomic_store(&vst__native_is_forking, true);
    for (int i = 0; i < FORK_WAITS_MAX && atomic_load(&vst__native_inside) != 0;
         i++)
        sched_yield();
}

static void native_after_fork(void)
{
    atomic_store(&vst__native_is_forking, false);
}

static void native_after_fork_in_child(void)
{
    atomic_store(&vst__native_inside, 0);
    atomic_store(&vst__native_is_forking, false);
}

#ifdef VST_UNWIND_BUNDLED
static void *load_bundled(void)
{
    char path[PATH_MAX];
    const char *slash;
    Dl_info here;

    if (dladdr(&vst__native_inside, &here) == 0 || here.dli_fname == NULL ||
        (slash = strrchr(here.dli_fname, '/')) == NULL ||
        snprintf(path, sizeof path, "%.*s/" VST_UNWIND_BUNDLED,
                 (int)(slash - here.dli_fname), here.dli_fname) >= PATH_MAX)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
#else
static void *load_bundled(void)
{
    return NULL;
}
#endif

/* Loads libunwind before the first capture, because loading must not happen
 * with a lock held. */
__attribute__((constructor)) static void load(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (library == NULL)
        library = load_bundled();
    symbol = library != NULL ? dlsym(library, "unw_backtrace") : NULL;
    memcpy(&vst__native_backtrace, &symbol, sizeof symbol);
    vst__os_fork_hooks(native_before_fork, native_after_fork,
                       native_after_fork_in_child);
}

size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max)
{
    size_t first = 0;
    size_t count = vst__native_walk(from, addresses, max, &first);

    memmove(addresses, addresses + first, count * sizeof *addresses);
    return count;
}

bool vst_traceback_has_native(void)
{
    return vst__native_backtrace != NULL;
}
