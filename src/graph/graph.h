/* The execution trace of a process: its nodes, built from one or several
 * recordings of the process. Threads are read together, in order of time
 * (lanes.c), because a node may name a node that is open on another thread;
 * graph.c knows which nodes are open. Takes memory for the open nodes, for the
 * address of each tensor and storage (map64.h), and about 450 KiB for each
 * thread that is alive at the moment. One thread at a time. */
#ifndef VST_GRAPH_GRAPH_H
#define VST_GRAPH_GRAPH_H

#include <vestige/trace.h>
#include <vestige/tracer.h>

#include "base/map64.h"
#include "graph/values.h"
#include "replay/operator.h"

/* The id of the process's root. */
#define VST_GRAPH_PROCESS_ID 1

typedef enum vst__graph_kind {
    VST_GRAPH_PROCESS, /* the root of all nodes */
    VST_GRAPH_THREAD,  /* the root of a thread */
    VST_GRAPH_NODE
} vst__graph_kind;

typedef struct vst__graph_node {
    vst__graph_kind kind;
    uint64_t id;
    uint64_t parent;         /* the process's root is its own parent */
    uint64_t forward_parent; /* 0 if there is none */
    uint64_t record;         /* the framework's number; 0 for a root */
    uint64_t thread, forward_thread;
    int64_t sequence; /* -1 if there is none */
    uint32_t scope;
    unsigned observer;
    vst_trace *trace; /* the trace that defines `name` and `schema` */
    vst_id definition;
    vst_id schema; /* 0 if there is none */

    /* For the caller: the text that it made from the inputs, kept until the
     * node ends. */
    vst__text text;

    /* ---- used by graph.c alone ---- */
    uint64_t serial;
    const void *lane;
    uint64_t system_tid; /* system tid of the lane's thread */
    bool has_inputs;
} vst__graph_node;

/* Receives the nodes. `values` are valid during the call; a status other than
 * VST_OK ends the reading. */
typedef struct vst__graph_sink {
    void *ctx;
    /* A node begins. Its id is larger than all earlier ids. */
    vst_status (*begin)(void *ctx, vst__graph_node *node,
                        const vst__graph_values *inputs);
    /* A node ends: children come before their parents. A root has no beginning;
     * the root of a thread comes before the thread's first node, the root of
     * the process comes last. outputs is NULL if nothing is known. */
    vst_status (*end)(void *ctx, vst__graph_node *node,
                      const vst__graph_values *outputs);
} vst__graph_sink;

/* A thread, as the framework counts threads. */
typedef struct vst__graph_thread {
    uint64_t number;
    uint64_t root; /* id of the thread's root node */
    /* the system's number of the thread whose operators came first, because
     * other threads work in its name; 0 until an operator came */
    uint64_t home;
    vst__graph_node **open;
    size_t open_count, open_capacity;
} vst__graph_thread;

typedef struct vst__graph {
    vst__graph_sink sink;
    unsigned observer; /* read only nodes of this observer; 0: of all */
    vst_trace *trace;  /* the trace that is being read */
    uint64_t last_id;
    uint64_t nodes; /* how many nodes began, without roots */
    vst__map64 identities;

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

/* One thread of a window, while it is read. */
typedef struct vst__graph_lane {
    vst__graph *graph;
    uint64_t system_tid;
    vst__graph_thread *thread; /* NULL if the thread has no node yet */
    /* Values that continue in the next escape. */
    unsigned char *bytes;
    size_t count, capacity;
    uint64_t record; /* number of the node that has them; 0 if none */
    bool outputs;
} vst__graph_lane;

/* ---- graph.c ------------------------------------------------------------- */

/* Delivers the nodes that are still open, then the process's root. */
vst_status vst__graph_finish(vst__graph *graph);
void vst__graph_free(vst__graph *graph);

/* The sink for a matcher of the lane's thread; its ctx is the lane. */
extern const vst_sink vst__graph_lane_sink;
/* Call at the end of the window. */
vst_status vst__graph_lane_finish(vst__graph_lane *lane);
void vst__graph_lane_free(vst__graph_lane *lane);

/* ---- threads.c ----------------------------------------------------------- */

/* Delivers a root. */
vst_status vst__graph_deliver_root(vst__graph *graph, vst__graph_kind kind,
                                   uint64_t id, uint64_t thread);
/* Returns NULL if no node of the thread was seen. */
vst__graph_thread *vst__graph_find_thread(const vst__graph *graph,
                                          uint64_t number);
/* Sets the lane's thread, by the framework's number, or else by the system's
 * number. */
vst_status vst__graph_choose_thread(vst__graph_lane *lane,
                                    const vst_node *seen);

/* ---- nodes.c ------------------------------------------------------------- */

/* Returns VST_E_PROCESSES if the traces are not all from one process. */
vst_status vst__graph_check(vst_trace *const *traces, size_t count);
/* Converts to the clock that all traces of a process share, in nanoseconds. */
int64_t vst__graph_monotonic(vst_trace *trace, vst_ticks ticks);

/* ---- lanes.c ------------------------------------------------------------- */

/* Reads the windows of all traces, in order of time. `observer`: read only the
 * nodes of this observer; 0: of all. */
vst_status vst__graph_read(vst_trace *const *traces, size_t count, int window,
                           unsigned observer, const vst__graph_sink *sink,
                           vst_error *error);
/* Returns false if no definition of the trace can belong to a node. */
bool vst__graph_may_have_nodes(const vst_trace *trace);
/* Counts the nodes of a window, reading only as much as that needs; with `any`,
 * the count is 1 if there are some. */
vst_status vst__graph_count(vst_trace *trace, int window, bool any,
                            uint64_t *count, vst_error *error);

#endif
