/* The state of calls/: all of its variables that outlive a call. vpy_calls has
 * a member for each file, which only that file changes unless a comment says
 * otherwise; the file calls it `state`. A comment at a struct or a field names
 * the guard. */
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
    PyTypeObject *owner; /* type of what it is bound to, or NULL */
    vst_id id;
    uint32_t names;   /* not 0: it may be freed; which names to compare with */
    uint32_t version; /* tp_version_tag of owner: while it is the same, nothing
                       * has changed. 0: not known, or the definition itself
                       * may be freed */
    bool in_image;    /* the definition lies in a library */
} vpy_native;

/* Read by every hook, without a lock: atomic. */
struct vpy_calls_hooks {
    /* The slot of code objects that has their values. Written when the module
     * is loaded. */
    Py_ssize_t code_extra_index;
    /* Counts recordings. Changed with the state lock (code_ids.c). */
    uint32_t generation;
    /* Counts rounds. A recording begins a round, and a budget whenever it
     * leaves other functions out. The number of a round stands in the upper
     * half of a code object's extra slot, and says for which round the value
     * was given. While nothing is recorded no code object has this number.
     * Changed with the state lock (code_ids.c); a recording's first value comes
     * while the world is stopped. */
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
    /* Why the last make or restart failed, "" if it did not. Engines write it
     * too. Guarded by the control lock. */
    char message[VPY_MESSAGE_MAX];
    /* Whether Python's gc was enabled, while a recording starts. Guarded by the
     * control lock. */
    int gc_was_on;
};

/* engine.c. Guarded by the control lock: these change when a recording starts,
 * stops or is about to. */
struct vpy_engine_state {
    const struct vpy_engine *running; /* NULL: none. Atomic: hooks read it */
    bool told;       /* the user knows that an engine is not usable */
    bool has_warned; /* the user knows that this Python is not proven */
    char note[VPY_MESSAGE_MAX];   /* for the user, or "" */
    char missed[VPY_MESSAGE_MAX]; /* why the engine that was meant does not
                                   * record, or "" */
    /* Hide from torch's profiler as torch.profiler does. Guarded by the GIL;
     * the module's set_torch_mode() writes it. */
    bool torch_mode;
};

/* code_ids.c. Guarded by the state lock. */
struct vpy_code_ids_state {
    struct vpy_tracer *tracer; /* the tracer that gives ids, NULL: none */
    uint32_t given_for;        /* the round for which it gives ids */
    uint32_t first_round;      /* of the recording */
};

enum { VPY_RETIRED_MAX = 48 };

/* native_ids.c. Guarded by the state lock. */
struct vpy_native_ids_state {
    vpy_native none[1]; /* the table while there is no other; never written */
    /* Smaller tables that were replaced: a hook may still look into one. */
    vpy_native *retired[VPY_RETIRED_MAX];
    size_t retired_count;
    size_t used; /* slots of the table */
    /* From [1] on: vpy_native.names is an index. */
    struct vpy_native_names *kept;
    uint32_t kept_count, kept_capacity;
    struct vpy_tracer *tracer; /* the tracer that gives ids, NULL: none */
};

/* turbo_test.c. Guarded by the control lock. */
struct vpy_turbo_test_state {
    int known; /* the verdict for this process, 0: not tested yet */
};

/* Numbers of calls, by the function's id. */
typedef struct vpy_counts {
    struct vpy_counted *of; /* by id */
    vst_id size;
    vst_id *seen; /* that have calls in this sample */
    size_t seen_count;
    vst_id *out; /* that are left out now */
    size_t out_count;
} vpy_counts;

/* What a call costs in ns, and what a function is left out for. */
typedef struct vpy_budget_costs {
    double python_ns, native_ns;
    double passed_ns; /* a Python call that is left out */
} vpy_budget_costs;

/* budget.c and budget_choice.c. Guarded by the GIL: a build without the GIL has
 * no budget. */
struct vpy_budget_state {
    struct vpy_tracer *tracer; /* NULL: no budget is kept */
    vpy_counts counts;
    bool by_thunks;
    double share;
    vpy_budget_costs costs, most; /* of a call; that it may be */
    double began, looked;         /* CPU time of the process, ns */
    double own;                   /* CPU time of the program alone, by then */
    double cost, cost_by_then;    /* of recording so far, ns */
    double spent;                 /* the same, and what it may be more */
    double forgone;
    double storage_ns;       /* of a word */
    double window_cost;      /* what a window costs, about */
    double changed, wait_ns; /* when the last change was; until a window */
    bool in_window;
    bool is_turning;
    double told;   /* CPU time when the trace was told last what is left out */
    bool told_out; /* and whether anything was */
    struct {
        double cpu, cost;
        double most; /* that the cost may be */
        double own;  /* CPU time of the program alone */
        vst_ticks ticks;
    } sample;
    uint64_t random;
};

/* Called with the GIL; see vpy_budget_clock_start. */
typedef void vpy_budget_turn(double own_ns);

/* budget_clock.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_budget_clock_state {
    pthread_mutex_t lock;
    pthread_cond_t rung;    /* waited for with the lock */
    bool ends;              /* guarded by the lock */
    uint64_t due_ns;        /* CPU time of the process; atomic */
    pthread_t thread;       /* valid while is_there */
    long thread_id;         /* the thread writes it; vpy_join reads it */
    bool is_there, is_away; /* away: for a fork */
    bool has_exit;          /* end_at_exit is registered */
    vpy_budget_turn *turn;  /* NULL: no budget is kept */
};

#if VPY_HAS_MONITORING
enum { VPY_MONITORING_HOOKS = 11, VPY_MONITORING_UNWIND = 5 };

/* budget_frames.c. Guarded by the GIL. */
struct vpy_odd_frames_state {
    struct vpy_odd_frame *table;
    size_t mask, used; /* used: with those that were emptied since */
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
    /* The hooks are in place for the recording that follows at once, with the
     * same options: that of a forked child, to which events that are set anew
     * cost a page for each function that it calls. */
    bool are_kept;
    PyObject *live_answer; /* the answer once functions have their ids */
    /* The answer of a hook at a place in code that is not recorded: None, or
     * sys.monitoring.DISABLE, so that the interpreter does not call it there
     * again. Borrowed. Atomic: hooks read it. */
    PyObject *answer;
};

/* monitoring_test.c: the events of the calls that the self test makes, in
 * order. Guarded by the control lock; then by the thread, whose hooks write. */
struct vpy_monitoring_test_state {
    PyThreadState *thread; /* that makes calls, NULL: no test is under way */
    size_t length;
    char seen[128];
};

/* monitoring_tool.c */
struct vpy_tool_state {
    /* Our id while recording or testing, else -1. Changed with the control
     * lock; atomic: functions that get their ids read it. */
    long id;
    /* That very object says that the id is ours. Guarded by the control lock.
     */
    PyObject *name;
};
#endif

struct vpy_calls_state {
    /* The recorded function that last called something in C: often it calls
     * again. Defining a code object resets it, so that a new code object at the
     * same address is not mistaken for it. Guarded by the GIL. Without the GIL
     * it is not used: threads would take it from each other, and a code
     * object's own value is as near. */
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
    struct vpy_odd_frames_state odd_frames;
    struct vpy_monitoring_state monitoring;
    struct vpy_monitoring_test_state monitoring_test;
    struct vpy_tool_state tool;
#endif
};

extern struct vpy_calls_hooks vpy_calls_hooks;
extern struct vpy_calls_state vpy_calls;

#pragma GCC visibility pop
#endif
