/* The state of session/: all variables that outlive a call. vpy_sessions has a
 * member for each file, which only that file changes; the file calls its member
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_SESSION_STATE_H
#define VPY_SESSION_STATE_H

#include "thunks/watched_methods.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#pragma GCC visibility push(hidden)

/* session.c */
struct vpy_session_state {
    /* Lets one thread at a time start, stop or finish a recording, or fork, on
     * builds without the GIL. Take it before the state lock. Audit hooks of the
     * program may run on the thread that has it. */
    vpy_lock control_lock;
    /* The session that records (borrowed), or NULL. Changes under both
     * locks. */
    PyObject *recording;
    /* In a forked child, the session of its parent, which is freed late; NULL:
     * freed. Changes under the control lock. */
    vst_session *inherited;
};

/* collectors.c. Written when the module is loaded. */
struct vpy_collectors_state {
    const struct vst_api *table;
};

/* copies.c. Written once, with the GIL. */
struct vpy_copies_state {
    char copier[PATH_MAX]; /* empty until somebody asks */
};

/* descriptor_watch.c. Guarded by the GIL, except where a field names its guard.
 */
struct vpy_descriptor_watch_state {
    PyObject *function; /* NULL: nothing is watched */
    int descriptor; /* the watched descriptor; the caller of watch_descriptor()
                     * closes it */
    int bell;       /* an eventfd that ends the thread's sleep, or -1 */
    double deadline_s; /* on the monotonic clock; negative: none. Only the
                        * watching thread changes it */
    pthread_t thread;  /* valid while is_there */
    long thread_id; /* the kernel's number of the thread, which sets it first.
                     * Read by the thread that has joined it */
    bool is_there;  /* the thread runs and is not being joined */
    bool is_joined; /* a thread is joining it */
    bool paused;    /* the thread was ended for a fork and comes back */
};

/* flight.c. Guarded by the control lock. */
struct vpy_flight_state {
    struct vpy_flight *armed; /* NULL: no session is armed */
    /* the thread of the flight recorder was ended for a fork */
    bool paused;
};

/* The thread that forked, for the metadata of its child. */
typedef struct vpy_origin {
    long pid; /* the process that was recorded */
    long tid; /* 0: not known */
    long long time_ns;
} vpy_origin;

/* forks.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_forks_state {
    PyObject *
        follower; /* called in each child of a recording process; may be NULL */
    PyObject *first; /* called before it in every child; NULL: not set */
    pid_t process;   /* the process that our state belongs to */
    /* How many forks pthread_atfork has seen, and how many were dealt with.
     * Needs no guard: a child has one thread when it changes them. */
    unsigned forks, noticed;
    vpy_origin forked_by; /* the thread that forked this process */
    /* vestige's Python code does not know yet of the fork that made this
     * process. Guarded by the state lock. */
    bool is_unknown_to_python;
    PyObject *file; /* bytes: the file that this process records without Python
                     * code, or NULL */
    PyObject *kept; /* the session that records `file`, borrowed; NULL: freed */
};

/* forked_child.c. Guarded by the GIL. */
struct vpy_forked_child_state {
    PyObject *plan;  /* NULL: no plan */
    PyObject *facts; /* a list of bytes: key, value, key, value, … */
    /* Borrowed from the plan. */
    PyObject *environment, *expect;
    const char *stem, *trace;
    PyObject *variable_name; /* bytes: a key of `environment`, or NULL */
    char variable[128];      /* name=value; the environment has its address */
};

/* snapshot.c */
struct vpy_snapshots_state {
    /* Copies whose threads were not joined yet. Guarded by the state lock. */
    struct vpy_snapshot_copy *copies;
    unsigned last_number; /* atomic */
};

/* snapshot_signal.c. Guarded by the control lock, except where a field names
 * its guard. The handler reads only fields that are written before it is
 * installed. */
struct vpy_snapshot_signal_state {
    int installed; /* the signal that our handler is installed for; 0: none */
    struct vst_flight *target; /* atomic; NULL: not armed */
    uint32_t reason;
    /* How many handlers are running and may use target or `behind`. Atomic. */
    int handlers_inside;
    /* The program's own action for the signal. */
    struct {
        struct sigaction action;
        bool is_chosen; /* the program set it while our handler was installed */
    } behind;
    vpy_watched signal_method; /* signal.signal; guarded by the state lock */
};

enum { VPY_GUARD_LAYERS = 8 };

/* storage_guard.c. Guarded by the lock. */
struct vpy_storage_guard_state {
    pthread_mutex_t lock;
    unsigned wanted; /* how many recordings need the guard */
    int next_layer;  /* the layer to install next */
    /* The handler that each layer calls. Written before the layer is
     * installed. */
    struct sigaction before[VPY_GUARD_LAYERS];
};

struct vpy_sessions_state {
    struct vpy_session_state session;
    struct vpy_collectors_state collectors;
    struct vpy_descriptor_watch_state watch;
    struct vpy_flight_state flight;
    struct vpy_forks_state forks;
    struct vpy_forked_child_state child;
    struct vpy_snapshots_state snapshots;
    struct vpy_snapshot_signal_state signal;
    struct vpy_storage_guard_state guard;
    struct vpy_copies_state copies;
};

extern struct vpy_sessions_state vpy_sessions;

#pragma GCC visibility pop
#endif
