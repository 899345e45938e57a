/* What both files of waits do to learn how the interpreter waits: a thread of
 * ours waits on purpose, and a hook of <vestige/waits.h> notes for what. */
#include "program/program.h"

#include <signal.h>
#include <time.h>

enum { LOOK_EVERY_NS = 20000, LOOK_FOR_NS = 1000000000 };

bool vpy_wait_trial_start(pthread_t *thread, void *(*wait)(void *unused))
{
    sigset_t all, before;
    bool done;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    done = pthread_create(thread, NULL, wait, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

const void *vpy_wait_trial_learn(const void **place)
{
    const struct timespec moment = {0, LOOK_EVERY_NS};
    const void *found = NULL;

    for (long i = 0; found == NULL && i < LOOK_FOR_NS / LOOK_EVERY_NS; i++) {
        nanosleep(&moment, NULL);
        found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    }
    return found;
}
