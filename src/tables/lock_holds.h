/* Waits for locks, and the times in which threads held locks, found in spans.
 * One thread at a time. */
#ifndef VST_TABLES_LOCK_HOLDS_H
#define VST_TABLES_LOCK_HOLDS_H

#include <vestige/span.h>
#include <vestige/trace.h>

typedef struct vst__lock_wait {
    int64_t start_ns, end_ns;
    int64_t ns; /* without running time, if that is known */
    uint32_t thread;
    vst_id caller, outer; /* the function that takes the lock, and its caller */
} vst__lock_wait;

typedef struct vst__lock_hold {
    int64_t start_ns, end_ns;
    uint32_t thread;
    vst_id caller, outer;
    vst_id inside; /* the call with the most own time while the lock was held */
    int64_t inside_ns;
} vst__lock_hold;

enum {
    VST_LOCKS_OPEN = 32
}; /* calls that took a lock and whose callers are still open */

/* All zero before vst__lock_holds_begin. */
typedef struct vst__lock_holds {
    bool has_locks;
    unsigned char *roles; /* by definition id */
    vst_id max;
    /* Shorter waits and holds are dropped. Grows when there are too many. */
    int64_t least_ns;
    vst__lock_wait *waits;
    size_t wait_count, wait_capacity;
    vst__lock_hold *holds;
    size_t hold_count, hold_capacity;
    /* Calls that took a lock, in the thread that is being read. */
    uint32_t thread;
    struct vst__lock_call {
        uint32_t depth, levels;
        bool is_held;
        vst__lock_wait wait;
        vst__lock_hold hold;
    } open[VST_LOCKS_OPEN];
    size_t open_count;
} vst__lock_holds;

/* Return false if memory ran out. */
bool vst__lock_holds_begin(vst__lock_holds *all, const vst_trace *trace);
bool vst__lock_holds_span(vst__lock_holds *all, const vst_span *span);
bool vst__lock_holds_end(vst__lock_holds *all);
void vst__lock_holds_free(vst__lock_holds *all);

#endif
