/* The state of base/: all of its variables that outlive a call, but for the two
 * in vpy.h. vpy_base has a member for each file, which only that file changes;
 * the file calls it `state`. A comment at a struct or a field names the guard.
 */
#ifndef VPY_BASE_STATE_H
#define VPY_BASE_STATE_H

#include "vpy.h"

#include <sys/resource.h>

#pragma GCC visibility push(hidden)

/* The parts of ours that look inside the interpreter. */
typedef enum vpy_part {
    VPY_PART_RECORDING,  /* any engine */
    VPY_PART_TURBO,      /* else: the safe engine */
    VPY_PART_ENTRIES,    /* else: turbo leaves calls to the interpreter */
    VPY_PART_TRACEBACKS, /* else: by Python's own functions */
    VPY_PART_MEMORY,     /* else: allocations have no Python stack */
    VPY_PART_ARGUMENTS,  /* else: of calls none are recorded */
    VPY_PART_TASKS,      /* else: nothing is known of asyncio's tasks */
    VPY_PART_BOTTOM,     /* else: programs run above the command's frames, and
                          * calls of len count as calls of C */
    VPY_PART_EXITS,      /* else: os._exit ends a recording as a crash does */
    VPY_PART_COLLECTOR,  /* else: our objects count for the collector */
    VPY_PARTS
} vpy_part;

/* What base/inside.c checks of the interpreter. */
typedef enum vpy_fact {
    VPY_FACT_VERSION,
    VPY_FACT_SIZES,
    VPY_FACT_EXTRAS,
    VPY_FACT_THREAD,
    VPY_FACT_FRAME_OBJECT,
    VPY_FACT_RUNNING,
    VPY_FACT_FRAME,
    VPY_FACT_COROUTINE,
    VPY_FACT_RECURSION,
    VPY_FACT_CALLS,
    VPY_FACT_CALLABLES,
    VPY_FACT_INSTRUCTIONS,
    VPY_FACT_COLLECTOR,
    VPY_FACT_WRAPPERS,
    VPY_FACT_FUNCTIONS,
    VPY_FACTS
} vpy_fact;

/* inside.c. Written when the module is loaded, and by tests. */
struct vpy_inside_state {
    /* Whether everything is in place that a part needs. */
    bool works[VPY_PARTS];
    char troubles[VPY_PARTS][160]; /* why a part does not work, or "" */
    bool holds[VPY_FACTS];
    /* By how many bytes a fact is looked for beside its place: 0, but in tests.
     */
    ptrdiff_t shifts[VPY_FACTS];
    /* The collector's count of objects made since the last collection, in the
     * main interpreter; NULL: we do not know where it is. */
    int *young_count;
    Py_ssize_t code_extra_index;
    uintptr_t stack_end; /* of the calling thread, while the checks run */
};

#if VPY_KNOWS_INSIDE
/* inside_frames.c: what is known while the calls run. Written when the module
 * is loaded, and by tests. */
struct vpy_inside_frames_state {
    bool *holds;
    PyObject *mark;
    PyObject *codes[3]; /* inner, outer, maker */
    PyObject *outer, *looks;
    const vpy_iframe *base; /* that ran before outer was called */
    PyObject *generator;    /* of maker */
    int left;               /* calls that inner's thread might still make */
    size_t seen;            /* how many of the three were looked at */
};
#endif

enum { VPY_RUNNERS_MAX = 4 };

/* own_code.c */
struct vpy_own_code_state {
    /* A list of bytes, each ending in "/", which nobody changes. Hooks read it,
     * those of allocators among them, which may take no lock. Another list
     * takes its place when a recording starts, before memory is traced: release
     * pairs with the acquire in vpy_search_path_prefix. */
    PyObject *search_path;
    PyObject *own_folder; /* bytes: where the vestige package lies. Written
                           * before the first hook */
    PyObject *runners[VPY_RUNNERS_MAX]; /* code objects; none is removed */
    size_t runners_count;               /* atomic */
};

/* stack.c. For the main thread the C library reads the list of all mappings, so
 * its answer is kept for as long as the limit stays. The main thread of a
 * forked child may have another stack. Only that thread reads and writes it. */
struct vpy_main_stack_state {
    uintptr_t low;
    size_t size;
    rlim_t limit;
};

struct vpy_base_state {
    struct vpy_inside_state inside;
#if VPY_KNOWS_INSIDE
    struct vpy_inside_frames_state frames;
#endif
    struct vpy_own_code_state own_code;
    struct vpy_main_stack_state main_stack;
};

extern struct vpy_base_state vpy_base;

#pragma GCC visibility pop
#endif
