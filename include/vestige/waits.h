/* What threads wait for: waits that are recorded as they happen, which are
 * those for the language's own lock (CPython's GIL), or, where there is none,
 * for locks of its objects and for the end of a pause of all threads; and waits
 * that are known by the function that waits. */
#ifndef VESTIGE_WAITS_H
#define VESTIGE_WAITS_H

#include "record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of a WAIT escape (wire.h). */
typedef enum vst_wait_reason {
    VST_WAIT_NONE = 0,
    VST_WAIT_GIL = 1,   /* the language's own lock */
    VST_WAIT_LOCK = 2,  /* another lock, or the end of a thread */
    VST_WAIT_IO = 3,    /* input and output */
    VST_WAIT_SLEEP = 4, /* time */
    VST_WAIT_CHILD = 5, /* a child process */
    VST_WAIT_WORLD = 6, /* all threads stand still, or are to */
    VST_WAIT_OBJECT = 7 /* a lock of the language's objects */
} vst_wait_reason;

enum { VST_WAIT_REASONS = VST_WAIT_OBJECT + 1 };

/* The metadata that says whether waits for the language's lock were recorded:
 * true, or a string that says why not. */
#define VST_WAITS_METADATA "vestige.gil"
/* The same of waits for locks of objects, and for a world that stands still. */
#define VST_OBJECT_WAITS_METADATA "vestige.object_waits"

/* "gil", "lock", "io", "sleep", "child", "world", "object"; "" for none and for
 * other numbers. */
VST_API const char *vst_wait_reason_name(uint32_t reason);

/* Whether the language itself makes threads wait for it. */
static inline bool vst_wait_is_of_language(uint32_t reason)
{
    return reason == VST_WAIT_GIL || reason == VST_WAIT_WORLD ||
           reason == VST_WAIT_OBJECT;
}

/* What a function in C waits for, by its name in a trace. A function waits if
 * its thread has nothing else to do until it returns. What computes and may
 * wait a little on the way (a file object's read(), any write) does not: to
 * leave it out would hide work. */
VST_API vst_wait_reason vst_wait_reason_of(const char *name, size_t length);

/* ---- the language's own lock --------------------------------------------- */

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
VST_API void vst_recording_key_thread(vst_recording *recording, uint64_t handle,
                                      uintptr_t key);

/* Puts hooks into the library, or program, that has this address: it then calls
 * ours for the two functions. VST_E_UNSUPPORTED: it calls them otherwise. One
 * thread at a time. */
VST_API vst_status vst_lock_hook(const void *address);
VST_API void vst_lock_unhook(void);
/* Learns where the condition is: the timed waits of the calling thread store
 * theirs here, with release, while the hooks are in. NULL ends it. */
VST_API void vst_lock_learn(const void **condition);
/* The same for locks with parked_for: the library then calls ours for sem_wait,
 * sem_clockwait and sem_timedwait, and what is learned is the semaphore. */
VST_API vst_status vst_parking_hook(const void *address);
VST_API void vst_parking_unhook(void);
/* Records waits for this lock from now on, while the hooks are in and a
 * recording with switches goes on; NULL: not any more, and no thread is about
 * to record one when this returns. */
VST_API void vst_lock_watch(const vst_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
