/* When the threads that record had a processor: each is watched from when it
 * joins the recording until it ends (src/os/perf_events.c), and what the system
 * tells of it goes to a stream of its own in the trace, VST_THREAD_SWITCHES.
 *
 * A thread of ours, the helper, reads what the system has to tell a few dozen
 * times a second. It records nothing, blocks all signals, and is there only
 * while threads are watched: it ends by itself with the last of them. It also
 * ends before a fork, because some programs look how many threads a process
 * has then. It comes back with a record that needs more room, 50 ms later or
 * more. What the system tells meanwhile is kept, as far as there is room.
 *
 * A thread that cannot be watched is counted; of what it ran nothing is
 * known. */
#ifndef VST_RECORD_SWITCHES_H
#define VST_RECORD_SWITCHES_H

#include "os/os.h"
#include "record/recording.h"

/* A thread that is watched. */
typedef struct vst__watch {
    vst__os_switch_ring ring;
    uint32_t number;   /* of the thread, in the trace */
    bool is_told;      /* its first word is in the trace */
    uint64_t last;     /* word that was told */
    uint64_t lost;     /* switches since then */
    bool has_lost;     /* some, however many */
    uint64_t since_ns; /* when it was begun to be watched */
    /* When it waited before that; waited_until_ns 0: it did not. */
    uint64_t waited_from_ns, waited_until_ns;
    uint64_t system_tid;
    uint64_t cpu_ns; /* how long it had run then; UINT64_MAX: it ran then */
    struct vst__watch *next, *previous;
} vst__watch;

/* ---- with the recorder's lock held --------------------------------------- */

/* Watches a thread of the recording, if it is not watched and shall be. */
void vst__switches_watch(vst_recording *recording, vst__thread *thread);
/* Watches the calling thread. It runs since `since` (0: since now), and waited
 * from `asked` on for the recorder's lock (0: it did not). */
void vst__switches_watch_here(vst_recording *recording, vst__thread *thread,
                              vst_ticks since, vst_ticks asked);
/* Tells the last of it. */
void vst__switches_unwatch(vst_recording *recording, vst__thread *thread);
/* Tells the last of all threads, and ends. The helper is at rest. */
void vst__switches_stop(vst_recording *recording);
/* In a forked child: the rings are not there. */
void vst__switches_forget(vst_recording *recording);
/* What the helper does: tells what is new. Returns after how many ns to do it
 * again, 0: there is nothing to watch. */
uint64_t vst__switches_tell(vst_recording *recording);

/* ---- switches_helper.c; without the lock -------------------------------- */

/* Starts the helper if there is work for it and it is not there. Not from
 * inside an allocator. */
void vst__switches_help(void);
/* Ends it, and returns when it has. */
void vst__switches_rest(void);
/* Around a fork, after the recorder's lock was taken and before it is given. */
void vst__switches_before_fork(void);
void vst__switches_after_fork(bool in_child);
/* Whether there is something to watch. */
void vst__switches_need_help(bool is_needed);

#endif
