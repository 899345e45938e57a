/* Shared by gil_waits.c and object_waits.c: puts hooks of
 * record/language_lock.h into the interpreter, and runs a trial that shows how
 * it waits. In the trial a thread of ours waits on purpose, and a hook notes
 * the address for which it waits. */
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

bool vpy_waits_hook(vpy_waits_hook_fn *hook)
{
    __typeof__(&PyEval_AcquireThread) function = PyEval_AcquireThread;
    const void *address;

    memcpy(&address, &function, sizeof address);
    return hook(address) == VST_OK;
}

void vpy_waits_begin(vpy_tracer *tracer, const vpy_waits *waits,
                     const char *trouble)
{
    char json[128];

    if (trouble == NULL && !vpy_waits_hook(waits->hook))
        trouble = VPY_WAITS_NO_HOOK;
    if (trouble == NULL)
        vst__lock_watch(waits->lock);
    snprintf(json, sizeof json, "\"%s\"", trouble != NULL ? trouble : "");
    vst_recording_set_metadata(tracer->recording, waits->metadata,
                               trouble == NULL ? "true" : json);
}
