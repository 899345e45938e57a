/* The lines of calls (VST_ESCAPE_LINES): finds the open calls that the escape's
 * stack names, and notes for each call above where it was made. One thread at
 * a time. */
#include "replay/matcher_stack.h"

#include <vestige/memory.h>
#include <vestige/trace.h>

enum {
    DEPTH_MAX = 1024,  /* the lines of a deeper stack are not looked up */
    FRAMES_MAX = 8192, /* likewise, with more spans open */
};

typedef struct lines {
    size_t count;
    vst_stack_id stacks[DEPTH_MAX]; /* outermost first */
    vst_id functions[DEPTH_MAX];
} lines;

/* Lists the calls of a stack. Returns false if there are too many. */
static bool lines_list(const vst_trace *trace, uint64_t number, lines *list)
{
    vst_stack_id ids[DEPTH_MAX];
    const vst_stack *stack;
    size_t count = 0;

    list->count = 0;
    while (number != 0) {
        if (number > UINT32_MAX)
            return false;
        stack = vst_trace_stack(trace, (vst_stack_id)number);
        if (stack == NULL || stack->kind != VST_STACK_LANGUAGE ||
            count == DEPTH_MAX)
            return false;
        ids[count++] = (vst_stack_id)number;
        number = stack->parent;
    }
    while (count-- != 0) {
        list->stacks[list->count] = ids[count];
        list->functions[list->count++] =
            vst_trace_stack(trace, ids[count])->function;
    }
    return true;
}

static bool lines_is_language(const vst_trace *trace, vst_id id)
{
    const vst_definition *definition = vst_trace_definition(trace, id);

    return definition != NULL && definition->kind == VST_DEF_PYTHON;
}

/* Notes where a call was made: `at` is the stack of the nearest call of the
 * language around it, and `is_through` whether other calls lie between. */
static void lines_note_call(vst__frame *frame, vst_stack_id at, bool is_through)
{
    if (frame->called_at != 0 || at == 0)
        return;
    frame->called_at = at;
    if (is_through)
        frame->flags |= VST_FRAME_THROUGH;
}

/* Returns the place of a function in the list from `at` on; the list may have
 * calls before it that are not recorded. */
static size_t lines_find(const lines *list, size_t at, vst_id function)
{
    while (at < list->count && list->functions[at] != function)
        at++;
    return at;
}

/* An open call that the list lacks is about to end, or nothing is known of its
 * callers. */
static void lines_note(vst_matcher *matcher, const vst_trace *trace,
                       const lines *list, bool is_entering)
{
    vst_stack_id made_at = 0;
    bool is_through = false;
    size_t at = 0;

    for (size_t i = 0; i < matcher->count; i++) {
        vst__frame *frame = &matcher->frames[i];

        lines_note_call(frame, made_at, is_through);
        if (at < list->count && list->functions[at] == frame->id) {
            made_at = list->stacks[at++];
            is_through = false;
        } else if (lines_is_language(trace, frame->id)) {
            at = lines_find(list, at, frame->id);
            if (at == list->count)
                return;
            made_at = list->stacks[at++];
            is_through = false;
        } else if (!(frame->flags & VST_FRAME_BEGIN)) {
            is_through = true;
        }
    }
    if (is_entering && made_at != 0) {
        matcher->next_called_at = made_at;
        matcher->next_flags = is_through ? VST_FRAME_THROUGH : 0;
    }
}

vst_status vst__matcher_lines(vst_matcher *matcher, uint64_t number,
                              const vst_sink *sink)
{
    const vst_trace *trace = vst__sink_inside(sink)->trace;
    lines list;

    if (trace != NULL && matcher->count <= FRAMES_MAX &&
        lines_list(trace, number & ~VST_LINES_OF_ENTER, &list))
        lines_note(matcher, trace, &list, number & VST_LINES_OF_ENTER);
    return VST_OK;
}
