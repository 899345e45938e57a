/* Triggers ask for a snapshot when the program is slow or fails.
 * session/flight.c makes and starts them; calls/ and annotate/ report
 * functions, annotations and exceptions to them. */
#ifndef VPY_PROGRAM_TRIGGERS_H
#define VPY_PROGRAM_TRIGGERS_H

#include "program/state.h"

#include "flight.h"

#pragma GCC visibility push(hidden)

typedef struct vpy_slow {
    char *name; /* names an annotation or a Python function */
    vst_ticks limit;
    uint32_t reason; /* the flight recorder's number of the reason */
    /* The name is an annotation's: an annotation had this name, or no function
     * can have it. Guarded by the state lock. */
    bool is_annotation;
} vpy_slow;

typedef struct vpy_raise_trigger {
    char *name; /* names a class of exceptions */
    uint32_t reason;
} vpy_raise_trigger;

typedef struct vpy_triggers {
    vpy_slow *slow;
    size_t slow_count;
    vpy_raise_trigger *raises;
    size_t raise_count;
    vst_flight *flight;
} vpy_triggers;

void vpy_triggers_begin(vpy_triggers *triggers);
void vpy_triggers_end(void);
/* Call when a Python function gets its id. Returns whether a trigger names the
 * function, which is then watched. */
bool vpy_triggers_watch(PyObject *qualname, const char *file,
                        uint32_t file_length, vst_id id);
/* Call when a watched function was entered or left. */
void vpy_triggers_entered(vst_id id);
void vpy_triggers_left(vst_id id);
/* Call when this thread may have left watched functions unseen. */
void vpy_triggers_forget_thread(void);
void vpy_triggers_annotation_ends(PyObject *name, vst_ticks since);
void vpy_triggers_raised(PyObject *error, PyObject *traceback);

static inline bool vpy_triggers_want_exceptions(void)
{
    return __atomic_load_n(&vpy_program.triggers.wanted, __ATOMIC_RELAXED) &
           VPY_WANTS_EXCEPTIONS;
}

static inline bool vpy_triggers_want_times(void)
{
    return __atomic_load_n(&vpy_program.triggers.wanted, __ATOMIC_RELAXED) &
           VPY_WANTS_TIMES;
}

/* Returns whether the hook of calls must stay in place for a trigger. */
static inline bool vpy_triggers_want_calls(void)
{
    return __atomic_load_n(&vpy_program.triggers.wanted, __ATOMIC_RELAXED) &
           VPY_WANTS_CALLS;
}

#pragma GCC visibility pop
#endif
