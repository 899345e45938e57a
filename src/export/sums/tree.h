/* Shared by the formats of sums (folded stacks, flame graphs, pprof, pstats,
 * callgrind): all calls by the stack of their callers, over all threads, as one
 * tree for all traces. Times are of the wall clock. One thread at a time. */
#ifndef VST_EXPORT_TREE_H
#define VST_EXPORT_TREE_H

#include <vestige/trace.h>

#include "base/intern.h"
#include "export/output/output.h"
#include "replay/contexts.h"

/* A function, identical in all processes. Its strings point into a trace and
 * may contain invalid UTF-8. */
typedef struct vst__tree_function {
    const char *name, *file; /* file is "" if there is none */
    size_t name_len, file_len;
    /* length of the part of the file's name that is not shown */
    size_t file_skip;
    int32_t line;
    vst_definition_kind kind;
} vst__tree_function;

typedef struct vst__tree_node {
    /* index of the parent, less than the node's own; or VST_TREE_ROOT */
    uint32_t parent;
    uint32_t function; /* index, or VST_TREE_PROCESS for a process's node */
    bool is_inner;     /* an outer call of this function is open */
    /* an outer call of this function from this caller is open */
    bool is_repeated;
    uint64_t count;
    int64_t self_ns, total_ns;
    uint64_t self_bytes, self_allocations;
} vst__tree_node;

#define VST_TREE_ROOT UINT32_MAX
#define VST_TREE_PROCESS UINT32_MAX

/* The sums of a function, or of the calls of a function by another; a call
 * inside another call of the function does not count again. */
typedef struct vst__tree_sums {
    uint64_t calls, primitive_calls;
    int64_t self_ns, total_ns;
} vst__tree_sums;

typedef struct vst__tree_edge {
    uint32_t callee, caller; /* VST_TREE_ROOT: no caller */
    vst__tree_sums sums;
} vst__tree_edge;

typedef struct vst__tree {
    vst__tree_function *functions;
    size_t function_count, function_capacity;
    vst__tree_node *nodes;
    size_t node_count, node_capacity;
    /* For a format that has by_function: the sums of each function, and of each
     * pair of functions, sorted by callee, then caller. */
    vst__tree_sums *sums;
    vst__tree_edge *edges;
    size_t edge_count;
    int64_t start_ns, end_ns; /* begin and end of the whole recording */
    bool has_memory;
    vst__intern *known; /* keys of functions */
    uint32_t *pids;     /* pids of the processes, in the order of their nodes */
    size_t pid_count;
    uint32_t depth_max; /* deeper nodes are summed up; 0: no limit */
    /* true if some calls were too deep, and are summed up */
    bool is_cut;
} vst__tree;

/* The greatest depth for formats that write the whole stack of each node,
 * because their size grows with the square of the depth. Deeper calls are
 * summed up as "[deeper calls]". A program is deeper only if it raised Python's
 * limit of 1,000. */
#define VST_TREE_DEPTH_MAX 1024u

/* A format that shows the tree. */
typedef struct vst__tree_format {
    /* If there are several traces, each process is a node above its calls. */
    bool processes;
    bool shallow;     /* no deeper than VST_TREE_DEPTH_MAX; sets cut_depth */
    bool by_function; /* shows sums of functions */
    vst_status (*write)(const vst__tree *tree, vst__output *output);
} vst__tree_format;

/* Replays all traces and writes their tree. */
vst_status vst__tree_write(const vst__tree_format *format,
                           vst_trace *const *traces, size_t count,
                           const vst_export_options *options,
                           vst__output *output, vst_error *error);

/* Writes `app.py(3): main`, as other formats do. `put` escapes each byte
 * string. */
typedef void (*vst__tree_put)(vst__output *output, const char *bytes,
                              size_t count);
void vst__tree_put_name(const vst__tree *tree, const vst__tree_node *node,
                        uint32_t process, vst__output *output,
                        vst__tree_put put);

#endif
