/* Handles calls that are open when their function is left out, or is recorded
 * again. With sys.monitoring the begin and the end of a call are separate
 * events. So this file keeps a table of stale frames: frames whose call began
 * while its function was recorded and is left out now, or the other way round.
 * A frame stays in the table until its call ends. A function with stale frames
 * has VPY_LEFT_OUT in its value, so that other functions pay nothing. The table
 * lacks frames of greenlets that do not run: these calls end without a record,
 * or have a record of their end alone, which readers ignore. */
#include "calls/budget.h"

#include "program/tasks.h"

#include <stdlib.h>

static struct vpy_stale_frames_state *const state = &vpy_calls.stale_frames;

typedef struct vpy_stale_frame {
    const vpy_iframe *frame; /* NULL: the place is empty */
    vst_id id;
    bool is_recorded; /* the begin of the call was recorded */
} stale_frame;

static size_t budget_frames_place_of(const vpy_iframe *frame)
{
    return ((uintptr_t)frame >> 4 ^ (uintptr_t)frame >> 13) & state->mask;
}

/* Returns the frame's place, or the empty place where it belongs; NULL if there
 * is no table. */
static stale_frame *budget_frames_find(const vpy_iframe *frame)
{
    size_t i;

    if (state->table == NULL)
        return NULL;
    i = budget_frames_place_of(frame);
    while (state->table[i].frame != NULL && state->table[i].frame != frame)
        i = (i + 1) & state->mask;
    return &state->table[i];
}

static bool budget_frames_grow(void)
{
    stale_frame *old = state->table;
    size_t size = state->table != NULL ? state->mask + 1 : 0;

    if (state->table != NULL && state->used * 2 <= state->mask)
        return true;
    state->table = calloc(size ? size * 2 : 64, sizeof *state->table);
    if (state->table == NULL) {
        state->table = old;
        return false;
    }
    state->mask = size ? size * 2 - 1 : 63;
    for (size_t i = 0; i < size; i++)
        if (old[i].frame != NULL)
            *budget_frames_find(old[i].frame) = old[i];
    free(old);
    return true;
}

/* Removes an entry, and moves later entries back so that searches still find
 * them. */
static void budget_frames_drop(stale_frame *at)
{
    size_t hole = (size_t)(at - state->table), i = hole;

    state->used--;
    for (;;) {
        i = (i + 1) & state->mask;
        if (state->table[i].frame == NULL)
            break;
        if (((i - budget_frames_place_of(state->table[i].frame)) &
             state->mask) >= ((i - hole) & state->mask)) {
            state->table[hole] = state->table[i];
            hole = i;
        }
    }
    state->table[hole].frame = NULL;
}

/* Adds the frame to the table, or removes it if the table has it. Without
 * memory, the call ends without a record, or has a record of its end alone. */
static void budget_frames_toggle(const vpy_iframe *frame, vst_id id,
                                 vpy_counted *counted)
{
    stale_frame *at = budget_frames_find(frame);

    if (at != NULL && at->frame != NULL) {
        budget_frames_drop(at);
        counted->stale--;
    } else if (counted->stale < UINT16_MAX && budget_frames_grow()) {
        *budget_frames_find(frame) =
            (stale_frame){frame, id, counted->is & VPY_BUDGET_OUT};
        state->used++;
        counted->stale++;
    }
}

static void update_thread(PyThreadState *tstate, vst_id ends)
{
    const vpy_iframe *frame = vpy_iframe_innermost(tstate);

    for (; frame != NULL; frame = vpy_iframe_back(frame)) {
        vst_id id;
        if (vpy_iframe_is_shim(frame))
            continue;
        id = vpy_code_known_id((PyObject *)vpy_iframe_code(frame));
        if (id != 0 && id < vpy_calls.budget.counts.size && id != ends &&
            vpy_counted_changes(&vpy_calls.budget.counts.of[id]))
            budget_frames_toggle(frame, id, &vpy_calls.budget.counts.of[id]);
        ends = 0; /* the call that ends is the thread's innermost */
    }
}

void vpy_stale_frames_update(vst_id ends)
{
    PyThreadState *here = PyThreadState_Get();
    PyThreadState *t =
        PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(here));

    for (; t != NULL; t = PyThreadState_Next(t))
        update_thread(t, t == here ? ends : 0);
}

void vpy_stale_frames_clear(void)
{
    free(state->table);
    state->table = NULL;
    state->mask = state->used = 0;
}

/* ---- what the hooks do -------------------------------------------------- */

/* A step of a task begins with its outermost coroutine that is recorded. If
 * none is recorded, neither is the step. */
bool vpy_left_out_enter(uint32_t value, const void *place)
{
    vst_id id = VPY_ID(value);

    if (id >= vpy_calls.budget.counts.size ||
        vpy_calls.budget.counts.of[id].is & VPY_BUDGET_OUT)
        return true;
    if (value & VPY_COROUTINE)
        vpy_coroutine_record_enter_at(id, place);
    else
        vst_record(VST_ENTER, id);
    return false;
}

bool vpy_left_out_leave(uint32_t value, PyObject *code, PyObject *result,
                        bool waits)
{
    vst_kind kind = result != NULL ? VST_EXIT : VST_RAISE;
    vst_id id = VPY_ID(value);
    vpy_counted *counted;
    stale_frame *at;
    bool is_out, records;

    if (id >= vpy_calls.budget.counts.size)
        return true;
    counted = &vpy_calls.budget.counts.of[id];
    is_out = counted->is & VPY_BUDGET_OUT;
    records = !is_out;
    at = budget_frames_find(vpy_iframe_running(vpy_thread_state()));
    if (at != NULL && at->frame != NULL) {
        records = at->is_recorded;
        budget_frames_drop(at);
        if (--counted->stale == 0 && !is_out)
            vpy_code_set_value(code, vpy_budget_value(value & ~VPY_LEFT_OUT));
    }
    if (records && value & VPY_COROUTINE)
        vpy_coroutine_record_exit_of_running(kind, id, result, waits);
    else if (records)
        vst_record_end_of_call(kind, id);
    return is_out && counted->stale == 0;
}
