/* Finds the asyncio task to which a coroutine's call belongs. Each call by the
 * event loop is a "step" of a task.
 *
 * An event loop resumes the outermost coroutine of a task, and that coroutine
 * resumes the coroutine that it awaits. All hooks see these calls, but a hook
 * only gets the code object, which many tasks share. The coroutine's frame
 * identifies the task: it keeps its address as long as the coroutine lives. So
 * the frame's address is looked up in a table, which has the task's number.
 * This works for every event loop and every kind of task (C, Python, eager;
 * those of asyncio, uvloop and anyio), because we replace nothing of theirs.
 *
 * When a coroutine is resumed:
 *  - Who resumes it? Since 3.12 the interpreter resumes an awaited coroutine
 *    without a C function between the two frames; such a call is inside a step
 *    that is known already. Otherwise the frames below are coroutines and
 *    generators up to the outermost coroutine, which is the task's.
 *  - Is the step known? Each thread keeps the frames of its running steps,
 *    which may be nested: an eager task begins in a step of another task.
 *    After a throw() the inner coroutines are resumed before the outer ones,
 *    and each of these calls is marked.
 *  - A coroutine that has just been started is a new one, even if another
 *    coroutine had its frame's address before. Only then we look up the
 *    running task in asyncio, and again in each chunk of the file for the
 *    name, since a bounded recording drops older chunks.
 *
 * When a coroutine is left, the object that it yields is the one for which the
 * task waits. task_objects.c reads asyncio's objects. Called with the GIL
 * held. */
#include "program/tasks.h"

#include "base/inside.h"
#include "calls/ids.h"
#include "compat_py311.h"
#include "record/tasks.h"

#include <string.h>

#define COROUTINE (CO_COROUTINE | CO_ITERABLE_COROUTINE)
#define AWAITING (COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR)

VST_THREAD_LOCAL vpy_steps vpy_steps_now VST_TLS_MODEL;

/* ---- the task of a coroutine --------------------------------------------- */

/* Returns whether the hook was removed for a while, so that the coroutine at
 * this address may have ended unseen. */
static bool is_unsure(const vpy_known *coroutine)
{
    return coroutine->returns != vpy_frames_returns();
}

static void tasks_identify(vpy_known *coroutine, PyObject *task)
{
    uint64_t identity = vpy_task_identity(task);

    if (is_unsure(coroutine) && coroutine->identity != 0 &&
        coroutine->identity != identity)
        coroutine->task = 0;
    if (coroutine->task == 0)
        coroutine->task = vpy_task_new_number();
    coroutine->identity = identity;
    coroutine->is_python = !vpy_task_is_c(task);
}

/* Finds out which task a coroutine's frame belongs to, and records that this
 * call is a step of it. */
static VST_COLD void tasks_introduce(vpy_known *coroutine, bool is_new)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *type, *error, *traceback, *task;
    bool is_other = false;

    PyErr_Fetch(&type, &error, &traceback);
    vpy_hook_enter(tstate);
    task = vpy_task_running();
    if (is_new && !(coroutine->is_fresh && coroutine->task != 0))
        coroutine->task = 0;
    coroutine->is_fresh = false;
    if (task != NULL && vpy_task_frame(task, &is_other) != coroutine->address &&
        !is_other) {
        Py_CLEAR(task); /* the program resumes the coroutine itself */
        coroutine->task = 0;
    }
    if (task != NULL) {
        tasks_identify(coroutine, task);
        vpy_known_set(coroutine);
        vpy_task_record_name(VST_TASK_STEP, coroutine->task, task);
    }
    coroutine->chunks = vst_thread_buffer->chunks;
    coroutine->returns = vpy_frames_returns();
    vpy_known_set(coroutine);
    Py_XDECREF(task);
    vpy_hook_leave(tstate);
    PyErr_Restore(type, error, traceback);
}

/* ---- a call of a coroutine ----------------------------------------------- */

static const vpy_iframe *outermost_of(const vpy_iframe *frame, bool is_new)
{
    const vpy_iframe *outermost = frame;

    /* A C function began this coroutine, as for an eager task. */
    if (VPY_AWAITS_INLINE && is_new)
        return frame;
    for (frame = vpy_coroutine_caller(frame); frame != NULL;
         frame = vpy_iframe_without_shims(vpy_iframe_back(frame))) {
        int flags = vpy_iframe_code(frame)->co_flags;
        if (!(flags & AWAITING))
            break;
        if (flags & COROUTINE)
            outermost = frame;
    }
    return outermost;
}

bool vpy_is_coroutine_code(const PyCodeObject *code)
{
    return vpy_base.inside.works[VPY_PART_TASKS] &&
           (code->co_flags & COROUTINE) != 0;
}

/* Returns one of the nested running steps: 1 is the outermost, `count` the
 * innermost. */
static const vpy_step *step_at(uint32_t number)
{
    return number == vpy_steps_now.count ? &vpy_steps_now.top
                                         : &vpy_steps_now.outer[number - 1];
}

VST_INLINE void tasks_keep_steps(uint32_t count)
{
    if (count == 0)
        vpy_steps_now.top = (vpy_step){.marked = NULL};
    else
        vpy_steps_now.top = *step_at(count);
    vpy_steps_now.count = count;
}

/* Returns whether the innermost running step belongs to this coroutine. If
 * the step's own call is this frame's, the step has ended unseen, and begins
 * again. */
static bool is_in_step(const void *outermost, const void *frame)
{
    if (vpy_steps_now.count == 0 || vpy_steps_now.top.outermost != outermost)
        return false;
    if (vpy_steps_now.top.marked != frame)
        return true;
    tasks_keep_steps(vpy_steps_now.count - 1);
    return false;
}

static void keep_outer_step(void)
{
    if (vpy_steps_now.count == VPY_STEPS_MAX)
        memmove(&vpy_steps_now.outer[0], &vpy_steps_now.outer[1],
                (--vpy_steps_now.count - 1) * sizeof vpy_steps_now.outer[0]);
    vpy_steps_now.outer[vpy_steps_now.count - 1] = vpy_steps_now.top;
}

/* Makes this the innermost step. */
VST_INLINE void put_step(const vpy_known *coroutine, vst_id id,
                         const void *frame, const void *place)
{
    vpy_steps_now.top.outermost = coroutine->address;
    vpy_steps_now.top.marked = frame;
    vpy_steps_now.top.place = place;
    vpy_steps_now.top.marked_id = id;
    vpy_steps_now.top.task = coroutine->task;
    vpy_steps_now.top.repeats = 0;
    vpy_steps_now.top.is_python = coroutine->is_python;
}

static void tasks_begin_step(const vpy_known *coroutine, vst_id id,
                             const void *frame, const void *place)
{
    if (vpy_steps_now.count != 0)
        keep_outer_step();
    vpy_steps_now.count++;
    put_step(coroutine, id, frame, place);
}

static void record_step(vpy_known *coroutine, bool is_new)
{
    if (is_new || coroutine->is_fresh || is_unsure(coroutine) ||
        (coroutine->task != 0 &&
         coroutine->chunks != vst_thread_buffer->chunks))
        tasks_introduce(coroutine, is_new);
    else if (coroutine->task != 0)
        vst__record_task(
            &(uint64_t){vst_task_word(VST_TASK_STEP, coroutine->task)}, 1);
}

/* The fast path for most steps: a known task, in no other step. With the GIL
 * only. */
VST_INLINE bool begin_known(vst_id id, const vpy_iframe *frame,
                            const void *place)
{
    const vpy_iframe *caller = vpy_coroutine_caller(frame);
    const vpy_known *known;

    if (VPY_FREE_THREADED || vpy_steps_now.count != 0 ||
        vpy_steps_now.generation != vpy_generation_now() ||
        vpy_iframe_is_new(frame) ||
        (caller != NULL && vpy_iframe_code(caller)->co_flags & AWAITING))
        return false;
    known = vpy_known_find(frame);
    if (known == NULL || known->task == 0 || known->is_fresh ||
        is_unsure(known) || known->chunks != vst_thread_buffer->chunks ||
        !vst__record_task_at_once(
            &(uint64_t){vst_task_word(VST_TASK_STEP, known->task)}, 1))
        return false;
    vpy_step_note_innermost(frame, NULL);
    vpy_steps_now.count = 1;
    put_step(known, id, frame, place);
    return true;
}

static VST_NOINLINE void tasks_begin(vst_id id, const vpy_iframe *frame,
                                     const void *place)
{
    const vpy_iframe *outermost;
    vpy_known coroutine;
    bool is_new;

    if (vpy_steps_now.generation != vpy_generation_now()) {
        tasks_keep_steps(0);
        vpy_steps_now.generation = vpy_generation_now();
    }
    vpy_step_note_innermost(frame, NULL);
    is_new = vpy_iframe_is_new(frame);
    outermost = outermost_of(frame, is_new);
    is_new = is_new && outermost == frame;
    if (!is_new && is_in_step(outermost, frame))
        return;
    if (!vpy_known_get(outermost, &coroutine))
        return;
    record_step(&coroutine, is_new);
    tasks_begin_step(&coroutine, id, frame, place);
}

VST_HOT void vpy_step_begin_after_enter(vst_id id, const vpy_iframe *frame,
                                        const void *place)
{
    if (!begin_known(id, frame, place))
        tasks_begin(id, frame, place);
}

VST_HOT void vpy_step_after_enter(vst_id id, const vpy_iframe *frame)
{
    if (VPY_AWAITS_INLINE && !vpy_iframe_is_entry(frame))
        vpy_steps_now.waits = 0;
    else if (VPY_AWAITS_INLINE ||
             !vpy_step_goes_on_in(frame, vpy_coroutine_caller(frame)))
        vpy_step_begin_after_enter(id, frame, NULL);
}

#if VPY_AWAITS_INLINE
VST_HOT void vpy_step_after_enter_at(vst_id id, const void *place)
{
    const vpy_iframe *frame = vpy_iframe_innermost(vpy_thread_state());

    if (vpy_iframe_is_entry(frame)) {
        vpy_step_begin_after_enter(id, frame, place);
        return;
    }
    vpy_steps_now.waits = 0;
    if (id == vpy_steps_now.top.marked_id &&
        vpy_steps_now.generation == vpy_generation_now())
        vpy_steps_now.top.repeats++;
}
#endif

/* ---- the end of a step --------------------------------------------------- */

/* Returns the number of a task that is awaited. A task that has not begun gets
 * its number here. */
static uint32_t number_of_awaited(PyObject *task)
{
    bool is_other;
    const void *frame = vpy_task_frame(task, &is_other);
    vpy_known *coroutine;
    uint32_t number = 0;

    vpy_state_take();
    coroutine = frame != NULL ? vpy_known_put(frame) : NULL;
    if (coroutine != NULL) {
        if (coroutine->task == 0 && coroutine->is_fresh)
            coroutine->task = vpy_task_new_number();
        number = coroutine->task;
    }
    vpy_state_give();
    return number;
}

static VST_NOINLINE void tasks_record_await(uint64_t first, uint64_t second,
                                            PyObject *awaited)
{
    vst_task_awaits kind = (uint32_t)second;
    uint64_t payload[4] = {first, second, (uint64_t)(uintptr_t)awaited, 0};

    if (kind == VST_AWAITS_TASK)
        payload[3] = number_of_awaited(awaited);
    vst__record_task(payload, kind == VST_AWAITS_NOTHING ? 2
                              : kind == VST_AWAITS_TASK  ? 4
                                                         : 3);
}

VST_INLINE void record_await(uint32_t task, PyObject *awaited)
{
    vst_task_awaits kind = vpy_task_awaits(awaited);
    uint64_t first = vst_task_word(VST_TASK_AWAITS, task);
    uint64_t second = (uint64_t)vpy_steps_now.waits << 32 | kind;

    if (!(kind == VST_AWAITS_FUTURE &&
          vst__record_task_at_once(
              (uint64_t[]){first, second, (uint64_t)(uintptr_t)awaited}, 3)) &&
        !(kind == VST_AWAITS_NOTHING &&
          vst__record_task_at_once((uint64_t[]){first, second}, 2)))
        tasks_record_await(first, second, awaited);
}

/* Records the name of a task written in Python at its end, since its set_name
 * is not intercepted. */
static VST_COLD void tasks_record_name_again(uint32_t number)
{
    PyThreadState *tstate = PyThreadState_Get();
    PyObject *type, *error, *traceback, *task;

    PyErr_Fetch(&type, &error, &traceback);
    vpy_hook_enter(tstate);
    task = vpy_task_running();
    if (task != NULL)
        vpy_task_record_name(VST_TASK_NAMED, number, task);
    Py_XDECREF(task);
    vpy_hook_leave(tstate);
    PyErr_Restore(type, error, traceback);
}

/* The coroutine has ended. Another coroutine may get its frame's address. */
static void end_task(const vpy_step *s, bool raised)
{
    const vpy_known gone = {.address = s->outermost, .is_fresh = true};

    if (s->task != 0) {
        if (s->is_python)
            tasks_record_name_again(s->task);
        vst__record_task(
            (uint64_t[]){vst_task_word(VST_TASK_ENDS, s->task), raised}, 2);
    }
    vpy_known_set(&gone);
}

/* Ends a step, and those inside it whose end was not seen: the task waits, or
 * has ended. */
VST_INLINE void end_step(uint32_t number, PyObject *result, bool waits)
{
    const vpy_step *step = step_at(number);

    if (waits) {
        uint32_t task = step->task;
        tasks_keep_steps(number - 1);
        if (task != 0)
            record_await(task, result);
    } else {
        vpy_step ended = *step;
        tasks_keep_steps(number - 1);
        if (ended.marked == ended.outermost)
            end_task(&ended, result == NULL);
    }
    vpy_steps_now.waits = 0; /* the step around an eager task may wait next */
}

VST_HOT void vpy_step_before_exit(vst_id id, const vpy_iframe *frame,
                                  PyObject *result, bool waits)
{
    uint32_t number = vpy_steps_now.generation == vpy_generation_now()
                          ? vpy_steps_now.count
                          : 0;

    if (waits && vpy_steps_now.waits == 0)
        vpy_steps_now.waits = id;
    while (number != 0 && step_at(number)->marked != frame)
        number--;
    if (number != 0)
        end_step(number, result, waits);
}

#if VPY_AWAITS_INLINE
VST_HOT void vpy_step_before_exit_of_running(vst_id id, PyObject *result,
                                             bool waits)
{
    if (waits && vpy_steps_now.waits == 0)
        vpy_steps_now.waits = id;
    if (vpy_steps_now.generation != vpy_generation_now())
        return;
    if (vpy_steps_now.top.repeats != 0)
        vpy_steps_now.top.repeats--;
    else
        end_step(vpy_steps_now.count, result, waits);
}
#endif

/* ---- for task_objects.c and for the end of a recording ------------------- */

uint32_t vpy_task_number(const void *frame)
{
    const vpy_known *coroutine;
    uint32_t number;

    vpy_state_take();
    coroutine = vpy_known_find(frame);
    number = coroutine != NULL ? coroutine->task : 0;
    vpy_state_give();
    return number;
}

void vpy_tasks_end(void)
{
    vpy_task_objects_end();
    vpy_known_clear();
}
