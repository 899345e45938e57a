/* The state of annotate/: all variables that outlive a call. vpy_annotate has a
 * member for each file, which only that file changes; the file calls its member
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_ANNOTATE_STATE_H
#define VPY_ANNOTATE_STATE_H

#include "vpy.h"

#include "thunks/watched_methods.h"

#pragma GCC visibility push(hidden)

/* annotation.c */
struct vpy_annotation_state {
    uint32_t last_instance; /* atomic */
};

enum { VPY_NAMES_KEPT = 64 };

/* annotation_ids.c. Guarded by the state lock. */
struct vpy_annotation_ids_state {
    /* The recording to which annotations go; NULL: nothing is being recorded.
     * Atomic for vpy_is_recording. */
    vst_recording *recording;
    /* Counts recordings, so that no id is used in a later recording. */
    uint32_t recording_number;
    vst_recording *numbered_recording;
    /* The ids of recently used names, found by the address of the str: most
     * names are constants of the program. A reference keeps each str alive, so
     * that no other str gets its address. */
    struct {
        PyObject *name;
        vst_id id;
        uint32_t recording;
    } cache[VPY_NAMES_KEPT];
};

/* call_stack.c */
struct vpy_call_stack_state {
    bool is_wanted; /* every annotation gets its call stack; atomic */
    /* {Traceback: bytes, a JSON string without its quotes}. Guarded by the
     * state lock. */
    PyObject *kept;
};

enum { VPY_FAR_ENDS_MAX = 1024 };

/* far_ends.c. Guarded by the state lock. */
struct vpy_far_ends_state {
    struct vpy_far_end {
        const void *buffer; /* the buffer of the thread that began the span */
        vst_id id;
        uint32_t instance, recording;
    } ends[VPY_FAR_ENDS_MAX];
    unsigned
        waiting; /* ends that their threads have not recorded yet; atomic */
};

/* fast_contexts.c. Guarded by the GIL. */
struct vpy_fast_contexts_state {
    /* Functions of the adapter. `attend` puts our profiler on the calling
     * thread if we record. `call_without` calls a function with our profiler
     * hidden, unless the thread has another profiler. */
    void (*attend)(void);
    void (*call_without)(void (*function)(void *), void *ctx);
    /* Whether a thread may still have our profiler after the recording has
     * ended. */
    int (*is_watched)(void);
    vpy_watched enter, exit;
};

/* framework_spans.c. Guarded by the GIL. */
struct vpy_framework_spans_state {
    /* torch's record_function if vestige has replaced torch.profiler, else
     * NULL. */
    PyObject *span;
    /* NULL if torch does not have the function. */
    bool (*has_callbacks)(void);
    bool (*has_modes)(bool skip_infrastructure);
};

/* graph_nodes.c. All of it is atomic, except where a field names its guard. */
struct vpy_graph_nodes_state {
    unsigned observer; /* 0: no execution trace is recorded */
    /* The last number given to a node; starts far above the framework's
     * numbers, which count from 1. */
    uint64_t last_record;
    /* Returns the framework's number of the calling thread. NULL: no framework,
     * threads are numbered here. Guarded by the GIL. */
    uint64_t (*framework_thread)(void);
    uint64_t last_thread;
};

/* self_bound.c. Guarded by the GIL. */
struct vpy_self_bound_state {
    PyTypeObject *type;
};

struct vpy_annotate_state {
    struct vpy_annotation_state annotation;
    struct vpy_annotation_ids_state ids;
    struct vpy_call_stack_state call_stack;
    struct vpy_far_ends_state far_ends;
    struct vpy_fast_contexts_state fast_contexts;
    struct vpy_framework_spans_state framework;
    struct vpy_graph_nodes_state graph;
    struct vpy_self_bound_state self_bound;
};

extern struct vpy_annotate_state vpy_annotate;

#pragma GCC visibility pop
#endif
