/* Waits for the language's own lock: <vestige/waits.h>, and what the recorder
 * does for waits that found no room. */
#ifndef VST_RECORD_LOCK_WAITS_H
#define VST_RECORD_LOCK_WAITS_H

#include <vestige/waits.h>

#include "record/recording.h"

/* ---- by the owner of a writer, which belongs to a recording ------------- */

/* The calling thread joins a recording that may have waits; it may keep more
 * from here on. And it ends. With the recorder's lock held. */
void vst__lock_waits_join(vst__writer *writer);
void vst__lock_waits_leave(vst__writer *writer);
/* How many words the waits take that the calling thread has kept, 0 if none. */
size_t vst__lock_waits_kept(void);
/* Stores them; there is room. */
void vst__lock_waits_store(vst__writer *writer);

/* The recording ends, and no hook records any more: stores what another thread
 * has kept, and the wait that it is in, up to now. With the recorder's lock
 * held. A thread that may be recording on its own must not be asked for. */
void vst__lock_waits_end(vst__writer *writer, vst_ticks now);

void vst__lock_waits_after_fork(void); /* in the child */

/* ---- for parked_waits.c ------------------------------------------------- */

/* Around a wait on a semaphore. NULL: it is not recorded, and does not end. */
const vst_lock *vst__parked_begin(const void *semaphore);
void vst__parked_end(const vst_lock *lock);
const void **vst__waits_learn(void); /* see vst_lock_learn */

/* ---- thread_numbers.c --------------------------------------------------- */

/* The numbers of threads, by their keys, for readers that cannot take the
 * recorder's lock. These three with the lock held. */
void vst__thread_numbers_clear(void);
void vst__thread_numbers_add(uintptr_t key, uint32_t number);
void vst__thread_numbers_remove(const vst_recording *recording,
                                uint32_t number);
/* Any thread, inside of anything; 0: not known. */
uint32_t vst__thread_number(uintptr_t key);

#endif
