/* Notes the calls that threads are in when the evaluation hook is installed.
 * The interpreter evaluates these calls to their end without calling the hook,
 * so their ends are recorded with the thread's next call. Call with the GIL
 * held. */
#include "py311/frame_hook.h"

#include "base/own_code.h"
#include "calls/ids.h"
#include "program/triggers.h"
#include "record/language.h"

#include <stdlib.h>

static struct vpy_frame_open_state *const state = &vpy_py311.open;

static size_t count_frames(PyThreadState *tstate)
{
    size_t count = 0;

    for (const vpy_iframe *frame = vpy_iframe_innermost(tstate); frame != NULL;
         frame = vpy_iframe_back(frame))
        count++;
    return count;
}

/* Fills in the calls that vpy_threads_announce records: frames below the
 * program's own first frame are left out. */
static void open_frames_fill(vpy_open_calls *open, PyThreadState *tstate)
{
    size_t i = open->count;
    bool outside = false;

    for (const vpy_iframe *frame = vpy_iframe_innermost(tstate);
         frame != NULL && i; frame = vpy_iframe_back(frame)) {
        PyObject *code = (PyObject *)vpy_iframe_code(frame);
        vst_id id = outside ? 0 : VPY_ID(vpy_code_value(code));
        outside = outside || (id == 0 && vpy_code_is_launcher(code));
        open->calls[--i] = (vpy_open_call){frame, id};
    }
}

static bool open_frames_note(PyThreadState *tstate, bool after_gap)
{
    size_t count = count_frames(tstate);
    vpy_open_calls *open;

    if (!count && !after_gap)
        return true;
    open = malloc(sizeof *open + count * sizeof open->calls[0]);
    if (open == NULL)
        return false;
    *open = (vpy_open_calls){.next = state->all,
                             .thread = tstate->id,
                             .after_gap = after_gap,
                             .count = count};
    open_frames_fill(open, tstate);
    state->all = open;
    return true;
}

bool vpy_open_calls_note_all(const PyThreadState *except, bool after_gap)
{
    PyInterpreterState *interpreter = PyThreadState_Get()->interp;

    for (PyThreadState *t = PyInterpreterState_ThreadHead(interpreter);
         t != NULL; t = PyThreadState_Next(t))
        if (t != except && !open_frames_note(t, after_gap))
            return false;
    return true;
}

void vpy_open_calls_forget(const vpy_open_calls *except)
{
    vpy_open_calls *kept = NULL;

    while (state->all != NULL) {
        vpy_open_calls *open = state->all;
        state->all = open->next;
        if (open == except)
            kept = open;
        else
            free(open);
    }
    if (kept != NULL)
        kept->next = NULL;
    state->all = kept;
}

/* ---- of the calling thread ---------------------------------------------- */

static vpy_open_calls *open_frames_find(const PyThreadState *tstate)
{
    for (vpy_open_calls *open = state->all; open != NULL; open = open->next)
        if (open->thread == tstate->id)
            return open;
    return NULL;
}

static void note_open_depth(vpy_frames_thread *t)
{
    bool any = t->open != NULL && t->open->count;

    t->open_depth = any ? t->depth : VPY_NO_DEPTH;
    t->open_top = any ? t->open->calls[t->open->count - 1].frame : NULL;
}

/* One of the open calls makes a call, so the open calls inside it have ended.
 * If the running frame is not among them, it belongs to another greenlet. A
 * thread made by C may return with another thread state: then all of the open
 * calls have ended. */
void vpy_open_calls_end_inner(vpy_frames_thread *t, PyThreadState *tstate)
{
    const vpy_iframe *running = vpy_iframe_innermost(tstate);
    size_t count = t->open->count;

    while (count && t->open->calls[count - 1].frame != running)
        count--;
    if (!count && t->open->thread == tstate->id)
        return;
    while (t->open->count > count) {
        vst_id id = t->open->calls[--t->open->count].id;
        if (id)
            vst_record(VST_EXIT, id);
    }
    note_open_depth(t);
}

/* Records a gap without length, because the time at which the thread lost its
 * hook is not known. */
static void record_empty_gap(vpy_open_calls *open)
{
    vst_id *ids = calloc(open->count + 1, sizeof *ids);
    size_t count = 0;

    open->after_gap = false;
    vst__record_gap(false);
    vpy_triggers_forget_thread();
    vst__record_gap(true);
    for (size_t i = 0; ids != NULL && i < open->count; i++)
        if (open->calls[i].id)
            ids[count++] = open->calls[i].id;
    if (ids != NULL)
        vst__record_stack(ids, count);
    free(ids);
}

void vpy_open_calls_take(vpy_frames_thread *t, const PyThreadState *tstate)
{
    t->open = open_frames_find(tstate);
    note_open_depth(t);
    if (t->open != NULL && t->open->after_gap)
        record_empty_gap(t->open);
}
