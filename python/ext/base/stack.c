/* Where the C stack of a thread is. */
#include "vpy.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

static bool ask(uintptr_t *low, size_t *size)
{
    pthread_attr_t attributes;
    void *address = NULL;
    bool found;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    found = pthread_attr_getstack(&attributes, &address, size) == 0;
    pthread_attr_destroy(&attributes);
    *low = (uintptr_t)address;
    return found;
}

/* For the main thread the C library reads the list of all mappings, so what it
 * said is kept for as long as the limit stays. The main thread of a forked
 * child may have another stack. Only that thread reads and writes it. */
static struct {
    uintptr_t low;
    size_t size;
    rlim_t limit;
} of_main;

bool vpy_stack_find(uintptr_t *low, size_t *size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct rlimit limit;

    if (vpy_thread_id() != getpid() || getrlimit(RLIMIT_STACK, &limit) != 0)
        return ask(low, size);
    if (of_main.size == 0 || of_main.limit != limit.rlim_cur ||
        here - of_main.low >= of_main.size) {
        if (!ask(&of_main.low, &of_main.size))
            return false;
        of_main.limit = limit.rlim_cur;
    }
    *low = of_main.low;
    *size = of_main.size;
    return true;
}
