/* Stacks of a memory summary as lists of nodes, limited to the length that a
 * format can hold: see memory_export.h. Finding a stack takes time in
 * proportion to the list, however deep the stack is. One thread at a time. */
#include <stdlib.h>

#include "export/memory/memory_export.h"

vst_status vst__memory_paths_make(vst__memory_paths *paths,
                                  const vst_memory_summary *s,
                                  uint32_t outer_max, uint32_t inner_max)
{
    size_t longest = (size_t)outer_max + inner_max + 1;

    *paths = (vst__memory_paths){
        .summary = s, .outer_max = outer_max, .inner_max = inner_max};
    paths->depths = malloc((s->node_count + 1) * sizeof *paths->depths);
    paths->outer = malloc((s->node_count + 1) * sizeof *paths->outer);
    paths->nodes = malloc(longest * sizeof *paths->nodes);
    if (paths->depths == NULL || paths->outer == NULL || paths->nodes == NULL)
        return VST_E_NOMEM;
    paths->depths[0] = paths->outer[0] = 0;
    for (size_t i = 1; i < s->node_count; i++) {
        uint32_t parent = s->nodes[i].parent;

        paths->depths[i] = paths->depths[parent] + 1;
        paths->outer[i] =
            paths->depths[i] <= outer_max ? (uint32_t)i : paths->outer[parent];
    }
    return VST_OK;
}

void vst__memory_paths_end(vst__memory_paths *paths, const vst__memory_job *job)
{
    if (paths->is_cut && job->options.cut_depth != NULL)
        *job->options.cut_depth = paths->outer_max + paths->inner_max;
    free(paths->depths);
    free(paths->outer);
    free(paths->nodes);
}

/* Stores the `count` innermost frames of a stack before index `end`. */
static void paths_put(vst__memory_paths *paths, uint32_t node, size_t end,
                      size_t count)
{
    while (count-- != 0) {
        paths->nodes[--end] = node;
        node = paths->summary->nodes[node].parent;
    }
}

void vst__memory_paths_find(vst__memory_paths *paths, uint32_t node)
{
    uint32_t depth = paths->depths[node];
    size_t outer = paths->outer_max, inner = paths->inner_max;

    if (depth <= outer + inner) {
        paths->count = depth;
        paths_put(paths, node, depth, depth);
        return;
    }
    paths->is_cut = true;
    paths->count = outer + 1 + inner;
    paths_put(paths, node, paths->count, inner);
    paths->nodes[outer] = 0;
    paths_put(paths, paths->outer[node], outer, outer);
}

void vst__memory_stack_text(vst__output *output, vst__memory_paths *paths,
                            const vst__memory_texts *texts, uint32_t node)
{
    vst__memory_paths_find(paths, node);
    for (size_t i = 0; i < paths->count; i++) {
        uint32_t frame = paths->summary->nodes[paths->nodes[i]].frame;

        if (i != 0)
            vst__output_write(output, ";", 1);
        if (paths->nodes[i] == 0)
            vst__output_text(output, VST_MEMORY_LEFT_OUT);
        else
            vst__output_write(output, texts->texts[frame],
                              texts->lengths[frame]);
    }
}
