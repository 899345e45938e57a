/* Stacks and modules of a trace, from its DEFINITIONS chunks. In every valid
 * file, a stack's parent has a lower number; a stack with any other parent ends
 * there, so every walk ends. One thread at a time. */
#include <stdlib.h>
#include <string.h>

#include <vestige/memory.h>

#include "base/grow.h"
#include "store/reader.h"

vst_status vst__stacks_add(vst_trace *trace, const vst_file_entry *entry)
{
    vst_stack stack = {
        .kind = (vst_stack_kind)(entry->z & 0xff),
        .flags = (uint32_t)(entry->z >> 8),
        .parent = (vst_stack_id)entry->x,
    };

    if (entry->id == 0 || stack.kind < VST_STACK_LANGUAGE ||
        stack.kind > VST_STACK_BOTH)
        return VST_OK;
    if (stack.kind == VST_STACK_LANGUAGE) {
        stack.function = (vst_id)(entry->y >> 32);
        stack.line = (int32_t)(uint32_t)entry->y;
    } else {
        stack.address = entry->y;
    }
    if (stack.parent >= entry->id) {
        stack.parent = 0;
        stack.flags |= VST_STACK_IS_CUT;
    }
    if (stack.kind == VST_STACK_BOTH && stack.address >= entry->id)
        stack.address = 0;
    if (!VST_RESERVE(trace->stacks, trace->stack_count + 1,
                     trace->stack_capacity))
        return VST_E_NOMEM;
    trace->stacks[trace->stack_count] =
        (vst__stack_entry){entry->id, (uint32_t)trace->stack_count, stack};
    trace->stack_count++;
    return VST_OK;
}

vst_status vst__modules_add(vst_trace *trace, const vst_file_entry *entry,
                            const char *path, const char *build_id)
{
    vst_module module = {
        .path = path,
        .bias = entry->x,
        .start = entry->y,
        .end = entry->z,
        .build_id = entry->b_len != 0 ? (const uint8_t *)build_id : NULL,
        .build_id_len = entry->b_len,
    };

    if (!VST_RESERVE(trace->modules, trace->module_count + 1,
                     trace->module_capacity))
        return VST_E_NOMEM;
    if (path == NULL || build_id == NULL)
        return VST_E_NOMEM;
    trace->modules[trace->module_count++] = module;
    return VST_OK;
}

static int by_id(const void *a, const void *b)
{
    const vst__stack_entry *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Sorts by number; of equal numbers, the last is kept. */
static void stacks_sort(vst_trace *trace)
{
    vst__stack_entry *stacks = trace->stacks;
    size_t count = trace->stack_count, kept = 0;
    bool ascending = true;

    for (size_t i = 1; i < count && ascending; i++)
        ascending = stacks[i - 1].id < stacks[i].id;
    if (ascending)
        return;
    qsort(stacks, count, sizeof *stacks, by_id);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || stacks[i + 1].id != stacks[i].id)
            stacks[kept++] = stacks[i];
    trace->stack_count = kept;
}

void vst__stacks_finish(vst_trace *trace)
{
    uint64_t bound = vst__trace_id_bound(trace, sizeof(vst_file_stack));

    stacks_sort(trace);
    while (trace->stack_count != 0 &&
           trace->stacks[trace->stack_count - 1].id > bound)
        trace->stack_count--;
}

void vst__stacks_free_all(vst_trace *trace)
{
    free(trace->stacks);
    free(trace->modules);
}

/* ---- questions ----------------------------------------------------------- */

const vst_stack *vst_trace_stack(const vst_trace *trace, vst_stack_id id)
{
    const vst__stack_entry *stacks = trace->stacks;
    size_t low = 0, high = trace->stack_count;

    if (id == 0 || high == 0)
        return NULL;
    /* numbers are given out in order */
    if (id <= high && stacks[id - 1].id == id)
        return &stacks[id - 1].stack;
    while (high > low) {
        size_t middle = low + (high - low) / 2;

        if (stacks[middle].id == id)
            return &stacks[middle].stack;
        if (stacks[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

vst_stack_id vst_trace_stack_max(const vst_trace *trace)
{
    return trace->stack_count != 0 ? trace->stacks[trace->stack_count - 1].id
                                   : 0;
}

size_t vst_trace_module_count(const vst_trace *trace)
{
    return trace->module_count;
}

const vst_module *vst_trace_module(const vst_trace *trace, size_t index)
{
    return index < trace->module_count ? &trace->modules[index] : NULL;
}

bool vst_trace_has_memory(const vst_trace *trace)
{
    return trace->has_memory;
}
