/* The spans of a thread, kept until it is done: replay delivers them in the
 * order of their ends, some formats want them in order of time. A span takes 32
 * bytes. One that overlaps its neighbours has no place among the others and is
 * left out. One thread at a time. */
#ifndef VST_EXPORT_KEPT_H
#define VST_EXPORT_KEPT_H

#include <vestige/span.h>
#include <vestige/trace.h>

typedef struct vst__kept_span {
    int64_t start_ns, end_ns;
    uint64_t serial;
    uint32_t function; /* whatever the exporter says */
    uint32_t depth;
} vst__kept_span;

/* All zero is an empty one. */
typedef struct vst__kept {
    size_t *room; /* how many more may be kept, of all that share it */
    vst__kept_span *spans;
    size_t count, capacity;
    const vst__kept_span **open; /* while it is walked */
    size_t open_capacity;
} vst__kept;

typedef struct vst__kept_walk {
    void *ctx;
    vst_status (*open)(void *ctx, const vst__kept_span *span);
    vst_status (*close)(void *ctx, const vst__kept_span *span);
} vst__kept_walk;

/* As many spans as a trace's size explains, and some: two stacks that switch to
 * and fro deliver all of their calls each time. */
size_t vst__kept_room(const vst_trace *trace);
/* VST_E_OUTPUT: there is no more room. */
vst_status vst__kept_add(vst__kept *kept, const vst_span *span,
                         uint32_t function);
/* Sorts the spans, and calls back when each begins and when it ends. */
vst_status vst__kept_tell(vst__kept *kept, const vst__kept_walk *walk);
/* Forgets them, and makes room for others. */
void vst__kept_clear(vst__kept *kept);
void vst__kept_free(vst__kept *kept);

#endif
