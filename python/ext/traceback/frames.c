/* Reads the frames of the calling thread from the interpreter's own structures:
 * no frame object is made and no reference is taken. The core's tracebacks use
 * this, so any thread enters it, with or without the GIL. It takes the GIL if
 * it must, but never from an interpreter that is ending: up to 3.13 that would
 * end the thread. */
#include "traceback/traceback.h"

#include "base/inside.h"

#include <sched.h>
#include <stdatomic.h>

static struct vpy_frames_state *const state = &vpy_tracebacks.frames;

/* ---- the GIL ------------------------------------------------------------- */

enum { HAD_IT = 1, TOOK_IT = 2 };

/* Takes the GIL. Returns the thread's state, or NULL if the GIL cannot be taken
 * now. */
static PyThreadState *take_gil(void **entered)
{
    PyThreadState *tstate = NULL;

    /* A thread that Python does not know has no frames. */
    if (PyGILState_GetThisThreadState() == NULL)
        return NULL;
    atomic_fetch_add(&state->entering, 1);
    if (!atomic_load(&state->closed) && !vpy_is_finalizing() &&
        vpy_may_take_gil()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        tstate = PyThreadState_Get();
        *entered = (void *)((uintptr_t)TOOK_IT + (uintptr_t)gil);
    }
    atomic_fetch_sub(&state->entering, 1);
    return tstate;
}

static PyThreadState *frames_enter(void **entered)
{
    PyThreadState *tstate;

    /* Returns 0 also while any thread finalizes the interpreter. */
    if (!VST_LIKELY(Py_IsInitialized()))
        return NULL;
    tstate = vpy_thread_with_gil();
    if (VST_LIKELY(tstate != NULL)) {
        *entered = (void *)HAD_IT;
        return VST_LIKELY(tstate->interp == state->main_interpreter) ? tstate
                                                                     : NULL;
    }
    return take_gil(entered);
}

bool vpy_frames_enter(void **entered)
{
    return frames_enter(entered) != NULL;
}

void vpy_frames_leave(void *entered)
{
    uintptr_t how = (uintptr_t)entered;

    if (!VST_LIKELY(how < TOOK_IT))
        PyGILState_Release((PyGILState_STATE)(how - TOOK_IT));
}

bool vpy_frames_may_return(void)
{
    return Py_IsInitialized() && !atomic_load(&state->closed);
}

/* Registered with atexit: runs before the interpreter begins to end. Threads
 * that wait for the GIL get it now, and no thread asks for it later. */
static PyObject *close_gil(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    atomic_store(&state->closed, true);
    Py_BEGIN_ALLOW_THREADS;
    while (atomic_load(&state->entering))
        sched_yield();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef close_method = {"vestige_at_exit", close_gil, METH_NOARGS,
                                   NULL};

/* Call in a forked child. Threads that were entering are in the parent. */
void vpy_traceback_after_fork(void)
{
    atomic_store(&state->entering, 0);
}

/* ---- frames -------------------------------------------------------------- */

/* Gathers frames by the interpreter's public functions, which make frame
 * objects, if its own frames are unknown. The public functions do not show
 * where C code calls Python, so all frames count as one evaluation. */
static VST_COLD void gather_shown(PyThreadState *tstate, size_t skip,
                                  vst_gathered *gathered)
{
    int were_on = vpy_collections_put_off();
    PyFrameObject *frame = PyThreadState_GetFrame(tstate);

    while (frame != NULL && (gathered->count < gathered->capacity ||
                             vst_gathered_grow(gathered))) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        uint32_t word = (uint32_t)(vpy_frame_instruction(frame) + 1) &
                        VPY_FRAME_INSTRUCTION;
        if (back == NULL)
            word |= VST_FRAME_ENTRY;
        if (skip) {
            skip--;
        } else {
            gathered->codes[gathered->count] = vpy_frame_code(frame);
            gathered->instructions[gathered->count++] = word;
        }
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    vpy_collections_go_on(were_on);
}

/* Returns the next frame that counts. A frame that is not shown counts only if
 * it is an entry, so that native frames are matched with the right Python
 * frames; *word then has VPY_FRAME_HIDDEN. */
static inline const vpy_iframe *find_next(const vpy_iframe *frame,
                                          uint32_t *word)
{
    for (; frame != NULL; frame = vpy_iframe_back(frame)) {
        int instruction;
        bool is_entry;
        if (vpy_iframe_is_shim(frame))
            continue;
        instruction = vpy_iframe_instruction(frame);
        is_entry = vpy_iframe_is_entry(frame);
        *word = (uint32_t)(instruction + 1) & VPY_FRAME_INSTRUCTION;
        *word |= is_entry ? VST_FRAME_ENTRY : 0;
        if (VST_LIKELY(!vpy_iframe_is_incomplete(frame, instruction)))
            break;
        *word |= VPY_FRAME_HIDDEN;
        if (is_entry)
            break;
    }
    return frame;
}

/* Writes as many frames as there is room for and returns the next one. */
static const vpy_iframe *frames_fill(vst_gathered *gathered,
                                     const vpy_iframe *frame, uint32_t *word)
{
    void **codes = gathered->codes;
    uint32_t *instructions = gathered->instructions;
    size_t count = gathered->count, capacity = gathered->capacity;

    while (frame != NULL && count < capacity) {
        codes[count] = vpy_iframe_code(frame);
        instructions[count++] = *word;
        frame = find_next(vpy_iframe_back(frame), word);
    }
    gathered->count = count;
    return frame;
}

bool vpy_frames_gather(size_t skip, vst_gathered *gathered, void **entered)
{
    PyThreadState *tstate = frames_enter(entered);
    const vpy_iframe *frame;
    uint32_t word = 0;

    if (tstate == NULL)
        return false;
    if (!VST_LIKELY(vpy_base.inside.works[VPY_PART_TRACEBACKS])) {
        gather_shown(tstate, skip, gathered);
        return true;
    }
    frame = find_next(vpy_iframe_innermost(tstate), &word);
    while (frame != NULL && skip) {
        skip -= !(word & VPY_FRAME_HIDDEN);
        frame = find_next(vpy_iframe_back(frame), &word);
    }
    do
        frame = frames_fill(gathered, frame, &word);
    while (frame != NULL && vst_gathered_grow(gathered));
    return true;
}

int vpy_frames_init(void)
{
    state->main_interpreter = PyInterpreterState_Main();
    return vpy_at_exit(&close_method);
}
