/* Native frames by libunwind, which remembers how each place was unwound, by
 * thread: a frame seen before costs a few memory accesses. Any thread, signal
 * handlers too.
 *
 * It is loaded and not linked: libunwind has a second copy of what C++ throws
 * exceptions with, and linking it would put that before the compiler's own in
 * programs that link vestige. Where it is missing, there are no native frames.
 *
 * What libunwind takes while it works: memory from mmap(), never malloc(), for
 * a thread's first capture; for a place not seen before a lock of its own, with
 * signals blocked, and the lock that dl_iterate_phdr() takes, which glibc holds
 * while it links a library into its lists and not while it runs constructors
 * or looks up symbols. A thread inside of dlopen() that waits for the
 * interpreter's lock is so no danger. A fork is: it would copy those locks as
 * they are. So it waits until no thread is in here, and who comes meanwhile
 * gets no native frames. */
#define UNW_LOCAL_ONLY
#include "traceback/traceback.h"

#include <dlfcn.h>
#include <libunwind.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "os/os.h"

/* It does not wait for ever: it may be a signal handler that forks, and what
 * it interrupted that is in here. */
enum { FORK_WAITS_MAX = 100000 };

static __typeof__(&unw_backtrace) backtrace; /* constant from the start on */
static atomic_uint inside; /* threads, seq_cst with is_forking */
static atomic_bool is_forking;

static void before_fork(void)
{
    atomic_store(&is_forking, true);
    for (int i = 0; i < FORK_WAITS_MAX && atomic_load(&inside) != 0; i++)
        sched_yield();
}

static void after_fork(void)
{
    atomic_store(&is_forking, false);
}

static void after_fork_in_child(void)
{
    atomic_store(&inside, 0);
    atomic_store(&is_forking, false);
}

/* Before anybody captures: loading is nothing to do under a lock. */
__attribute__((constructor)) static void load(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "unw_backtrace") : NULL;

    memcpy(&backtrace, &symbol, sizeof backtrace);
    vst__os_fork_hooks(before_fork, after_fork, after_fork_in_child);
}

size_t vst__native_gather(const void *from, uintptr_t *addresses, size_t max)
{
    size_t count = 0, own = 0;
    int got = 0;

    if (backtrace == NULL)
        return 0;
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&is_forking))
        got = backtrace((void **)addresses, max < INT_MAX ? (int)max : INT_MAX);
    atomic_fetch_sub(&inside, 1);
    count = got > 0 ? (size_t)got : 0;
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
    return backtrace != NULL;
}
