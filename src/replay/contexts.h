/* Spans by the place from which they were called: a tree in which calls of one
 * function from one place are one node. Spans come in the order of their ends,
 * so a node takes the nodes of its children when it ends itself, and only the
 * tree is kept. One thread at a time. */
#ifndef VST_REPLAY_CONTEXTS_H
#define VST_REPLAY_CONTEXTS_H

#include <vestige/span.h>
#include <vestige/status.h>

typedef struct vst_contexts vst_contexts;

typedef struct vst_context {
    vst_id id;
    uint32_t key; /* distinguishes calls further; chosen by the caller */
    uint32_t first, next; /* indexes of a child and a sibling; 0: none */
    uint64_t count;       /* calls; a resumed span is not counted again */
    uint64_t raised;      /* spans that an exception left */
    int64_t self_ns, total_ns;
    /* part of total_ns in which its thread was running on a processor */
    int64_t running_ns;
    uint64_t unknown; /* spans whose running time is unknown */
    /* total_ns without the recorder; VST_RUNNING_UNKNOWN if unknown for some
     * span. */
    int64_t compensated_ns;
    /* bytes of a framework's allocator: minus the freed bytes */
    int64_t self_bytes, total_bytes;
    uint64_t self_allocations;
    int64_t first_ns; /* start of the earliest span, and its serial */
    uint64_t serial;
} vst_context;

vst_status vst__contexts_create(vst_contexts **contexts);
/* Call before the first span: threads get trees of their own. From thread
 * VST_CONTEXTS_THREADS on, all further threads share the last tree. */
void vst__contexts_by_thread(vst_contexts *contexts);
enum { VST_CONTEXTS_THREADS = 256 };
void vst__contexts_destroy(vst_contexts *contexts);

/* Adds a span; call in the order of a replay. A span that is VST_SPAN_ASYNC
 * becomes a root without time of its own: the time inside it counts where it
 * ran. */
vst_status vst__contexts_add(vst_contexts *contexts, const vst_span *span,
                             uint32_t key);
/* Call from a vst_sink's leave. */
vst_status vst__contexts_leave(vst_contexts *contexts, uint32_t depth);

/* A node of the finished tree. */
typedef struct vst_context_row {
    uint32_t parent; /* 1 + index of the parent's row; 0: a root */
    uint32_t thread; /* the thread of the tree, if trees are by thread; 0:
                        several threads */
    vst_context node;
} vst_context_row;

/* Gives all nodes, parents before their children, children in the order in
 * which they first began; valid until the tree is destroyed. Add no span
 * afterwards. */
vst_status vst__contexts_finish(vst_contexts *contexts,
                                const vst_context_row **rows, size_t *count);

#endif
