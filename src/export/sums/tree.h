/* What the formats of sums have in common (folded stacks, flame graphs, pprof,
 * pstats, callgrind): every call by the functions that it was called from, over
 * all threads, one tree for all traces. Times of the tree are times of the wall
 * clock. One thread at a time. */
#ifndef VST_EXPORT_TREE_H
#define VST_EXPORT_TREE_H

#include <vestige/trace.h>

#include "base/intern.h"
#include "export/output/output.h"
#include "replay/contexts.h"

/* A function, the same one in all processes. Its strings are those of a trace:
 * what is no UTF-8 in them is still there. */
typedef struct vst__tree_function {
    const char *name, *file; /* file is "" of what has none */
    size_t name_len, file_len;
    size_t file_skip; /* the part of it that is not shown */
    int32_t line;
    vst_definition_kind kind;
} vst__tree_function;

typedef struct vst__tree_node {
    uint32_t parent;   /* index, or VST_TREE_ROOT; less than its own */
    uint32_t function; /* index, or VST_TREE_PROCESS: of one of several */
    bool is_inner;     /* its function is open further out already */
    bool is_repeated;  /* and was called from the same one there */
    uint64_t count;
    int64_t self_ns, total_ns;
    uint64_t self_bytes, self_allocations;
} vst__tree_node;

#define VST_TREE_ROOT UINT32_MAX
#define VST_TREE_PROCESS UINT32_MAX

typedef struct vst__tree {
    vst__tree_function *functions;
    size_t function_count, function_capacity;
    vst__tree_node *nodes;
    size_t node_count, node_capacity;
    int64_t start_ns, end_ns; /* of all that was recorded */
    bool has_memory;
    vst__intern *known; /* functions by what they are called */
    uint32_t *pids;     /* of the processes, by the order of their nodes */
    size_t pid_count;
    uint32_t depth_max; /* no node is deeper; 0: as deep as they are */
    bool is_cut;        /* some were: a node stands for all of them */
} vst__tree;

/* For formats that write the whole stack of each node: as long as the square of
 * the depth. What is called from deeper is summed up there as "[deeper calls]".
 * A program goes deeper only if it raised Python's limit of 1,000. */
#define VST_TREE_DEPTH_MAX 1024u

/* Replays all traces. With processes, each of several is a node outside of all
 * that it called. */
vst_status vst__tree_make(vst__tree *tree, vst_trace *const *traces,
                          size_t count, const vst_export_options *options,
                          bool processes, vst_error *error);
/* The same, no deeper than VST_TREE_DEPTH_MAX; sets options->cut_depth. */
vst_status vst__tree_make_shallow(vst__tree *tree, vst_trace *const *traces,
                                  size_t count,
                                  const vst_export_options *options,
                                  bool processes, vst_error *error);
void vst__tree_free(vst__tree *tree);

/* The function that a definition stands for, NULL for one that was lost; the
 * same one for that of another trace. Of the tree only `known` must be there.
 */
vst_status vst__tree_find_function(vst__tree *tree, const vst_definition *d,
                                   uint32_t *index);

/* `app.py(3): main`, as other formats show it. Its escapes are those that the
 * writer makes of each byte string. */
typedef void (*vst__tree_put)(vst__output *output, const char *bytes,
                              size_t count);
void vst__tree_put_name(const vst__tree *tree, const vst__tree_node *node,
                        uint32_t process, vst__output *output,
                        vst__tree_put put);
void vst__tree_put_i64(vst__output *output, int64_t value);

/* The sums of a function, of which a call counts once however often it calls
 * itself. */
typedef struct vst__tree_sums {
    uint64_t calls, primitive_calls;
    int64_t self_ns, total_ns;
    uint64_t self_bytes, self_allocations;
} vst__tree_sums;

/* By function; and by pairs of functions, callee first, then caller. */
typedef struct vst__tree_edge {
    uint32_t callee, caller; /* VST_TREE_ROOT: nobody */
    vst__tree_sums sums;
} vst__tree_edge;

/* Both to be freed by the caller; edges are in order of callee and caller. */
vst_status vst__tree_sum(const vst__tree *tree, vst__tree_sums **functions,
                         vst__tree_edge **edges, size_t *edge_count);

#endif
