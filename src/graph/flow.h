/* The flow of data between operators, as far as memory tells: which storages an
 * operator was given, which it wrote to, allocated and freed. From it follows
 * what memory is for (categories.c). Holds a whole trace's flow, 32 bytes for
 * each time that an operator is given a storage. One thread at a time. */
#ifndef VST_GRAPH_FLOW_H
#define VST_GRAPH_FLOW_H

#include <vestige/storage.h>
#include <vestige/trace.h>

#define VST_FLOW_NONE UINT32_MAX
#define VST_FLOW_NEVER INT64_MIN

/* Roles of a touch beyond a vst_storage_role. FOUND is an allocation that
 * counts only if it is a tensor's. */
enum { VST_TOUCH_ALLOCATED = 16, VST_TOUCH_FREED = 17, VST_TOUCH_FOUND = 18 };

/* Something happened to a storage. */
typedef struct vst__flow_touch {
    int64_t time_ns;
    uint64_t storage; /* as vst_storage_word has it */
    uint64_t bytes;
    uint32_t node; /* whose doing it was, or NONE */
} vst__flow_touch;

/* An operator that no other one runs, with all that it runs; or an allocation
 * or free outside of any. */
typedef struct vst__flow_node {
    int64_t start_ns, end_ns;
    uint32_t thread;
    bool backward;  /* computes a gradient */
    uint64_t edges; /* index of the first */
} vst__flow_node;

/* What a node did with a key, added up. */
enum {
    VST_EDGE_READ = 1,
    VST_EDGE_WRITTEN = 2,
    VST_EDGE_GIVEN = 4,
    VST_EDGE_CREATES = 8,
    VST_EDGE_DESTROYS = 16
};

typedef struct vst__flow_edge {
    uint32_t node, key;
    uint32_t version; /* that it found; each one that writes makes the next */
    uint32_t did;
} vst__flow_edge;

/* A storage, from its allocation to its free. */
typedef struct vst__flow_key {
    int64_t created_ns, destroyed_ns; /* or NEVER */
    uint64_t bytes;
    uint64_t first;    /* of its versions, among those of all */
    uint32_t versions; /* how many */
    bool is_tensor;    /* it was given to an operator, or is one's below */
    bool has_edges;
    bool found;       /* counts only if it is a tensor */
    uint8_t noted;    /* 1 << vst_storage_role, from PARAMETER on */
    uint8_t category; /* of all versions, or UNKNOWN: each has its own */
} vst__flow_key;

/* All zero is empty. */
typedef struct vst__flow {
    vst__flow_touch *touches;
    size_t touch_count, touch_capacity;
    vst__flow_node *nodes;
    size_t node_count, node_capacity;
    vst__flow_key *keys;
    size_t key_count, key_capacity;
    vst__flow_edge *edges; /* of one node after the other */
    size_t edge_count;
    size_t version_count; /* of all keys */
    bool has_tensors;     /* what operators were given is known */
    bool has_memory;      /* allocations of tensors, or a framework's */
} vst__flow;

/* Reads a window: touches and nodes. */
vst_status vst__flow_read(vst__flow *flow, vst_trace *trace, int window,
                          vst_error *error);
/* Makes keys and edges of them; the touches are gone then. Nodes are in order
 * of time. */
vst_status vst__flow_link(vst__flow *flow);
void vst__flow_free(vst__flow *flow);

static inline bool vst__edge_creates(const vst__flow_edge *edge)
{
    return edge->did & VST_EDGE_CREATES;
}

static inline bool vst__edge_destroys(const vst__flow_edge *edge)
{
    return edge->did & VST_EDGE_DESTROYS;
}

/* A storage that was given to the operator, by whatever is known, may have been
 * written to unless it is known to be only read. */
static inline bool vst__edge_writes(const vst__flow_edge *edge)
{
    return !vst__edge_destroys(edge) &&
           (edge->did & VST_EDGE_WRITTEN ||
            (edge->did & (VST_EDGE_READ | VST_EDGE_GIVEN)) == VST_EDGE_GIVEN);
}

/* Whether the version that an edge found was there before. */
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
