/* Memory: records of allocations and frees, their stacks, and the history that
 * a reader gets.
 *
 * A hook of an allocator calls, on the thread that allocates,
 *
 *     bool outermost = vst_memory_enter();
 *     void *p = original(size);
 *     if (outermost && p)
 *         vst_memory_allocated(kind, (uintptr_t)p, size);
 *     vst_memory_leave();
 *
 * so that a block which one allocator takes from another (pymalloc's arenas,
 * Python's large blocks from malloc) is not counted twice, and vestige's own
 * allocations are not counted. A hook reports a free before it happens and an
 * allocation after it. So in order of time, no address is allocated twice
 * without a free between. These functions take neither a language's lock nor a
 * lock that some thread holds while it unwinds, walks the loaded libraries or
 * allocates. They preserve errno. */
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

/* The function that allocated or freed. A free has VST_MEMORY_FREE,
 * VST_MEMORY_MUNMAP, the PY_..._FREE of its domain, or the kind of the realloc
 * that gave the old block away. There is room for 32 kinds (see wire.h). */
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
    /* A mapping that only reserves address space, see VST_RANGE_RESERVED.
     * Readers get such mappings through vst_memory_sink's `reserved`; no record
     * has this kind. */
    VST_MEMORY_RESERVE = 25
} vst_memory_kind;

/* Returns "malloc", "PyObject_Calloc" …; "?" for any other number. */
VST_API const char *vst_memory_kind_name(vst_memory_kind kind);

static inline bool vst_memory_is_framework(uint32_t kind)
{
    return kind == VST_MEMORY_FRAMEWORK || kind == VST_MEMORY_FRAMEWORK_FREE;
}

/* ---- stacks: interned, known by number ----------------------------------- */

typedef uint32_t vst_stack_id; /* 1, 2, 3 …; 0: no stack, or unknown */

typedef enum vst_stack_kind {
    VST_STACK_LANGUAGE = 1, /* one frame of the language, on top of parent */
    VST_STACK_NATIVE = 2,   /* one native return address, on top of parent */
    VST_STACK_BOTH = 3      /* a language stack and a native one together */
} vst_stack_kind;

enum {
    /* Native code called the language frame (traceback.h's VST_FRAME_ENTRY):
     * the two parts of a VST_STACK_BOTH fit together at this frame. */
    VST_STACK_IS_ENTRY = 1,
    /* There were too many frames; the outermost are left out. */
    VST_STACK_IS_CUT = 2
};

typedef struct vst_stack {
    vst_stack_kind kind;
    uint32_t flags;
    vst_stack_id
        parent;       /* 0: outermost. BOTH: the stack of the language's part */
    vst_id function;  /* LANGUAGE: its definition */
    int32_t line;     /* LANGUAGE: the current line */
    uint64_t address; /* NATIVE: absolute. BOTH: the native part's id */
} vst_stack;

/* Sets *id to the number of a stack. Equal stacks have the same number; a new
 * stack reaches the trace before this returns. Threads and errors as for
 * vst_recording_define_id. */
VST_API vst_status vst_recording_define_stack(vst_recording *recording,
                                              const vst_stack *stack,
                                              vst_stack_id *id);

/* A loaded library, so that a reader of the trace can name addresses. */
typedef struct vst_module {
    const char *path;
    /* the distance from addresses in the file to addresses in memory */
    uint64_t bias;
    uint64_t start, end;
    const uint8_t *build_id; /* NULL if it has none */
    size_t build_id_len;
} vst_module;

/* ---- the record path ----------------------------------------------------- */

enum {
    /* The thread did not hold the language's lock. */
    VST_MEMORY_UNLOCKED = 1,
    /* The stack is the thread's last known one, not its present one. */
    VST_MEMORY_STALE_STACK = 2
};

/* Records an allocation; the functions of the funnel below end here. The caller
 * reads the time: before a free, after an allocation. Any thread, free-running
 * or not. */
VST_API void vst_record_alloc(vst_memory_kind kind, uintptr_t address,
                              size_t size, vst_stack_id stack, unsigned flags,
                              vst_ticks now);
/* Records a free. size is 0 except for VST_MEMORY_MUNMAP. */
VST_API void vst_record_free(vst_memory_kind kind, uintptr_t address,
                             size_t size, vst_ticks now);

/* ---- the funnel: what hooks call ----------------------------------------- */

typedef struct vst_memory_thread {
    uint32_t inside; /* depth of nested allocators, and of vestige itself */
} vst_memory_thread;

/* The calling thread's state; only the two functions below change it. */
VST_API extern VST_THREAD_LOCAL vst_memory_thread vst_memory_here VST_TLS_MODEL;

/* Returns true in the outermost allocator. */
static inline bool vst_memory_enter(void)
{
    return vst_memory_here.inside++ == 0;
}

static inline void vst_memory_leave(void)
{
    vst_memory_here.inside--;
}

/* Call these functions between enter and leave, if enter returned true. They do
 * nothing while memory is not being traced. Reports an allocation; address is
 * not NULL. */
VST_API void vst_memory_allocated(vst_memory_kind kind, uintptr_t address,
                                  size_t size);
/* Reports a free before it happens; size is 0 except for VST_MEMORY_MUNMAP. */
VST_API void vst_memory_freed(vst_memory_kind kind, uintptr_t address,
                              size_t size);
/* Reports a realloc that succeeded; `before` is vst_clock_ticks() from before
 * the call. */
VST_API void vst_memory_moved(vst_memory_kind kind, uintptr_t from,
                              uintptr_t to, size_t size, vst_ticks before);

typedef struct vst_memory_options {
    bool native_allocators; /* hook malloc and the others in every library */
    bool native_stacks;     /* record native return addresses too */
    uint64_t sample_bytes;  /* 0: record every allocation; else about one per
                               this many bytes */
    /* Returns the calling thread's stack in the language. NULL: no language has
     * stacks here. Called inside allocators, on any thread, with any lock of
     * the program held; see VST_MEMORY_UNLOCKED for *flags. */
    vst_stack_id (*stack)(unsigned *flags);
} vst_memory_options;

/* Starts recording memory into this recording, which must not be destroyed
 * before vst_memory_stop(). Returns VST_E_BUSY if memory is being recorded
 * already, VST_E_UNSUPPORTED if allocators cannot be hooked here, or
 * VST_E_NOMEM. Any thread may call vst_memory_start and vst_memory_stop. */
VST_API vst_status vst_memory_start(vst_recording *recording,
                                    const vst_memory_options *options,
                                    vst_error *error);
/* Removes every hook. A hook that other code has wrapped meanwhile stays, and
 * only calls the original. */
VST_API void vst_memory_stop(void);
/* Returns whether memory is being recorded. Any thread. */
VST_API bool vst_memory_is_tracing(void);

/* ---- reading ------------------------------------------------------------- */

enum {
    VST_MEMORY_FREES = 4,   /* the event is a free */
    VST_MEMORY_UNKNOWN = 8, /* a free of an unknown block: its allocation was
                               not seen or was dropped */
    VST_MEMORY_LOST_FREE =
        16, /* a second allocation at a live address: the free was missed, and
               comes before this event with this flag */
    VST_MEMORY_TOUCHED = 32 /* pages of a reservation were found to be resident;
                               no call of the program asked for them */
};

/* An allocation or a free. A free has the size, stack and serial of the
 * allocation that it ends, and its own kind. A free that is UNKNOWN has zeros
 * there, except for the size of a munmap. A munmap gives one event for each
 * mapping that it shortens or removes, with the size of that part.
 *
 * Blocks of VST_MEMORY_FRAMEWORK and _FREE are counted apart from the system's,
 * because they lie inside blocks of the system, even at the same addresses.
 * live_bytes and live_count cover the event's own group. */
typedef struct vst_memory_event {
    int64_t time_ns;
    uint32_t thread; /* the thread that allocated or freed */
    vst_memory_kind kind;
    uint32_t flags;
    vst_stack_id stack;
    uint64_t address;
    uint64_t size;
    uint64_t serial; /* number of the allocation: 1, 2, 3 … in order of time */
    /* for a free: the time of the allocation, 0 if UNKNOWN */
    int64_t allocated_ns;
    uint64_t live_bytes; /* after the event: all known blocks */
    uint64_t live_count;
    double weight; /* allocations that this one stands for: 1 unless sampled */
} vst_memory_event;

/* Names of the counters that every recording of memory has. */
#define VST_COUNTER_RESIDENT "resident memory"
#define VST_COUNTER_RESIDENT_FILES "resident memory of files"

/* How much of the process was in RAM. */
typedef struct vst_memory_resident {
    int64_t time_ns;
    uint64_t bytes;
    /* the part that belongs to files: images of the program and its libraries,
     * mapped files, shared memory */
    uint64_t file_bytes;
} vst_memory_resident;

/* Each function may be NULL. */
typedef struct vst_memory_sink {
    void *ctx;
    vst_status (*event)(void *ctx, const vst_memory_event *event);
    vst_status (*loss)(void *ctx, const vst_loss *loss);
    /* A reservation of address space, or its end: events of the kind
     * VST_MEMORY_RESERVE, counted apart. A part that becomes usable, or is
     * found to be resident, is no longer reserved and comes as an `event` of
     * the kind VST_MEMORY_MMAP. A part that madvise gives back becomes reserved
     * again. */
    vst_status (*reserved)(void *ctx, const vst_memory_event *event);
    vst_status (*resident)(void *ctx, const vst_memory_resident *resident);
} vst_memory_sink;

/* Delivers the allocations and frees of all threads in order of time, for one
 * window or all. Each window begins with no live blocks, because nothing was
 * recorded between two windows. Allocations before the beginning of a bounded
 * trace or of a range are unknown; frees after the range are not seen. Within a
 * thread the order is that of the records, and times never go back. */
VST_API vst_status vst_trace_replay_memory(vst_trace *trace, int window,
                                           const vst_memory_sink *sink,
                                           vst_error *error);
/* Returns whether the trace has allocations or frees, without reading them. */
VST_API bool vst_trace_has_memory(const vst_trace *trace);
/* Returns the stack with this id, valid until the trace is closed; NULL if the
 * trace does not define the id. */
VST_API const vst_stack *vst_trace_stack(const vst_trace *trace,
                                         vst_stack_id id);
/* Returns the largest stack id of the trace, by which an array may be sized;
 * see vst_trace_definition_max. */
VST_API vst_stack_id vst_trace_stack_max(const vst_trace *trace);
/* Return how many libraries the trace describes, and one of them: index is less
 * than the count. Valid until the trace is closed. */
VST_API size_t vst_trace_module_count(const vst_trace *trace);
VST_API const vst_module *vst_trace_module(const vst_trace *trace,
                                           size_t index);

/* ---- files --------------------------------------------------------------- */

typedef enum vst_memory_view {
    VST_MEMORY_TOTAL = 0, /* all allocations */
    VST_MEMORY_PEAK = 1,  /* blocks that were live at the high-water mark */
    VST_MEMORY_LEAKS = 2, /* blocks that were live at the end */
    /* Blocks that the allocating thread freed while they were among its last k
     * allocations. Not available for samples. */
    VST_MEMORY_TEMPORARY = 3,
    /* Address space that was reserved and never used, at the moment when most
     * of it was. No part of the other views. */
    VST_MEMORY_RESERVED = 4,
    VST_MEMORY_VIEWS = 5
} vst_memory_view;

/* Returns "total", "peak", "leaks", "temporary" or "reserved". */
VST_API const char *vst_memory_view_name(vst_memory_view view);

typedef struct vst_memory_report_options {
    int window;           /* usually VST_WINDOW_ALL */
    uint32_t temporary;   /* the k of VST_MEMORY_TEMPORARY; 0 means 1 */
    vst_memory_view view; /* the view that .folded shows */
    uint32_t *cut_depth;  /* as in vst_export_options, set for .csv, .folded and
                             .pickle; may be NULL */
} vst_memory_report_options;

/* Writes histories in the format that the suffix of path names (.pickle, .json,
 * .csv, .folded, .html, and each with .gz), through a temporary file that is
 * renamed at the end. options may be NULL. Returns VST_E_ARGUMENT if no format
 * has this suffix. Progress goes to the function that was set for the first
 * trace. */
VST_API vst_status vst_traces_export_memory(
    vst_trace *const *traces, size_t count, const char *path,
    const vst_memory_report_options *options, vst_error *error);

#ifdef __cplusplus
}
#endif
#endif
