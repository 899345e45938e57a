/* The state of memory/: all variables that outlive a call. vpy_memory has a
 * member for each file, which only that file changes; the file calls its member
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_MEMORY_STATE_H
#define VPY_MEMORY_STATE_H

#include "vpy.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

enum { VPY_MEMORY_DOMAINS = 3 };

/* allocator_hooks.c. Hooks read both fields, with or without the GIL. Changed
 * in a stopped world while no hook of ours is in the domain. */
struct vpy_allocator_hooks_state {
    PyMemAllocatorEx
        wrapped[VPY_MEMORY_DOMAINS]; /* the allocators that the hooks wrap */
    bool left_behind[VPY_MEMORY_DOMAINS]; /* other code may still call our hook
                                           */
};

/* memory_tracer.c. Guarded by the GIL, or the control lock on builds without
 * the GIL. */
struct vpy_memory_tracer_state {
    struct vpy_memory_tracer
        *active;  /* the tracer whose hooks are installed, or NULL */
    bool is_over; /* the interpreter is ending */
};

/* stack_walk.c */
struct vpy_stack_walk_state {
    /* All caches that were ever made; new caches are added at the front.
     * Atomic. */
    _Atomic(struct vpy_stack_cache *) caches;
    /* Written before memory is traced for the first time. */
    PyInterpreterState *main_interpreter;
    pthread_key_t at_thread_end;
    bool has_key, is_ready;
};

/* Entries have 16 bytes; the first word of an empty entry is 0. */
typedef struct vpy_node_table {
    void *entries; /* NULL: none yet */
    size_t mask, used;
} vpy_node_table;

/* stack_nodes.c */
struct vpy_stack_nodes_state {
    /* Grows whenever a known code object is freed. Then the caches of threads,
     * which use addresses of code and instructions, are no longer valid.
     * Atomic, read relaxed: the GIL orders the end of a code object before the
     * next one at its address. */
    uint32_t generation;
    /* Changed only while no walk is under way. */
    vst_recording *recording;
    /* Held for a look-up or an insertion. A signal handler does not deadlock on
     * it: if it allocates, it is inside an allocator already and is not
     * recorded. */
    VST_OWN_LINE atomic_flag lock;
    /* Guarded by the lock. */
    vpy_node_table nodes, codes;
    uint32_t last_serial;
};

struct vpy_memory_state {
    struct vpy_allocator_hooks_state hooks;
    struct vpy_memory_tracer_state tracer;
    struct vpy_stack_walk_state walk;
    struct vpy_stack_nodes_state nodes;
};

extern struct vpy_memory_state vpy_memory;

#pragma GCC visibility pop
#endif
