/* The recording in progress, as session.c drives it and buffer.c writes into
 * it. Everything here is guarded by vst__recorder_lock. */
#ifndef VST_RECORD_RECORDING_H
#define VST_RECORD_RECORDING_H

#include <pthread.h>
#include <stdbool.h>

#include <vestige/budget.h>
#include <vestige/memory.h>
#include <vestige/record.h>
#include <vestige/tracer.h>

#include "base/fold.h"
#include "base/intern.h"
#include "base/provider.h"
#include "record/devices.h"
#include "record/scope.h"

typedef struct vst__thread vst__thread;

/* A thread's buffer and what the slow path needs beside it. The first member
 * and `lost` belong to the owner; the rest is guarded by the lock. */
typedef struct vst__writer {
    vst_buffer hot; /* begins a cache line: no other thread writes there */
    /* Of records of memory, the owner's own: the recording it is ready for, as
     * a free-running thread; VST_RECENT_PLACES addresses, NULL until then. */
    uint64_t memory_epoch;
    uint64_t *recent;
    vst__scope *scope; /* the owner's own; NULL: every call is recorded */
    struct vst__thread_waits *waits; /* see lock_waits.c; NULL: none */
    uint64_t *first;                 /* where its words in the chunk begin */
    vst_ticks left_at; /* time of its last word in the chunk before */
    uint64_t *end;     /* behind the last word of the chunk */
    /* See vst_recording_set_pace: after how many words, 0: never, and the first
     * one that was not counted. */
    size_t pace_words;
    const uint64_t *uncounted;
    vst_chunk chunk;     /* words == NULL: none */
    uint32_t segments;   /* in the chunk */
    uint32_t number;     /* of the thread, in the trace */
    size_t next_words;   /* how large the next chunk shall be */
    uint64_t lost;       /* records not kept; atomic, relaxed: a plain count */
    vst__thread *thread; /* whose words it writes, NULL: unknown */
    bool free_running;   /* may be writing although the tracer stopped; once
                          * true it stays so */
    uint64_t left_out_told; /* of hot.left_out, how many the provider knows */
    uint64_t *run; /* its first word in the chunk, behind the checkpoint;
                    * NULL where there are no checkpoints */
    /* Without a chunk, the owner's own: */
    vst_ticks joins_at;       /* when the record was made that it joins a
                               * recording for; 0: not known */
    bool asks_again;          /* there may be one later */
    uint32_t asks_in;         /* so many records later */
    uint64_t lost_before;     /* what `lost` was when it had none */
    vst_recording *recording; /* the recording it is linked into, NULL: none */
    vst_recording *left;      /* the one whose chunk it still has, NULL: none */
    struct vst__writer *next, *previous;
    void *block; /* what it lies in */
} vst__writer;

/* What a thread that ended left of its chunk. */
typedef struct vst__spare {
    vst_chunk chunk;
    uint64_t *cursor;
    uint32_t segments;
    size_t next_words;
    struct vst__spare *next;
} vst__spare;

/* A thread of the traced program that has a number. With checkpoints, every run
 * of its words (in a chunk, or the rest of one) begins with what the words
 * before left open. */
struct vst__thread {
    uint64_t handle;
    uint64_t system_tid;
    uint64_t own_tid; /* as the thread itself found it; 0: did not record yet */
    uint32_t number;
    vst__fold fold;    /* of the runs it has left */
    uint64_t runs;     /* so far, in this window */
    uint64_t words;    /* in the runs it has left, without checkpoints */
    uint64_t left_out; /* calls, of writers that let go of it */
    uint64_t place;    /* of the chunk with its last run, 0: none */
    uint32_t sequence; /* of that chunk */
    bool writes;       /* has a writer, whose chunk nobody reuses */
    bool gone;         /* its last run was dropped, and it is in a call */
    bool is_refused;   /* the system does not tell of its switches */
    struct vst__watch *watch; /* of its switches; NULL: it is not watched */
    vst__scope *scope; /* with the calls it was in when the recording began,
                        * until it records; NULL: there is none */
    struct vst__thread *next;
};

/* What is told of the switches of threads, see switches.h. */
typedef struct vst__switches {
    bool wanted; /* constant while recording */
    struct vst__watch *watches;
    size_t count;         /* of them */
    vst__writer writer;   /* of VST_THREAD_SWITCHES; nobody owns it */
    uint64_t threads;     /* that were to be watched */
    uint64_t refused;     /* of those, not to be had */
    int error;            /* why, of the first one */
    uint64_t told_ns;     /* the last time that was told */
    bool has_told;        /* something since then */
    uint64_t interval_ns; /* until it is told again */
    uint32_t pid;         /* of the process whose threads are watched */
} vst__switches;

/* The stacks that have a number: a stack's is 1 + its index among keys. */
typedef struct vst__stacks {
    struct vst__stack_key *keys;
    size_t count, capacity;
    uint32_t *slots; /* numbers, by hash; 0: empty */
    size_t slot_count;
} vst__stacks;

struct vst_recording {
    const vst_chunk_provider *provider;
    uint32_t forks; /* tells whether this is the process that made it */
    vst__intern *definitions;
    vst_id last_id;
    uint32_t last_thread;
    vst__thread *threads; /* alive, newest first */
    vst__writer *writers; /* with a buffer in this recording */
    vst__writer *leavers; /* linked by `next`, see leavers.c */
    vst__spare *spares;   /* chunks for the next thread that comes */
    size_t spare_count;
    bool tells_again;   /* see tell_again in writer.c */
    bool has_gone;      /* threads that are gone */
    bool checkpoints;   /* a run begins with one; constant while recording */
    vst_ticks shortest; /* calls that took less are left out; the same */
    vst__scope_options scope; /* which calls are recorded; the same */
    uint64_t lost;            /* so far, of writers that are gone */
    vst__stacks stacks;
    uint32_t last_module;
    /* What fresh chunks took, and how many words they had room for. */
    uint64_t chunk_ns, chunk_words;
    bool has_memory; /* the trace says so */
    vst__switches switches;
    vst__devices devices;
    char *key; /* scratch for vst_recording_define_id */
    size_t key_size;
    /* Given to the functions that make tracers; set before the first start. */
    vst_tracer_context tracer_context, memory_tracer_context;
    void (*attention)(void *ctx);
    void *attention_ctx;
    vst_pace pace; /* constant while threads record */
    /* See vst_recording_set_hold; NULL: none. */
    void (*hold_threads)(bool begins);
};

/* In a cache line of its own: others write there while somebody waits. */
typedef struct VST_OWN_LINE vst__recorder_mutex {
    pthread_mutex_t mutex;
} vst__recorder_mutex;

extern vst__recorder_mutex vst__recorder_lock;

/* A thread that holds the lock counts as inside vestige: what a signal handler
 * allocates meanwhile is not recorded, because recording would take the lock
 * again. */
static inline void vst__recorder_take(void)
{
    vst_memory_enter();
    pthread_mutex_lock(&vst__recorder_lock.mutex);
}

static inline void vst__recorder_give(void)
{
    pthread_mutex_unlock(&vst__recorder_lock.mutex);
    vst_memory_leave();
}

extern vst_recording *vst__recording_now; /* NULL while nothing is recorded */

/* The calling thread is in fork(), and holds the lock: handlers of others that
 * allocate now must not wait for it. */
extern VST_THREAD_LOCAL bool vst__is_forking VST_TLS_MODEL;

#define VST_EPOCH_NONE UINT64_MAX /* of a buffer that is not ready */
#define VST_BUFFER_NONE {.epoch = VST_EPOCH_NONE, .free_epoch = VST_EPOCH_NONE}

/* Before its next record it has to join the recording. */
static inline void vst__writer_unready(vst__writer *writer)
{
    writer->hot.epoch = writer->hot.free_epoch = VST_EPOCH_NONE;
    writer->memory_epoch = VST_EPOCH_NONE;
}

vst_status vst__recording_create(const vst_chunk_provider *provider,
                                 vst_recording **recording);
void vst__recording_destroy(vst_recording *recording);
/* VST_E_BUSY if another one is in progress. */
vst_status vst__recording_start(vst_recording *recording);
void vst__recording_stop(vst_recording *recording);
uint64_t vst__recording_lost(vst_recording *recording);
bool vst__recording_is_any(void); /* in progress */
/* Makes every thread that records take the slow path, because its chunk may be
 * gone. Any thread, with the lock or without, inside of a signal handler. */
void vst__recording_chunks_are_gone(void);

/* ---- with the lock held ------------------------------------------------ */

/* The thread with this handle, made if there is none, or one that ended; NULL:
 * out of memory. system_tid may be 0 if unknown. */
vst__thread *vst__recording_thread(vst_recording *recording, uint64_t handle,
                                   uint64_t system_tid);
vst_status vst__recording_define(vst_recording *recording,
                                 const vst_definition *definition, vst_id *id);
void vst__recording_forget_thread(vst_recording *recording, uint64_t handle);
/* open_calls.c: before the first record of a window; and gives a writer that
 * joins its scope. False: out of memory. */
void vst__recording_begin_scopes(vst_recording *recording);
/* Records the calls that the owner of the writer is in now. */
void vst__record_open_calls(vst__writer *writer, const vst_id *ids,
                            size_t count);
bool vst__writer_begin_scope(vst__writer *writer, vst_recording *recording,
                             vst__thread *thread);
void vst__recording_define_thread(vst_recording *recording,
                                  const vst__thread *thread, const char *name,
                                  size_t name_len);

/* Whether this is the process that made it. */
bool vst__recording_is_ours(const vst_recording *recording);
void vst__stacks_free(vst__stacks *stacks);

/* ---- buffer.c; on the calling thread's buffer ---------------------------- */

void vst__record_escape(vst_escape type, const uint64_t *payload,
                        uint32_t words);
/* The same, behind the record before and at the same time: no look at the
 * clock. */
void vst__record_behind(vst_escape type, const uint64_t *payload,
                        uint32_t words);
/* An enter or exit that the thread's scope takes. */
void vst__record_taken(vst_kind kind, vst_id id, vst_ticks now);

/* ---- writer.c; with the lock held --------------------------------------- */

/* Links a writer into the recording and gives it a chunk; false: there is none.
 */
bool vst__writer_attach(vst__writer *writer, vst_recording *recording);
/* Takes the chunk away, sealed or kept for the next thread, and unlinks. */
void vst__writer_detach(vst__writer *writer, bool keep_for_others);
/* Leaves the chunk; its records stay as they are in the file. */
void vst__writer_abandon(vst__writer *writer);
/* Seals the chunk for good, if the provider's chunks are gone. The owner. */
void vst__writer_leave_what_is_gone(vst__writer *writer);
/* Seals the chunk and takes another, with room for an escape of `need` words,
 * the time before it included; there may be none. */
void vst__writer_change_chunk(vst__writer *writer, size_t need);
void vst__writer_change_chunk_timed(vst__writer *writer, size_t words);
/* Takes one after there was none, if there is one now. */
void vst__writer_ask_again(vst__writer *writer, size_t need);
/* Plain records may fill the chunk again, after something asked for the slow
 * path; the owner. */
void vst__writer_set_limit(vst__writer *writer);
/* For an escape of `words` words, the time before it included; the owner. */
bool vst__writer_has_room(const vst__writer *writer, size_t words);
void vst__spares_seal(vst_recording *recording);
void vst__spares_abandon(vst_recording *recording);

/* ---- leavers.c ----------------------------------------------------------- */

/* With the lock held, when the recording has stopped: takes out the writers
 * that remain. Each gives its chunk back later. */
void vst__recording_begin_leaving(vst_recording *recording);
/* With the lock held, by the owner: seals the chunk if its recording is still
 * there, else releases it. */
void vst__writer_give_back(vst__writer *writer);
/* Without the lock. Call before the provider is finished: from then on no chunk
 * of the recording is sealed. */
void vst__recording_forget_leavers(vst_recording *recording);

/* ---- words.c; by the owner ---------------------------------------------- */

/* These need room. */
void vst__writer_word(vst__writer *writer, vst_kind kind, vst_id id,
                      vst_ticks now);
void vst__writer_escape(vst__writer *writer, vst_escape type,
                        const uint64_t *payload, uint32_t words);
/* The same, at the time `now` and with a word that says it all. */
void vst__writer_fixed(vst__writer *writer, uint64_t word,
                       const uint64_t *payload, vst_ticks now);
/* With the lock held, as it may change chunks. */
void vst__writer_stack(vst__writer *writer, const vst_id *ids, size_t count);
void vst__writer_count_lost(vst__writer *writer);

/* ---- pace.c; by the owner ------------------------------------------------ */

/* Keeps the limit near, where the words are counted. */
static inline void vst__writer_limit_pace(vst__writer *writer)
{
    vst_buffer *hot = &writer->hot;

    if (writer->pace_words != 0 &&
        hot->limit - hot->cursor > (ptrdiff_t)writer->pace_words)
        hot->limit = hot->cursor + writer->pace_words;
}

/* For a writer that has joined its recording. */
void vst__writer_begin_pace(vst__writer *writer);
/* Before a record, whose time *now is; it may become later. False: the writer's
 * recording has ended. */
bool vst__writer_tell_pace(vst__writer *writer, vst_kind kind, vst_id id,
                           vst_ticks *now);

/* ---- left_out.c; with the lock held, while no hook records --------------- */

/* Writes the count of calls that a writer left out, and resets it. The writer
 * belongs to a recording. */
void vst__writer_tell_left_out(vst__writer *writer);

/* ---- buffer.c; by the owner --------------------------------------------- */

/* The calling thread's writer, with room for an escape of `words` payload words
 * of memory's. NULL: nothing is recorded, or the record is lost and counted. */
vst__writer *vst__writer_for_memory(size_t words);

#endif
