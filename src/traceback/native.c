/* Native frames by libunwind, which remembers how each place was unwound, by
 * thread: a frame seen before costs a few memory accesses. Any thread, signal
 * handlers too.
 *
 * It is loaded and not linked: libunwind has a second copy of what C++ throws
 * exceptions with, and linking it would put that before the compiler's own in
 * programs that link vestige. Where the system has none, it is looked for
 * beside the file that this code is in, where a wheel has it under
 * VST_UNWIND_BESIDE. Where it is missing there too, there are no native frames.
 *
 * What libunwind takes while it works: memory from mmap(), never malloc(), for
 * a thread's first capture; for a place not seen before a lock of its own, with
 * signals blocked, and the lock that dl_iterate_phdr() takes, which glibc holds
 * while it links a library into its lists and not while it runs constructors or
 * looks up symbols. So a thread inside of dlopen() that waits for the
 * interpreter's lock does no harm. A fork would copy those locks as they are.
 * It therefore waits until no thread is in here, and threads that come
 * meanwhile get no native frames. */
#define UNW_LOCAL_ONLY
#include "traceback/traceback.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"

/* Does not wait for ever: a signal handler may fork, and have interrupted a
 * thread that is in here. */
enum { FORK_WAITS_MAX = 100000 };

int (*vst__native_backtrace)(void **addresses, int max);
atomic_uint vst__native_inside;
atomic_bool vst__native_is_forking;

static void before_fork(void)
{
    atomic_store(&vst__native_is_forking, true);
    for (int i = 0; i < FORK_WAITS_MAX && atomic_load(&vst__native_inside) != 0;
         i++)
        sched_yield();
}

static void after_fork(void)
{
    atomic_store(&vst__native_is_forking, false);
}

static void after_fork_in_child(void)
{
    atomic_store(&vst__native_inside, 0);
    atomic_store(&vst__native_is_forking, false);
}

#ifdef VST_UNWIND_BESIDE
static void *load_beside(void)
{
    char path[PATH_MAX];
    const char *slash;
    Dl_info here;

    if (dladdr(&vst__native_inside, &here) == 0 || here.dli_fname == NULL ||
        (slash = strrchr(here.dli_fname, '/')) == NULL ||
        snprintf(path, sizeof path, "%.*s/" VST_UNWIND_BESIDE,
                 (int)(slash - here.dli_fname), here.dli_fname) >= PATH_MAX)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
#else
static void *load_beside(void)
{
    return NULL;
}
#endif

/* Loaded before the first capture: loading must not happen under a lock. */
__attribute__((constructor)) static void load(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (library == NULL)
        library = load_beside();
    symbol = library != NULL ? dlsym(library, "unw_backtrace") : NULL;
    memcpy(&vst__native_backtrace, &symbol, sizeof symbol);
    vst__os_fork_hooks(before_fork, after_fork, after_fork_in_child);
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
