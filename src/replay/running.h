/* How long a thread was running on a processor: the switches of one window
 * (VST_ESCAPE_SWITCHES), thread by thread, as a clock that stands still while
 * the thread waits. Callers ask for times in ascending order; the words of a
 * thread are read as far as needed. Before that, once for each window, it notes
 * where each thread's escapes lie, with 16 bytes each. One thread at a time. */
#ifndef VST_REPLAY_RUNNING_H
#define VST_REPLAY_RUNNING_H

#include <vestige/span.h>

#include "store/reader.h"

/* An escape in the file. */
typedef struct vst__running_piece {
    /* position of the escape in the file, and number of its payload words: see
     * running.c */
    uint64_t place;
    uint32_t thread; /* the thread whose switches it has */
    /* index of the escape's segment among the window's segments of switches */
    uint32_t segment;
} vst__running_piece;

/* All zero: no switches. */
typedef struct vst_running {
    int64_t next_ns;   /* time of the next word; INT64_MAX if there is none */
    uint32_t next;     /* the state that the next word sets: a vst_switch */
    bool runs;         /* the thread has run since since_ns */
    bool is_preempted; /* the thread was preempted at since_ns */
    int64_t since_ns;  /* time of the last word */
    int64_t ran_ns;    /* how long it had run by since_ns */
    int64_t lost_ns;   /* how long it had been preempted by since_ns */
    /* everything since then is known; INT64_MAX if nothing is */
    int64_t known_ns;
    int64_t until_ns; /* nothing after this time is known */

    vst_trace *trace;
    const vst__segment *segments; /* segments of switches in the window */
    vst__running_piece *pieces;   /* escapes of the window, by thread */
    size_t count, capacity;
    /* next escape of the thread, and their end */
    const vst__running_piece *piece, *end;
    /* the thread's words of the last escape */
    uint64_t *words;
    size_t at, word_count;
    /* the error of the first escape that could not be read */
    vst_status status;
} vst_running;

/* For a trace that grows: how much of the switches was read (all zero: none),
 * and the state of a thread at a moment. Words that were read by then may be
 * read again: they change nothing. */
typedef struct vst__running_mark {
    vst_ticks start; /* start of the last segment that had switches */
    uint64_t offset, words;
} vst__running_mark;

typedef struct vst__running_kept {
    bool is, runs, is_preempted;
    int64_t since_ns, known_ns;
    int64_t ran_ns, lost_ns; /* until since_ns */
} vst__running_kept;

/* A thread's state during a period. */
typedef enum vst__thread_state {
    VST_THREAD_UNKNOWN, /* switches were lost, or not written */
    VST_THREAD_WAITS,
    VST_THREAD_RUNS,
    VST_THREAD_PREEMPTED
} vst__thread_state;

typedef struct vst__thread_stretch {
    vst__thread_state what, next; /* state in the period, and after it */
    /* INT64_MAX: the period ends with the window */
    int64_t start_ns, end_ns;
} vst__thread_stretch;

/* Calls fn for each period of a thread whose state is known, oldest first. Call
 * after vst__running_collect(). */
vst_status vst__running_each(vst_running *self, uint32_t thread,
                             void (*fn)(void *ctx,
                                        const vst__thread_stretch *stretch),
                             void *ctx);

/* Notes where the switches of a window are. */
vst_status vst__running_collect(vst_running *self, vst_trace *trace,
                                const vst__window *window);
/* Notes the switches that are new since the mark, and moves the mark. */
vst_status vst__running_collect_new(vst_running *self, vst_trace *trace,
                                    const vst__window *window,
                                    vst__running_mark *mark);
/* Continues a thread where it was kept, and keeps its state at a time before
 * which nothing will be asked. */
vst_status vst__running_resume(vst_running *self, uint32_t thread,
                               const vst__running_kept *kept);
void vst__running_keep(vst_running *self, int64_t ns, vst__running_kept *kept);
/* Begins to read a thread of the window. */
vst_status vst__running_open(vst_running *self, uint32_t thread);
void vst__running_free(vst_running *self);
/* Takes the words up to this time. */
void vst__running_advance(vst_running *self, int64_t ns);

/* Returns how long the thread had run by then; vst__running_between() checks
 * differences of these. */
static inline int64_t vst__running_at(vst_running *self, int64_t ns)
{
    if (ns >= self->next_ns)
        vst__running_advance(self, ns);
    return self->runs && ns > self->since_ns
               ? self->ran_ns + (ns - self->since_ns)
               : self->ran_ns;
}

/* Returns how long the thread had been preempted by then. Call after
 * vst__running_at for that time. */
static inline int64_t vst__running_lost_at(const vst_running *self, int64_t ns)
{
    return self->is_preempted && ns > self->since_ns
               ? self->lost_ns + (ns - self->since_ns)
               : self->lost_ns;
}

/* Returns how long the thread ran from start_ns, when it had run ran_ns, to
 * end_ns; or VST_RUNNING_UNKNOWN. In a trace that grows, a word that comes late
 * may say that it had run less by start_ns: then it ran 0. */
static inline int64_t vst__running_between(vst_running *self, int64_t start_ns,
                                           int64_t ran_ns, int64_t end_ns)
{
    int64_t now_ns = vst__running_at(self, end_ns);

    if (start_ns < self->known_ns || end_ns > self->until_ns ||
        end_ns < self->since_ns)
        return VST_RUNNING_UNKNOWN;
    return now_ns > ran_ns ? now_ns - ran_ns : 0;
}

#endif
