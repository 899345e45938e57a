/* Tasks of asyncio, for the hooks of calls/: tasks.c and task_objects.c, and
 * task_table.c, which greenlets.c uses too. */
#ifndef VPY_PROGRAM_TASKS_H
#define VPY_PROGRAM_TASKS_H

#include "calls/ids.h"

#pragma GCC visibility push(hidden)

int vpy_tasks_init(void);
void vpy_tasks_end(void);

/* Whether calls of this code may be steps of a task. */
bool vpy_is_coroutine_code(const PyCodeObject *code);
/* Call after the enter of such a call was recorded. */
void vpy_step_after_enter(vst_id id, const vpy_iframe *frame);
/* Call before the exit is recorded. result: what the coroutine returns or
 * yields, NULL if it raises; waits: it yields. The frame's address is used, not
 * what is there. */
void vpy_step_before_exit(vst_id id, const vpy_iframe *frame, PyObject *result,
                          bool waits);

/* Call after the enter was recorded of a coroutine that does not go on with a
 * known step. place: see vpy_step. */
void vpy_step_begin_after_enter(vst_id id, const vpy_iframe *frame,
                                const void *place);

/* ---- the quick way through these two, with the records ------------------ */

/* A step that runs. The order of its members leaves no gaps: thread-local data
 * of the extension takes room that libraries such as torch's need, too. */
typedef struct vpy_step {
    const void *outermost; /* the frame whose step it is */
    const void *marked;    /* the frame whose call is marked as the step */
    /* Where the interpreter put the arguments of the hook that saw the call
     * begin, on the C stack. As long as the call runs, only calls that the same
     * evaluation makes have their arguments there. NULL: not known. */
    const void *place;
    vst_id marked_id; /* the function of that call */
    uint32_t task;
    uint32_t again; /* calls of that function in the step that run, too */
    bool is_python;
} vpy_step;

enum { VPY_STEPS_MAX = 8 }; /* one in the other; of more, the outer are lost */

/* What a thread knows of the steps that it is in. */
typedef struct vpy_steps {
    uint32_t generation;
    uint32_t count;
    vst_id waits; /* the function that was left first, to wait */
    /* The coroutine that was entered last. As long as it runs, what it calls is
     * in the same step. */
    const void *entered;
    /* Which called that, and which called this one; NULL: not in the step. */
    const void *around, *below;
    vpy_step top; /* the innermost step; all zero: there is none */
    vpy_step outer[VPY_STEPS_MAX - 1]; /* around it, the outermost first */
} vpy_steps;

extern VST_THREAD_LOCAL vpy_steps vpy_steps_now VST_TLS_MODEL;

/* The frame that resumes this one. An evaluation hook is called before
 * the two are linked: there the caller is what runs still. */
static inline const vpy_iframe *vpy_coroutine_caller(const vpy_iframe *frame)
{
    const vpy_iframe *running =
        VPY_AWAITS_INLINE ? frame : vpy_iframe_innermost(vpy_thread_state());

    return vpy_iframe_without_shims(running == frame ? vpy_iframe_back(frame)
                                                     : running);
}

/* Call when a coroutine was entered: it is the innermost of its step now.
 * caller: of the same step, or NULL. */
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

/* Call when a coroutine is entered: whether it is in the step that runs,
 * because its caller has not been left since it was entered. */
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
/* vpy_step_after_enter and vpy_step_before_exit for hooks that get no frame,
 * which takes a call of the interpreter to find. Most coroutines are awaited by
 * another coroutine and run in the same evaluation; place is the hook's own,
 * see vpy_step. */
VST_NOINLINE void vpy_step_after_enter_at(vst_id id, const void *place);
VST_NOINLINE void vpy_step_before_exit_of_running(vst_id id, PyObject *result,
                                                  bool waits);

/* Call after the enter was recorded: whether the coroutine is in the step that
 * runs. */
VST_INLINE bool vpy_step_has_place(vst_id id, const void *place)
{
    vpy_steps *now = &vpy_steps_now;

    if (now->top.place != place || now->generation != vpy_generation_now())
        return false;
    now->waits = 0;
    if (id == now->top.marked_id)
        now->top.again++;
    return true;
}

VST_INLINE void vpy_coroutine_record_enter_at(vst_id id, const void *place)
{
    vst_record(VST_ENTER, id);
    if (!vpy_step_has_place(id, place))
        vpy_step_after_enter_at(id, place);
}

/* Whether the coroutine that is left may be the one that began the step. */
VST_INLINE bool vpy_step_may_end_with(vst_id id)
{
    return vpy_steps_now.top.marked_id == id;
}

/* Call before the exit is recorded of a coroutine that did not begin the step.
 */
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

/* ---- task_table.c ------------------------------------------------------- */

/* What was the outermost coroutine of a step, or a greenlet. */
typedef struct vpy_known {
    const void *address; /* NULL: the place is free */
    uint64_t chunks;     /* the thread's count when the task was introduced */
    uint32_t task;       /* 0: it is none of a task that we know */
    /* Nothing of it was seen yet. If it has a number, another task awaits it.
     */
    bool is_fresh;
    bool is_python; /* a Task that is written in Python */
    /* vpy_frames_returns() when it was introduced: while the hook was away,
     * another coroutine may have got its place. */
    uint32_t returns;
    uint64_t identity; /* of the task then, 0: it was not seen yet */
} vpy_known;

/* NULL: there is no memory, and the task is not known. Valid until the next
 * put. */
vpy_known *vpy_known_put(const void *address);
/* NULL: there is none. */
vpy_known *vpy_known_find(const void *address);
/* A copy of what is known, which is put into the table if it must be; false:
 * out of memory. Only the thread that runs what is there changes it, with a
 * copy. The two functions above are for who holds the state lock. */
bool vpy_known_get(const void *address, vpy_known *copy);
void vpy_known_set(const vpy_known *copy);
void vpy_known_clear(void);
uint32_t vpy_task_new_number(void);

/* ---- between tasks.c and task_objects.c ---------------------------------- */

/* The task of a coroutine's frame, 0: not known. */
uint32_t vpy_task_number(const void *frame);
/* The task that runs on this thread: a new reference, or NULL. */
PyObject *vpy_task_running(void);
/* The same number for the same task, as long as it keeps its name. */
uint64_t vpy_task_identity(PyObject *task);
/* The frame of its coroutine. NULL: it is not known; *is_other: because the
 * coroutine is none of Python's own. */
const void *vpy_task_frame(PyObject *task, bool *is_other);
bool vpy_task_is_c(PyObject *task);
/* Records a STEP or NAMED with the task's name. */
void vpy_task_record_name(vst_task_what what, uint32_t number, PyObject *task);
vst_task_awaits vpy_task_awaits(PyObject *object);
void vpy_task_objects_end(void);

#pragma GCC visibility pop
#endif
