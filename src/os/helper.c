/* Threads of our own, which work for a recording. */
#include "os/os.h"

#include <errno.h>
#include <signal.h>

enum { STACK_SIZE = 512 * 1024 };

/* Blocks all signals but SIGBUS, because signals are for the program. SIGBUS
 * reports that a file was cut, and ends a process that blocks it. */
static void block_signals(sigset_t *before)
{
    sigset_t most;

    sigfillset(&most);
    sigdelset(&most, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &most, before);
}

int vst__os_helper_start(pthread_t *helper, const char *name,
                         void *(*fn)(void *arg), void *arg)
{
    sigset_t before;
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);

    if (failed != 0)
        return failed;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    block_signals(&before);
    failed = pthread_create(helper, &attributes, fn, arg);
    if (failed == EINVAL) /* the program has much thread-local data */
        failed = pthread_create(helper, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed == 0)
        pthread_setname_np(*helper, name);
    return failed;
}
