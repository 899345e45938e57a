/* How long a thread had a processor: the switches of one window
 * (VST_ESCAPE_SWITCHES), thread by thread, as a clock that stands still while
 * the thread waits. It is asked for times that do not go back, and reads the
 * words of a thread as it gets to them. Beforehand, once a window, it notes
 * where each thread's escapes lie: 16 bytes each. One thread at a time. */
#ifndef VST_REPLAY_RUNNING_H
#define VST_REPLAY_RUNNING_H

#include <vestige/span.h>

#include "store/reader.h"

/* An escape in the file. */
typedef struct vst__running_piece {
    uint64_t place;   /* in the file, and its payload words: see running.c */
    uint32_t thread;  /* whose switches it has */
    uint32_t segment; /* of those of switches in the window */
} vst__running_piece;

/* All zero is none. */
typedef struct vst_running {
    int64_t next_ns;   /* when the next word holds, INT64_MAX: there is none */
    uint32_t next;     /* what it says: a vst_switch */
    bool runs;         /* since since_ns */
    bool is_preempted; /* the same */
    int64_t since_ns;  /* the last word */
    int64_t ran_ns;    /* until then */
    int64_t lost_ns;   /* until then, to others: it was preempted */
    int64_t known_ns;  /* all since then is known; INT64_MAX: it is not */
    int64_t until_ns;  /* nothing after this is known */

    vst_trace *trace;
    const vst__segment *segments; /* of switches, in the window */
    vst__running_piece *pieces;   /* of the window, by thread */
    size_t count, capacity;
    const vst__running_piece *piece, *end; /* of the thread: the next */
    uint64_t *words;                       /* of the last one, its thread's */
    size_t at, word_count;
    vst_status status; /* of the first that could not be read */
} vst_running;

/* In a trace that grows: how much of the switches was read, all zero is none,
 * and what was known of a thread at the last word that it had. */
typedef struct vst__running_mark {
    vst_ticks start; /* of the last segment that had some */
    uint64_t offset, words;
} vst__running_mark;

typedef struct vst__running_kept {
    bool is, runs, is_preempted;
    int64_t since_ns, known_ns;
} vst__running_kept;

/* What a thread did for a while. */
typedef enum vst__thread_state {
    VST_THREAD_UNKNOWN, /* switches were lost, or not told */
    VST_THREAD_WAITS,
    VST_THREAD_RUNS,
    VST_THREAD_PREEMPTED
} vst__thread_state;

typedef struct vst__thread_stretch {
    vst__thread_state what, next; /* what it did then, and after it */
    int64_t start_ns, end_ns;     /* INT64_MAX: the end is that of the window */
} vst__thread_stretch;

/* Calls fn for each stretch of a thread of which it is known what it did,
 * oldest first, after vst__running_collect(). */
vst_status vst__running_each(vst_running *self, uint32_t thread,
                             void (*fn)(void *ctx,
                                        const vst__thread_stretch *stretch),
                             void *ctx);

/* Notes where the switches of a window are. */
vst_status vst__running_collect(vst_running *self, vst_trace *trace,
                                const vst__window *window);
/* The same of those that are new since the mark, which moves. */
vst_status vst__running_collect_new(vst_running *self, vst_trace *trace,
                                    const vst__window *window,
                                    vst__running_mark *mark);
/* Goes on with a thread where it was kept, and keeps where it is when all of
 * its words are read. */
vst_status vst__running_resume(vst_running *self, uint32_t thread,
                               const vst__running_kept *kept);
void vst__running_keep(vst_running *self, vst__running_kept *kept);
/* Begins with a thread of it. */
vst_status vst__running_open(vst_running *self, uint32_t thread);
void vst__running_free(vst_running *self);
/* Takes the words up to this time. */
void vst__running_advance(vst_running *self, int64_t ns);

/* How long the thread had run by then; a difference of two of these is what
 * vst__running_between() checks. */
static inline int64_t vst__running_at(vst_running *self, int64_t ns)
{
    if (ns >= self->next_ns)
        vst__running_advance(self, ns);
    return self->runs && ns > self->since_ns
               ? self->ran_ns + (ns - self->since_ns)
               : self->ran_ns;
}

/* The same, of how long others had its processor. It was asked how long the
 * thread had run by then. */
static inline int64_t vst__running_lost_at(const vst_running *self, int64_t ns)
{
    return self->is_preempted && ns > self->since_ns
               ? self->lost_ns + (ns - self->since_ns)
               : self->lost_ns;
}

/* How long it ran from start_ns, when it had run ran_ns, to end_ns, or
 * VST_RUNNING_UNKNOWN. */
static inline int64_t vst__running_between(vst_running *self, int64_t start_ns,
                                           int64_t ran_ns, int64_t end_ns)
{
    int64_t now_ns = vst__running_at(self, end_ns);

    if (start_ns < self->known_ns || end_ns > self->until_ns ||
        end_ns < self->since_ns)
        return VST_RUNNING_UNKNOWN;
    return now_ns - ran_ns;
}

#endif
