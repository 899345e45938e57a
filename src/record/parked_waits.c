/* The hooks of vst__parking_hook() (record/language_lock.h): the library that
 * has the language calls them in place of sem_wait and its relatives. Any
 * thread of the program, anywhere in that library; lock_waits.c stores the
 * waits. Waits of other code pass through. */
#include "record/lock_waits.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "record/slots.h"

typedef int clockwait_fn(sem_t *semaphore, clockid_t clock,
                         const struct timespec *until);

/* Constant while any hook is installed. sem_clockwait is NULL if the C library
 * has none; nobody calls its hook then. */
static struct {
    __typeof__(&sem_wait) wait;
    __typeof__(&sem_timedwait) timedwait;
    clockwait_fn *clockwait;
} real;

static const vst_lock *parked_begin(sem_t *semaphore)
{
    const void **learn = vst__waits_learn();

    if (learn != NULL)
        __atomic_store_n(learn, semaphore, __ATOMIC_RELEASE);
    return vst__parked_begin(semaphore);
}

static int parked_end(const vst_lock *lock, int result)
{
    int error = errno;

    if (lock != NULL)
        vst__parked_end(lock);
    errno = error;
    return result;
}

static int hook_wait(sem_t *semaphore)
{
    const vst_lock *lock = parked_begin(semaphore);

    return parked_end(lock, real.wait(semaphore));
}

static int hook_timedwait(sem_t *semaphore, const struct timespec *until)
{
    const vst_lock *lock = parked_begin(semaphore);

    return parked_end(lock, real.timedwait(semaphore, until));
}

static int hook_clockwait(sem_t *semaphore, clockid_t clock,
                          const struct timespec *until)
{
    const vst_lock *lock = parked_begin(semaphore);

    return parked_end(lock, real.clockwait(semaphore, clock, until));
}

enum { WAIT, TIMEDWAIT, CLOCKWAIT, HOOKS };

static vst__hook hooks[HOOKS] = {
    [WAIT] = {"sem_wait", (void *)hook_wait, NULL},
    [TIMEDWAIT] = {"sem_timedwait", (void *)hook_timedwait, NULL},
    [CLOCKWAIT] = {"sem_clockwait", (void *)hook_clockwait, NULL},
};

static vst__slots slots = {.hooks = hooks, .count = HOOKS};

vst_status vst__parking_hook(const void *address)
{
    vst__slots_find(&slots);
    if (real.wait == NULL) { /* set once: a thread may still be in a hook */
        memcpy(&real.clockwait, &hooks[CLOCKWAIT].original,
               sizeof real.clockwait);
        memcpy(&real.timedwait, &hooks[TIMEDWAIT].original,
               sizeof real.timedwait);
        memcpy(&real.wait, &hooks[WAIT].original, sizeof real.wait);
    }
    if (real.wait == NULL || real.timedwait == NULL)
        return VST_E_UNSUPPORTED;
    return vst__slots_hook(&slots, address);
}

void vst__parking_unhook(void)
{
    vst__slots_unhook(&slots);
}
