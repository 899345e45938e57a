/* Records waits that the interpreter itself makes on builds without the GIL:
 * for locks of objects, and for a world that is stopped or about to stop. These
 * waits, and waits for locks of the program, "park" the thread: it sleeps on a
 * semaphore that lies on its own stack, in a structure that also has the
 * address for which it waits. record/language_lock.h has the hooks of
 * semaphores; this file finds the reason of a wait by the thread's state.
 *
 * Once in a process we check that the structure is the one that we know: a
 * thread of ours waits for a lock of ours. While no thread waits, no hook is
 * called. */
#include "program/program.h"

#include "compat_interpreter.h"

#include <stdio.h>

#if VPY_FREE_THREADED

static struct vpy_object_waits_state *const state = &vpy_program.object_waits;

enum {
    NEAR = 4096 /* bytes of stack between the hook and the structure */
};

/* Returns the address for which a semaphore's thread waits. */
static uintptr_t object_waits_address(const void *semaphore)
{
    return ((const uintptr_t *)semaphore)[-1];
}

/* Returns whether the semaphore lies on this thread's stack, unlike semaphores
 * of other locks. */
static bool is_on_stack(const void *semaphore)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return (uintptr_t)semaphore - here < NEAR;
}

/* Returns why the calling thread is about to wait. Its state does not change
 * meanwhile. */
static vst_wait_reason parked_for(const void *semaphore)
{
    const PyThreadState *tstate = PyGILState_GetThisThreadState();

    if (tstate == NULL || !is_on_stack(semaphore))
        return VST_WAIT_NONE;
    return vpy_thread_parks_for(tstate, object_waits_address(semaphore));
}

static const vst_lock locks = {.parked_for = parked_for};

static void *wait_for_lock(void *unused)
{
    (void)unused;
    vst__lock_learn(&state->learned);
    PyMutex_Lock(&state->tried);
    vst__lock_learn(NULL);
    PyMutex_Unlock(&state->tried);
    return NULL;
}

static const char *object_waits_try(void)
{
    const char *found = NULL;
    const void *seen;
    pthread_t thread;

    PyMutex_Lock(&state->tried);
    if (!vpy_wait_trial_start(&thread, wait_for_lock)) {
        PyMutex_Unlock(&state->tried);
        return "no thread could be started to find the locks of objects";
    }
    Py_BEGIN_ALLOW_THREADS;
    seen = vpy_wait_trial_learn(&state->learned);
    if (seen == NULL)
        found = "the interpreter waits for locks in an unknown way";
    else if (object_waits_address(seen) != (uintptr_t)&state->tried)
        found = "the address of a lock is not where it should be";
    PyMutex_Unlock(&state->tried);
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    return found;
}

static const vpy_waits waits = {vst__parking_hook, &locks,
                                VST_OBJECT_WAITS_METADATA};

void vpy_object_waits_prepare(void)
{
    if (state->is_tried)
        return;
    state->is_tried = true;
    state->trouble = vpy_waits_hook(vst__parking_hook) ? object_waits_try()
                                                       : VPY_WAITS_NO_HOOK;
    vst__parking_unhook();
}

void vpy_object_waits_begin(vpy_tracer *tracer)
{
    vpy_waits_begin(tracer, &waits, state->trouble);
}

void vpy_object_waits_end(void)
{
    vst__lock_watch(NULL);
    vst__parking_unhook();
}

const char *vpy_object_waits_trouble(void)
{
    return state->trouble;
}

#else

void vpy_object_waits_prepare(void)
{
}

void vpy_object_waits_begin(vpy_tracer *tracer)
{
    (void)tracer;
}

void vpy_object_waits_end(void)
{
}

const char *vpy_object_waits_trouble(void)
{
    return "there is a GIL";
}

#endif
