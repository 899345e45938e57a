/* The execution trace of a process: its nodes, built of what one or several
 * recordings of it hold. Threads are read together, in order of time
 * (lanes.c), because a node may name one that is open on another thread; what
 * is open is in graph.c. Memory is what is open, an entry for each tensor's and
 * storage's address (identities.h) and some 450 KiB for each thread that lives
 * at the moment. One thread at a time. */
#ifndef VST_GRAPH_GRAPH_H
#define VST_GRAPH_GRAPH_H

#include <vestige/trace.h>
#include <vestige/tracer.h>

#include "base/map64.h"
#include "graph/identities.h"
#include "graph/values.h"
#include "replay/operator.h"

/* The id of the process's root. */
#define VST_GRAPH_PROCESS_ID 1

typedef enum vst__graph_kind {
    VST_GRAPH_PROCESS, /* the root of all */
    VST_GRAPH_THREAD,  /* the root of a thread */
    VST_GRAPH_NODE
} vst__graph_kind;

typedef struct vst__graph_node {
    vst__graph_kind kind;
    uint64_t id;
    uint64_t parent;         /* the process's is its own */
    uint64_t forward_parent; /* 0: none */
    uint64_t record;         /* the framework's number, 0 of a root */
    uint64_t thread, forward_thread;
    int64_t sequence; /* -1: none */
    uint32_t scope;
    unsigned observer;
    vst_trace *trace; /* whose definitions the two are */
    vst_id definition;
    vst_id schema; /* 0: none */

    /* The caller's own: what it made of the inputs, kept until the node ends.
     */
    vst__text text;

    /* ---- graph.c's own ---- */
    uint64_t serial;
    const void *lane;
    uint64_t system_tid; /* the lane's */
    bool has_inputs;
} vst__graph_node;

/* Receives the nodes. `values` are valid during the call; a status other than
 * VST_OK ends the reading. */
typedef struct vst__graph_sink {
    void *ctx;
    /* A node that began. Its id is larger than those of all before. */
    vst_status (*begin)(void *ctx, vst__graph_node *node,
                        const vst__graph_values *inputs);
    /* It ended: children come before their parents. A root has no beginning;
     * that of a thread comes before the thread's first node, that of the
     * process last. outputs: NULL where nothing is known. */
    vst_status (*end)(void *ctx, vst__graph_node *node,
                      const vst__graph_values *outputs);
} vst__graph_sink;

/* A thread, as the framework counts them. */
typedef struct vst__graph_thread {
    uint64_t number;
    uint64_t root; /* id of its node */
    uint64_t home; /* the system's number of the one whose operators came first;
                      others do work in its name. 0: none came */
    vst__graph_node **open;
    size_t open_count, open_capacity;
} vst__graph_thread;

typedef struct vst__graph {
    vst__graph_sink sink;
    unsigned observer; /* only its nodes; 0: all */
    vst_trace *trace;  /* that is being read */
    uint64_t last_id;
    uint64_t nodes; /* so many began, roots not counted */
    vst__identities identities;

    vst__graph_thread **threads;
    size_t thread_count, thread_capacity;
    vst__map64 thread_of; /* number -> 1 + index */

    /* Nodes that were open where a window ended. They are delivered last,
     * unless a later window has their outputs. */
    vst__graph_node **left;
    size_t left_count, left_capacity;
    vst__graph_node **unused;
    size_t unused_count, unused_capacity;
    vst__graph_values values;
} vst__graph;

/* What is put together of one thread of a window. */
typedef struct vst__graph_lane {
    vst__graph *graph;
    uint64_t system_tid;
    vst__graph_thread *thread; /* NULL: no node of it was seen */
    /* Values that go on in the next escape. */
    unsigned char *bytes;
    size_t count, capacity;
    uint64_t record; /* number of the node that has them, 0: none */
    bool outputs;
} vst__graph_lane;

/* ---- graph.c ------------------------------------------------------------ */

void vst__graph_open(vst__graph *graph, const vst__graph_sink *sink,
                     unsigned observer);
/* Tells what is left, then the process's root. */
vst_status vst__graph_finish(vst__graph *graph);
void vst__graph_close(vst__graph *graph);

/* The sink that a matcher of the lane's thread is fed with; its ctx is the
 * lane. */
extern const vst_sink vst__graph_lane_sink;
/* The window ends. */
vst_status vst__graph_lane_finish(vst__graph_lane *lane);
void vst__graph_lane_free(vst__graph_lane *lane);

/* ---- threads.c ---------------------------------------------------------- */

/* Tells of a root. */
vst_status vst__graph_tell_root(vst__graph *graph, vst__graph_kind kind,
                                uint64_t id, uint64_t thread);
/* NULL: no node of it was seen. */
vst__graph_thread *vst__graph_find_thread(const vst__graph *graph,
                                          uint64_t number);
/* Sets the lane's thread, by the framework's number of it, else the system's.
 */
vst_status vst__graph_choose_thread(vst__graph_lane *lane,
                                    const vst_node *seen);

/* ---- nodes.c ------------------------------------------------------------ */

/* VST_E_PROCESSES if the traces are not all of one process. */
vst_status vst__graph_check(vst_trace *const *traces, size_t count);
/* The clock that all traces of a process have in common, in nanoseconds. */
int64_t vst__graph_monotonic(vst_trace *trace, vst_ticks ticks);

/* ---- lanes.c ------------------------------------------------------------ */

/* Reads windows of all traces, in order of time. */
vst_status vst__graph_read(vst__graph *graph, vst_trace *const *traces,
                           size_t count, int window, vst_error *error);
/* False: what is defined cannot be nodes. */
bool vst__graph_may_have_nodes(const vst_trace *trace);
/* How many nodes a window has, without reading more of it than that takes; with
 * `any`, 1 if there are some. */
vst_status vst__graph_count(vst_trace *trace, int window, bool any,
                            uint64_t *count, vst_error *error);

#endif
