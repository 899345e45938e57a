/* Folded stacks: "outer;inner N" with N microseconds or nanoseconds of self
 * time, for flamegraph.pl, speedscope and others. The remainder of rounding a
 * line is added to the next line, so that the sum is right. One thread at a
 * time. */
#include <stdlib.h>

#include "base/grow.h"
#include "export/exporter.h"
#include "export/output/json.h"
#include "export/sums/tree.h"

/* Names must not contain separators of frames or lines. */
static const char *folded_replacement(unsigned char c)
{
    return c == ';' || c < 0x20 ? "_" : NULL;
}

static void folded_put_text(vst__output *output, const char *bytes,
                            size_t count)
{
    vst__output_utf8(output, bytes, count, folded_replacement);
}

/* Finds the nodes from a root to this node. */
static vst_status find_path(const vst__tree *tree, uint32_t index,
                            uint32_t **path, size_t *capacity, size_t *count)
{
    for (*count = 0; index != VST_TREE_ROOT;
         index = tree->nodes[index].parent) {
        if (!VST_RESERVE(*path, *count + 1, *capacity))
            return VST_E_NOMEM;
        (*path)[(*count)++] = index;
    }
    return VST_OK;
}

static vst_status write_stacks(const vst__tree *tree, int64_t unit_ns,
                               vst__output *output)
{
    uint32_t *path = NULL;
    size_t capacity = 0, depth = 0;
    int64_t rest = 0;
    uint32_t process = UINT32_MAX; /* index of the process */
    vst_status status = VST_OK;

    for (uint32_t i = 0; i < tree->node_count && status == VST_OK; i++) {
        int64_t sum = rest + tree->nodes[i].self_ns;

        process += tree->nodes[i].function == VST_TREE_PROCESS;
        rest = sum % unit_ns;
        if (sum < unit_ns)
            continue;
        status = find_path(tree, i, &path, &capacity, &depth);
        for (size_t k = depth; k-- > 0 && status == VST_OK;) {
            vst__tree_put_name(tree, &tree->nodes[path[k]], process, output,
                               folded_put_text);
            vst__output_write(output, k != 0 ? ";" : " ", 1);
        }
        vst__json_put_i64(output, sum / unit_ns);
        vst__output_write(output, "\n", 1);
        if (status == VST_OK)
            status = output->status;
    }
    free(path);
    return status;
}

static vst_status write_us(const vst__tree *tree, vst__output *output)
{
    return write_stacks(tree, 1000, output);
}

static vst_status write_ns(const vst__tree *tree, vst__output *output)
{
    return write_stacks(tree, 1, output);
}

static const vst__tree_format in_us = {.processes = true,
                                       .shallow = true,
                                       .write = write_us},
                              in_ns = {.processes = true,
                                       .shallow = true,
                                       .write = write_ns};

const vst__exporter vst__exporter_folded = {"folded", ".folded",
                                            .sums = &in_us};
const vst__exporter vst__exporter_folded_ns = {"folded-ns", NULL,
                                               .sums = &in_ns};
