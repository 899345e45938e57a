/* Tasks of asyncio, for the hooks of calls/: tasks.c, task_objects.c, and
 * task_table.c, which greenlets.c uses, too. */
#ifndef VPY_PROGRAM_TASKS_H
#define VPY_PROGRAM_TASKS_H

#include "calls/ids.h"

#pragma GCC visibility push(hidden)

int vpy_tasks_init(void);
void vpy_tasks_end(void);

/* Returns whether calls of this code may be steps of a task. */
bool vpy_is_coroutine_code(const PyCodeObject *code);
/* Call after recording the enter of a coroutine's call. */
void vpy_step_after_enter(vst_id id, const vpy_iframe *frame);
/* Call before the exit is recorded. result: the object that the coroutine
 * returns or yields, NULL if it raises; waits: it yields. The frame's address
 * is compared, the frame is not read. */
void vpy_step_before_exit(vst_id id, const vpy_iframe *frame, PyObject *result,
                          bool waits);

/* Call after recording the enter of a coroutine that does not continue a known
 * step. place: see vpy_step. */
void vpy_step_begin_after_enter(vst_id id, const vpy_iframe *frame,
                                const void *place);

/* ---- fast paths that record enter and exit, too -------------------------- */

/* A running step. The order of its members leaves no gaps: thread-local data of
 * the extension takes room that libraries such as torch's also need. */
typedef struct vpy_step {
    const void *outermost; /* the frame whose step it is */
    const void *marked;    /* the frame whose call is marked as the step */
    /* The address on the C stack at which the interpreter put the arguments of
     * the hook that saw the call begin. While the call runs, only calls by the
     * same evaluation have their arguments there. NULL: not known. */
    const void *place;
    vst_id marked_id; /* the function of the marked call */
    uint32_t task;
    uint32_t repeats; /* further running calls of that function in the step */
    bool is_python;
} vpy_step;

enum {
    VPY_STEPS_MAX = 8
}; /* nested steps; with more, the outermost are lost */

/* The running steps of a thread. */
typedef struct vpy_steps {
    uint32_t generation;
    uint32_t count;
    vst_id waits; /* the function that was left first in order to wait */
    /* The coroutine that was entered last. While it runs, coroutines that it
     * calls are in the same step. */
    const void *entered;
    /* `around` is the caller of `entered`, and `below` is the caller of
     * `around`; NULL if the caller is not in the step. */
    const void *around, *below;
    vpy_step top; /* the innermost step; all zero: none */
    vpy_step
        outer[VPY_STEPS_MAX - 1]; /* the steps around it, the outermost first */
} vpy_steps;

extern VST_THREAD_LOCAL vpy_steps vpy_steps_now VST_TLS_MODEL;

/* Returns the frame that resumes this one. An evaluation hook is called before
 * the two are linked: there the caller is the frame that still runs. */
static inline const vpy_iframe *vpy_coroutine_caller(const vpy_iframe *frame)
{
    const vpy_iframe *running =
        VPY_AWAITS_INLINE ? frame : vpy_iframe_innermost(vpy_thread_state());

    return vpy_iframe_without_shims(running == frame ? vpy_iframe_back(frame)
                                                     : running);
}

/* Call when a coroutine was entered: makes it the innermost of its step.
 * caller: a frame of the same step, or NULL. */
static inline void vpy_step_note_innermost(const void *frame,
                                           const void *caller)
{
    vpy_steps *now = &vpy_steps_now;

    now->waits = 0;
    if (VPY_AWAITS_INLINE)
        return;
    if (caller == now->entered)
        now->below = now->around;
    else if (caller != now->around)
        now->below = NULL;
    now->around = caller;
    now->entered = frame;
}

/* Call when a coroutine is entered. Returns whether it belongs to the running
 * step, because its caller was entered and not left since. */
static inline bool vpy_step_goes_on_in(const vpy_iframe *frame,
                                       const vpy_iframe *caller)
{
    vpy_steps *now = &vpy_steps_now;
    const void *marked = now->top.marked;

    if (marked == NULL || frame == marked ||
        (caller != now->entered && caller != now->around &&
         caller != now->below && caller != marked) ||
        now->generation != vpy_generation_now() || caller == NULL)
        return false;
    vpy_step_note_innermost(frame, caller);
    return true;
}

static inline void vpy_coroutine_record_enter(vst_id id,
                                              const vpy_iframe *frame)
{
    vst_record(VST_ENTER, id);
    if (VPY_AWAITS_INLINE ||
        !vpy_step_goes_on_in(frame, vpy_coroutine_caller(frame)))
        vpy_step_after_enter(id, frame);
}

static inline void vpy_coroutine_record_exit(vst_kind kind, vst_id id,
                                             const vpy_iframe *frame,
                                             PyObject *result, bool waits)
{
    vpy_steps *now = &vpy_steps_now;

    if (now->top.marked == frame)
        vpy_step_before_exit(id, frame, result, waits);
    else if (waits && now->waits == 0)
        now->waits = id;
    vst_record_end_of_call(kind, id);
}

#if VPY_AWAITS_INLINE
/* vpy_step_after_enter and vpy_step_before_exit for hooks that do not get the
 * frame, which takes a call of the interpreter to find. Most coroutines are
 * awaited by another coroutine and run in the same evaluation. place is the
 * hook's own, see vpy_step. */
VST_NOINLINE void vpy_step_after_enter_at(vst_id id, const void *place);
VST_NOINLINE void vpy_step_before_exit_of_running(vst_id id, PyObject *result,
                                                  bool waits);

/* Call after recording the enter. Returns whether the coroutine belongs to the
 * running step. */
VST_INLINE bool vpy_step_has_place(vst_id id, const void *place)
{
    vpy_steps *now = &vpy_steps_now;

    if (now->top.place != place || now->generation != vpy_generation_now())
        return false;
    now->waits = 0;
    if (id == now->top.marked_id)
        now->top.repeats++;
    return true;
}

VST_INLINE void vpy_coroutine_record_enter_at(vst_id id, const void *place)
{
    vst_record(VST_ENTER, id);
    if (!vpy_step_has_place(id, place))
        vpy_step_after_enter_at(id, place);
}

/* Returns whether the coroutine that is being left may be the one that began
 * the step. */
VST_INLINE bool vpy_step_may_end_with(vst_id id)
{
    return vpy_steps_now.top.marked_id == id;
}

/* Call before recording the exit of a coroutine that did not begin the step. */
VST_INLINE void vpy_step_before_exit_inside(vst_id id, bool waits)
{
    if (waits && vpy_steps_now.waits == 0)
        vpy_steps_now.waits = id;
}

VST_INLINE void vpy_coroutine_record_exit_of_running(vst_kind kind, vst_id id,
                                                     PyObject *result,
                                                     bool waits)
{
    if (vpy_step_may_end_with(id))
        vpy_step_before_exit_of_running(id, result, waits);
    else
        vpy_step_before_exit_inside(id, waits);
    vst_record_end_of_call(kind, id);
}
#endif

/* ---- task_table.c -------------------------------------------------------- */

/* An entry: the outermost coroutine of a step, or a greenlet. */
typedef struct vpy_known {
    const void *address; /* NULL: the entry is free */
    uint64_t chunks;     /* the thread's count when the task was introduced */
    uint32_t task;       /* 0: belongs to no task that we know */
    /* The task has not run yet. It may already have a number, because another
     * task awaits it. */
    bool is_fresh;
    bool is_python; /* a Task that is written in Python */
    /* vpy_frames_returns() when it was introduced: while the hook was removed,
     * another coroutine may have got its address. */
    uint32_t returns;
    uint64_t identity; /* of the task; 0: not known yet */
} vpy_known;

/* Finds or makes the entry of an address. Returns NULL if memory ran out; then
 * the task is not known. The entry is valid until the next put. Call with the
 * state lock. */
vpy_known *vpy_known_put(const void *address);
/* Returns the entry of an address, or NULL. Call with the state lock. */
vpy_known *vpy_known_find(const void *address);
/* Copies the entry of an address, which is made if there is none. Returns false
 * if memory ran out. Only the thread that runs the coroutine or greenlet
 * changes its entry, by vpy_known_set. */
bool vpy_known_get(const void *address, vpy_known *copy);
void vpy_known_set(const vpy_known *copy);
void vpy_known_clear(void);
uint32_t vpy_task_new_number(void);

/* ---- between tasks.c and task_objects.c ---------------------------------- */

/* Returns the number of a frame's task; 0: not known. */
uint32_t vpy_task_number(const void *frame);
/* Returns the task that runs on this thread: a new reference, or NULL. */
PyObject *vpy_task_running(void);
/* Returns a number that identifies a task as long as the task keeps its
 * name. */
uint64_t vpy_task_identity(PyObject *task);
/* Returns the frame of a task's coroutine, or NULL if it is not known.
 * *is_other: the coroutine is not one of Python's own. */
const void *vpy_task_frame(PyObject *task, bool *is_other);
bool vpy_task_is_c(PyObject *task);
/* Records a STEP or NAMED with the task's name. */
void vpy_task_record_name(vst_task_what what, uint32_t number, PyObject *task);
vst_task_awaits vpy_task_awaits(PyObject *object);
void vpy_task_objects_end(void);

#pragma GCC visibility pop
#endif
