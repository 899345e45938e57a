/* One reading of a trace's records, which fills any set of tables. One thread
 * at a time. */
#ifndef VST_TABLES_PASS_H
#define VST_TABLES_PASS_H

#include <vestige/trace.h>

#include "tables/table.h"

/* Marks of definitions. LEFT_OUT: the function's time counts for its caller.
 * NO_TIME: its time is in no row, as if the call had taken no time. */
enum {
    VST_MARK_LEFT_OUT = 1,
    VST_MARK_WAITS = 2,
    VST_MARK_GC = 4,
    VST_MARK_NO_TIME = 8,
    VST_MARK_STEP = 16, /* the function runs one step of an event loop */
    /* if a task waits in this function, its caller is shown as the awaiting
     * one: asyncio.sleep() */
    VST_MARK_AWAITED = 32,
    VST_MARK_UNTIMED = 64, /* `duration` has no row of this function */
    /* `chosen_spans` has its spans, and `calls` its rows, however short */
    VST_MARK_CHOSEN = 128
};

/* All zero: every thread and function, as recorded. Most options are for tables
 * of sums. */
typedef struct vst__table_options {
    const unsigned char *marks; /* by definition id, up to the last; or NULL */
    const uint32_t *threads;    /* numbers of the threads to read; NULL: all */
    size_t thread_count;
    int window;        /* VST_WINDOW_LAST, VST_WINDOW_SINCE(number); 0: all */
    int64_t min_ns;    /* shorter rows of `calls` are left out */
    bool spread;       /* `functions` says how much calls differ */
    bool fold_imports; /* `calls` has no frames of the import system */
    bool by_thread;    /* `calls` has a tree for each thread */
    bool awaits;       /* `calls` has leaves for waits of tasks */
    /* `blocked_steps` has steps of at least this duration */
    int64_t blocked_ns;
    /* CLOCK_MONOTONIC time at which reading ends; 0: none */
    int64_t deadline_ns;
    /* For `averages`, `contexts` and `events`. */
    bool no_calls;  /* leave out calls of the language */
    bool shapes;    /* a row for each combination of shapes */
    bool overloads; /* a row for each overload */
    bool framework; /* count a framework's allocator instead of the system's */
    /* For the tables of memory_sums.c. */
    size_t memory_rows; /* the most rows of memory_stacks and memory_lines for
                           each view */
    uint32_t temporary; /* the k of VST_MEMORY_TEMPORARY; 0 means 1 */
} vst__table_options;

/* Returns a table by name, including tables of sums; NULL if there is none. */
const struct vst__table *vst__table_of_any_kind(const char *name);

/* Makes a pass that fills these tables. options may be NULL, and otherwise must
 * stay valid. Free the pass even if this fails. */
vst_status vst__table_pass_create(vst__table_pass *pass,
                                  const struct vst__table *const *tables,
                                  size_t count,
                                  const vst__table_options *options);
void vst__table_pass_free(vst__table_pass *pass);

/* Call before reading. Requires pass->trace to be open, and pass->source to
 * hold the facts that the core does not know. */
vst_status vst__table_pass_begin(vst__table_pass *pass);
/* Adds rows to each table, usually some thousand; sets *done if there are no
 * more. */
vst_status vst__table_pass_step(vst__table_pass *pass, bool *done);
void vst__table_pass_end(vst__table_pass *pass); /* call at any time */

/* Returns the windows to read, in the form of vst_trace_replay. */
int vst__pass_window(const struct vst__table_pass *pass);
/* Reads all rows of a trace. */
vst_status vst__table_pass_read(vst__table_pass *pass, vst_trace *trace,
                                vst_error *error);

#endif
