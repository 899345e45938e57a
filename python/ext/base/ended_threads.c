/* Waits until a thread that vestige started has ended. */
#include "vpy.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* pthread_join may return before the kernel removes the thread from
 * /proc/self/task. Programs that count their threads there would see it. */
static void wait_until_gone(long thread_id)
{
    const struct timespec moment = {0, 100000};
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%ld", thread_id);
    for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++)
        nanosleep(&moment, NULL);
}

void vpy_join(pthread_t thread, const long *thread_id)
{
    if (vpy_is_finalizing()) {
        pthread_detach(thread);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    pthread_join(thread, NULL);
    wait_until_gone(*thread_id);
    Py_END_ALLOW_THREADS
}
