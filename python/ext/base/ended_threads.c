/* Threads of ours that have ended. */
#include "vpy.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

void vpy_wait_until_gone(long thread_id)
{
    const struct timespec moment = {0, 100000};
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%ld", thread_id);
    for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++)
        nanosleep(&moment, NULL);
}
