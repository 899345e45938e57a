/* The flow of data between operators, as far as memory shows it: which storages
 * an operator was given, wrote to, allocated and freed. categories.c derives
 * from it what memory was for. Holds the flow of a whole trace, with 32 bytes
 * for each time that an operator is given a storage. One thread at a time. */
#ifndef VST_GRAPH_FLOW_H
#define VST_GRAPH_FLOW_H

#include <vestige/storage.h>
#include <vestige/trace.h>

#define VST_FLOW_NONE UINT32_MAX
#define VST_FLOW_NEVER INT64_MIN

/* Roles of a touch in addition to those of vst_storage_role. FOUND is an
 * allocation that counts only if it belongs to a tensor. */
enum { VST_TOUCH_ALLOCATED = 16, VST_TOUCH_FREED = 17, VST_TOUCH_FOUND = 18 };

/* An event of a storage. */
typedef struct vst__flow_touch {
    int64_t time_ns;
    uint64_t storage; /* as in vst_storage_word */
    uint64_t bytes;
    uint32_t node; /* the node that did it, or NONE */
} vst__flow_touch;

/* An outermost operator with everything that it runs; or an allocation or free
 * outside any operator. */
typedef struct vst__flow_node {
    int64_t start_ns, end_ns;
    uint32_t thread;
    bool backward;  /* the node computes a gradient */
    uint64_t edges; /* index of the node's first edge */
} vst__flow_node;

/* Flags of what a node did with a key. */
enum {
    VST_EDGE_READ = 1,
    VST_EDGE_WRITTEN = 2,
    VST_EDGE_GIVEN = 4,
    VST_EDGE_CREATES = 8,
    VST_EDGE_DESTROYS = 16
};

typedef struct vst__flow_edge {
    uint32_t node, key;
    /* the version that the node found; a node that writes makes the next */
    uint32_t version;
    uint32_t actions;
} vst__flow_edge;

/* A storage, from its allocation to its free. */
typedef struct vst__flow_key {
    /* VST_FLOW_NEVER if the trace does not show it */
    int64_t created_ns, destroyed_ns;
    uint64_t bytes;
    /* number of the storage's first version, among the versions of all keys */
    uint64_t first;
    uint32_t versions; /* number of its versions */
    /* an operator was given the storage, or `noted` has a role for it */
    bool is_tensor;
    bool has_edges;
    bool found;    /* counts only if it belongs to a tensor */
    uint8_t noted; /* 1 << vst_storage_role, from PARAMETER on */
    /* category of all its versions; UNKNOWN if each version has its own */
    uint8_t category;
} vst__flow_key;

/* All zero: an empty flow. */
typedef struct vst__flow {
    vst__flow_touch *touches;
    size_t touch_count, touch_capacity;
    vst__flow_node *nodes;
    size_t node_count, node_capacity;
    vst__flow_key *keys;
    size_t key_count, key_capacity;
    vst__flow_edge *edges; /* edges, node after node */
    size_t edge_count;
    size_t version_count; /* number of versions of all keys */
    /* the trace says which storages operators were given */
    bool has_tensors;
    /* the trace has allocations of tensors, or of a framework */
    bool has_memory;
} vst__flow;

/* Reads the touches and nodes of a window. */
vst_status vst__flow_read(vst__flow *flow, vst_trace *trace, int window,
                          vst_error *error);
/* Makes keys and edges from the touches, which are freed. Nodes are in order of
 * time. */
vst_status vst__flow_link(vst__flow *flow);
void vst__flow_free(vst__flow *flow);

static inline bool vst__edge_creates(const vst__flow_edge *edge)
{
    return edge->actions & VST_EDGE_CREATES;
}

static inline bool vst__edge_destroys(const vst__flow_edge *edge)
{
    return edge->actions & VST_EDGE_DESTROYS;
}

/* Returns whether the operator may have written to the storage: the storage was
 * an input, and the operator is not known to only read it. */
static inline bool vst__edge_writes(const vst__flow_edge *edge)
{
    return !vst__edge_destroys(edge) &&
           (edge->actions & VST_EDGE_WRITTEN ||
            (edge->actions & (VST_EDGE_READ | VST_EDGE_GIVEN)) ==
                VST_EDGE_GIVEN);
}

/* Returns whether the version that the edge found existed before the node. */
static inline bool vst__edge_is_input(const vst__flow_edge *edge)
{
    return !vst__edge_creates(edge);
}

static inline bool vst__edge_is_output(const vst__flow_edge *edge)
{
    return (vst__edge_creates(edge) && !vst__edge_destroys(edge)) ||
           vst__edge_writes(edge);
}

static inline uint32_t vst__edge_output(const vst__flow_edge *edge)
{
    return vst__edge_creates(edge) ? 0 : edge->version + 1;
}

#endif
