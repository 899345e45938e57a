/* The state of program/: all of its variables that outlive a call. vpy_program
 * has a member for each file, which only that file changes; the file calls it
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_PROGRAM_STATE_H
#define VPY_PROGRAM_STATE_H

#include "thunks/watched_methods.h"

#include "record/language_lock.h"

#pragma GCC visibility push(hidden)

struct vpy_tracer;

/* Functions of the framework's adapter. The first sets whether
 * __torch_function__ of tensor subclasses runs (HUSHED: not) and returns the
 * state before. */
typedef int vpy_hush_fn(int state);
typedef void vpy_note_fn(const uintptr_t *tensors, const unsigned char *roles,
                         size_t count,
                         void (*record)(const uint64_t *, uint32_t));
/* Writes text about a tensor, or about its gradient, and returns its length, 0:
 * nothing. */
typedef size_t vpy_describe_fn(uintptr_t tensor, int gradient, char *text,
                               size_t room);

/* exceptions.c. Both change before hooks are placed and after they are gone. */
struct vpy_exceptions_state {
    bool are_wanted; /* exceptions are recorded */
    /* Only exceptions that leave a function are seen, and only then: the
     * evaluation hook is told no more. */
    bool are_known_late;
};

/* exits.c. Written when the module is loaded, except where a field names its
 * guard. */
struct vpy_exits_state {
    PyCFunctionObject *exit_function; /* NULL: not found */
    vectorcallfunc plain_exit;
    PyMethodDef *plain_definition, own_definition;
    PyObject *follower; /* a function of ours, or NULL; the state lock's */
    long owner;         /* the process that follower is for; the GIL's */
    bool (*child_ends)(int code); /* in a child; NULL: not set; the GIL's */
    long leaving; /* the thread that is ending the process; 0: none.
                   * Atomic */
};

/* framework_modules.c. Guarded by the GIL, except where a field names its
 * guard. */
struct vpy_framework_modules_state {
    /* Code objects of the framework's functions; NULL: not known. */
    PyObject *module_code;             /* that calls its modules */
    PyObject *enter_code, *leave_code; /* of its annotations */
    PyObject *step_code; /* that its optimizers call in each step */
    PyObject *overload_code, *packet_code; /* that call operators */
    struct vpy_module_entry *entries;
    size_t capacity, count; /* capacity is 0 or a power of two */
    PyObject *numbers;      /* class name: how many there are */
    uint32_t generation;    /* the recording that the table belongs to */
    /* Called once the framework is imported, or NULL. Atomic: who takes it out
     * has its reference. */
    PyObject *waiter;
};

/* framework_tensors.c. Guarded by the GIL. */
struct vpy_framework_tensors_state {
    PyTypeObject *tensor_type; /* NULL: nothing is noted */
    vpy_hush_fn *hush;
    vpy_note_fn *note;
    struct vpy_noted_optimizer *optimizers;
    size_t optimizer_count;
};

/* gc.c */
struct vpy_gc_state {
    /* The id that is recorded, and the generation in which it is one. Changed
     * in a stopped world. */
    vst_id id;
    uint32_t id_since;
    /* The generation of the span that is open. Guarded by the collector: one
     * thread collects at a time. */
    uint32_t begun_in;
    /* Our callback while it is in gc.callbacks. Guarded by the control lock. */
    PyObject *callback;
    PyObject *module; /* imported when our module is loaded */
};

/* gil_waits.c. Guarded by the control lock; constant while waits are recorded.
 */
struct vpy_gil_waits_state {
    vst_lock lock;
    bool is_tried;
    const char *trouble;
    const void *condition; /* of the GIL; atomic: our thread stores it */
};

#if VPY_FREE_THREADED
/* object_waits.c. Guarded by the control lock; constant while waits are
 * recorded. */
struct vpy_object_waits_state {
    bool is_tried;
    const char *trouble;
    const void *learned; /* a semaphore; atomic: our thread stores it */
    PyMutex tried;       /* what our thread waits for */
};
#endif

/* greenlets.c. Guarded by the state lock. */
struct vpy_greenlets_state {
    PyObject *greenlet;        /* the module, while recording */
    PyObject *switch_callback; /* what settrace gets */
    struct vpy_tracer *tracer;
    PyObject *parent_name, *name_name; /* "parent", "name", for good */
};

/* noted_tensors.c. Guarded by the GIL. */
struct vpy_noted_tensors_state {
    PyTypeObject *tensor_type;
    vpy_describe_fn *describe;
    PyObject *noted; /* a list; NULL: nothing is noted */
    PyObject *seen;  /* a set of the addresses of optimizers in it */
};

/* stack_room.c. Guarded by the control lock. */
struct vpy_stack_room_state {
    bool has_grown;         /* the main thread's stack */
    vpy_watched stack_size; /* threading.stack_size; the state lock's */
    size_t of_program;      /* the size that it has chosen; 0: the default. The
                             * GIL's */
};

/* task_objects.c. Guarded by the state lock; who uses an object takes a
 * reference there. */
struct vpy_task_objects_state {
    /* asyncio's, while it is loaded and we record. */
    struct {
        PyObject *running_loop,
            *current_task;           /* functions; NULL: not found yet */
        PyTypeObject *task, *future; /* in C, or NULL */
        PyObject *get_name;
        PyObject *current_tasks; /* by loop; NULL: current_task is in C */
    } asyncio;
    PyObject *coro_name, *plain_name; /* "_coro", "_name", for good */
    vpy_watched set_name, set_result, set_exception, cancel;
};

/* task_table.c. Guarded by the state lock. */
struct vpy_task_table_state {
    struct vpy_known *places;
    size_t count, capacity; /* a power of two */
    /* Never goes back: windows share one file. Atomic. */
    uint32_t last_task;
};

/* What hooks ask before they take a lock. */
typedef enum vpy_triggers_wish {
    VPY_WANTS_NOTHING = 0,
    VPY_WANTS_EXCEPTIONS = 1,
    VPY_WANTS_TIMES = 2,
    VPY_WANTS_CALLS = 4 /* a function may have the name of a trigger */
} vpy_triggers_wish;

/* triggers.c. Guarded by the state lock. */
struct vpy_triggers_state {
    struct vpy_triggers *active; /* NULL: none */
    vpy_triggers_wish wanted;    /* atomic: hooks read it */
    /* Counts `active`: threads forget the calls of another one. Atomic. */
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
    struct vpy_stack_room_state stack_room;
    struct vpy_task_objects_state task_objects;
    struct vpy_task_table_state task_table;
    struct vpy_triggers_state triggers;
};

extern struct vpy_program_state vpy_program;

#pragma GCC visibility pop
#endif
