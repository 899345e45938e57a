/* Stacks of a trace for display: each is a node, a frame on top of another
 * node. The language's stacks are nodes in the trace already, and are converted
 * one by one. If a stack also has native frames, the two are joined as in
 * traceback/symbolize.c: one native evaluation frame runs the language's frames
 * from the innermost to the first that was entered from native code; the next
 * evaluation frame further out runs the next such run. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "memory/summary.h"
#include "store/reader.h"

enum {
    UNKNOWN_NODE = UINT32_MAX,
    FRAMES_MAX = 1 << 20 /* frames of one stack: a trace may be damaged */
};

/* Returns the node of a frame on top of another node. Frames that only started
 * the program are left out. */
static vst_status stacks_child(vst__memory_stacks *s, uint32_t parent,
                               uint32_t frame, uint32_t *node)
{
    uint64_t *entry;

    *node = parent;
    if (frame == VST_FRAME_NONE ||
        (parent == 0 && vst__memory_frame_is_launcher(&s->frames.items[frame])))
        return VST_OK;
    entry = vst__map64_put(&s->children, (uint64_t)parent << 32 | frame);
    if (entry == NULL)
        return VST_E_NOMEM;
    if (*entry == 0) {
        if (s->count >= UNKNOWN_NODE ||
            !VST_RESERVE(s->nodes, s->count + 1, s->capacity))
            return VST_E_NOMEM;
        s->nodes[s->count] =
            (vst_memory_node){.parent = parent, .frame = frame};
        *entry = s->count++;
    }
    *node = (uint32_t)*entry;
    return VST_OK;
}

/* Returns the node that stands for the frames that were cut off at the outer
 * end. */
static vst_status stacks_cut(vst__memory_stacks *s, uint32_t *node)
{
    uint32_t frame;
    vst_status status = VST_OK;

    if (s->cut_frame == 0) {
        status = vst__memory_frame_special(
            &s->frames, "(outer frames were left out)", &frame);
        s->cut_frame = frame + 1;
    }
    return status == VST_OK ? stacks_child(s, 0, s->cut_frame - 1, node)
                            : status;
}

/* ---- the chain of a stack ------------------------------------------------ */

/* Returns a stack of one kind. Its parent must be older than itself, so that
 * every walk ends, whatever the file says. */
static const vst_stack *stacks_get(const vst__memory_stacks *s, vst_stack_id id,
                                   vst_stack_kind kind)
{
    const vst_stack *stack = id != 0 && id < s->stack_count
                                 ? vst_trace_stack(s->frames.trace, id)
                                 : NULL;

    return stack != NULL && stack->kind == kind ? stack : NULL;
}

static vst_stack_id stacks_outwards(vst_stack_id id, const vst_stack *stack)
{
    return stack->parent < id ? stack->parent : 0;
}

/* ---- stacks of one kind -------------------------------------------------- */

static vst_status on_top(vst__memory_stacks *s, const vst_stack *stack,
                         uint32_t *node)
{
    vst_status status = VST_OK;
    uint32_t frame;
    const uint32_t *found;
    size_t count;

    if (stack->kind == VST_STACK_LANGUAGE) {
        status = vst__memory_frame_language(&s->frames, stack, &frame);
        return status == VST_OK ? stacks_child(s, *node, frame, node) : status;
    }
    status =
        vst__memory_frame_native(&s->frames, stack->address, &found, &count);
    while (status == VST_OK && count != 0)
        status = stacks_child(s, *node, found[--count], node);
    return status;
}

/* Starts at the innermost stack whose node is known, so each stack is converted
 * once. */
static vst_status plain_node(vst__memory_stacks *s, vst_stack_id id,
                             vst_stack_kind kind, uint32_t *node)
{
    size_t count = 0;
    vst_status status = VST_OK;
    const vst_stack *stack;

    *node = 0;
    while ((stack = stacks_get(s, id, kind)) != NULL) {
        if (s->node_of_stack[id] != UNKNOWN_NODE) {
            *node = s->node_of_stack[id];
            break;
        }
        if (!VST_RESERVE(s->chain, count + 1, s->chain_capacity))
            return VST_E_NOMEM;
        s->chain[count++] = id;
        id = stacks_outwards(id, stack);
    }
    while (count != 0 && status == VST_OK) {
        id = s->chain[--count];
        stack = vst_trace_stack(s->frames.trace, id);
        if ((stack->flags & VST_STACK_IS_CUT) != 0 && *node == 0)
            status = stacks_cut(s, node);
        if (status == VST_OK)
            status = on_top(s, stack, node);
        if (status == VST_OK)
            s->node_of_stack[id] = *node;
    }
    return status;
}

/* ---- stacks of both kinds ------------------------------------------------ */

/* State of a walk, innermost frame first. */
typedef struct walk {
    vst__memory_stacks *stacks;
    vst_stack_id next; /* next stack of the language; 0 at the end */
} walk;

static vst_status stacks_show(vst__memory_stacks *s, const uint32_t *frames,
                              size_t count)
{
    if (s->shown_count + count > FRAMES_MAX)
        return VST_OK;
    if (!VST_RESERVE(s->shown, s->shown_count + count, s->shown_capacity))
        return VST_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        s->shown[s->shown_count++] = frames[i];
    return VST_OK;
}

/* Shows frames of the language: those that one evaluation frame runs, or
 * all. */
static vst_status show_language(walk *w, bool all)
{
    vst__memory_stacks *s = w->stacks;
    vst_status status = VST_OK;
    const vst_stack *stack;
    bool has_ended = false;

    while (!has_ended && status == VST_OK &&
           (stack = stacks_get(s, w->next, VST_STACK_LANGUAGE)) != NULL) {
        uint32_t frame;

        status = vst__memory_frame_language(&s->frames, stack, &frame);
        if (status == VST_OK && frame != VST_FRAME_NONE)
            status = stacks_show(s, &frame, 1);
        has_ended = !all && (stack->flags & VST_STACK_IS_ENTRY) != 0;
        w->next = stacks_outwards(w->next, stack);
    }
    if (stack == NULL)
        w->next = 0;
    return status;
}

static vst_status show_native(vst__memory_stacks *s, uint64_t address)
{
    const uint32_t *found;
    size_t count;
    vst_status status =
        vst__memory_frame_native(&s->frames, address, &found, &count);

    return status == VST_OK ? stacks_show(s, found, count) : status;
}

/* Collects the native addresses, innermost first. */
static vst_status stacks_gather(vst__memory_stacks *s, vst_stack_id id,
                                size_t *count)
{
    const vst_stack *stack;

    *count = 0;
    while ((stack = stacks_get(s, id, VST_STACK_NATIVE)) != NULL &&
           *count < FRAMES_MAX) {
        if (!VST_RESERVE(s->addresses, *count + 1, s->addresses_capacity))
            return VST_E_NOMEM;
        s->addresses[(*count)++] = stack->address;
        id = stacks_outwards(id, stack);
    }
    return VST_OK;
}

/* Returns the index of the outermost evaluation frame, + 1; 0 if there is
 * none. */
static size_t last_evaluation(const vst__memory_stacks *s, size_t count)
{
    while (count != 0 && !vst__memory_frame_is_evaluation(
                             &s->frames, s->addresses[count - 1]))
        count--;
    return count;
}

static bool is_cut(const vst__memory_stacks *s, vst_stack_id id)
{
    const vst_stack *stack;
    bool found = false;

    while ((stack = stacks_get(s, id, VST_STACK_LANGUAGE)) != NULL) {
        found = (stack->flags & VST_STACK_IS_CUT) != 0;
        id = stacks_outwards(id, stack);
    }
    return found;
}

/* If the language's frames end before the evaluation frames do, the remaining
 * evaluation frames ran frames that are not shown: those that started the
 * program, or that were cut off. */
static vst_status both_node(vst__memory_stacks *s, const vst_stack *both,
                            uint32_t *node)
{
    walk w = {.stacks = s, .next = both->parent};
    vst_stack_id native =
        both->address <= UINT32_MAX ? (vst_stack_id)both->address : 0;
    bool has_language = stacks_get(s, both->parent, VST_STACK_LANGUAGE) != NULL;
    size_t count, evaluations;
    vst_status status = stacks_gather(s, native, &count);

    s->shown_count = 0;
    evaluations = last_evaluation(s, count);
    for (size_t i = 0; i < count && status == VST_OK; i++) {
        if (has_language && w.next == 0 && i < evaluations)
            break;
        if (has_language && w.next != 0 &&
            vst__memory_frame_is_evaluation(&s->frames, s->addresses[i]))
            status = show_language(&w, false);
        else
            status = show_native(s, s->addresses[i]);
    }
    if (status == VST_OK)
        status = show_language(&w, true);
    *node = 0;
    if (status == VST_OK && is_cut(s, both->parent))
        status = stacks_cut(s, node);
    for (size_t i = s->shown_count; i-- > 0 && status == VST_OK;)
        status = stacks_child(s, *node, s->shown[i], node);
    return status;
}

/* ---- any stack ----------------------------------------------------------- */

/* Returns the node of stacks without frames. */
static vst_status stacks_nowhere(vst__memory_stacks *s, uint32_t *node)
{
    uint32_t frame;
    vst_status status;

    status = vst__memory_frame_special(&s->frames, "(no stack)", &frame);
    if (status == VST_OK)
        status = stacks_child(s, 0, frame, &s->nowhere);
    *node = s->nowhere;
    return status;
}

vst_status vst__memory_stacks_node(vst__memory_stacks *s, vst_stack_id id,
                                   uint32_t *node)
{
    const vst_stack *stack;
    vst_status status = VST_OK;

    if (id >= s->stack_count)
        id = 0;
    *node = s->leaf_of_stack[id];
    if (*node != UNKNOWN_NODE)
        return VST_OK;
    *node = 0;
    stack = id != 0 ? vst_trace_stack(s->frames.trace, id) : NULL;
    if (stack != NULL && stack->kind == VST_STACK_BOTH)
        status = both_node(s, stack, node);
    else if (stack != NULL)
        status = plain_node(s, id, stack->kind, node);
    if (status == VST_OK && *node == 0) {
        *node = s->nowhere;
        if (*node == 0)
            status = stacks_nowhere(s, node);
    }
    if (status == VST_OK)
        s->leaf_of_stack[id] = *node;
    return status;
}

size_t vst__memory_stack_count(const vst_trace *trace)
{
    return (size_t)vst_trace_stack_max(trace) + 1;
}

vst_status vst__memory_stacks_begin(vst__memory_stacks *s,
                                    const vst_trace *trace)
{
    vst_status status;

    *s = (vst__memory_stacks){0};
    status = vst__memory_frames_begin(&s->frames, trace);

    s->stack_count = vst__memory_stack_count(trace);
    s->node_of_stack = malloc(s->stack_count * sizeof *s->node_of_stack);
    s->leaf_of_stack = malloc(s->stack_count * sizeof *s->leaf_of_stack);
    if (status != VST_OK || s->node_of_stack == NULL ||
        s->leaf_of_stack == NULL || !VST_RESERVE(s->nodes, 1, s->capacity))
        return VST_E_NOMEM;
    for (size_t i = 0; i < s->stack_count; i++)
        s->node_of_stack[i] = s->leaf_of_stack[i] = UNKNOWN_NODE;
    s->nodes[0] = (vst_memory_node){0};
    s->count = 1;
    return vst__memory_frame_special(&s->frames, "(all)", &s->nodes[0].frame);
}

void vst__memory_stacks_end(vst__memory_stacks *s)
{
    vst__memory_frames_end(&s->frames);
    vst__map64_free(&s->children);
    free(s->node_of_stack);
    free(s->chain);
    free(s->addresses);
    free(s->shown);
    s->node_of_stack = s->shown = NULL;
    s->chain = NULL;
    s->addresses = NULL;
}

void vst__memory_stacks_free(vst__memory_stacks *s)
{
    vst__memory_stacks_end(s);
    vst__memory_frames_free(&s->frames);
    free(s->leaf_of_stack);
    free(s->nodes);
}
