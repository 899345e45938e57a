/* One reading of a trace's records, which fills any set of tables. One thread
 * at a time. */
#ifndef VST_TABLES_PASS_H
#define VST_TABLES_PASS_H

#include <vestige/trace.h>

#include "tables/batch.h"

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

/* All zero: every thread and function, as they were recorded. */
typedef struct vst__pass_options {
    const unsigned char *marks; /* by definition id, up to the last; or NULL */
    const uint32_t *threads;    /* numbers of those to read; NULL: all */
    size_t thread_count;
    int64_t min_ns;    /* shorter rows of `calls` are left out */
    bool spread;       /* `functions` says how much calls differ */
    bool fold_imports; /* `calls` has no frames of the import system */
    bool awaits;       /* `calls` has leaves for waits of tasks */
} vst__pass_options;

/* A table and its rows. */
typedef struct vst__rows {
    const struct vst__table *table;
    vst__batch batch;
} vst__rows;

/* A table of sums by name; NULL: there is none of that name. */
const struct vst__table *vst__sum_table_find(const char *name);

/* Fills the batches, which the caller frees whether it fails or not. */
vst_status vst__pass_read(vst_trace *trace, vst_tracer *tracer,
                          const vst__pass_options *options, vst__rows *rows,
                          size_t count, vst_error *error);

#endif
