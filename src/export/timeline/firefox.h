/* The inside of the exporter for the Firefox Profiler: firefox.c (the document
 * and what is taken from a replay), firefox_threads.c (samples and markers of a
 * thread), firefox_tables.c (what all threads share, and counters).
 *
 * The format is the profiler's processed one, version 63: tables of columns. A
 * thread's samples are not at fixed times: one wherever what is on top of the
 * stack changes, its weight how long that stays so ("tracing-ms"), so the sums
 * of a call tree are exact. One thread at a time. */
#ifndef VST_EXPORT_FIREFOX_H
#define VST_EXPORT_FIREFOX_H

#include "base/map64.h"
#include "export/sums/tree.h"
#include "export/timeline/kept.h"
#include "export/timeline/timeline.h"

/* Strings that every document has come before those of functions. */
typedef enum vst__ff_string {
    VST_FF_LOST,
    VST_FF_GAP,
    VST_FF_DROPPED,
    VST_FF_MEMORY,
    VST_FF_FRAMEWORK_MEMORY,
    VST_FF_FUNCTIONS
} vst__ff_string;

/* Categories, and schemas of markers, have the number of a vst_definition_kind;
 * 0 is what is no definition's. */
enum { VST_FF_KINDS = VST_DEF_MODULE + 1 };

static inline uint16_t vst__ff_kind(vst_definition_kind kind)
{
    return kind <= VST_DEF_MODULE ? (uint16_t)kind : 0;
}

typedef struct vst__ff_marker {
    int64_t start_ns, end_ns;
    uint32_t name; /* string */
    uint16_t kind;
    bool is_instant;
    size_t args, args_len; /* in the thread's text */
} vst__ff_marker;

typedef struct vst__ff_thread {
    uint32_t number;
    vst__kept kept;
    vst__ff_marker *markers;
    size_t marker_count, marker_capacity;
    char *text;
    size_t text_count, text_capacity;
} vst__ff_thread;

typedef struct vst__ff_point {
    int64_t time_ns;
    double value;
    uint32_t process;
    uint32_t name; /* string */
    uint64_t order;
} vst__ff_point;

/* A place in the tree of calls. */
typedef struct vst__ff_stack {
    uint32_t parent; /* VST_FF_NO_STACK at a root; else less than its own */
    uint32_t function;
} vst__ff_stack;

#define VST_FF_NO_STACK UINT32_MAX

typedef struct vst__ff_sample {
    int64_t time_ns;
    uint32_t stack;
} vst__ff_sample;

typedef struct vst__firefox {
    vst__timeline timeline; /* first: its functions are given this */
    int64_t base_ns;
    vst_status status; /* of drawing, which returns nothing */

    vst__tree tree; /* its functions alone */
    vst__ff_stack *stacks;
    size_t stack_count, stack_capacity;
    vst__map64 stack_of; /* parent and function -> 1 + index */
    vst__ff_point *points;
    size_t point_count, point_capacity;
    size_t thread_total;    /* that were written */
    uint32_t *main_threads; /* of each process, among those */

    /* Of the process that is being replayed. */
    uint32_t *function_of; /* 1 + index, by definition; the last: of none */
    vst__ff_thread *threads;
    size_t thread_count, thread_capacity;
    size_t room;            /* for spans of all of them */
    vst__ff_thread *thread; /* the one that came last */

    /* Of the thread that is being written. */
    vst__ff_sample *samples;
    size_t sample_count, sample_capacity;
    uint32_t stack; /* what is open */
    int64_t now_ns; /* and since when */
    bool begun;
} vst__firefox;

/* ---- firefox_threads.c -------------------------------------------------- */

vst_status vst__ff_add_marker(vst__ff_thread *thread,
                              const vst__ff_marker *marker, const char *args,
                              size_t args_len);
/* Writes a thread of the process that is being replayed, and forgets what it
 * held. */
vst_status vst__ff_put_thread(vst__firefox *self, vst__ff_thread *thread);
void vst__ff_free_thread(vst__ff_thread *thread);

/* ---- firefox_tables.c --------------------------------------------------- */

extern const char *const vst__ff_kind_names[VST_FF_KINDS];

void vst__ff_put_meta(vst__firefox *self, int64_t end_ns);
void vst__ff_put_counters(vst__firefox *self);
vst_status vst__ff_put_shared(vst__firefox *self);

/* A column: `"key":[` and one value after the other. */
typedef char *(*vst__ff_put)(vst__firefox *self, size_t index, char *at);
void vst__ff_put_column(vst__firefox *self, const char *key, size_t count,
                        vst__ff_put put);

#endif
