/* Memory: allocations and frees as records, the stacks they were made with, and
 * their history as a reader gets it.
 *
 * A hook of an allocator calls, on the thread that allocates,
 *
 *     bool outermost = vst_memory_enter();
 *     void *p = original(size);
 *     if (outermost && p)
 *         vst_memory_allocated(kind, (uintptr_t)p, size);
 *     vst_memory_leave();
 *
 * so that what an allocator takes from another one inside (pymalloc's arenas,
 * large blocks of Python's from malloc) is not counted twice, nor anything that
 * vestige allocates itself. A hook reports a free before it happens and an
 * allocation after it. So in order of time, no address is allocated twice
 * without a free between. None of this takes a language's lock, nor one that
 * anybody holds while unwinding, walking the loaded libraries or allocating;
 * errno stays as it was. */
#ifndef VESTIGE_MEMORY_H
#define VESTIGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"
#include "status.h"
#include "trace.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which function it was; of a free: VST_MEMORY_FREE, MUNMAP, or the kind of the
 * realloc that gave the old block away, or the PY_..._FREE of its domain. At
 * most 32 of them, see wire.h. */
typedef enum vst_memory_kind {
    VST_MEMORY_MALLOC = 1,
    VST_MEMORY_CALLOC = 2,
    VST_MEMORY_REALLOC = 3, /* reallocarray too */
    VST_MEMORY_POSIX_MEMALIGN = 4,
    VST_MEMORY_ALIGNED_ALLOC = 5,
    VST_MEMORY_MEMALIGN = 6,
    VST_MEMORY_VALLOC = 7, /* pvalloc too */
    VST_MEMORY_FREE = 8,
    VST_MEMORY_MMAP = 9,
    VST_MEMORY_MUNMAP = 10,
    VST_MEMORY_PY_RAW_MALLOC = 11,
    VST_MEMORY_PY_RAW_CALLOC = 12,
    VST_MEMORY_PY_RAW_REALLOC = 13,
    VST_MEMORY_PY_RAW_FREE = 14,
    VST_MEMORY_PY_MEM_MALLOC = 15,
    VST_MEMORY_PY_MEM_CALLOC = 16,
    VST_MEMORY_PY_MEM_REALLOC = 17,
    VST_MEMORY_PY_MEM_FREE = 18,
    VST_MEMORY_PY_OBJECT_MALLOC = 19,
    VST_MEMORY_PY_OBJECT_CALLOC = 20,
    VST_MEMORY_PY_OBJECT_REALLOC = 21,
    VST_MEMORY_PY_OBJECT_FREE = 22,
    VST_MEMORY_FRAMEWORK = 23, /* a framework's allocator, such as torch's */
    VST_MEMORY_FRAMEWORK_FREE = 24,
    /* A mapping that is address space alone, see VST_RANGE_RESERVED. Readers
     * get it by vst_memory_sink's `reserved`; no record has this kind. */
    VST_MEMORY_RESERVE = 25
} vst_memory_kind;

/* "malloc", "PyObject_Calloc" …; "?" for what is no kind. */
VST_API const char *vst_memory_kind_name(vst_memory_kind kind);

/* ---- stacks: interned, known by number ---------------------------------- */

typedef uint32_t vst_stack_id; /* 1, 2, 3 …; 0: none, or not known */

typedef enum vst_stack_kind {
    VST_STACK_LANGUAGE = 1, /* one frame of the language, on top of parent */
    VST_STACK_NATIVE = 2,   /* one native return address, on top of parent */
    VST_STACK_BOTH = 3      /* a language stack and a native one together */
} vst_stack_kind;

enum {
    /* The language frame was begun by native code (traceback.h's
     * VST_FRAME_ENTRY): where the two parts of VST_STACK_BOTH fit together. */
    VST_STACK_IS_ENTRY = 1,
    /* There were too many frames; the outermost are left out. */
    VST_STACK_IS_CUT = 2
};

typedef struct vst_stack {
    vst_stack_kind kind;
    uint32_t flags;
    vst_stack_id parent; /* 0: outermost. BOTH: the language's part */
    vst_id function;     /* LANGUAGE: its definition */
    int32_t line;        /* LANGUAGE: that it is at */
    uint64_t address;    /* NATIVE: absolute. BOTH: the native part's id */
} vst_stack;

/* Gives the number of a stack, the same one for equal ones; a new one reaches
 * the trace before this returns. As vst_recording_define_id. */
VST_API vst_status vst_recording_define_stack(vst_recording *recording,
                                              const vst_stack *stack,
                                              vst_stack_id *id);

/* A loaded library, so that a reader of the trace can name addresses. */
typedef struct vst_module {
    const char *path;
    uint64_t bias; /* what was added to the addresses in the file */
    uint64_t start, end;
    const uint8_t *build_id; /* NULL: none */
    size_t build_id_len;
} vst_module;

/* ---- the record path ---------------------------------------------------- */

enum {
    /* The thread did not hold the language's lock. */
    VST_MEMORY_UNLOCKED = 1,
    /* Its stack is the last one it was known to have, not the present one. */
    VST_MEMORY_STALE_STACK = 2
};

/* Records an event of memory. The funnel below ends here. The caller took the
 * time: before a free, after an allocation. Any thread, free-running or not. */
VST_API void vst_record_alloc(vst_memory_kind kind, uintptr_t address,
                              size_t size, vst_stack_id stack, unsigned flags,
                              vst_ticks now);
/* size is 0 but for MUNMAP. */
VST_API void vst_record_free(vst_memory_kind kind, uintptr_t address,
                             size_t size, vst_ticks now);

/* ---- the funnel: what hooks call ---------------------------------------- */

typedef struct vst_memory_thread {
    uint32_t inside; /* allocators, and vestige itself */
} vst_memory_thread;

/* The calling thread's; only the two functions below change it. */
VST_API extern VST_THREAD_LOCAL vst_memory_thread vst_memory_here VST_TLS_MODEL;

/* True in the outermost allocator. */
static inline bool vst_memory_enter(void)
{
    return vst_memory_here.inside++ == 0;
}

static inline void vst_memory_leave(void)
{
    vst_memory_here.inside--;
}

/* Between enter and leave, where enter was true; address is not NULL. Each does
 * nothing while memory is not being traced. */
VST_API void vst_memory_allocated(vst_memory_kind kind, uintptr_t address,
                                  size_t size);
/* The same of a free, before it happens; size is 0 but for MUNMAP. */
VST_API void vst_memory_freed(vst_memory_kind kind, uintptr_t address,
                              size_t size);
/* A realloc that succeeded; before is vst_clock_ticks() from before it. */
VST_API void vst_memory_moved(vst_memory_kind kind, uintptr_t from,
                              uintptr_t to, size_t size, vst_ticks before);

typedef struct vst_memory_options {
    bool native_allocators; /* hook malloc and the others in every library */
    bool native_stacks;     /* return addresses too */
    uint64_t sample_bytes;  /* 0: every one; else one in so many bytes */
    /* Gives the language's stack of the calling thread; NULL: no language has
     * stacks here. Called inside of allocators, on any thread, with any lock of
     * the program held; see VST_MEMORY_UNLOCKED for *flags. */
    vst_stack_id (*stack)(unsigned *flags);
} vst_memory_options;

/* From now on the funnel records into this recording, which must not be
 * destroyed before vst_memory_stop(). VST_E_BUSY: it records already.
 * VST_E_UNSUPPORTED: allocators cannot be hooked here. VST_E_NOMEM. Any thread
 * may call these two. */
VST_API vst_status vst_memory_start(vst_recording *recording,
                                    const vst_memory_options *options,
                                    vst_error *error);
/* Takes every hook out. A hook that other code wrapped meanwhile stays, and
 * only calls the original. */
VST_API void vst_memory_stop(void);
/* Whether it is between start and stop. Any thread. */
VST_API bool vst_memory_is_tracing(void);

/* ---- reading ------------------------------------------------------------ */

enum {
    VST_MEMORY_FREES = 4,   /* it is a free */
    VST_MEMORY_UNKNOWN = 8, /* a free of what was not seen to be allocated, or
                             * whose allocation was dropped */
    VST_MEMORY_LOST_FREE = 16, /* an allocation at an address that was live: its
                                * free was not seen; it comes as one first, with
                                * the same flag */
    VST_MEMORY_TOUCHED =
        32 /* pages of a reservation that were found to be
            * resident: no call of the program's made them so */
};

/* An allocation or a free. Of a free, size, stack and serial are those of the
 * allocation that it ends, kind is its own; of one that is UNKNOWN they are 0,
 * but for the size of a munmap. A munmap gives one for each mapping that it
 * takes something of, with the size of that part.
 *
 * VST_MEMORY_FRAMEWORK and _FREE are counted apart: their blocks lie in blocks
 * of the system's, even at the same addresses. live_bytes and live_count are
 * those of their own group. */
typedef struct vst_memory_event {
    int64_t time_ns;
    uint32_t thread; /* that did it */
    vst_memory_kind kind;
    uint32_t flags;
    vst_stack_id stack;
    uint64_t address;
    uint64_t size;
    uint64_t serial;      /* of the allocation: 1, 2, 3 … in order of time */
    int64_t allocated_ns; /* FREES: when, 0 if UNKNOWN */
    uint64_t live_bytes;  /* after it: of all that was seen to be allocated */
    uint64_t live_count;
    double weight; /* how many allocations it stands for: 1, but if sampled */
} vst_memory_event;

/* Counters of every recording of memory. */
#define VST_COUNTER_RESIDENT "resident memory"
#define VST_COUNTER_RESIDENT_FILES "resident memory of files"

/* What of the process was in RAM. */
typedef struct vst_memory_resident {
    int64_t time_ns;
    uint64_t bytes;
    uint64_t file_bytes; /* of these, pages of files: images of the program and
                          * its libraries, mapped files, shared memory */
} vst_memory_resident;

/* Each function may be NULL. */
typedef struct vst_memory_sink {
    void *ctx;
    vst_status (*event)(void *ctx, const vst_memory_event *event);
    vst_status (*loss)(void *ctx, const vst_loss *loss);
    /* Address space that is reserved, and that is not any more: events of the
     * kind VST_MEMORY_RESERVE, counted among themselves. What becomes usable of
     * it, or is found to be resident, is no longer reserved and comes as an
     * `event` of the kind VST_MEMORY_MMAP; what is given back by madvise goes
     * the other way. */
    vst_status (*reserved)(void *ctx, const vst_memory_event *event);
    vst_status (*resident)(void *ctx, const vst_memory_resident *resident);
} vst_memory_sink;

/* All threads' allocations and frees in order of time, in a window or all. Each
 * window begins with nothing live: nothing was recorded between two windows.
 * Where a trace is bounded or a range of it is shown, what was allocated before
 * is not known; a free behind the range is not seen. Within a thread the order
 * is that of its records, and times never go back. */
VST_API vst_status vst_trace_replay_memory(vst_trace *trace, int window,
                                           const vst_memory_sink *sink,
                                           vst_error *error);
/* Whether there are any, without reading them. */
VST_API bool vst_trace_has_memory(const vst_trace *trace);
/* Returns a stack, valid until the trace is closed; NULL for an id that the
 * trace does not define. */
VST_API const vst_stack *vst_trace_stack(const vst_trace *trace,
                                         vst_stack_id id);
/* The largest id it defines; an array may be sized by it, as by that of
 * definitions. */
VST_API vst_stack_id vst_trace_stack_max(const vst_trace *trace);
/* Returns how many libraries the trace describes, and one of them: index is
 * less than the count. Valid until the trace is closed. */
VST_API size_t vst_trace_module_count(const vst_trace *trace);
VST_API const vst_module *vst_trace_module(const vst_trace *trace,
                                           size_t index);

/* ---- files -------------------------------------------------------------- */

typedef enum vst_memory_view {
    VST_MEMORY_TOTAL = 0, /* all that was allocated */
    VST_MEMORY_PEAK = 1,  /* held at the high-water mark */
    VST_MEMORY_LEAKS = 2, /* alive at the end */
    /* Freed by the thread that allocated it while it was one of the last k that
     * this thread had allocated. Cannot be told from samples. */
    VST_MEMORY_TEMPORARY = 3,
    /* Address space that was reserved when most of it was, and never in use: no
     * part of the others. */
    VST_MEMORY_RESERVED = 4,
    VST_MEMORY_VIEWS = 5
} vst_memory_view;

/* "total", "peak", "leaks", "temporary", "reserved". */
VST_API const char *vst_memory_view_name(vst_memory_view view);

typedef struct vst_memory_report_options {
    int window;           /* VST_WINDOW_ALL as a rule */
    uint32_t temporary;   /* k; 0: 1 */
    vst_memory_view view; /* that .folded shows */
    uint32_t *cut_depth;  /* as in vst_export_options: of .csv, .folded and
                           * .pickle; may be NULL */
} vst_memory_report_options;

/* Writes histories in the format that the suffix of path names (.pickle, .json,
 * .csv, .folded, .html, and each with .gz), through a temporary file that is
 * renamed at the end. options may be NULL. VST_E_ARGUMENT: no format has this
 * suffix. Progress is told to the function set for the first trace. */
VST_API vst_status vst_traces_export_memory(
    vst_trace *const *traces, size_t count, const char *path,
    const vst_memory_report_options *options, vst_error *error);

#ifdef __cplusplus
}
#endif
#endif
