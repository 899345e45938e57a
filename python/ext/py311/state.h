/* The state of py311/: all of its variables that outlive a call. vpy_py311 has
 * a member for each file, which only that file changes unless a comment says
 * otherwise; the file calls its member `state`. All of it is guarded by the
 * GIL. */
#ifndef VPY_PY311_STATE_H
#define VPY_PY311_STATE_H

#include "thunks/watched_methods.h"

#pragma GCC visibility push(hidden)

/* frame_place.c */
struct vpy_frame_place_state {
    /* An era is a period with the hook installed. Eras are counted; 0 while the
     * hook is not installed or nothing is recorded. */
    uint64_t era;
    _PyFrameEvalFunction next_evaluate; /* the hook that was there before */
    uint64_t last_era;
    /* the interpreter that is recorded, or NULL */
    PyInterpreterState *interpreter;
    bool buried; /* another hook is on top of ours, and may call ours */
    size_t pauses;
    struct {
        uint64_t era; /* the era that was interrupted, 0: no pause */
        /* the thread that asked for the pause */
        const struct vpy_frames_thread *thread;
        /* the pause ends when that thread's stack pointer is above this
         * address */
        uintptr_t ends_above;
    } paused;
    /* The hook is removed for a time: ends of earlier calls are still seen, new
     * calls are not. */
    bool is_resting;
    uint32_t returns; /* how often the hook was put back */
};

/* frame_inlined.c */
struct vpy_getitems_state {
    bool are_inlined;  /* the interpreter enters __getitem__ without the hook */
    bool are_hidden;   /* the hook sees these functions now */
    PyObject *name;    /* "__getitem__"; never released */
    PyObject **hidden; /* weak references to functions */
    size_t hidden_count, hidden_capacity;
    uint32_t next_version;
};

/* frame_open.c */
struct vpy_frame_open_state {
    struct vpy_open_calls *all;
};

/* frame_test.c */
struct vpy_frame_test_state {
    PyThreadState *thread; /* the thread whose calls are noted, NULL: none */
    size_t length;
    char seen[128]; /* first letters of names, and marks */
};

/* known.c */
struct vpy_known_state {
    PyObject *swapped; /* the object in the place of an argument, or NULL */
};

/* passing.c */
struct vpy_passing_state {
    double share; /* passing costs this share of the time */
    bool rests;
};

/* engine_profile.c */
struct vpy_profile_state {
    /* the interpreter that is recorded, or NULL */
    PyInterpreterState *interpreter;
    /* number of thread states ever made, at the last look */
    uint64_t threads_seen;
    int looks;   /* how often the newest thread was looked for */
    bool placed; /* the hooks are set */
    bool record_native;
    struct vpy_displaced_hook *displaced;
    /* Methods that change the thread's hook, called through us. */
    vpy_watched setprofile, enable, disable;
};

/* stack_depths.c */
struct vpy_stack_depths_state {
    Py_ssize_t extra_index; /* -1: none yet */
};

struct vpy_py311_state {
    struct vpy_frame_place_state place;
    struct vpy_getitems_state getitems;
    struct vpy_frame_open_state open;
    struct vpy_frame_test_state test;
    struct vpy_known_state known;
    struct vpy_passing_state passing;
    struct vpy_profile_state profile;
    struct vpy_stack_depths_state depths;
};

extern struct vpy_py311_state vpy_py311;

#pragma GCC visibility pop
#endif
