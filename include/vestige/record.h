/* Recording: the functions that a tracer calls. The record path is inline; it
 * only reads the clock and stores one word. It returns nothing, because a hook
 * inside another program has nobody to report to. Records that cannot be stored
 * are counted as lost.
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

/* The recording in progress, into which a tracer records. */
typedef struct vst_recording vst_recording;

/* ---- definitions: what an id stands for ---------------------------------- */

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

/* Returns "python", "native", "annotation" …; "unknown" for any other number.
 */
VST_API const char *vst_definition_kind_name(vst_definition_kind kind);

/* Definitions that do not name spans. */
enum {
    /* Names nothing; says that spans of one thread end on another
     * (VST_ESCAPE_FAR_END). */
    VST_DEF_FAR_ENDS = 9,
    VST_DEF_ACTIVITY = 10 /* the name of a device's activity, see device.h */
};

typedef struct vst_definition {
    vst_definition_kind kind;
    int32_t line; /* first line, 0 where there is none */
    /* How many leading bytes of `file` a display name leaves out (the search
     * path's prefix). */
    uint32_t file_skip;
    uint32_t name_len;
    uint32_t file_len;
    const char *name; /* bytes, UTF-8 by intent, not NUL-terminated */
    const char *file;
} vst_definition;

/* Sets *id to the id of a definition. Equal (kind, name, file, line) have the
 * same id; a new definition reaches the trace before this returns. Name and
 * file are copied. Returns VST_E_NO_IDS, VST_E_NOMEM, VST_E_NOSPACE or VST_E_IO
 * with *id 0, which records nothing; VST_E_STATE in a forked child. Any thread;
 * takes the recorder's lock. */
VST_API vst_status vst_recording_define_id(vst_recording *recording,
                                           const vst_definition *definition,
                                           vst_id *id);

/* Stores a fact about the whole trace. json is a JSON value; both texts are
 * copied. A later value of the same key replaces an earlier one. Returns
 * VST_E_NOSPACE or VST_E_IO if the fact is not in the trace, VST_E_STATE in a
 * forked child. Any thread; takes the recorder's lock. */
VST_API vst_status vst_recording_set_metadata(vst_recording *recording,
                                              const char *key,
                                              const char *json);

/* ---- threads ------------------------------------------------------------- */

/* Names a thread. handle is the thread's vst_thread_handle(); system_tid is 0
 * if unknown. A later name replaces an earlier one. */
VST_API void vst_recording_name_thread(vst_recording *recording,
                                       uint64_t handle, uint64_t system_tid,
                                       const char *name, size_t name_len);

/* Records the calls that are open in a thread when recording begins, outermost
 * first. Call before that thread's first record; any thread. */
VST_API void vst_recording_open_stack(vst_recording *recording, uint64_t handle,
                                      uint64_t system_tid, const vst_id *ids,
                                      size_t count);

/* With vst_session_options.only: records calls of this id, and the calls inside
 * them. Call before the id's first record. */
VST_API void vst_recording_record_inside(vst_recording *recording, vst_id id);

/* Returns the number by which the recorder knows the calling thread; constant
 * while the thread lives. */
VST_API uint64_t vst_thread_handle(void);

/* ---- the record path ----------------------------------------------------- */

/* A thread's buffer. Every field belongs to the owning thread. */
typedef struct vst_buffer {
    uint64_t *cursor; /* the next word */
    uint64_t *limit;  /* plain records end here; a few more words fit behind */
    vst_ticks last;   /* time of the previous word */
    /* from this time on a record takes the slow path; at most UINT32_MAX ticks
     * after `last`, so that until then a delta fits a word */
    vst_ticks due;
    /* number of the recording that this buffer was prepared for */
    uint64_t epoch;
    /* Like epoch, for records that no tracer's stop() keeps out. */
    uint64_t free_epoch;
    vst_ticks shortest; /* shorter calls are taken back; 0: none */
    uint64_t *floor;    /* payloads lie before this word */
    /* calls that were taken back; other threads may read this */
    uint64_t left_out;
    uint64_t chunks; /* number of chunks that the thread was given */
} vst_buffer;

/* Marks variables that hooks read on every call: the linker places them
 * together, and no other thread writes to their cache lines. One of these
 * variables begins a line (VST_CACHE_LINE). */
#define VST_CACHE_LINE 64
#if defined(__GNUC__)
#define VST_READ_BY_HOOKS __attribute__((section("vst_read_by_hooks")))
#define VST_OWN_LINE __attribute__((aligned(VST_CACHE_LINE)))
#else
#define VST_READ_BY_HOOKS
#define VST_OWN_LINE
#endif

/* The number of the recording in progress, or 0. The recorder changes this
 * number, with its lock held, when a recording starts or stops and when every
 * thread is to take the slow path once: a buffer with a different epoch takes
 * the slow path. Read relaxed: a hook that still sees the old value writes one
 * more record into a buffer that is still its own (pairs with the release
 * stores in src/record/recording.c). */
VST_API extern uint64_t vst_recording_epoch;

#if defined(__GNUC__)
#define VST_TLS_MODEL __attribute__((tls_model("initial-exec")))
#define VST_LIKELY(x) __builtin_expect(!!(x), 1)
/* Keeps the function out of its callers' code. */
#define VST_NOINLINE __attribute__((noinline))
#define VST_COLD __attribute__((cold, noinline))
/* Places the function near the other hooks, so that a call touches few pages of
 * code. */
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

/* The calling thread's buffer, owned by the library; never NULL. */
VST_API extern VST_THREAD_LOCAL vst_buffer *vst_thread_buffer VST_TLS_MODEL;

/* Records when more than a store is needed: the thread joins the recording or
 * gets its next chunk. The functions below call this function. */
VST_API VST_COLD void vst_record_slow(vst_kind kind, vst_id id, vst_ticks now);

/* Returns the number of the recording in progress, as a hook sees it. */
static inline uint64_t vst_record_epoch(void)
{
#if defined(__GNUC__)
    return __atomic_load_n(&vst_recording_epoch, __ATOMIC_RELAXED);
#else
    return *(volatile uint64_t *)&vst_recording_epoch;
#endif
}

/* Stores a word of the file with one aligned 8-byte store: a reader sees either
 * the word or the zero that was there before. Release: a reader that sees the
 * word also sees what was stored before, such as its payload and the definition
 * of its id. Pairs with the fence in vst__source_read (src/store/source.c). */
VST_INLINE void vst_store_word(uint64_t *at, uint64_t word)
{
#if defined(__GNUC__)
    __atomic_store_n(at, word, __ATOMIC_RELEASE);
#else
    *(volatile uint64_t *)at = word;
#endif
}

/* Returns false if the clock went back. The builtin uses the carry of the
 * subtraction, where a comparison would take another instruction. */
VST_INLINE bool vst_ticks_since(vst_ticks last, vst_ticks now, uint64_t *delta)
{
#if defined(__GNUC__)
    return !__builtin_sub_overflow(now, last, delta);
#else
    *delta = now - last;
    return now >= last;
#endif
}

/* Stores the word of the functions below into the calling thread's buffer.
 * Returns false, without having done anything, if more than a store is needed.
 */
VST_INLINE bool vst_record_word_at_once(vst_buffer *buffer, vst_kind kind,
                                        vst_id id, vst_ticks now)
{
    uint64_t delta;

    if (!VST_LIKELY(vst_ticks_since(buffer->last, now, &delta) &&
                    buffer->epoch == vst_record_epoch() &&
                    buffer->cursor < buffer->limit && now < buffer->due))
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

/* Records from a hook that the tracer's stop() keeps out: after stop() has
 * returned, no thread is inside this function or will enter it. */
static inline void vst_record(vst_kind kind, vst_id id)
{
    vst_record_word(vst_thread_buffer, kind, id, vst_clock_ticks());
}

/* Does what vst_record does, for hooks that must be small: calls no function
 * where an instruction reads the clock. Returns false if nothing was recorded;
 * the caller then calls vst_record(). */
VST_INLINE bool vst_record_at_once(vst_kind kind, vst_id id)
{
    return vst_clock_is_at_hand() &&
           vst_record_word_at_once(vst_thread_buffer, kind, id,
                                   vst_clock_ticks());
}

enum {
    VST_LEFT_OUT_TOLD = 64
}; /* the count is written to the trace after this many calls */

/* The part of the function below that handles a call that may have been short.
 */
VST_API VST_NOINLINE void vst_record_end_of_short_call(vst_kind kind, vst_id id,
                                                       vst_ticks now);

/* Records the end (EXIT or RAISE) of a call, from the hooks that call
 * vst_record. If the recording leaves out short calls, a call shorter than that
 * is taken back, unless anything else was recorded since it began. */
VST_INLINE void vst_record_end_of_call_at(vst_kind kind, vst_id id,
                                          vst_ticks now)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t delta;

    if (VST_LIKELY(!vst_ticks_since(buffer->last, now, &delta) ||
                   delta >= buffer->shortest))
        vst_record_word(buffer, kind, id, now);
    else
        vst_record_end_of_short_call(kind, id, now);
}

VST_INLINE void vst_record_end_of_call(vst_kind kind, vst_id id)
{
    /* Read the clock first, while no register waits for it. */
    vst_record_end_of_call_at(kind, id, vst_clock_ticks());
}

/* Does what vst_record_end_of_call_at does, for hooks that must be small: calls
 * no function. Returns false if nothing was recorded; the caller then calls
 * vst_record_end_of_call_at(). */
VST_INLINE bool vst_record_end_of_call_at_once(vst_kind kind, vst_id id,
                                               vst_ticks now)
{
    vst_buffer *buffer = vst_thread_buffer;
    uint64_t delta;

    return VST_LIKELY(vst_ticks_since(buffer->last, now, &delta) &&
                      delta >= buffer->shortest) &&
           vst_record_word_at_once(buffer, kind, id, now);
}

/* ---- records with a payload ---------------------------------------------- */

/* These functions follow the rule of vst_record(); free-running threads may
 * call them too, between vst_thread_enter_free() and their next wait. Text is
 * JSON members ("k": v, ...) in UTF-8, without a NUL at the end if the caller
 * likes; it is copied. Text that is too long for an escape is replaced by a
 * note that says so. */

/* Records arguments of the innermost open span. */
VST_API void vst_record_args(const char *json_members, size_t length);
/* Records a point in time; id names a VST_DEF_INSTANT. */
VST_API void vst_record_instant(vst_id id, const char *json_members,
                                size_t length);
/* Records a value of a counter; id names a VST_DEF_COUNTER. */
VST_API void vst_record_counter(vst_id id, double value);
/* Begins a span that need not nest. The caller chooses an instance that no
 * other open span of this id on this thread has. */
VST_API void vst_record_begin(vst_id id, uint32_t instance);
/* Ends the span with this id and instance. If there is none, the reader ignores
 * and counts this record. */
VST_API void vst_record_end(vst_id id, uint32_t instance);
/* Ends a span as vst_record_end() does, with arguments that became known only
 * now. */
VST_API void vst_record_end_args(vst_id id, uint32_t instance,
                                 const char *json_members, size_t length);

/* ---- for threads that no tracer's stop() keeps out ----------------------- */

/* Call before records of free-running threads (operators, native code): the
 * recorder takes a chunk away from such a thread only when the thread calls
 * this function again or has ended. Cheap when repeated. Returns false if
 * nothing is being recorded. */
VST_API bool vst_thread_enter_free(void);

/* Gives the calling thread's buffer back. Called when a thread ends, and by
 * tests. Safe at any time; takes only the recorder's lock. */
VST_API void vst_thread_release(void);

#ifdef __cplusplus
}
#endif
#endif
