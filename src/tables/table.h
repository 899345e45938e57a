/* The inside of a stream of rows, shared by stream.c (which goes from trace to
 * trace) and the files that each make the rows of some tables. One thread at a
 * time. */
#ifndef VST_TABLES_TABLE_H
#define VST_TABLES_TABLE_H

#include <vestige/memory.h>
#include <vestige/tables.h>

#include "replay/places.h"
#include "replay/replay.h"
#include "store/reader.h"
#include "tables/batch.h"

/* What a table's names of definitions are, by id. */
typedef struct vst__defined {
    int32_t shown; /* in VST_NAMES_SHOWN; -1: the trace does not say */
    int32_t kind;  /* in VST_NAMES_KINDS */
    int32_t file;  /* in VST_NAMES_FILES, for tables that show files */
} vst__defined;

typedef struct vst__table_stream {
    const struct vst__table *table;
    vst_table_source *sources; /* their texts are ours */
    size_t source_count, next; /* the one to be opened next */
    vst__batch batch;
    vst__dictionary dictionaries[VST_NAMES_COUNT];

    /* The trace being read, NULL between two. */
    vst_trace *trace;
    const vst_table_source *source;
    bool named; /* the names of all traces are known */
    vst__replay *replay;
    vst_places places;
    size_t at;             /* where a table is that goes without a replay */
    vst__defined *defined; /* by id, up to max */
    vst_id defined_max;
    vst__defined unknown; /* of ids that no definition has */
    void *own;            /* of the table */

    vst_status status;
    char error[512];
} vst__table_stream;

struct vst__sums;

/* One table: its columns, and how the rows of a trace come about. */
typedef struct vst__table {
    const char *name;
    const vst__column_spec *columns;
    size_t column_count;
    bool has_names; /* of definitions */
    /* The trace was opened. */
    vst_status (*begin)(vst__table_stream *stream);
    /* Adds rows, some thousand as a rule; *done: there are no more. */
    vst_status (*step)(vst__table_stream *stream, bool *done);
    /* Frees stream->own, also after begin failed; may be NULL. */
    void (*end)(vst__table_stream *stream);
    /* Of a table of sums: the parts that it is made of, a VST_SUMS_ bit each,
     * and its rows when all is read. */
    unsigned sums;
    vst_status (*put)(const struct vst__sums *sums, vst__batch *batch);
} vst__table;

extern const vst__table vst__table_process, vst__table_thread, vst__table_func,
    vst__table_stack, vst__table_span, vst__table_op, vst__table_alloc,
    vst__table_counter, vst__table_instant, vst__table_lost, vst__table_task,
    vst__table_wait, vst__table_device, vst__table_activity;

#define VST_COLUMNS(list)                                                      \
    .columns = list, .column_count = sizeof list / sizeof *list

/* ---- names.c ------------------------------------------------------------ */

/* Finds the names of every definition of the trace. */
vst_status vst__names_define(vst__table_stream *stream);
static inline const vst__defined *vst__names_of(const vst__table_stream *stream,
                                                vst_id id)
{
    return id <= stream->defined_max ? &stream->defined[id] : &stream->unknown;
}
/* Names that are there before any other: their numbers are their places. */
vst_status vst__names_add(vst__table_stream *stream, vst__names to,
                          const char *const *names, size_t count);

/* ---- span.c ------------------------------------------------------------- */

/* What ran while a span was open beside the stack is counted where it ran. */
int64_t vst__span_self(const vst_span *span);
/* What a table does that reads spans: steps the replay. Reads nothing if the
 * trace has no definition of `kind`; 0: always reads. */
vst_status vst__replayed_begin(vst__table_stream *stream, const vst_sink *sink,
                               int kind);
vst_status vst__replayed_step(vst__table_stream *stream, bool *done);

#endif
