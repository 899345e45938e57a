/* Recording: what a tracer calls. The record path is inline and does nothing
 * but read the clock and store one word; it returns nothing, because a hook
 * inside another program has no one to report to. Trouble is a counted loss.
 *
 * Any thread may record. Each thread writes only its own buffer. */
#ifndef VESTIGE_RECORD_H
#define VESTIGE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "clock.h"
#include "status.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a tracer's records go: the recording in progress. */
typedef struct vst_recording vst_recording;

/* ---- definitions: what an id stands for -------------------------------- */

typedef enum vst_definition_kind {
    VST_DEF_PYTHON = 1,     /* a Python function: name, file, line */
    VST_DEF_NATIVE = 2,     /* a function in C: name; file is its module */
    VST_DEF_ANNOTATION = 3, /* a span the user named */
    VST_DEF_GC = 4,         /* a garbage collection */
    VST_DEF_INSTANT = 5,
    VST_DEF_COUNTER = 6,
    VST_DEF_OPERATOR = 7, /* a framework's operator */
    VST_DEF_MODULE = 8    /* a call of a framework's module; line is the number
                           * of the module in its class */
} vst_definition_kind;

enum { VST_DEF_KINDS = VST_DEF_MODULE + 1 };

/* "python", "native", "annotation" …; "unknown" for what is no kind. */
VST_API const char *vst_definition_kind_name(vst_definition_kind kind);

/* Definitions that are not of spans. */
enum {
    /* It names nothing: spans of one thread end on another
     * (VST_ESCAPE_FAR_END). */
    VST_DEF_FAR_ENDS = 9,
    VST_DEF_ACTIVITY = 10 /* the name of what a device did, see device.h */
};

typedef struct vst_definition {
    vst_definition_kind kind;
    int32_t line; /* first line, 0 where there is none */
    /* How many leading bytes of file a display name leaves out (the search
     * path's prefix). */
    uint32_t file_skip;
    uint32_t name_len;
    uint32_t file_len;
    const char *name; /* bytes, UTF-8 by intent, not NUL-terminated */
    const char *file;
} vst_definition;

/* Gives the id of a definition, the same one for equal (kind, name, file,
 * line); a new one reaches the trace before this returns. Name and file are
 * copied. VST_E_NO_IDS, _NOMEM, _NOSPACE, _IO: *id is 0, which records nothing.
 * VST_E_STATE: in a forked child. Any thread; takes the recorder's lock. */
VST_API vst_status vst_recording_define_id(vst_recording *recording,
                                           const vst_definition *definition,
                                           vst_id *id);

/* A fact about the whole trace; json is a value, and both texts are copied. A
 * later value of the same key replaces the earlier one. VST_E_NOSPACE, _IO: it
 * is not in the trace. VST_E_STATE: in a forked child. Any thread; takes the
 * recorder's lock. */
VST_API vst_status vst_recording_set_metadata(vst_recording *recording,
                                              const char *key,
                                              const char *json);

/* ---- threads ----------------------------------------------------------- */

/* Names a thread. handle is what vst_thread_handle() returns in it;
 * system_tid may be 0 if unknown. The last name wins. */
VST_API void vst_recording_name_thread(vst_recording *recording,
                                       uint64_t handle, uint64_t system_tid,
                                       const char *name, size_t name_len);

/* Records which calls a thread is inside of as recording begins, outermost
 * first. Call it before that thread's first record, from any thread. */
VST_API void vst_recording_open_stack(vst_recording *recording, uint64_t handle,
                                      uint64_t system_tid, const vst_id *ids,
                                      size_t count);

/* In a recording with vst_session_options.only: calls of this id are recorded,
 * and what they call. Before the id's first record. */
VST_API void vst_recording_record_inside(vst_recording *recording, vst_id id);

/* Returns what the recorder knows the calling thread by, as long as it lives.
 */
VST_API uint64_t vst_thread_handle(void);

/* ---- the record path --------------------------------------------------- */

/* A thread's buffer. Every field belongs to the owning thread. */
typedef struct vst_buffer {
    uint64_t *cursor; /* the next word */
    uint64_t *limit;  /* where plain records end; a few words lie behind it */
    vst_ticks last;   /* time of the previous word */
    uint64_t epoch;   /* of the recording this buffer was made ready for */
    /* The same, for records that no tracer's stop() keeps out. */
    uint64_t free_epoch;
    vst_ticks shortest; /* a call that took less is taken back; 0: none is */
    uint64_t *floor;    /* no word from here on is a payload */
    uint64_t left_out;  /* calls that were taken back; others may read it */
    uint64_t chunks;    /* counts the chunks that it was given */
} vst_buffer;

/* For the definitions of variables that hooks read on every call: they lie
 * together, and no other thread writes anything in their cache lines. One of
 * them begins a line (VST_CACHE_LINE). */
#define VST_CACHE_LINE 64
#if defined(__GNUC__)
#define VST_READ_BY_HOOKS __attribute__((section("vst_read_by_hooks")))
#define VST_OWN_LINE __attribute__((aligned(VST_CACHE_LINE)))
#else
#define VST_READ_BY_HOOKS
#define VST_OWN_LINE
#endif

/* The number of the recording in progress, 0 while there is none. The recorder
 * changes it, with its lock held, when a recording starts or stops and when
 * every thread is to take the slow path once; a buffer whose epoch differs
 * takes the slow path. Read relaxed: a hook that still sees the old value
 * writes one more record into a buffer that is still its own (pairs with the
 * release stores in src/record/recording.c). */
VST_API extern uint64_t vst_recording_epoch;

#if defined(__GNUC__)
#define VST_TLS_MODEL __attribute__((tls_model("initial-exec")))
#define VST_LIKELY(x) __builtin_expect(!!(x), 1)
#define VST_NOINLINE __attribute__((noinline)) /* keep it out of hooks */
#define VST_COLD __attribute__((cold, noinline))
/* Lies beside the other hooks: a call then needs few pages of code. */
#define VST_HOT __attribute__((hot))
#define VST_INLINE static inline __attribute__((always_inline))
#else
#define VST_TLS_MODEL
#define VST_LIKELY(x) (x)
#define VST_NOINLINE
#define VST_COLD
#define VST_HOT
#define VST_INLINE static inline
#endif
#ifdef __cplusplus
#define VST_THREAD_LOCAL thread_local
#else
#define VST_THREAD_LOCAL _Thread_local
#endif

/* The calling thread's buffer; never NULL. The library owns it. */
VST_API extern VST_THREAD_LOCAL vst_buffer *vst_thread_buffer VST_TLS_MODEL;

/* Records where a store is not enough: the thread joins the recording, or gets
 * its next chunk. The functions below call it. */
VST_API VST_COLD void vst_record_slow(vst_kind kind, vst_id id, vst_ticks now);

/* The number of the recording in progress, as a hook sees it. */
static inline uint64_t vst_record_epoch(void)
{
#if defined(__GNUC__)
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);
#else
    return *(volatile uint64_t *)&vst_recording_epoch;
#endif
}

/* Stores a word of the file. It is one aligned 8-byte store: a reader sees the
 * word or what was there before, which is zero. Release: a reader that sees the
 * word also sees what precedes it, its payload and the definition of its id.
 * Pairs with the fence in vst__source_read (src/store/source.c). */
VST_INLINE void vst_store_word(uint64_t *at, uint64_t word)
{
#if defined(__GNUC__)
    __atomic_store_n(at, word, __ATOMIC_RELEASE);
#else
    *(volatile uint64_t *)at = word;
#endif
}

/* Of the functions below: the word, into the calling thread's buffer. False: it
 * takes more than a store, and nothing was done. */
VST_INLINE bool vst_record_word_at_once(vst_buffer *buffer, vst_kind kind,
                                        vst_id id, vst_ticks now)
{
    uint64_t delta = now - buffer->last;

    if (!VST_LIKELY(buffer->epoch == vst_record_epoch() &&
                    buffer->cursor < buffer->limit && delta >> 32 == 0))
        return false;
    buffer->last = now;
    vst_store_word(buffer->cursor++, vst_word(kind, id, (uint32_t)delta));
    return true;
}

VST_INLINE void vst_record_word(vst_buffer *buffer, vst_kind kind, vst_id id,
                                vst_ticks now)
{
    if (!VST_LIKELY(vst_record_word_at_once(buffer, kind, id, now)))
        vst_record_slow(kind, id, now);
}

/* Records by hooks that the tracer's own stop() keeps out: once it returned,
 * no thread is inside this function or will enter it. */
static inline void vst_record(vst_kind kind, vst_id id)
{
    vst_record_word(vst_thread_buffer, kind, id, vst_clock_ticks());
}

/* The same for hooks that must be small: it calls nothing where the clock is
 * an instruction. False: nothing was recorded, vst_record() does it. */
VST_INLINE bool vst_record_at_once(vst_kind kind, vst_id id)
{
    return vst_clock_is_at_hand() &&
           vst_record_word_at_once(vst_thread_buffer, kind, id,
                                   vst_clock_ticks());
}

enum { VST_LEFT_OUT_TOLD = 64 }; /* written to the trace after every so many */

/* Of the function below: for a call that may have been short. */
VST_API VST_NOINLINE void vst_record_end_of_short_call(vst_kind kind, vst_id id,
                                                       vst_ticks now);

/* The end of a call of a function, EXIT or RAISE, by the same hooks: as
 * vst_record, but where the recording leaves short calls out, one that took
 * less, and of which nothing else was recorded since, is taken back. */
VST_INLINE void vst_record_end_of_call_at(vst_kind kind, vst_id id,
                                          vst_ticks now)
{
    vst_buffer *buffer = vst_thread_buffer;

    if (VST_LIKELY(now - buffer->last >= buffer->shortest))
        vst_record_word(buffer, kind, id, now);
    else
        vst_record_end_of_short_call(kind, id, now);
}

VST_INLINE void vst_record_end_of_call(vst_kind kind, vst_id id)
{
    /* The clock first: no register waits for it. */
    vst_record_end_of_call_at(kind, id, vst_clock_ticks());
}

/* The same for hooks that must be small: it calls nothing. False: nothing was
 * recorded, vst_record_end_of_call_at() does it. */
VST_INLINE bool vst_record_end_of_call_at_once(vst_kind kind, vst_id id,
                                               vst_ticks now)
{
    vst_buffer *buffer = vst_thread_buffer;

    return VST_LIKELY(now - buffer->last >= buffer->shortest) &&
           vst_record_word_at_once(buffer, kind, id, now);
}

/* ---- records with a payload -------------------------------------------- */

/* These follow the rule of vst_record(), and free-running threads may call them
 * between vst_thread_enter_free() and their next wait. Text is JSON members
 * ("k": v, ...) in UTF-8 that need not end in NUL; it is copied. What is too
 * long for an escape is replaced by a note that says so. */

/* Arguments of the span on top. */
VST_API void vst_record_args(const char *json_members, size_t length);
/* A point in time; id is of a VST_DEF_INSTANT. */
VST_API void vst_record_instant(vst_id id, const char *json_members,
                                size_t length);
/* A value of a VST_DEF_COUNTER. */
VST_API void vst_record_counter(vst_id id, double value);
/* Begins a span that need not nest; the caller chooses an instance that no open
 * span of this id on this thread has. */
VST_API void vst_record_begin(vst_id id, uint32_t instance);
/* Ends the span that has this id and instance; without one it is ignored and
 * counted when the trace is read. */
VST_API void vst_record_end(vst_id id, uint32_t instance);
/* As vst_record_end(), with arguments that became known only now. */
VST_API void vst_record_end_args(vst_id id, uint32_t instance,
                                 const char *json_members, size_t length);

/* ---- for threads that no tracer's stop() keeps out --------------------- */

/* Brackets records made by free-running threads (operators, native code): the
 * recorder takes a chunk away from such a thread only when the thread calls
 * this again or has ended. Cheap when repeated. False: nothing is being
 * recorded. */
VST_API bool vst_thread_enter_free(void);

/* Hands back the buffer of the calling thread. Called when a thread ends, and
 * by tests. Safe at any time; takes no lock but the recorder's. */
VST_API void vst_thread_release(void);

#ifdef __cplusplus
}
#endif
#endif
