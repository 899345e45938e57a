/* Spans by where they were called from: a tree in which calls of one function
 * from the same place are one node. Spans come in the order of their ends, so a
 * node gathers the nodes of its children when it ends itself, and no more is
 * kept than the tree. One thread at a time. */
#ifndef VST_REPLAY_CONTEXTS_H
#define VST_REPLAY_CONTEXTS_H

#include <vestige/span.h>
#include <vestige/status.h>

typedef struct vst_contexts vst_contexts;

typedef struct vst_context {
    vst_id id;
    uint32_t key;         /* what else tells calls apart, as the caller says */
    uint32_t first, next; /* child, sibling: indexes, 0: none */
    uint64_t count;       /* calls; one that was resumed is no further one */
    int64_t self_ns, total_ns;
    int64_t running_ns; /* of total_ns, how long its thread had a processor */
    uint64_t unknown;   /* spans whose running time is not known */
    /* Of total_ns, without the recorder; VST_RUNNING_UNKNOWN: not known of all.
     */
    int64_t compensated_ns;
    int64_t self_bytes, total_bytes; /* of a framework: net of what it freed */
    uint64_t self_allocations;
    int64_t first_ns; /* of the first to begin, and its serial */
    uint64_t serial;
} vst_context;

vst_status vst__contexts_create(vst_contexts **contexts);
void vst__contexts_destroy(vst_contexts *contexts);

/* A span, in the order in which a replay delivers them. One that is
 * VST_SPAN_ASYNC is a root without time of its own: what ran meanwhile is
 * counted where it ran. */
vst_status vst__contexts_add(vst_contexts *contexts, const vst_span *span,
                             uint32_t key);
/* To be called from vst_sink's leave. */
vst_status vst__contexts_leave(vst_contexts *contexts, uint32_t depth);

/* A node of the finished tree. */
typedef struct vst_context_row {
    uint32_t parent; /* 1 + the row's index, 0: a root */
    vst_context node;
} vst_context_row;

/* All nodes, parents before their children and those of one parent in the order
 * in which they first began; good until the tree is destroyed. No span is to be
 * added after it. */
vst_status vst__contexts_finish(vst_contexts *contexts,
                                const vst_context_row **rows, size_t *count);

#endif
