/* Records when the program's threads were running on a processor. Each thread
 * is watched from when it joins the recording until it ends
 * (src/os/perf_events.c), and its switches go to a stream of their own in the
 * trace, VST_THREAD_SWITCHES.
 *
 * A thread of vestige's own, the helper, reads the system's reports a few dozen
 * times a second. The helper records nothing, blocks all signals, and exists
 * only while threads are watched. It also ends before a fork, because some
 * programs check at that time how many threads the process has. It comes back
 * with a record that needs more room, 50 ms later or more. The system keeps its
 * reports meanwhile, as far as there is room.
 *
 * A thread that cannot be watched is counted; its running times are unknown. */
#ifndef VST_RECORD_SWITCHES_H
#define VST_RECORD_SWITCHES_H

#include "os/os.h"
#include "record/recording.h"

/* A thread that is watched. */
typedef struct vst__watch {
    vst__os_switch_ring ring;
    uint32_t number;   /* number of the thread in the trace */
    bool has_word;     /* the thread's first word is in the trace */
    uint64_t last;     /* the last word that was written */
    uint64_t lost;     /* number of switches lost since then */
    bool has_lost;     /* switches were lost, but their number is unknown */
    uint64_t since_ns; /* when watching began */
    /* When the thread waited before that; waited_until_ns is 0 if it did
     * not. */
    uint64_t waited_from_ns, waited_until_ns;
    uint64_t system_tid;
    /* how long the thread had run by then; UINT64_MAX if it was running then */
    uint64_t cpu_ns;
    struct vst__watch *next, *previous;
} vst__watch;

/* ---- with the recorder's lock held --------------------------------------- */

/* Watches a thread of the recording, unless it is watched already or should not
 * be. */
void vst__switches_watch(vst_recording *recording, vst__thread *thread);
/* Watches the calling thread, which runs since `since` (0: now) and waited for
 * the recorder's lock from `asked` on (0: it did not wait). */
void vst__switches_watch_here(vst_recording *recording, vst__thread *thread,
                              vst_ticks since, vst_ticks asked);
/* Writes the thread's last switches and stops watching it. */
void vst__switches_unwatch(vst_recording *recording, vst__thread *thread);
/* Writes the last switches of all threads, and stops watching. The helper must
 * be at rest. */
void vst__switches_stop(vst_recording *recording);
/* Call in a forked child, which does not have the rings. */
void vst__switches_forget(vst_recording *recording);
/* The helper's work: writes new switches. Returns after how many ns to call it
 * again, or 0 if no thread is watched. */
uint64_t vst__switches_write(vst_recording *recording);

/* ---- switches_helper.c; without the lock --------------------------------- */

/* Starts the helper if there is work and no helper. Not from inside an
 * allocator. */
void vst__switches_help(void);
/* Ends the helper, and returns when it has ended. */
void vst__switches_rest(void);
/* Call around a fork, after taking and before releasing the recorder's lock. */
void vst__switches_before_fork(void);
void vst__switches_after_fork(bool in_child);
/* Says whether there are threads to watch. */
void vst__switches_need_help(bool is_needed);

#endif
