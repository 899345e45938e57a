/* Waits for the language's own lock (record/language_lock.h), and how the
 * recorder stores waits that found no room in a buffer. */
#ifndef VST_RECORD_LOCK_WAITS_H
#define VST_RECORD_LOCK_WAITS_H

#include "record/language_lock.h"
#include "record/recording.h"

/* ---- called by the owner of a writer that belongs to a recording --------- */

/* vst__lock_waits_join: the calling thread joins a recording that may have
 * waits, and can keep more waits from here on. vst__lock_waits_leave: the
 * thread ends. Call both with the recorder's lock held. */
void vst__lock_waits_join(vst__writer *writer);
void vst__lock_waits_leave(vst__writer *writer);
/* Returns how many words the kept waits of the calling thread take; 0 if there
 * are none. */
size_t vst__lock_waits_kept(void);
/* Stores the kept waits; the caller has made room. */
void vst__lock_waits_store(vst__writer *writer);

/* Call when the recording ends and no hook records any more. Stores the waits
 * that another thread has kept, and its wait in progress up to now. With the
 * recorder's lock held. Not for a free-running thread, which may be recording
 * at this moment. */
void vst__lock_waits_end(vst__writer *writer, vst_ticks now);

void vst__lock_waits_after_fork(void); /* call in the child */

/* ---- for parked_waits.c -------------------------------------------------- */

/* Call before and after a wait on a semaphore. Returns NULL if the wait is not
 * recorded; do not call vst__parked_end then. */
const vst_lock *vst__parked_begin(const void *semaphore);
void vst__parked_end(const vst_lock *lock);
const void **vst__waits_learn(void); /* see vst__lock_learn */

/* ---- thread_numbers.c ---------------------------------------------------- */

/* Keep the numbers of threads by their keys, for readers that cannot take the
 * recorder's lock. Call the next three functions with the lock held. */
void vst__thread_numbers_clear(void);
void vst__thread_numbers_add(uintptr_t key, uint32_t number);
void vst__thread_numbers_remove(const vst_recording *recording,
                                uint32_t number);
/* Any thread, in any state. Returns 0 if the number is not known. */
uint32_t vst__thread_number(uintptr_t key);

#endif
