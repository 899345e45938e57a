/* See tree.h: the calls of all traces, by function and by caller. Replay makes
 * the contexts (replay/contexts.h); this file gives them names that are valid
 * for every process, and sums. One thread at a time. */
#include "export/sums/tree.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/map64.h"
#include "export/output/json.h"
#include "store/reader.h"

/* ---- functions ----------------------------------------------------------- */

/* Makes the key of a function, which is equal in all processes. */
static vst_status make_key(const vst__tree_function *f, char **key,
                           size_t *count)
{
    *count = f->name_len + f->file_len + 1 + sizeof f->line;
    *key = malloc(*count);
    if (*key == NULL)
        return VST_E_NOMEM;
    memcpy(*key, f->name, f->name_len);
    (*key)[f->name_len] = '\0';
    memcpy(*key + f->name_len + 1, f->file, f->file_len);
    memcpy(*key + f->name_len + 1 + f->file_len, &f->line, sizeof f->line);
    return VST_OK;
}

static vst_status find_function(vst__tree *tree, const vst__tree_function *f,
                                uint32_t *index)
{
    size_t count;
    char *key;
    vst_status status = make_key(f, &key, &count);
    uint32_t number;

    if (status != VST_OK)
        return status;
    number = vst__intern_find(tree->known, key, count);
    if (number == 0) {
        number = (uint32_t)tree->function_count + 1;
        if (!VST_RESERVE(tree->functions, number, tree->function_capacity)) {
            status = VST_E_NOMEM;
        } else {
            tree->functions[tree->function_count++] = *f;
            status = vst__intern_add(tree->known, key, count, number);
        }
    }
    free(key);
    *index = number - 1;
    return status;
}

/* Finds the function that stands for definitions which a torn file has lost. */
static vst_status find_unknown(vst__tree *tree, uint32_t *index)
{
    static const char name[] = "unknown function";
    vst__tree_function f = {.name = name,
                            .name_len = sizeof name - 1,
                            .file = "",
                            .kind = VST_DEF_NATIVE};

    return find_function(tree, &f, index);
}

static vst_status find_defined(vst__tree *tree, const vst_definition *d,
                               uint32_t *index)
{
    bool gc = d->kind == VST_DEF_GC;
    vst__tree_function f = {
        .name = gc ? "Python GC" : d->name,
        .name_len = gc ? strlen("Python GC") : d->name_len,
        .file = d->kind == VST_DEF_PYTHON ? d->file : "",
        .file_len = d->kind == VST_DEF_PYTHON ? d->file_len : 0,
        .file_skip = d->kind == VST_DEF_PYTHON ? d->file_skip : 0,
        .line = d->kind == VST_DEF_PYTHON ? d->line : 0,
        .kind = d->kind,
    };

    return find_function(tree, &f, index);
}

/* ---- nodes --------------------------------------------------------------- */

static vst__tree_node *tree_add_node(vst__tree *tree)
{
    if (!VST_RESERVE(tree->nodes, tree->node_count + 1, tree->node_capacity) ||
        tree->node_count >= UINT32_MAX - 1)
        return NULL;
    tree->nodes[tree->node_count] = (vst__tree_node){.parent = VST_TREE_ROOT};
    return &tree->nodes[tree->node_count++];
}

/* The nodes that the rows of a trace became. Each row is followed by the rows
 * of everything that it called, so only one sum of deeper calls is open at a
 * time. */
typedef struct placing {
    vst__tree *tree;
    const vst_trace *trace;
    struct {
        uint32_t node, depth;
    } *places;            /* by 1 + row; [0] is the parent of roots */
    uint32_t sum, sum_of; /* a node of deeper calls, and its parent */
} placing;

static void tree_add_sums(vst__tree_node *node, const vst_context *row,
                          bool outer)
{
    node->count += row->count;
    node->self_ns += row->self_ns;
    node->total_ns += outer ? row->total_ns : 0;
    node->self_bytes += (uint64_t)row->self_bytes;
    node->self_allocations += row->self_allocations;
}

/* Finds the node that stands for all deeper calls below a parent. */
static vst_status tree_find_sum(placing *p, uint32_t parent)
{
    static const char name[] = "[deeper calls]";
    const vst__tree_function deeper = {.name = name,
                                       .name_len = sizeof name - 1,
                                       .file = "",
                                       .kind = VST_DEF_NATIVE};
    vst__tree_node *node;

    if (p->sum != VST_TREE_ROOT && p->sum_of == parent)
        return VST_OK;
    node = tree_add_node(p->tree);
    if (node == NULL)
        return VST_E_NOMEM;
    node->parent = p->sum_of = parent;
    p->sum = (uint32_t)p->tree->node_count - 1;
    p->tree->is_cut = true;
    return find_function(p->tree, &deeper, &node->function);
}

static vst_status tree_add_row(placing *p, size_t i, const vst_context_row *row)
{
    const vst_definition *d = vst_trace_definition(p->trace, row->node.id);
    uint32_t parent = p->places[row->parent].node;
    uint32_t depth = p->places[row->parent].depth + 1;
    uint32_t deepest = p->tree->depth_max;
    vst_status status = VST_OK;
    vst__tree_node *node;

    if (deepest != 0 && depth >= deepest) {
        if (depth == deepest)
            status = tree_find_sum(p, parent);
        if (status != VST_OK)
            return status;
        tree_add_sums(&p->tree->nodes[p->sum], &row->node, depth == deepest);
        p->places[i + 1].node = p->sum;
    } else {
        node = tree_add_node(p->tree);
        if (node == NULL)
            return VST_E_NOMEM;
        node->parent = parent;
        tree_add_sums(node, &row->node, true);
        p->places[i + 1].node = (uint32_t)p->tree->node_count - 1;
        status = d != NULL ? find_defined(p->tree, d, &node->function)
                           : find_unknown(p->tree, &node->function);
    }
    p->places[i + 1].depth = depth;
    return status;
}

static vst_status tree_add_rows(vst__tree *tree, const vst_trace *trace,
                                const vst_context_row *rows, size_t count,
                                uint32_t outside)
{
    placing p = {.tree = tree, .trace = trace, .sum = VST_TREE_ROOT};
    vst_status status = VST_OK;

    p.places = malloc((count + 1) * sizeof *p.places);
    if (p.places == NULL)
        return VST_E_NOMEM;
    p.places[0].node = outside;
    p.places[0].depth = 0;
    for (size_t i = 0; i < count && status == VST_OK; i++)
        status = tree_add_row(&p, i, &rows[i]);
    free(p.places);
    return status;
}

static vst_status add_process(vst__tree *tree, const vst_trace *trace,
                              uint32_t *outside)
{
    vst__tree_node *node = tree_add_node(tree);

    if (node == NULL)
        return VST_E_NOMEM;
    node->function = VST_TREE_PROCESS;
    tree->pids[tree->pid_count++] = trace->header.pid;
    *outside = (uint32_t)tree->node_count - 1;
    return VST_OK;
}

static vst_status tree_add_span(void *ctx, const vst_span *span)
{
    return vst__contexts_add(ctx, span, 0);
}

static vst_status tree_leave(void *ctx, uint32_t depth)
{
    return vst__contexts_leave(ctx, depth);
}

static vst_status add_trace(vst__tree *tree, vst_trace *trace,
                            const vst_export_options *options, bool process,
                            vst_error *error)
{
    uint32_t outside = VST_TREE_ROOT;
    const vst_context_row *rows;
    size_t count, first = tree->node_count;
    vst_contexts *contexts;
    vst_status status = vst__contexts_create(&contexts);
    vst_sink sink = {
        .ctx = contexts, .span = tree_add_span, .leave = tree_leave};
    bool has_error; /* *error has been filled */

    vst_error_set(error, status, 0, 0);
    if (status == VST_OK)
        status = vst_trace_replay(trace, options->window, NULL, &sink, error);
    has_error = status != VST_OK;
    if (status == VST_OK)
        status = vst__contexts_finish(contexts, &rows, &count);
    if (status == VST_OK && process)
        status = add_process(tree, trace, &outside);
    if (status == VST_OK)
        status = tree_add_rows(tree, trace, rows, count, outside);
    if (status == VST_OK && process)
        for (size_t i = first + 1; i < tree->node_count; i++)
            if (tree->nodes[i].parent == outside)
                tree->nodes[first].total_ns += tree->nodes[i].total_ns;
    vst__contexts_destroy(contexts);
    return status == VST_OK || has_error ? status
                                         : vst_error_set(error, status, 0, 0);
}

/* ---- functions that call themselves -------------------------------------- */

/* Walks the tree in order: the functions that are open at a node are those on
 * the path to its root. */
static vst_status tree_mark_inner(vst__tree *tree)
{
    uint32_t *open = calloc(tree->function_count + 1, sizeof *open);
    vst__map64 pairs = {.entries = NULL};
    uint32_t last = VST_TREE_ROOT; /* the innermost open node */
    vst_status status = VST_OK;

    if (open == NULL)
        return VST_E_NOMEM;
    for (uint32_t i = 0; i < tree->node_count && status == VST_OK; i++) {
        vst__tree_node *node = &tree->nodes[i];
        uint64_t *times;

        for (; last != node->parent; last = tree->nodes[last].parent) {
            const vst__tree_node *closed = &tree->nodes[last];
            uint32_t caller = closed->parent != VST_TREE_ROOT
                                  ? tree->nodes[closed->parent].function
                                  : VST_TREE_ROOT;
            if (closed->function == VST_TREE_PROCESS)
                continue;
            open[closed->function]--;
            times = vst__map64_find(&pairs,
                                    (uint64_t)closed->function << 32 | caller);
            if (times != NULL)
                --*times;
        }
        last = i;
        if (node->function == VST_TREE_PROCESS)
            continue;
        times =
            vst__map64_put(&pairs, (uint64_t)node->function << 32 |
                                       (node->parent != VST_TREE_ROOT
                                            ? tree->nodes[node->parent].function
                                            : VST_TREE_ROOT));
        if (times == NULL) {
            status = VST_E_NOMEM;
            break;
        }
        node->is_inner = open[node->function]++ != 0;
        node->is_repeated = (*times)++ != 0;
    }
    vst__map64_free(&pairs);
    free(open);
    return status;
}

/* ---- the whole ----------------------------------------------------------- */

static vst_status tree_make(vst__tree *tree, vst_trace *const *traces,
                            size_t count, const vst_export_options *options,
                            bool processes, vst_error *error)
{
    vst_status status = VST_OK;

    tree->known = vst__intern_create();
    tree->pids = calloc(count, sizeof *tree->pids);
    if (tree->known == NULL || tree->pids == NULL)
        return vst_error_set(error, VST_E_NOMEM, 0, 0);
    for (size_t i = 0; i < count && status == VST_OK; i++) {
        vst_trace_info info;

        vst_trace_get_info(traces[i], &info);
        if (info.start_ns < tree->start_ns)
            tree->start_ns = info.start_ns;
        if (info.end_ns > tree->end_ns)
            tree->end_ns = info.end_ns;
        tree->has_memory |= vst_trace_has_memory(traces[i]);
        status =
            add_trace(tree, traces[i], options, processes && count > 1, error);
    }
    if (status != VST_OK)
        return status;
    status = tree_mark_inner(tree);
    return status == VST_OK ? VST_OK : vst_error_set(error, status, 0, 0);
}

/* ---- sums by function ---------------------------------------------------- */

static void tree_add(vst__tree_sums *sums, const vst__tree_node *node,
                     bool inner)
{
    sums->calls += node->count;
    sums->self_ns += node->self_ns;
    if (inner)
        return;
    sums->primitive_calls += node->count;
    sums->total_ns += node->total_ns;
}

static int by_functions(const void *a, const void *b)
{
    const vst__tree_edge *x = a, *y = b;

    if (x->callee != y->callee)
        return x->callee < y->callee ? -1 : 1;
    return (x->caller > y->caller) - (x->caller < y->caller);
}

static vst_status tree_sum(vst__tree *tree)
{
    size_t capacity = 0;
    vst__map64 known = {.entries = NULL};
    vst_status status = VST_OK;

    tree->sums = calloc(tree->function_count + 1, sizeof *tree->sums);
    if (tree->sums == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < tree->node_count && status == VST_OK; i++) {
        const vst__tree_node *node = &tree->nodes[i];
        uint32_t caller = node->parent != VST_TREE_ROOT
                              ? tree->nodes[node->parent].function
                              : VST_TREE_ROOT;
        uint64_t *number;

        if (node->function == VST_TREE_PROCESS)
            continue;
        tree_add(&tree->sums[node->function], node, node->is_inner);
        number =
            vst__map64_put(&known, (uint64_t)node->function << 32 | caller);
        if (number == NULL ||
            !VST_RESERVE(tree->edges, tree->edge_count + 1, capacity)) {
            status = VST_E_NOMEM;
            break;
        }
        if (*number == 0) {
            tree->edges[tree->edge_count++] =
                (vst__tree_edge){.callee = node->function, .caller = caller};
            *number = tree->edge_count;
        }
        tree_add(&tree->edges[*number - 1].sums, node, node->is_repeated);
    }
    vst__map64_free(&known);
    if (tree->edge_count != 0)
        qsort(tree->edges, tree->edge_count, sizeof *tree->edges, by_functions);
    return status;
}

/* ---- writing --------------------------------------------------------------- */

vst_status vst__tree_write(const vst__tree_format *format,
                           vst_trace *const *traces, size_t count,
                           const vst_export_options *options,
                           vst__output *output, vst_error *error)
{
    vst__tree tree = {
        .start_ns = INT64_MAX,
        .end_ns = INT64_MIN,
        .depth_max = format->shallow ? VST_TREE_DEPTH_MAX : 0,
    };
    vst_status status =
        tree_make(&tree, traces, count, options, format->processes, error);

    if (status == VST_OK) {
        if (tree.is_cut && options->cut_depth != NULL)
            *options->cut_depth = VST_TREE_DEPTH_MAX;
        if (format->by_function)
            status = tree_sum(&tree);
        if (status == VST_OK)
            status = format->write(&tree, output);
        if (status != VST_OK)
            vst_error_set(error, status, 0, 0);
    }
    free(tree.functions);
    free(tree.nodes);
    free(tree.pids);
    free(tree.sums);
    free(tree.edges);
    vst__intern_destroy(tree.known);
    return status;
}

void vst__tree_put_name(const vst__tree *tree, const vst__tree_node *node,
                        uint32_t process, vst__output *output,
                        vst__tree_put put)
{
    const vst__tree_function *f;

    if (node->function == VST_TREE_PROCESS) {
        vst__output_text(output, "process ");
        vst__json_put_i64(output, tree->pids[process]);
        return;
    }
    f = &tree->functions[node->function];
    if (f->kind == VST_DEF_PYTHON) {
        put(output, f->file + f->file_skip, f->file_len - f->file_skip);
        vst__output_text(output, "(");
        vst__json_put_i64(output, f->line);
        vst__output_text(output, "): ");
    }
    put(output, f->name, f->name_len);
}
