/* Recording waits for the language's own lock (CPython's GIL), or, where there
 * is none, for locks of its objects and for the end of a pause of all threads.
 * A language's extension says where its lock is. */
#ifndef VST_RECORD_LANGUAGE_LOCK_H
#define VST_RECORD_LANGUAGE_LOCK_H

#include <vestige/record.h>

/* A lock that threads wait for by pthread_cond_timedwait, again and again until
 * nobody holds it. A thread that is made to give it away may also wait by
 * pthread_cond_wait until another one has it. */
typedef struct vst_lock {
    const void *condition;       /* of the timed waits */
    const void *given_condition; /* of the others; NULL: there are none */
    /* Guarded by the lock's mutex: 0, if nobody holds it, and the key of the
     * thread that holds it or was the last to do so. */
    const int *is_held;
    const uintptr_t *holder;
    /* Instead of all that, for many locks, on which threads wait by semaphores
     * of their own: what the calling thread waits for that is about to wait on
     * this one, VST_WAIT_NONE for what is not to be recorded. */
    vst_wait_reason (*parked_for)(const void *semaphore);
} vst_lock;

/* Says under what key a thread of the recording, which has this handle
 * (vst_thread_handle() there), holds the lock. It is never looked into. */
void vst__recording_key_thread(vst_recording *recording, uint64_t handle,
                               uintptr_t key);

/* Puts hooks into the library, or program, that has this address: it then calls
 * ours for the two functions. VST_E_UNSUPPORTED: it calls them otherwise. One
 * thread at a time. */
vst_status vst__lock_hook(const void *address);
void vst__lock_unhook(void);
/* Learns where the condition is: the timed waits of the calling thread store
 * theirs here, with release, while the hooks are in. NULL ends it. */
void vst__lock_learn(const void **condition);
/* The same for locks with parked_for: the library then calls ours for sem_wait,
 * sem_clockwait and sem_timedwait, and what is learned is the semaphore. */
vst_status vst__parking_hook(const void *address);
void vst__parking_unhook(void);
/* Records waits for this lock from now on, while the hooks are in and a
 * recording with switches goes on; NULL: not any more, and no thread is about
 * to record one when this returns. */
void vst__lock_watch(const vst_lock *lock);

#endif
