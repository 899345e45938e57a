/* One reading of a trace's records, which fills any set of tables. One thread
 * at a time. */
#ifndef VST_TABLES_PASS_H
#define VST_TABLES_PASS_H

#include <vestige/trace.h>

#include "tables/table.h"

/* Marks of definitions. LEFT_OUT: its time counts for its caller. NO_TIME: its
 * time counts for nobody, as if the call had returned at once. */
enum {
    VST_MARK_LEFT_OUT = 1,
    VST_MARK_WAITS = 2,
    VST_MARK_GC = 4,
    VST_MARK_NO_TIME = 8,
    VST_MARK_STEP = 16, /* it runs one step of an event loop */
    /* Where a task waits in it, its caller is who awaits: asyncio.sleep() */
    VST_MARK_AWAITED = 32
};

/* All zero: every thread and function, as they were recorded. Most are for
 * tables of sums. */
typedef struct vst__table_options {
    const unsigned char *marks; /* by definition id, up to the last; or NULL */
    const uint32_t *threads;    /* numbers of those to read; NULL: all */
    size_t thread_count;
    int window;          /* VST_WINDOW_LAST, VST_WINDOW_SINCE(number); 0: all */
    int64_t min_ns;      /* shorter rows of `calls` are left out */
    bool spread;         /* `functions` says how much calls differ */
    bool fold_imports;   /* `calls` has no frames of the import system */
    bool awaits;         /* `calls` has leaves for waits of tasks */
    int64_t blocked_ns;  /* `blocked_steps` took so long, or longer */
    int64_t deadline_ns; /* of CLOCK_MONOTONIC, ends the reading; 0: none */
    /* For `averages`, `contexts` and `events`. */
    bool no_calls;  /* those of the language are left out */
    bool shapes;    /* spans of different shapes are told apart */
    bool overloads; /* … and those of different overloads */
    bool framework; /* bytes are those of a framework's allocator */
} vst__table_options;

/* A table by name, also one of sums; NULL: there is none of that name. */
const struct vst__table *vst__table_of_any_kind(const char *name);

/* Makes a pass that fills these tables; options may be NULL, and else stay.
 * Free it whether that fails or not. */
vst_status vst__table_pass_create(vst__table_pass *pass,
                                  const struct vst__table *const *tables,
                                  size_t count,
                                  const vst__table_options *options);
void vst__table_pass_free(vst__table_pass *pass);

/* Between the two: pass->trace is open, and pass->source says what the core
 * does not know of it. */
vst_status vst__table_pass_begin(vst__table_pass *pass);
/* Adds some thousand rows to each table, as a rule; *done: there are no more.
 */
vst_status vst__table_pass_step(vst__table_pass *pass, bool *done);
void vst__table_pass_end(vst__table_pass *pass); /* at any time */

/* The windows that it reads, as vst_trace_replay takes them. */
int vst__pass_window(const struct vst__table_pass *pass);
/* All rows of a trace. */
vst_status vst__table_pass_read(vst__table_pass *pass, vst_trace *trace,
                                vst_error *error);

#endif
