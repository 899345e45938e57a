/* Callgrind's format, for KCachegrind and callgrind_annotate: each function
 * with its self time, then the functions that it called, how often and how
 * long, in nanoseconds. The line of a call is not known: all calls are placed
 * at the function's first line. One thread at a time. */
#include <stdlib.h>

#include "export/exporter.h"
#include "export/output/json.h"
#include "export/sums/tree.h"

/* Names must not contain line breaks. */
static const char *callgrind_replacement(unsigned char c)
{
    return c < 0x20 ? "_" : NULL;
}

static void callgrind_put_text(vst__output *output, const char *bytes,
                               size_t count)
{
    vst__output_utf8(output, bytes, count, callgrind_replacement);
}

/* Writes `fn=(3) name`, with the name only at its first use. */
static void callgrind_put_name(vst__output *output, const char *key,
                               uint32_t number, bool *known, const char *bytes,
                               size_t count)
{
    vst__output_text(output, key);
    vst__output_text(output, "=(");
    vst__json_put_i64(output, (int64_t)number + 1);
    vst__output_text(output, ")");
    if (!*known) {
        vst__output_text(output, " ");
        callgrind_put_text(output, bytes, count);
    }
    *known = true;
    vst__output_text(output, "\n");
}

typedef struct known {
    bool file, name;
} known;

/* Writes a function's file and name under the function's number, because a file
 * may appear under several numbers. */
static void callgrind_put_function(const vst__tree *tree, uint32_t index,
                                   known *seen, bool called,
                                   vst__output *output)
{
    const vst__tree_function *f = &tree->functions[index];
    bool has_file = f->file_len != 0;

    callgrind_put_name(output, called ? "cfi" : "fl", index, &seen[index].file,
                       has_file ? f->file : "~", has_file ? f->file_len : 1);
    callgrind_put_name(output, called ? "cfn" : "fn", index, &seen[index].name,
                       f->name, f->name_len);
}

static int64_t callgrind_line_of(const vst__tree *tree, uint32_t index)
{
    return tree->functions[index].line > 0 ? tree->functions[index].line : 0;
}

static void put_cost(vst__output *output, int64_t line, int64_t ns)
{
    vst__json_put_i64(output, line);
    vst__output_text(output, " ");
    vst__json_put_i64(output, ns);
    vst__output_text(output, "\n");
}

static int by_caller(const void *a, const void *b)
{
    const vst__tree_edge *x = a, *y = b;

    if (x->caller != y->caller)
        return x->caller < y->caller ? -1 : 1;
    return (x->callee > y->callee) - (x->callee < y->callee);
}

static vst_status put_functions(const vst__tree *tree, vst__output *output)
{
    vst__tree_edge *edges = tree->edges;
    known *seen = calloc(tree->function_count + 1, sizeof *seen);
    size_t next = 0;

    if (seen == NULL)
        return VST_E_NOMEM;
    if (tree->edge_count != 0)
        qsort(edges, tree->edge_count, sizeof *edges, by_caller);
    for (uint32_t i = 0; i < tree->function_count; i++) {
        vst__output_text(output, "\n");
        callgrind_put_function(tree, i, seen, false, output);
        put_cost(output, callgrind_line_of(tree, i), tree->sums[i].self_ns);
        for (; next < tree->edge_count && edges[next].caller == i; next++) {
            const vst__tree_edge *edge = &edges[next];

            callgrind_put_function(tree, edge->callee, seen, true, output);
            vst__output_text(output, "calls=");
            vst__json_put_i64(output, (int64_t)edge->sums.calls);
            vst__output_text(output, " ");
            vst__json_put_i64(output, callgrind_line_of(tree, edge->callee));
            vst__output_text(output, "\n");
            put_cost(output, callgrind_line_of(tree, i), edge->sums.total_ns);
        }
    }
    free(seen);
    return output->status;
}

static vst_status write_document(const vst__tree *tree, vst__output *output)
{
    int64_t total_ns = 0;
    vst_status status;

    vst__output_text(output, "# callgrind format\nversion: 1\n"
                             "creator: vestige\npositions: line\n"
                             "event: ns : wall time in nanoseconds\n"
                             "events: ns\n");
    status = put_functions(tree, output);
    for (size_t i = 0; i < tree->function_count; i++)
        total_ns += tree->sums[i].self_ns;
    vst__output_text(output, "\ntotals: ");
    vst__json_put_i64(output, total_ns);
    vst__output_text(output, "\n");
    return status;
}

static const vst__tree_format callgrind = {.by_function = true,
                                           .write = write_document};

const vst__exporter vst__exporter_callgrind = {
    "callgrind", ".callgrind callgrind.out.*", .sums = &callgrind};
