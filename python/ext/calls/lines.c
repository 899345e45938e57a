/* The lines that the calling thread's Python functions have reached, as the
 * number of a stack in the trace (VST_ESCAPE_LINES). The core asks for it at
 * most once in VST_LINES_NS, from inside a hook, so a walk over all frames is
 * cheap enough. No reference is kept and no object is made.
 *
 * Two tables spare most look-ups: the line of an instruction by the code
 * object's address, which is right until the next code object is freed, and the
 * number of a stack by its caller's number, its function and its line. A thread
 * that finds another one in the tables does without lines this time: that
 * happens only without the GIL. */
#include "calls/lines.h"

#include "base/inside.h"
#include "calls/ids.h"
#include "record/language.h"

#include <vestige/memory.h>

static struct vpy_lines_state *const state = &vpy_calls.lines;

enum { FRAMES_MAX = 512 }; /* a deeper stack has no lines */

typedef struct open_frame {
    PyCodeObject *code;
    int instruction;
} open_frame;

void vpy_lines_code_freed(void *value)
{
    (void)value;
    __atomic_fetch_add(&state->freed, 1, __ATOMIC_RELAXED);
}

static size_t lines_mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

    return (size_t)(mixed >> 32);
}

/* Returns the line of an instruction, 0 if it has none. */
static int32_t lines_find_line(const open_frame *frame)
{
    uint32_t freed = __atomic_load_n(&state->freed, __ATOMIC_RELAXED);
    vpy_known_line *known =
        &state->lines[lines_mix((uintptr_t)frame->code >> 4,
                                (uint32_t)frame->instruction) %
                      VPY_KNOWN_LINES];
    int line;

    if (known->code == frame->code &&
        known->instruction == frame->instruction && known->freed == freed)
        return known->line;
    line = PyCode_Addr2Line(frame->code, frame->instruction * 2);
    *known = (vpy_known_line){frame->code, frame->instruction, freed,
                              line > 0 ? line : 0};
    return known->line;
}

/* Returns the number of the stack of a call in `parent`, 0 on failure. */
static vst_stack_id lines_find_stack(vst_stack_id parent, vst_id function,
                                     int32_t line)
{
    uint64_t place = (uint64_t)function << 32 | (uint32_t)line;
    vpy_known_stack *known =
        &state->stacks[lines_mix(place, parent) % VPY_KNOWN_STACKS];
    vst_stack stack = {.kind = VST_STACK_LANGUAGE,
                       .parent = parent,
                       .function = function,
                       .line = line};
    vst_stack_id id;

    if (known->place == place && known->parent == parent &&
        known->round == state->round)
        return known->id;
    if (vst_recording_define_stack(state->recording, &stack, &id) != VST_OK)
        return 0;
    *known = (vpy_known_stack){place, parent, id, state->round};
    return id;
}

/* Gathers the frames that run, innermost first. Returns how many there are, 0
 * if there are too many. */
static size_t lines_gather(PyThreadState *tstate, open_frame *frames)
{
    const vpy_iframe *frame = vpy_iframe_innermost(tstate);
    size_t count = 0;

    for (; frame != NULL; frame = vpy_iframe_back(frame)) {
        int instruction;
        if (vpy_iframe_is_shim(frame))
            continue;
        instruction = vpy_iframe_instruction(frame);
        if (vpy_iframe_is_incomplete(frame, instruction))
            continue;
        if (count == FRAMES_MAX)
            return 0;
        frames[count++] = (open_frame){vpy_iframe_code(frame), instruction};
    }
    return count;
}

static vst_stack_id lines_number(const open_frame *frames, size_t count)
{
    vst_stack_id stack = 0;

    while (count-- != 0) {
        vst_id id = vpy_code_known_id((PyObject *)frames[count].code);
        if (id == 0) /* a function that is not recorded */
            continue;
        stack = lines_find_stack(stack, id, lines_find_line(&frames[count]));
        if (stack == 0)
            return 0;
    }
    return stack;
}

/* Called by a hook, so with the GIL, but also by a thread that records by
 * itself. */
static uint32_t lines_stack(void *recording)
{
    PyThreadState *tstate = vpy_thread_with_gil();
    open_frame frames[FRAMES_MAX];
    vst_stack_id stack = 0;

    if (tstate == NULL || tstate->interp != state->main_interpreter ||
        vpy_is_finalizing() ||
        __atomic_exchange_n(&state->is_busy, true, __ATOMIC_ACQUIRE))
        return 0;
    if (state->recording == recording)
        stack = lines_number(frames, lines_gather(tstate, frames));
    __atomic_store_n(&state->is_busy, false, __ATOMIC_RELEASE);
    return stack;
}

void vpy_lines_begin(vst_recording *recording)
{
    const vst_lines lines = {
        .interval_ns = VST_LINES_NS, .ctx = recording, .stack = lines_stack};

    if (!vpy_base.inside.works[VPY_PART_MEMORY]) /* frames cannot be read */
        return;
    state->round++; /* cheaper in a forked child than clearing the table */
    state->recording = recording;
    state->main_interpreter = PyInterpreterState_Main();
    state->is_busy = false; /* in a forked child, its holder may be gone */
    vst__recording_set_lines(recording, &lines);
}
