/* Room on the C stack of the main thread.
 *
 * A call that is recorded takes more of the C stack than one that is not: the
 * interpreter goes a longer way under a profile function, and a hook or thunk
 * has a frame of its own. Up to 3.10 every call of a Python function takes C
 * stack, so a recursion that fits without us would not fit with us. The kernel
 * compares the stack with its limit only when the stack grows: it is made to
 * grow once, under a limit that is higher for that moment. It costs one page.
 *
 * Stacks of other threads have the size that they were made with. */
#include "program/program.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What recording may take more, for what a stack of this size holds without
 * us: a call takes at most a half more than it did. */
static size_t room_for(size_t size)
{
    return size / 2;
}

/* The lowest address that the calling thread's stack may grow to now. */
static uintptr_t lowest(size_t size)
{
    pthread_attr_t attributes;
    void *address = NULL;
    size_t found = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return 0;
    if (pthread_attr_getstack(&attributes, &address, &found) != 0 ||
        found > size)
        address = NULL;
    pthread_attr_destroy(&attributes);
    return (uintptr_t)address;
}

/* The kernel writes a byte: where the stack cannot grow so far, which other
 * limits and mappings may forbid, that is an error, while a write of our own
 * would end the process. */
static void grow_to(uintptr_t address)
{
    syscall(SYS_getrandom, address, 1, 0);
}

void vpy_stack_make_room(void)
{
    static bool done;
    struct rlimit limit, higher;
    uintptr_t low;

    if (done || gettid() != getpid() || getrlimit(RLIMIT_STACK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return;
    done = true;
    low = lowest(limit.rlim_cur);
    higher = limit;
    higher.rlim_cur += 2 * room_for(limit.rlim_cur);
    if (higher.rlim_max != RLIM_INFINITY && higher.rlim_cur > higher.rlim_max)
        higher.rlim_cur = higher.rlim_max;
    if (low < limit.rlim_cur || setrlimit(RLIMIT_STACK, &higher) != 0)
        return;
    grow_to(low - room_for(limit.rlim_cur));
    setrlimit(RLIMIT_STACK, &limit);
}
