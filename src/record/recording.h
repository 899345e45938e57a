/* The recording in progress, which session.c drives and buffer.c writes into.
 * vst__recorder_lock guards everything here. */
#ifndef VST_RECORD_RECORDING_H
#define VST_RECORD_RECORDING_H

#include <pthread.h>
#include <stdbool.h>

#include <vestige/memory.h>
#include <vestige/record.h>
#include <vestige/tracer.h>

#include "base/fold.h"
#include "base/intern.h"
#include "base/provider.h"
#include "record/devices.h"
#include "record/language.h"
#include "record/scope.h"

typedef struct vst__thread vst__thread;

/* A thread's buffer, and the fields that the slow path needs. The first member
 * and `lost` belong to the owner; the lock guards the others. */
typedef struct vst__writer {
    /* begins a cache line: no other thread writes in that line */
    vst_buffer hot;
    /* For records of memory, used by the owner alone: the epoch of the
     * recording that this writer is ready for, as a free-running thread; and
     * VST_RECENT_PLACES addresses, NULL until the first record. */
    uint64_t memory_epoch;
    uint64_t *recent;
    /* used by the owner alone; NULL if every call is recorded */
    vst__scope *scope;
    struct vst__thread_waits *waits; /* see lock_waits.c; may be NULL */
    /* where the writer's words in the chunk begin */
    uint64_t *first;
    /* time of the writer's last word in the previous chunk */
    vst_ticks left_at;
    uint64_t *end; /* end of the chunk's words */
    /* See vst__recording_set_pace: words between two counts (0: never), and the
     * first word that was not counted. */
    size_t pace_words;
    const uint64_t *uncounted;
    vst_chunk chunk;   /* words == NULL if the writer has no chunk */
    uint32_t segments; /* number of segments in the chunk */
    uint32_t number;   /* number of the thread in the trace */
    size_t next_words; /* how many words the next chunk should have */
    /* records that were not kept; atomic, relaxed: a plain count */
    uint64_t lost;
    /* the thread whose words the writer stores; NULL if unknown */
    vst__thread *thread;
    /* may be writing although the tracer stopped; stays true once it is true */
    bool free_running;
    uint64_t left_out_written; /* how many of hot.left_out the provider knows */
    /* the run's first word in the chunk, behind the checkpoint; NULL if the
     * recording has no checkpoints */
    uint64_t *run;
    /* Used while the writer has no chunk, by the owner alone: */
    /* time of the record for which the thread joins a recording; 0 if not
     * known */
    vst_ticks joins_at;
    /* whether the writer asks for a chunk again, because a chunk may become
     * free later */
    bool asks_again;
    /* after how many records the writer asks for a chunk */
    uint32_t asks_in;
    /* value of `lost` when the writer lost its chunk */
    uint64_t lost_before;
    /* the recording that the writer is linked into; may be NULL */
    vst_recording *recording;
    /* the ended recording whose chunk the writer still has; may be NULL */
    vst_recording *left;
    struct vst__writer *next, *previous;
    void *block; /* the allocated block that contains this writer */
} vst__writer;

/* The unused part of a chunk, left by a thread that ended. */
typedef struct vst__spare {
    vst_chunk chunk;
    uint64_t *cursor;
    uint32_t segments;
    size_t next_words;
    struct vst__spare *next;
} vst__spare;

/* A thread of the traced program that has a number. With checkpoints, every run
 * of its words (in a chunk, or in the unused part of a chunk) begins with the
 * calls that the words before left open. */
struct vst__thread {
    uint64_t handle;
    uint64_t system_tid;
    /* as the thread itself read it; 0 until the thread has recorded */
    uint64_t own_tid;
    uint32_t number;
    vst__fold fold; /* folds the runs that the thread has left */
    uint64_t runs;  /* number of runs in this window */
    /* words in the runs that the thread has left, without checkpoints */
    uint64_t words;
    /* calls left out, as counted by writers that let go of the thread */
    uint64_t left_out;
    /* place of the chunk with the thread's last run; 0 if none */
    uint64_t place;
    uint32_t sequence; /* sequence number of that chunk */
    bool writes;       /* has a writer; nobody reuses its chunk */
    /* the thread's last run was dropped while the thread is in a call */
    bool gone;
    bool is_refused;          /* the system refused to report its switches */
    struct vst__watch *watch; /* watches its switches; may be NULL */
    /* the calls it was in when the recording began, until the thread records;
     * may be NULL */
    vst__scope *scope;
    struct vst__thread *next;
};

/* The switches of threads, see switches.h. */
typedef struct vst__switches {
    bool wanted; /* constant while recording */
    struct vst__watch *watches;
    size_t count; /* number of watches */
    /* writer of VST_THREAD_SWITCHES, which has no owner */
    vst__writer writer;
    uint64_t threads;     /* threads that should have been watched */
    uint64_t refused;     /* how many of these the system refused */
    int error;            /* reason of the first refusal */
    uint64_t written_ns;  /* the last time that was written */
    bool has_written;     /* something was written since then */
    uint64_t interval_ns; /* until the time is written again */
    uint32_t pid;         /* process whose threads are watched */
} vst__switches;

/* The stacks that have a number: 1 + the stack's index among the keys. */
typedef struct vst__stacks {
    struct vst__stack_key *keys;
    size_t count, capacity;
    uint32_t *slots; /* numbers, by hash; 0 if the slot is empty */
    size_t slot_count;
} vst__stacks;

struct vst_recording {
    const vst_chunk_provider *provider;
    uint32_t forks; /* shows whether this process made the recording */
    vst__intern *definitions;
    vst_id last_id;
    uint32_t last_thread;
    vst__thread *threads; /* threads that are alive, newest first */
    vst__writer *writers; /* writers with a buffer in this recording */
    vst__writer *leavers; /* linked by `next`, see leavers.c */
    /* unused parts of chunks, for the next thread that needs a chunk */
    vst__spare *spares;
    size_t spare_count;
    bool is_repeating; /* writer_repeat_calls (writer.c) is running */
    bool has_gone;     /* at least one thread has `gone` set */
    /* each run begins with a checkpoint; constant while recording */
    bool checkpoints;
    /* calls that took less are left out; constant while recording */
    vst_ticks shortest;
    /* decides which calls are recorded; constant while recording */
    vst__scope_options scope;
    uint64_t lost; /* records lost by writers that were freed */
    vst__stacks stacks;
    uint32_t last_module;
    /* How long getting fresh chunks took, and how many words these had room
     * for. */
    uint64_t chunk_ns, chunk_words;
    bool has_memory; /* the trace's metadata says that it has memory */
    vst__switches switches;
    vst__devices devices;
    char *key; /* scratch memory of vst_recording_define_id */
    size_t key_size;
    /* Passed to the functions that make tracers; set before the first start. */
    vst_tracer_context tracer_context, memory_tracer_context;
    void (*attention)(void *ctx);
    void *attention_ctx;
    vst_pace pace;   /* constant while threads record */
    vst_lines lines; /* constant while threads record */
    vst_ticks lines_interval;
    /* See vst__recording_set_hold; may be NULL. */
    void (*hold_threads)(bool begins);
};

/* Has a cache line of its own, because others write there while a thread
 * waits. */
typedef struct VST_OWN_LINE vst__recorder_mutex {
    pthread_mutex_t mutex;
} vst__recorder_mutex;

extern vst__recorder_mutex vst__recorder_lock;

/* A thread that holds the lock counts as inside vestige: allocations of a
 * signal handler meanwhile are not recorded, because recording them would take
 * the lock again. */
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

/* True while the calling thread is in fork() and holds the lock: other
 * libraries' handlers that allocate now must not wait for the lock. */
extern VST_THREAD_LOCAL bool vst__is_forking VST_TLS_MODEL;

#define VST_EPOCH_NONE UINT64_MAX /* limit of a buffer that is not ready */
#define VST_BUFFER_NONE {.epoch = VST_EPOCH_NONE, .free_epoch = VST_EPOCH_NONE}

/* Makes the writer join the recording again before its next record. */
static inline void vst__writer_unready(vst__writer *writer)
{
    writer->hot.epoch = writer->hot.free_epoch = VST_EPOCH_NONE;
    writer->memory_epoch = VST_EPOCH_NONE;
}

vst_status vst__recording_create(const vst_chunk_provider *provider,
                                 vst_recording **recording);
void vst__recording_destroy(vst_recording *recording);
/* Returns VST_E_BUSY if another recording is in progress. */
vst_status vst__recording_start(vst_recording *recording);
void vst__recording_stop(vst_recording *recording);
uint64_t vst__recording_lost(vst_recording *recording);
bool vst__recording_is_any(void); /* whether a recording is in progress */
/* Makes every thread that records take the slow path, because its chunk may be
 * gone. Any thread, with or without the lock, even inside a signal handler. */
void vst__recording_chunks_are_gone(void);

/* ---- with the lock held -------------------------------------------------- */

/* Returns the thread with this handle; makes it if there is none or if it
 * ended. Returns NULL if memory runs out. system_tid may be 0 if unknown. */
vst__thread *vst__recording_thread(vst_recording *recording, uint64_t handle,
                                   uint64_t system_tid);
vst_status vst__recording_define(vst_recording *recording,
                                 const vst_definition *definition, vst_id *id);
void vst__recording_forget_thread(vst_recording *recording, uint64_t handle);
/* open_calls.c: call before the first record of a window. Also gives a writer
 * that joins its scope. Returns false if memory runs out. */
void vst__recording_begin_scopes(vst_recording *recording);
/* Records the calls that the writer's owner is in now. */
void vst__record_open_calls(vst__writer *writer, const vst_id *ids,
                            size_t count);
bool vst__writer_begin_scope(vst__writer *writer, vst_recording *recording,
                             vst__thread *thread);
void vst__recording_define_thread(vst_recording *recording,
                                  const vst__thread *thread, const char *name,
                                  size_t name_len);

/* Returns whether this process made the recording. */
bool vst__recording_is_ours(const vst_recording *recording);
void vst__stacks_free(vst__stacks *stacks);

/* ---- buffer.c; on the calling thread's buffer ---------------------------- */

void vst__record_escape(vst_escape type, const uint64_t *payload,
                        uint32_t words);
/* Stores the escape directly behind the previous record, with that record's
 * time; reads no clock. */
void vst__record_behind(vst_escape type, const uint64_t *payload,
                        uint32_t words);
/* Stores an enter or exit that the thread's scope has accepted. */
void vst__record_taken(vst_kind kind, vst_id id, vst_ticks now);

/* ---- writer.c; with the lock held ---------------------------------------- */

/* Links a writer into the recording and gives it a chunk. Returns false if
 * there is no chunk. */
bool vst__writer_attach(vst__writer *writer, vst_recording *recording);
/* Takes the chunk away (seals it, or keeps it for the next thread) and unlinks
 * the writer. */
void vst__writer_detach(vst__writer *writer, bool keep_for_others);
/* Leaves the chunk; its records stay in the file. */
void vst__writer_abandon(vst__writer *writer);
/* Seals the writer's chunk for good if the provider's chunks are gone. Called
 * by the owner. */
void vst__writer_leave_what_is_gone(vst__writer *writer);
/* Seals the chunk and takes another, with room for an escape of `need` words,
 * including its TIME escape. The writer may end up without a chunk. */
void vst__writer_change_chunk(vst__writer *writer, size_t need);
void vst__writer_change_chunk_timed(vst__writer *writer, size_t words);
/* Takes a chunk if the writer has none and one is free now. */
void vst__writer_ask_again(vst__writer *writer, size_t need);
/* Allows plain records to fill the chunk again, after something asked for the
 * slow path. Called by the owner. */
void vst__writer_set_limit(vst__writer *writer);
/* Returns whether an escape of `words` words, including its TIME escape, fits.
 * Called by the owner. */
bool vst__writer_has_room(const vst__writer *writer, size_t words);
void vst__spares_seal(vst_recording *recording);
void vst__spares_abandon(vst_recording *recording);

/* ---- leavers.c ----------------------------------------------------------- */

/* Call with the lock held when the recording has stopped. Takes out the
 * remaining writers; each gives its chunk back later. */
void vst__recording_begin_leaving(vst_recording *recording);
/* Call with the lock held, from the owner: seals the chunk if its recording
 * still exists, else releases the chunk. */
void vst__writer_give_back(vst__writer *writer);
/* Call without the lock, before the provider is finished: from then on no chunk
 * of the recording is sealed. */
void vst__recording_forget_leavers(vst_recording *recording);

/* ---- words.c; by the owner ----------------------------------------------- */

/* Make room before calling these. */
void vst__writer_word(vst__writer *writer, vst_kind kind, vst_id id,
                      vst_ticks now);
void vst__writer_escape(vst__writer *writer, vst_escape type,
                        const uint64_t *payload, uint32_t words);
/* Stores a complete word and its payload at the time `now`. */
void vst__writer_fixed(vst__writer *writer, uint64_t word,
                       const uint64_t *payload, vst_ticks now);
/* Call with the lock held, because the function may change chunks. */
void vst__writer_stack(vst__writer *writer, const vst_id *ids, size_t count);
void vst__writer_count_lost(vst__writer *writer);

/* ---- pace.c; by the owner ------------------------------------------------ */

/* Keeps the buffer's limit near if the thread's words are counted. */
static inline void vst__writer_limit_pace(vst__writer *writer)
{
    vst_buffer *hot = &writer->hot;

    if (writer->pace_words != 0 &&
        hot->limit - hot->cursor > (ptrdiff_t)writer->pace_words)
        hot->limit = hot->cursor + writer->pace_words;
}

/* Call when the writer has joined its recording. */
void vst__writer_begin_pace(vst__writer *writer);
/* Call before storing a record stamped *now; may move *now forward. Returns
 * false if the writer's recording has ended. */
bool vst__writer_count_pace(vst__writer *writer, vst_kind kind, vst_id id,
                            vst_ticks *now);

/* ---- lines.c; by the owner ----------------------------------------------- */

/* Call before storing a record stamped *now when the writer's record is due;
 * may move *now forward. The recording may end meanwhile. */
void vst__writer_look(vst__writer *writer, vst_kind kind, vst_ticks *now);

/* ---- left_out.c; called with the lock held, while no hook records -------- */

/* Writes and resets the count of calls that a writer left out. The writer must
 * belong to a recording. */
void vst__writer_write_left_out(vst__writer *writer);

/* ---- buffer.c; by the owner ---------------------------------------------- */

/* Returns the calling thread's writer, with room for an escape of memory with
 * `words` payload words. Returns NULL if nothing is recorded, or if the record
 * is lost and counted. */
vst__writer *vst__writer_for_memory(size_t words);

#endif
