/* Keeps the spans of a thread until the thread is done: replay delivers spans
 * in the order of their ends, but some formats need the order of time. A span
 * takes 32 bytes. A span that overlaps its neighbours has no place among the
 * others and is left out. One thread at a time. */
#ifndef VST_EXPORT_KEPT_H
#define VST_EXPORT_KEPT_H

#include <vestige/span.h>
#include <vestige/trace.h>

typedef struct vst__kept_span {
    int64_t start_ns, end_ns;
    uint64_t serial;
    uint32_t function; /* meaning defined by the exporter */
    uint32_t depth;
} vst__kept_span;

/* Empty when all zero. */
typedef struct vst__kept {
    size_t *room; /* how many more may be kept, shared by several */
    vst__kept_span *spans;
    size_t count, capacity;
    const vst__kept_span **open; /* open spans during the walk */
    size_t open_capacity;
} vst__kept;

typedef struct vst__kept_walk {
    void *ctx;
    vst_status (*open)(void *ctx, const vst__kept_span *span);
    vst_status (*close)(void *ctx, const vst__kept_span *span);
} vst__kept_walk;

/* Returns how many spans may be kept. The number depends on the trace's size,
 * with some more, because two alternating stacks deliver all of their calls at
 * each switch. */
size_t vst__kept_room(const vst_trace *trace);
/* Returns VST_E_OUTPUT if there is no more room. */
vst_status vst__kept_add(vst__kept *kept, const vst_span *span,
                         uint32_t function);
/* Sorts the spans, and calls back when each begins and when it ends. */
vst_status vst__kept_visit(vst__kept *kept, const vst__kept_walk *walk);
/* Removes all spans, which makes room for others. */
void vst__kept_clear(vst__kept *kept);
void vst__kept_free(vst__kept *kept);

#endif
