/* Sums over stacks for display: of a stack and all stacks above it, and by
 * line. One thread at a time. */
#include <stdlib.h>

#include "base/grow.h"
#include "memory/summary.h"

void vst__memory_amount_add(vst_memory_amount *sum,
                            const vst_memory_amount *more)
{
    sum->count += more->count;
    sum->bytes += more->bytes;
    sum->variance += more->variance;
}

/* A node comes after its parent, so one pass backwards is enough. */
void vst__memory_tree_include(vst_memory_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int view = 0; view < VST_MEMORY_VIEWS; view++)
            nodes[i].inclusive[view] = nodes[i].own[view];
    for (size_t i = count; i-- > 1;)
        for (int view = 0; view < VST_MEMORY_VIEWS; view++)
            vst__memory_amount_add(&nodes[nodes[i].parent].inclusive[view],
                                   &nodes[i].inclusive[view]);
}

uint32_t vst__memory_line_frame(const vst_memory_node *nodes, size_t node,
                                const vst_memory_frame *frames)
{
    for (size_t i = node; i != 0; i = nodes[i].parent)
        if (!frames[nodes[i].frame].is_native)
            return nodes[i].frame;
    return nodes[node].frame;
}

/* Returns the number of a line, from 1. Lines with equal file and number are
 * one, whatever their functions are. */
static vst_status tree_line_of(vst__intern *known,
                               const vst_memory_frame *frame, size_t next,
                               uint32_t *number)
{
    /* a native place without a file is identified by its name */
    bool by_name = frame->line == 0;
    size_t more = by_name ? frame->name_len : 0;
    size_t size = sizeof frame->line + frame->file_len + more;
    vst_status status = VST_OK;
    char *key = malloc(size);

    if (key == NULL)
        return VST_E_NOMEM;
    memcpy(key, &frame->line, sizeof frame->line);
    memcpy(key + sizeof frame->line, frame->file, frame->file_len);
    memcpy(key + sizeof frame->line + frame->file_len, frame->name, more);
    *number = vst__intern_find(known, key, size);
    if (*number == 0) {
        *number = (uint32_t)next + 1;
        status = vst__intern_add(known, key, size, *number);
    }
    free(key);
    return status;
}

vst_status vst__memory_tree_lines(const vst_memory_node *nodes, size_t count,
                                  const vst_memory_frame *frames,
                                  size_t frame_count, vst_memory_line **lines,
                                  size_t *line_count)
{
    uint32_t *of_frame = calloc(frame_count + 1, sizeof *of_frame);
    vst__intern *known = vst__intern_create();
    vst_status status =
        of_frame != NULL && known != NULL ? VST_OK : VST_E_NOMEM;
    size_t capacity = 0;

    *lines = NULL;
    *line_count = 0;
    for (size_t i = 1; i < count && status == VST_OK; i++) {
        uint32_t frame;

        if (nodes[i].own[VST_MEMORY_TOTAL].count == 0)
            continue;
        frame = vst__memory_line_frame(nodes, i, frames);
        if (of_frame[frame] == 0)
            status = tree_line_of(known, &frames[frame], *line_count,
                                  &of_frame[frame]);
        if (status == VST_OK && of_frame[frame] > *line_count) {
            if (!VST_RESERVE(*lines, *line_count + 1, capacity)) {
                status = VST_E_NOMEM;
                break;
            }
            (*lines)[(*line_count)++] = (vst_memory_line){.frame = frame};
        }
        for (int view = 0; view < VST_MEMORY_VIEWS && status == VST_OK; view++)
            vst__memory_amount_add(&(*lines)[of_frame[frame] - 1].own[view],
                                   &nodes[i].own[view]);
    }
    free(of_frame);
    vst__intern_destroy(known);
    if (status != VST_OK) {
        free(*lines);
        *lines = NULL;
        *line_count = 0;
    }
    return status;
}
