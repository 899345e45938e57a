/* Waits for the language's own lock: <vestige/waits.h>, and what the recorder
 * does for waits that found no room. */
#ifndef VST_RECORD_LOCK_WAITS_H
#define VST_RECORD_LOCK_WAITS_H

#include <vestige/waits.h>

#include "record/recording.h"

/* ---- by the owner of a writer, which belongs to a recording ---------------
 */

/* The calling thread joins a recording that may have waits; it may keep more
 * from here on. And it ends. */
void vst__lock_waits_join(void);
void vst__lock_waits_leave(void);
/* How many words the waits take that the calling thread has kept, 0 if none. */
size_t vst__lock_waits_kept(void);
/* Stores them; there is room. */
void vst__lock_waits_store(vst__writer *writer);

void vst__lock_waits_after_fork(void); /* in the child */

/* ---- thread_numbers.c ----------------------------------------------------
 */

/* The numbers of threads, by their keys, for readers that cannot take the
 * recorder's lock. These three with the lock held. */
void vst__thread_numbers_clear(void);
void vst__thread_numbers_add(uintptr_t key, uint32_t number);
void vst__thread_numbers_remove(const vst_recording *recording,
                                uint32_t number);
/* Any thread, inside of anything; 0: not known. */
uint32_t vst__thread_number(uintptr_t key);

#endif
