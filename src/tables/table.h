/* The parts of a pass, shared by pass.c, which reads a trace once for all
 * tables, and the files that each make the rows of some tables. One thread at a
 * time. */
#ifndef VST_TABLES_TABLE_H
#define VST_TABLES_TABLE_H

#include <vestige/memory.h>

#include "replay/places.h"
#include "replay/replay.h"
#include "replay/sink.h"
#include "store/reader.h"
#include "tables/columns.h"
#include "tables/tables.h"

/* The names of a definition, by their numbers in dictionaries. */
typedef struct vst__defined {
    int32_t shown; /* in VST_NAMES_SHOWN; -1: the trace does not name it */
    int32_t kind;  /* in VST_NAMES_KINDS */
    /* in VST_NAMES_FILES and VST_NAMES_FUNCTIONS, if a table shows them */
    int32_t file, function;
} vst__defined;

/* A table that is being filled. */
typedef struct vst__filling {
    const struct vst__table *table;
    struct vst__table_pass *pass;
    vst__batch batch;
    vst__dictionary own_names; /* VST_NAMES_OWN */
    /* For the trace that is being read: */
    vst_sink sink; /* the parts of the replay that the table takes */
    bool is_read, is_done;
    size_t at; /* the next row, for tables that count rows */
    void *own; /* the table's own data */
} vst__filling;

/* Before the first trace, everything is zero except the tables. */
typedef struct vst__table_pass {
    vst__filling *fillings;
    size_t count;
    const struct vst__table_options *options;
    vst__dictionary dictionaries[VST_NAMES_OWN]; /* shared by all tables */

    /* The trace being read; NULL between two traces. */
    vst_trace *trace;
    const vst_table_source *source;
    vst__replay *replay; /* NULL: no table needs a replay */
    bool is_replayed;    /* the replay is over */
    bool is_cut;         /* the deadline passed before all was read */
    struct vst__fan *fan;
    struct vst__sums *sums;            /* NULL: no table of sums */
    struct vst__task_facts *tasks;     /* NULL: no table of tasks */
    struct vst__device_sums *devices;  /* NULL: no table of sums of devices */
    struct vst_memory_summary *memory; /* NULL: not read, see memory_sums.c */
    vst_places places;
    vst_sink_inside inside; /* for sinks whose spans have places */
    unsigned shown_names;   /* dictionaries that tables show: a bit each */
    vst__defined *defined;  /* by id, up to defined_max */
    vst_id defined_max;
    vst__defined unknown; /* for ids without a definition */
} vst__table_pass;

struct vst__sums;

/* A table: its columns, and the functions that make the rows of a trace. */
typedef struct vst__table {
    const char *name;
    const vst__column_spec *columns;
    size_t column_count;
    bool has_names; /* the table shows names of definitions */
    /* Called when the trace is open; NULL: nothing to do. */
    vst_status (*begin)(vst__filling *filling);
    /* Puts rows that do not come from the replay's sink, usually some thousand;
     * called after each step of the replay and afterwards, until it returns
     * true: there are no more. NULL: there are no such rows. A failure is in
     * filling->batch.status, for `put`, too. */
    bool (*step)(vst__filling *filling);
    /* Puts such rows when all is read; NULL: there are none. */
    void (*put)(vst__filling *filling);
    /* Frees filling->own, even if begin failed; may be NULL. */
    void (*end)(vst__filling *filling);
    /* For a table of sums: the parts that it is made of, a VST_SUMS_ bit each.
     */
    unsigned sums;
} vst__table;

/* Each table is the variable vst__table_<name>. Streams give the first ones, in
 * this order. */
#define VST_STREAMED_TABLES(TABLE)                                             \
    TABLE(process)                                                             \
    TABLE(thread)                                                              \
    TABLE(func)                                                                \
    TABLE(stack)                                                               \
    TABLE(span)                                                                \
    TABLE(op)                                                                  \
    TABLE(alloc)                                                               \
    TABLE(counter)                                                             \
    TABLE(instant)                                                             \
    TABLE(lost)                                                                \
    TABLE(task)                                                                \
    TABLE(wait)                                                                \
    TABLE(device)                                                              \
    TABLE(activity)                                                            \
    TABLE(duration)
#define VST_OTHER_TABLES(TABLE)                                                \
    TABLE(functions)                                                           \
    TABLE(calls)                                                               \
    TABLE(threads)                                                             \
    TABLE(waits)                                                               \
    TABLE(collections)                                                         \
    TABLE(long_collections)                                                    \
    TABLE(collection_callers)                                                  \
    TABLE(steps)                                                               \
    TABLE(long_steps)                                                          \
    TABLE(lines)                                                               \
    TABLE(repeats)                                                             \
    TABLE(exceptions)                                                          \
    TABLE(budget)                                                              \
    TABLE(reduced_estimates)                                                   \
    TABLE(task_awaits)                                                         \
    TABLE(task_steps)                                                          \
    TABLE(blocked_steps)                                                       \
    TABLE(blocked_calls)                                                       \
    TABLE(device_sums)                                                         \
    TABLE(device_uses)                                                         \
    TABLE(device_gaps)                                                         \
    TABLE(left_out)                                                            \
    TABLE(contexts)                                                            \
    TABLE(averages)                                                            \
    TABLE(events)                                                              \
    TABLE(tree_events)                                                         \
    TABLE(activities)                                                          \
    TABLE(gil_holders)                                                         \
    TABLE(lock_waits)                                                          \
    TABLE(chosen_spans)                                                        \
    TABLE(memory_events)                                                       \
    TABLE(recorded_stacks)                                                     \
    TABLE(memory_process)                                                      \
    TABLE(memory_resident)                                                     \
    TABLE(memory_timeline)                                                     \
    TABLE(resident_timeline)                                                   \
    TABLE(memory_views)                                                        \
    TABLE(memory_allocators)                                                   \
    TABLE(memory_sizes)                                                        \
    TABLE(memory_threads)                                                      \
    TABLE(memory_frames)                                                       \
    TABLE(memory_nodes)                                                        \
    TABLE(memory_stacks)                                                       \
    TABLE(memory_lines)

#define VST__DECLARE_TABLE(name) extern const vst__table vst__table_##name;
VST_STREAMED_TABLES(VST__DECLARE_TABLE)
VST_OTHER_TABLES(VST__DECLARE_TABLE)

/* ---- names.c ------------------------------------------------------------- */

/* Finds the names of every definition of the trace. */
vst_status vst__names_define(vst__table_pass *pass);
static inline const vst__defined *vst__names_of(const vst__filling *filling,
                                                vst_id id)
{
    const vst__table_pass *pass = filling->pass;

    return id <= pass->defined_max ? &pass->defined[id] : &pass->unknown;
}
/* Adds the table's own names; their numbers are their indexes. */
vst_status vst__names_add(vst__filling *filling, const char *const *names,
                          size_t count);

/* ---- span.c -------------------------------------------------------------- */

/* Returns the own time of a span. Time inside a span off the stack counts where
 * it ran. */
int64_t vst__span_self(const vst_span *span);
/* Sets the table's sink, whose ctx is the filling. Reads nothing for this table
 * if the trace has no definition of `kind`; 0: always reads. */
vst_status vst__replayed_begin(vst__filling *filling, const vst_sink *sink,
                               int kind);

#endif
