/* The state of base/: all variables that outlive a call, except the two in
 * vpy.h. vpy_base has a member for each file, which only that file changes; the
 * file calls its member `state`. A comment at a struct or a field names the
 * guard. */
#ifndef VPY_BASE_STATE_H
#define VPY_BASE_STATE_H

#include "base/names.h"

#include <sys/resource.h>

#pragma GCC visibility push(hidden)

/* The parts of vestige that use internals of the interpreter, and what happens
 * without a part. */
typedef enum vpy_part {
    VPY_PART_RECORDING, /* without it: no engine works */
    VPY_PART_TURBO,     /* without it: "auto" is the safe engine */
    VPY_PART_ENTRIES,   /* without it: turbo leaves calls to the interpreter */
    /* without it: frames are read by Python's public functions */
    VPY_PART_TRACEBACKS,
    VPY_PART_MEMORY,    /* without it: allocations have no Python stack */
    VPY_PART_ARGUMENTS, /* without it: arguments of calls are not recorded */
    VPY_PART_TASKS,     /* without it: asyncio's tasks are not followed */
    /* without it: programs run above the command's frames, and calls of len use
     * up the limit of C recursion */
    VPY_PART_BOTTOM,
    VPY_PART_EXITS, /* without it: os._exit ends a recording as a crash does */
    VPY_PART_COLLECTOR, /* without it: the collector counts our objects */
    VPY_PARTS
} vpy_part;

/* The facts about the interpreter that base/inside.c checks. */
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
    /* whether all facts hold that a part needs */
    bool works[VPY_PARTS];
    char troubles[VPY_PARTS][160]; /* why a part does not work, or "" */
    bool holds[VPY_FACTS];
    /* How many bytes off its place a fact is looked for: 0, except in tests. */
    ptrdiff_t shifts[VPY_FACTS];
    /* The collector's count of objects made since the last collection, in the
     * main interpreter; NULL: we do not know where it is. */
    int *young_count;
    /* The number of objects that the last full collection left, likewise. */
    const Py_ssize_t *survivors;
    Py_ssize_t code_extra_index;
    uintptr_t stack_end; /* end of the calling thread's C stack; used during the
                          * checks */
};

#if VPY_KNOWS_INSIDE
/* inside_frames.c: set before the checked calls and read during them. Written
 * when the module is loaded, and by tests. */
struct vpy_inside_frames_state {
    bool *holds;
    PyObject *mark;
    PyObject *codes[3]; /* inner, outer, maker */
    PyObject *outer, *looks;
    const vpy_iframe *base; /* the frame that called outer */
    PyObject *generator;    /* made by calling maker */
    int left;    /* calls that the recursion limit still allowed in inner */
    size_t seen; /* how many of the three frames were checked */
};
#endif

/* names.c. Written when the module is loaded. */
struct vpy_names_state {
    PyObject *objects[VPY_NAMES];
    PyObject *system; /* the dictionary of sys */
};

enum { VPY_RUNNERS_MAX = 4 };

/* own_code.c */
struct vpy_own_code_state {
    /* A list of bytes objects, each ending in "/", which is never changed.
     * Hooks read it, also those of allocators, which may take no lock. When a
     * recording starts, and before memory is traced, another list replaces it:
     * release pairs with the acquire in vpy_search_path_prefix. */
    PyObject *search_path;
    /* The items of sys.path that search_path was made of; NULL: not known.
     * Guarded by the control lock. */
    PyObject **known;
    Py_ssize_t known_count;
    PyObject *own_folder; /* bytes: where the vestige package lies. Written
                           * before the first hook */
    PyObject
        *runners[VPY_RUNNERS_MAX]; /* code objects, which are never removed */
    size_t runners_count;          /* atomic */
};

/* stack.c: the main thread's stack, used and written by that thread only. The C
 * library finds it by reading the list of all mappings, so the answer is kept
 * while RLIMIT_STACK stays the same. The main thread of a forked child may have
 * another stack. */
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
    struct vpy_names_state names;
    struct vpy_own_code_state own_code;
    struct vpy_main_stack_state main_stack;
};

extern struct vpy_base_state vpy_base;

#pragma GCC visibility pop
#endif
