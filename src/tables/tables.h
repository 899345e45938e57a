/* Tables: the content of traces as rows and columns, for programs that work
 * with tables. Each table is a stream of record batches in Apache Arrow's C
 * interface, which data frames and databases take without copying.
 * docs/reference/tables.md says what the columns mean.
 *
 * A stream reads the files itself, one after the other, and holds only a batch,
 * the state of one moment and names. Any number of streams may be read
 * concurrently, each by one thread at a time. Batches may be kept, and released
 * on any thread, after their stream was released. */
#ifndef VST_TABLES_TABLES_H
#define VST_TABLES_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include <vestige/status.h>

/* ---- Arrow's C interface ------------------------------------------------- */

/* The three structs by which Arrow passes data between libraries: the order of
 * their fields matters, their names do not. The receiver of a struct calls
 * `release` when it no longer needs it. If release is NULL, the struct was
 * released or moved elsewhere. */
typedef struct vst_arrow_schema {
    const char *format; /* the type as a letter: "i" int32, "+s" struct … */
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

/* Its functions return 0 or an errno; get_last_error then describes the error,
 * in a text that is valid until the next call. */
typedef struct vst_arrow_stream {
    int (*get_schema)(struct vst_arrow_stream *stream, vst_arrow_schema *out);
    /* At the end, sets out->release to NULL. */
    int (*get_next)(struct vst_arrow_stream *stream, vst_arrow_array *out);
    const char *(*get_last_error)(struct vst_arrow_stream *stream);
    void (*release)(struct vst_arrow_stream *stream);
    void *private_data;
} vst_arrow_stream;

enum { VST_ARROW_NULLABLE = 2 }; /* a bit of vst_arrow_schema.flags */

/* ---- tables -------------------------------------------------------------- */

/* Returns "process", "span" …; NULL behind the last table. */
const char *vst__table_name(size_t index);

/* A trace, and facts about its process that the core does not know. NULL texts
 * and numbers of -1 are unknown. */
typedef struct vst_table_source {
    const char *path;
    int32_t process;   /* number of the process among all sources */
    int64_t offset_ns; /* as in vst_trace_set_offset */
    /* as in vst_trace_set_range; 0: no bound */
    int64_t from_ns, to_ns;
    int64_t parent_pid;
    int32_t rank, world_size;
    const char *host, *name, *command;
    const char *ended; /* "clean", "torn" … */
} vst_table_source;

/* Reads any tables in one pass. The sources are copied; each file is opened
 * when its rows are due. Returns VST_E_ARGUMENT if there is no such table. */
typedef struct vst__table_reader vst__table_reader;
vst_status vst__table_reader_create(const char *const *tables,
                                    size_t table_count,
                                    const vst_table_source *sources,
                                    size_t source_count,
                                    vst__table_reader **reader);
void vst__table_reader_destroy(vst__table_reader *reader);
/* Gives the next batch of a table, whose index is *table; the rows of a table
 * come in the order of the sources. At the end, batch->release is NULL. After
 * an error all further calls return this error. */
vst_status vst__table_reader_next(vst__table_reader *reader, size_t *table,
                                  vst_arrow_array *batch);
/* Returns the text of the error; NULL if there is none. */
const char *vst__table_reader_error(const vst__table_reader *reader);

/* Gives the rows of one table as a stream. */
vst_status vst__table_stream(const char *table, const vst_table_source *sources,
                             size_t count, vst_arrow_stream *stream);
vst_status vst__table_schema(const char *table, vst_arrow_schema *schema);

#endif
