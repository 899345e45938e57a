/* The inside of a pass, shared by pass.c (which reads a trace once for all
 * tables) and the files that each make the rows of some tables. One thread at a
 * time. */
#ifndef VST_TABLES_TABLE_H
#define VST_TABLES_TABLE_H

#include <vestige/memory.h>

#include "replay/places.h"
#include "replay/replay.h"
#include "replay/sink.h"
#include "store/reader.h"
#include "tables/batch.h"
#include "tables/tables.h"

/* What a table's names of definitions are, by id. */
typedef struct vst__defined {
    int32_t shown; /* in VST_NAMES_SHOWN; -1: the trace does not say */
    int32_t kind;  /* in VST_NAMES_KINDS */
    int32_t file;  /* in VST_NAMES_FILES, for tables that show files */
} vst__defined;

/* A table that is being filled. */
typedef struct vst__filling {
    const struct vst__table *table;
    struct vst__table_pass *pass;
    vst__batch batch;
    vst__dictionary own_names; /* VST_NAMES_OWN */
    /* Of the trace that is being read. */
    vst_sink sink; /* what it takes of the replay, if it is read */
    bool is_read, is_done;
    size_t at; /* the next row, of a table that counts them */
    void *own; /* of the table */
} vst__filling;

/* All zero but for the tables before the first trace. */
typedef struct vst__table_pass {
    vst__filling *fillings;
    size_t count;
    const struct vst__table_options *options;
    vst__dictionary dictionaries[VST_NAMES_OWN]; /* those of all tables */

    /* The trace being read, NULL between two. */
    vst_trace *trace;
    const vst_table_source *source;
    vst__replay *replay; /* NULL: no table needs it */
    bool is_replayed;    /* no more comes of it */
    bool is_cut;         /* the time was over before all was read */
    struct vst__fan *fan;
    struct vst__sums *sums;           /* NULL: no table is made of them */
    struct vst__task_facts *tasks;    /* NULL: no table is of tasks */
    struct vst__device_sums *devices; /* NULL: no table is of those */
    vst_places places;
    vst_sink_inside inside; /* of sinks whose spans are to have places */
    bool shows_files;       /* a table shows those of definitions */
    vst__defined *defined;  /* by id, up to max */
    vst_id defined_max;
    vst__defined unknown; /* of ids that no definition has */
} vst__table_pass;

struct vst__sums;

/* One table: its columns, and how the rows of a trace come about. */
typedef struct vst__table {
    const char *name;
    const vst__column_spec *columns;
    size_t column_count;
    bool has_names; /* of definitions */
    /* The trace was opened; NULL: nothing to do. */
    vst_status (*begin)(vst__filling *filling);
    /* Adds rows that the replay's sink does not, some thousand as a rule; it is
     * called after each step of the replay, and on. *done: there are no more.
     * NULL: there are none. */
    vst_status (*step)(vst__filling *filling, bool *done);
    /* Frees filling->own, also after begin failed; may be NULL. */
    void (*end)(vst__filling *filling);
    /* Of a table of sums: the parts that it is made of, a VST_SUMS_ bit each,
     * and its rows when all is read. */
    unsigned sums;
    vst_status (*put)(const struct vst__sums *sums, vst__batch *batch);
} vst__table;

extern const vst__table vst__table_process, vst__table_thread, vst__table_func,
    vst__table_stack, vst__table_span, vst__table_op, vst__table_alloc,
    vst__table_counter, vst__table_instant, vst__table_lost, vst__table_task,
    vst__table_wait, vst__table_device, vst__table_activity,
    vst__table_task_awaits, vst__table_task_steps, vst__table_blocked_steps,
    vst__table_blocked_calls, vst__table_device_sums, vst__table_device_uses,
    vst__table_device_gaps, vst__table_left_out, vst__table_contexts,
    vst__table_averages, vst__table_events, vst__table_tree_events,
    vst__table_activities, vst__table_gil_holders;

#define VST_COLUMNS(list)                                                      \
    .columns = list, .column_count = sizeof list / sizeof *list

/* ---- names.c ------------------------------------------------------------ */

/* Finds the names of every definition of the trace. */
vst_status vst__names_define(vst__table_pass *pass);
static inline const vst__defined *vst__names_of(const vst__filling *filling,
                                                vst_id id)
{
    const vst__table_pass *pass = filling->pass;

    return id <= pass->defined_max ? &pass->defined[id] : &pass->unknown;
}
/* Names of the table's own; their numbers are their places. */
vst_status vst__names_add(vst__filling *filling, const char *const *names,
                          size_t count);

/* ---- span.c ------------------------------------------------------------- */

/* What ran while a span was open beside the stack is counted where it ran. */
int64_t vst__span_self(const vst_span *span);
/* The table takes this of the replay, whose ctx is the filling. Nothing is read
 * for it if the trace has no definition of `kind`; 0: always is. */
vst_status vst__replayed_begin(vst__filling *filling, const vst_sink *sink,
                               int kind);

#endif
