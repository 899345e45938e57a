/* Records waits for the language's own lock (CPython's GIL), or, in a language
 * without one, for locks of its objects and for the end of a pause of all
 * threads. A language's extension says where its lock is. */
#ifndef VST_RECORD_LANGUAGE_LOCK_H
#define VST_RECORD_LANGUAGE_LOCK_H

#include <vestige/record.h>

/* A lock for which threads wait by pthread_cond_timedwait, again and again
 * until the lock is free. A thread that was made to give the lock away may also
 * wait by pthread_cond_wait until another thread has the lock. */
typedef struct vst_lock {
    const void *condition; /* condition of the timed waits */
    /* condition of the other waits; NULL: there are none */
    const void *given_condition;
    /* Guarded by the lock's mutex: is_held points to 0 if the lock is free;
     * holder points to the key of the thread that holds the lock, or was the
     * last to hold it. */
    const int *is_held;
    const uintptr_t *holder;
    /* For many locks, on which threads wait by semaphores of their own, instead
     * of the fields above: returns what the calling thread waits for when it is
     * about to wait on this semaphore; VST_WAIT_NONE if the wait is not to be
     * recorded. */
    vst_wait_reason (*parked_for)(const void *semaphore);
} vst_lock;

/* Sets the key under which a thread of the recording holds the lock; handle is
 * the thread's vst_thread_handle(). The key is only compared, never
 * dereferenced. */
void vst__recording_key_thread(vst_recording *recording, uint64_t handle,
                               uintptr_t key);

/* Puts hooks into the library or program that contains this address: it then
 * calls ours instead of the two functions. Returns VST_E_UNSUPPORTED if it
 * calls the functions in another way. One thread at a time. */
vst_status vst__lock_hook(const void *address);
void vst__lock_unhook(void);
/* Finds the lock's condition: while the hooks are in place, the timed waits of
 * the calling thread store their condition here, with release. NULL ends this.
 */
void vst__lock_learn(const void **condition);
/* Like vst__lock_hook, for locks with parked_for: the library then calls ours
 * for sem_wait, sem_clockwait and sem_timedwait, and vst__lock_learn gets the
 * semaphore. */
vst_status vst__parking_hook(const void *address);
void vst__parking_unhook(void);
/* Records waits for this lock from now on, while the hooks are in place and a
 * recording with switches is in progress. NULL ends this: when the function
 * returns, no thread is about to record a wait. */
void vst__lock_watch(const vst_lock *lock);

#endif
