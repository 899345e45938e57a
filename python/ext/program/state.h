/* The state of program/: all variables that outlive a call. vpy_program has a
 * member for each file, which only that file changes; the file calls its member
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_PROGRAM_STATE_H
#define VPY_PROGRAM_STATE_H

#include "thunks/watched_methods.h"

#include "record/language_lock.h"

#pragma GCC visibility push(hidden)

struct vpy_tracer;

/* Functions of the framework's adapter. vpy_hush_fn sets whether
 * __torch_function__ of tensor subclasses runs (HUSHED: not) and returns the
 * previous state. */
typedef int vpy_hush_fn(int state);
typedef void vpy_note_fn(const uintptr_t *tensors, const unsigned char *roles,
                         size_t count,
                         void (*record)(const uint64_t *, uint32_t));
/* Describes a tensor, or its gradient. Returns the text's length, or 0 if there
 * is nothing to describe. */
typedef size_t vpy_describe_fn(uintptr_t tensor, int gradient, char *text,
                               size_t room);

/* exceptions.c. Both fields change only before hooks are placed and after they
 * are gone. */
struct vpy_exceptions_state {
    bool are_wanted; /* exceptions are recorded */
    /* An exception is seen only when it leaves a function, as the evaluation
     * hook learns no more. */
    bool are_known_late;
};

/* raise_counts.c. `are_wanted` changes only before hooks are placed and after
 * they are gone; the table is guarded by the GIL. */
struct vpy_raise_counts_state {
    uint64_t *counts; /* by id of function */
    size_t capacity;
    bool are_wanted;
};

/* exits.c. Written when the module is loaded, except where a field names its
 * guard. */
struct vpy_exits_state {
    PyCFunctionObject *exit_function; /* NULL: not found */
    vectorcallfunc plain_exit;
    PyMethodDef *plain_definition, own_definition;
    PyObject
        *follower; /* our Python function, or NULL; guarded by the state lock */
    long owner;    /* the process whose follower it is; guarded by the GIL */
    bool (*child_ends)(
        int code); /* used in a child; NULL: not set; guarded by the GIL */
    long leaving;  /* the thread that is ending the process; 0: none.
                    * Atomic */
};

/* framework_modules.c. Guarded by the GIL, except where a field names its
 * guard. */
struct vpy_framework_modules_state {
    /* Code objects of the framework's functions; NULL: not known. */
    PyObject *module_code;             /* the function that calls modules */
    PyObject *enter_code, *leave_code; /* begin and end annotations */
    PyObject *step_code;               /* optimizers call this in each step */
    PyObject *overload_code, *packet_code; /* call operators */
    struct vpy_module_entry *entries;
    size_t capacity, count; /* capacity is 0 or a power of two */
    PyObject *numbers;      /* {class name: number of modules} */
    uint32_t generation;    /* the recording that the table belongs to */
    /* Called once the framework is imported, or NULL. Atomic: the thread that
     * takes the pointer out owns its reference. */
    PyObject *waiter;
};

/* framework_tensors.c. Guarded by the GIL. */
struct vpy_framework_tensors_state {
    PyTypeObject *tensor_type; /* NULL: tensors are not recorded */
    vpy_hush_fn *hush;
    vpy_note_fn *note;
    struct vpy_noted_optimizer *optimizers;
    size_t optimizer_count;
};

/* gc.c */
struct vpy_gc_state {
    /* The id that is recorded, and the generation in which it is valid. Changed
     * in a stopped world. */
    vst_id id;
    uint32_t id_since;
    /* The generation of the open span. Guarded by the collector: only one
     * thread collects at a time. */
    uint32_t begun_in;
    /* Our callback while it is in gc.callbacks. Guarded by the control lock. */
    PyObject *callback;
    PyObject *module; /* the module gc, imported when our module is loaded */
};

/* gil_waits.c. Guarded by the control lock; constant while waits are recorded.
 */
struct vpy_gil_waits_state {
    vst_lock lock;
    bool is_tried;
    const char *trouble;
    const void *condition; /* of the GIL; atomic: a thread of ours stores it */
};

#if VPY_FREE_THREADED
/* object_waits.c. Guarded by the control lock; constant while waits are
 * recorded. */
struct vpy_object_waits_state {
    bool is_tried;
    const char *trouble;
    const void *learned; /* a semaphore; atomic: a thread of ours stores it */
    PyMutex tried;       /* the lock for which that thread waits */
};
#endif

/* greenlets.c. Guarded by the state lock. */
struct vpy_greenlets_state {
    PyObject *greenlet;        /* the module; NULL while not recording */
    PyObject *switch_callback; /* our trace function */
    struct vpy_tracer *tracer;
    PyObject *parent_name, *name_name; /* "parent" and "name"; never released */
};

/* noted_tensors.c. Guarded by the GIL. */
struct vpy_noted_tensors_state {
    PyTypeObject *tensor_type;
    vpy_describe_fn *describe;
    PyObject *noted; /* a list; NULL: tensors are not noted */
    PyObject *seen;  /* the addresses of the optimizers in the list, as a set */
};

/* stack_room.c. Guarded by the control lock. */
struct vpy_stack_room_state {
    bool has_grown; /* the main thread's stack has grown */
    vpy_watched
        stack_size;    /* threading.stack_size; guarded by the state lock */
    size_t of_program; /* the program's stack size; 0: the default. Guarded by
                        * the GIL */
};

/* task_objects.c. Guarded by the state lock; a thread takes a reference under
 * the lock to each object that it uses. */
struct vpy_task_objects_state {
    /* asyncio's functions and types, while asyncio is loaded and we record. */
    struct {
        PyObject *running_loop,
            *current_task;           /* functions; NULL until they are found */
        PyTypeObject *task, *future; /* in C, or NULL */
        PyObject *get_name;
        PyObject *current_tasks; /* {loop: task}; NULL: current_task is a C
                                  * function */
    } asyncio;
    PyObject *coro_name, *plain_name; /* "_coro" and "_name"; never released */
    vpy_watched set_name, set_result, set_exception, cancel;
};

/* task_table.c. Guarded by the state lock. */
struct vpy_task_table_state {
    struct vpy_known *places;
    size_t count, capacity; /* a power of two */
    /* The last number that was given. Never reset, as windows share one file.
     * Atomic. */
    uint32_t last_task;
};

/* Which events triggers need. Hooks read this before they take a lock. */
typedef enum vpy_triggers_wish {
    VPY_WANTS_NOTHING = 0,
    VPY_WANTS_EXCEPTIONS = 1,
    VPY_WANTS_TIMES = 2,
    VPY_WANTS_CALLS = 4 /* a function may have the name of a trigger */
} vpy_triggers_wish;

/* triggers.c. Guarded by the state lock. */
struct vpy_triggers_state {
    struct vpy_triggers *active; /* NULL: none */
    vpy_triggers_wish wanted;    /* atomic: read by hooks */
    /* How often `active` was set: a thread drops calls of an earlier recording.
     * Atomic. */
    uint32_t recording;
    struct vpy_trigger_watch *watches;
    size_t watch_count, watch_capacity;
};

struct vpy_program_state {
    struct vpy_exceptions_state exceptions;
    struct vpy_exits_state exits;
    struct vpy_framework_modules_state modules;
    struct vpy_framework_tensors_state tensors;
    struct vpy_gc_state gc;
    struct vpy_gil_waits_state gil_waits;
#if VPY_FREE_THREADED
    struct vpy_object_waits_state object_waits;
#endif
    struct vpy_greenlets_state greenlets;
    struct vpy_noted_tensors_state noted;
    struct vpy_raise_counts_state raise_counts;
    struct vpy_stack_room_state stack_room;
    struct vpy_task_objects_state task_objects;
    struct vpy_task_table_state task_table;
    struct vpy_triggers_state triggers;
};

extern struct vpy_program_state vpy_program;

#pragma GCC visibility pop
#endif
