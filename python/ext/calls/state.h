/* The state of calls/: all of its variables that outlive a call. vpy_calls has
 * a member for each file, which only that file changes unless a comment says
 * otherwise; the file calls its member `state`. A comment at a struct or a
 * field names the guard. */
#ifndef VPY_CALLS_STATE_H
#define VPY_CALLS_STATE_H

#include "thunks/watched_methods.h"

#define VPY_MESSAGE_MAX 256

#pragma GCC visibility push(hidden)

/* A C function that has an id: a slot of the table in native_ids.c. Hooks read
 * it without a lock. method is stored last, and version last in a slot that is
 * given to another function (release; vpy_native_find acquires both). */
typedef struct vpy_native {
    PyMethodDef *method; /* NULL: the slot is empty */
    PyTypeObject *owner; /* type of the object that it is bound to, or NULL */
    vst_id id;
    /* index of the names to compare with, because the definition may be freed;
     * 0: compare none */
    uint32_t names;
    /* tp_version_tag of owner: while the tag is equal, nothing has changed. 0:
     * not known, or the definition itself may be freed */
    uint32_t version;
    bool in_image; /* the definition lies in a library */
} vpy_native;

/* Read by every hook without a lock, so every field is atomic. */
struct vpy_calls_hooks {
    /* The index of the extra slot in which code objects have their values.
     * Written when the module is loaded. */
    Py_ssize_t code_extra_index;
    /* Counts recordings. Changed with the state lock (code_ids.c). */
    uint32_t generation;
    /* Counts rounds. A recording begins a round, and so does a budget whenever
     * it changes the set of left-out functions. The upper half of a code
     * object's extra slot has the number of the round for which its value was
     * given. While nothing is recorded, no code object has the current number.
     * Changed with the state lock (code_ids.c); the first change of a recording
     * comes while the world is stopped. */
    uint32_t round;
    /* The table of C functions, never NULL. Changed with the state lock
     * (native_ids.c). A table that grows is published before its mask, so a
     * reader that takes the mask first never looks behind the table's end. */
    vpy_native *natives;
    size_t natives_mask;
};

/* tracer.c */
struct vpy_tracer_state {
    /* The tracer whose hooks are installed, NULL while none is. Changed with
     * the state lock, which a reader of the tracer's fields holds; atomic for
     * vpy_is_active. */
    struct vpy_tracer *active;
    /* The reason why the last make or restart failed, "" if it did not fail.
     * Engines write it, too. Guarded by the control lock. */
    char message[VPY_MESSAGE_MAX];
    /* Whether Python's gc was enabled, while a recording starts. Guarded by the
     * control lock. */
    int gc_was_on;
};

/* engine.c. Guarded by the control lock: these change when a recording starts,
 * stops or is about to. */
struct vpy_engine_state {
    const struct vpy_engine *running; /* NULL: none. Atomic: hooks read it */
    bool has_noted;  /* the user knows that an engine is not usable */
    bool has_warned; /* the user knows that this Python is not proven */
    char note[VPY_MESSAGE_MAX]; /* line for the user, or "" */
    /* why the wanted engine does not record, or "" */
    char missed[VPY_MESSAGE_MAX];
    /* Hide our hooks from torch's profiler, as torch.profiler does. Guarded by
     * the GIL; the module's set_torch_mode() writes it. */
    bool torch_mode;
};

/* code_ids.c. Guarded by the state lock. */
struct vpy_code_ids_state {
    struct vpy_tracer *tracer; /* the tracer that gives ids, NULL: none */
    uint32_t given_for;        /* the round for which the tracer gives ids */
    uint32_t first_round;      /* first round of the recording */
};

enum { VPY_RETIRED_MAX = 48 };

typedef struct vpy_natives {
    vpy_native *table; /* NULL: none */
    /* Smaller tables that were replaced: a hook may still look into one. */
    vpy_native *retired[VPY_RETIRED_MAX];
    size_t retired_count;
    /* names, from index 1 on; vpy_native.names is an index */
    struct vpy_native_names *kept;
    uint32_t kept_count, kept_capacity;
} vpy_natives;

/* native_ids.c. Guarded by the state lock. */
struct vpy_native_ids_state {
    /* stands for the table while there is none; never written */
    vpy_native none[1];
    vpy_natives now, inherited; /* inherited: the parent's, in a forked child */
    size_t used;                /* slots of the table */
    struct vpy_tracer *tracer;  /* the tracer that gives ids, NULL: none */
};

/* The last id of a class or of another callable object: see callable_ids.c. */
typedef struct vpy_callable {
    uintptr_t subject; /* whose id it is; 0: empty */
    PyObject *alive;   /* weak reference to it; NULL: it is never freed */
    vst_id id;         /* 0: its calls are not recorded */
    uint32_t round;    /* the id is right in this round */
} vpy_callable;

enum { VPY_CALLABLES_KEPT = 1024 };

/* callable_ids.c. Guarded by the state lock, except where a field names its
 * guard. */
struct vpy_callable_ids_state {
    vpy_callable kept[VPY_CALLABLES_KEPT];
    /* The slots of a class that defines __call__, __init__ and __new__ in
     * Python. Written when the module is loaded. */
    ternaryfunc python_call;
    initproc python_init;
    newfunc python_new;
    destructor python_dealloc;
    bool are_used;  /* some are kept */
    uint32_t round; /* number of times that all ids were forgotten */
};

/* turbo_test.c. Guarded by the control lock. */
struct vpy_turbo_test_state {
    int known; /* result of the test in this process, 0: not tested yet */
};

/* Numbers of calls, by the function's id. */
typedef struct vpy_counts {
    struct vpy_counted *of; /* by id */
    vst_id size;
    vst_id *seen; /* ids that have calls in this sample */
    size_t seen_count;
    vst_id *out; /* ids that are left out now */
    size_t out_count;
} vpy_counts;

/* Costs of calls, in ns. */
typedef struct vpy_budget_costs {
    double python_ns, native_ns;
    double passed_ns; /* cost of a Python call that is left out */
} vpy_budget_costs;

/* budget.c and budget_choice.c. Guarded by the GIL: a build without the GIL has
 * no budget. */
struct vpy_budget_state {
    struct vpy_tracer *tracer; /* NULL: no budget is kept */
    vpy_counts counts;
    bool by_thunks;
    double share;
    /* expected cost of a call, and the highest possible */
    vpy_budget_costs costs, most;
    /* when the budget began, and the last look; CPU time of the process, in
     * ns */
    double began, looked;
    /* CPU time of the program without recording, at the last look */
    double own;
    /* cost of recording so far, and at the last look; in ns */
    double cost, cost_by_then;
    /* highest possible cost of recording so far */
    double spent;
    double forgone;
    double storage_ns;  /* cost of storing a word */
    double window_cost; /* estimated cost of a window */
    /* time of the last change, and how long to wait for a window after it */
    double changed, wait_ns;
    bool in_window;
    bool is_looking;
    /* CPU time when the list of left-out functions was last written */
    double listed_at;
    bool listed_any; /* the list was not empty when it was last written */
    struct {
        double cpu, cost;
        double most; /* highest possible cost of the sample */
        double own;  /* CPU time of the program without recording */
        vst_ticks ticks;
    } sample;
    uint64_t random;
};

/* Called with the GIL; see vpy_budget_clock_start. */
typedef void vpy_budget_due_fn(double own_ns);

/* budget_clock.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_budget_clock_state {
    pthread_mutex_t lock;
    /* the condition for which the thread waits, with the lock */
    pthread_cond_t rung;
    bool ends; /* guarded by the lock */
    /* CPU time of the process at which to wake; atomic */
    uint64_t due_ns;
    pthread_t thread; /* valid while is_there */
    /* the kernel's number of the thread, which sets it first; read by
     * vpy_join */
    long thread_id;
    /* is_away: the thread was ended for a fork and comes back */
    bool is_there, is_away;
    bool has_exit;             /* end_at_exit is registered */
    vpy_budget_due_fn *on_due; /* NULL: no budget is kept */
};

#if VPY_HAS_MONITORING
enum { VPY_MONITORING_HOOKS = 12, VPY_MONITORING_UNWIND = 5 };

/* budget_frames.c. Guarded by the GIL. */
struct vpy_stale_frames_state {
    struct vpy_stale_frame *table;
    size_t mask, used; /* `used` counts slots in use */
};

/* engine_monitoring.c. Guarded by the control lock, except where a field names
 * its guard. */
struct vpy_monitoring_state {
    /* Written when the module is loaded. */
    PyObject *callbacks[VPY_MONITORING_HOOKS];
    PyObject *test_callbacks[VPY_MONITORING_HOOKS];
    long event_numbers[VPY_MONITORING_HOOKS];
    /* See "code that is left out" in engine_monitoring.c. Atomic: functions
     * that get their ids read it. */
    bool unwinds_locally;
    /* The hooks stay in place for the next recording, which follows immediately
     * and has the same options: the recording of a forked child. Setting events
     * anew would cost the child a page for each function that it calls. */
    bool are_kept;
    PyObject *live_answer; /* the answer from vpy_monitoring_go_live() on */
    /* The answer of a hook at a place in code that is not recorded: None, or
     * sys.monitoring.DISABLE, so that the interpreter does not call it there
     * again. Borrowed. Atomic: hooks read it. */
    PyObject *answer;
};

/* monitoring_test.c: the events of the calls that the self test makes, in
 * order. Guarded by the control lock; then by the thread, whose hooks write. */
struct vpy_monitoring_test_state {
    /* the thread that makes the calls, NULL: no test is in progress */
    PyThreadState *thread;
    size_t length;
    char seen[128];
};

/* monitoring_tool.c */
struct vpy_tool_state {
    /* Our id while a recording or a test needs it, else -1. Changed with the
     * control lock; atomic: functions that get their ids read it. */
    long id;
    /* The name under which we took the id. sys.monitoring returns this very
     * object while the id is ours. Guarded by the control lock. */
    PyObject *name;
};
#endif

enum { VPY_KNOWN_LINES = 1024, VPY_KNOWN_STACKS = 2048 };

typedef struct vpy_known_line {
    const PyCodeObject *code;
    int instruction;
    uint32_t freed; /* value of vpy_lines_state.freed when the line was found */
    int32_t line;
} vpy_known_line;

typedef struct vpy_known_stack {
    uint64_t place; /* line, function << 32 */
    uint32_t parent, id;
    uint32_t round; /* the id is right in this round */
} vpy_known_stack;

/* lines.c. Guarded by is_busy, except where a field names its guard. */
struct vpy_lines_state {
    /* A thread uses the tables. Atomic: acquire and release. */
    bool is_busy;
    /* Counts code objects that ended. Atomic: an entry of the table is right
     * for the count at which it was made. */
    uint32_t freed;
    /* These two change while no hook is placed. */
    vst_recording *recording; /* in whose trace the stacks are */
    PyInterpreterState *main_interpreter;
    uint32_t round; /* number of recordings that had lines */
    vpy_known_line lines[VPY_KNOWN_LINES];
    vpy_known_stack stacks[VPY_KNOWN_STACKS];
};

/* The large tables are the first and the last member: a forked child copies
 * each page that it writes, and writes most of the members in between. */
struct vpy_calls_state {
    struct vpy_callable_ids_state callables;
    /* The recorded function that last called a C function: often it calls
     * again. Defining a code object resets this field, so that a new code
     * object at the same address is not mistaken for an earlier one. Guarded by
     * the GIL. Not used without the GIL: threads would overwrite each other's
     * value, and reading the code object's own value takes no longer. */
    PyObject *last_caller;
    struct vpy_tracer_state tracer;
    struct vpy_engine_state engine;
    struct vpy_code_ids_state code_ids;
    struct vpy_native_ids_state natives;
    struct vpy_turbo_test_state turbo_test;
    struct vpy_budget_state budget;
    struct vpy_budget_clock_state clock;
    vpy_watched setprofile; /* setprofile.c. Guarded by the state lock */
#if VPY_HAS_MONITORING
    struct vpy_stale_frames_state stale_frames;
    struct vpy_monitoring_state monitoring;
    struct vpy_monitoring_test_state monitoring_test;
    struct vpy_tool_state tool;
#endif
    struct vpy_lines_state lines;
};

extern struct vpy_calls_hooks vpy_calls_hooks;
extern struct vpy_calls_state vpy_calls;

#pragma GCC visibility pop
#endif
