/* Tables: what traces hold as rows and columns, for programs that think in
 * tables. Each is given out as a stream of record batches by Apache Arrow's C
 * interface, which data frames and databases take without copying.
 * docs/reference/tables.md says what the columns mean.
 *
 * A stream reads the files itself, one after the other, and holds no more than
 * a batch, what is open at one moment and names. Any number of streams may be
 * read at the same time; each by one thread at a time, whichever. Batches may
 * be kept, and released on any thread, after their stream was released. */
#ifndef VST_TABLES_TABLES_H
#define VST_TABLES_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

/* ---- Arrow's C interface ------------------------------------------------ */

/* The three structs by which Arrow passes data between libraries: what they are
 * called does not matter, where their fields lie does. The receiver of one
 * calls `release` when it is done with it. If release is NULL, it was released
 * or moved elsewhere. */
typedef struct vst_arrow_schema {
    const char *format; /* a letter for the type: "i" int32, "+s" struct … */
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct vst_arrow_schema **children;
    struct vst_arrow_schema *dictionary;
    void (*release)(struct vst_arrow_schema *schema);
    void *private_data;
} vst_arrow_schema;

typedef struct vst_arrow_array {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct vst_arrow_array **children;
    struct vst_arrow_array *dictionary;
    void (*release)(struct vst_arrow_array *array);
    void *private_data;
} vst_arrow_array;

/* Its functions return 0 or an errno; then get_last_error says what it was, and
 * the text is good until the next call. */
typedef struct vst_arrow_stream {
    int (*get_schema)(struct vst_arrow_stream *stream, vst_arrow_schema *out);
    /* At the end, out->release is NULL. */
    int (*get_next)(struct vst_arrow_stream *stream, vst_arrow_array *out);
    const char *(*get_last_error)(struct vst_arrow_stream *stream);
    void (*release)(struct vst_arrow_stream *stream);
    void *private_data;
} vst_arrow_stream;

enum { VST_ARROW_NULLABLE = 2 }; /* of a schema's flags */

/* ---- tables ------------------------------------------------------------- */

/* "process", "span" …; NULL behind the last one. */
const char *vst__table_name(size_t index);

/* A trace, and what its reader knows of the process that the core does not. A
 * text that is NULL is not known, and so is a number that is -1. */
typedef struct vst_table_source {
    const char *path;
    int32_t process;   /* its number among those read together */
    int64_t offset_ns; /* as vst_trace_set_offset has it */
    /* As vst_trace_set_range has them; 0: no bound. */
    int64_t from_ns, to_ns;
    int64_t parent_pid;
    int32_t rank, world_size;
    const char *host, *name, *command;
    const char *ended; /* "clean", "torn" … */
} vst_table_source;

/* The rows of all sources, in their order. The sources are copied; their files
 * are opened when their turn comes. VST_E_ARGUMENT: there is no such table. */
vst_status vst__table_stream(const char *table, const vst_table_source *sources,
                             size_t count, vst_arrow_stream *stream);
vst_status vst__table_schema(const char *table, vst_arrow_schema *schema);

#endif
