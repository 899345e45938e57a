/* The state of session/: all of its variables that outlive a call. vpy_sessions
 * has a member for each file, which only that file changes; the file calls it
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_SESSION_STATE_H
#define VPY_SESSION_STATE_H

#include "thunks/watched_methods.h"

#include <pthread.h>
#include <signal.h>

#pragma GCC visibility push(hidden)

/* session.c */
struct vpy_session_state {
    /* Where there is no GIL: one thread at a time starts, stops or finishes a
     * recording, forks included. It is taken before the state lock. Audit hooks
     * of the program may run meanwhile, on the thread that has it. */
    vpy_lock control_lock;
    /* The session that records; borrowed; NULL: none. It changes under both
     * locks. */
    PyObject *recording;
};

/* collectors.c. Written when the module is loaded. */
struct vpy_collectors_state {
    const struct vst_api *table;
};

/* descriptor_watch.c. Guarded by the GIL, except where a field names its guard.
 */
struct vpy_descriptor_watch_state {
    PyObject *function; /* NULL: nobody watches */
    int descriptor;     /* what is watched; whoever watches closes it */
    int bell;           /* an eventfd that ends the thread's sleep, or -1 */
    double deadline_s;  /* of the monotonic clock; negative: none. Its own
                         * thread changes it */
    pthread_t thread;   /* valid while is_there */
    long thread_id;     /* the kernel's; of the thread, which sets it first.
                         * Read by who has joined it */
    bool is_there;      /* the thread runs, and nobody joins it yet */
    bool is_joined;     /* somebody waits for its end */
    bool paused;        /* for a fork */
};

/* flight.c. Guarded by the control lock. */
struct vpy_flight_state {
    struct vpy_flight *armed; /* NULL: none */
    bool paused;              /* for a fork */
};

/* The thread that forked, for the metadata of its child. */
typedef struct vpy_origin {
    long pid; /* the process that was recorded */
    long tid; /* 0: not known */
    long long time_ns;
} vpy_origin;

/* forks.c. Guarded by the GIL, except where a field names its guard. */
struct vpy_forks_state {
    PyObject *follower; /* called in a child of a recording, or NULL */
    PyObject *first;    /* called in every child before, NULL: not set */
    pid_t process;      /* the process that our state belongs to */
    /* Forks that pthread_atfork has seen, and those that were dealt with.
     * Guarded by the process: a child has one thread when it changes them. */
    unsigned forks, noticed;
    vpy_origin forked_by; /* of this process, a forked child */
    /* Python does not know of the fork that made this process. Guarded by the
     * state lock. */
    bool untold;
    PyObject *file; /* bytes: where this process records without Python, or
                     * NULL */
    PyObject *kept; /* the session that does, borrowed; NULL: it is gone */
};

/* forked_child.c. Guarded by the GIL. */
struct vpy_forked_child_state {
    PyObject *plan;  /* NULL: there is none */
    PyObject *facts; /* a list of keys and values in turn, as bytes */
    /* These are borrowed from the plan. */
    PyObject *environment, *expect;
    const char *stem, *trace;
};

/* snapshot.c */
struct vpy_snapshots_state {
    /* Copies that are being written, or are written and not joined. Guarded by
     * the state lock. */
    struct vpy_snapshot_copy *copies;
    unsigned last_number; /* atomic */
};

/* snapshot_signal.c. Guarded by the control lock, except where a field names
 * its guard. A handler reads what is written before it is installed. */
struct vpy_snapshot_signal_state {
    int installed;             /* the signal whose handler is ours, 0: none */
    struct vst_flight *target; /* atomic; NULL: not armed */
    uint32_t reason;
    /* Handlers that may hold target or `behind`. Atomic. */
    int handlers_inside;
    /* The program's own action for the signal. */
    struct {
        struct sigaction action;
        bool is_chosen; /* the program set it while ours was installed */
    } behind;
    vpy_watched signal_method; /* signal.signal; the state lock's */
};

enum { VPY_GUARD_LAYERS = 8 };

/* storage_guard.c. Guarded by the lock. */
struct vpy_storage_guard_state {
    pthread_mutex_t lock;
    unsigned wanted; /* how often the recorder asked for it */
    int next_layer;  /* the layer to install next */
    /* The handler behind each layer. Written before the layer is installed. */
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
};

extern struct vpy_sessions_state vpy_sessions;

#pragma GCC visibility pop
#endif
