/* The state of read/: all variables that outlive a call. vpy_reading has a
 * member for each file, which only that file changes; the file calls its member
 * `state`. A comment at a struct or a field names the guard. */
#ifndef VPY_READ_STATE_H
#define VPY_READ_STATE_H

#include "vpy.h"

#include <stdatomic.h>

#pragma GCC visibility push(hidden)

/* arrow_tables.c */
struct vpy_arrow_tables_state {
    /* How many rows all streams have given. It shows that a query goes on, as
     * its progress is not known otherwise. Atomic. */
    atomic_ullong rows_read;
    PyTypeObject *table_type; /* Table; written when the module is loaded */
};

/* rows.c. Written when the module is loaded, except where a field names its
 * guard. */
struct vpy_rows_state {
    PyTypeObject *rows_type, *column_type;
    struct vpy_row_type *row_types; /* guarded by the state lock */
};

/* trace.c. Written when the module is loaded. */
struct vpy_trace_state {
    PyTypeObject *type; /* Trace */
};

/* trace_names.c. Written when the module is loaded. */
struct vpy_trace_names_state {
    PyTypeObject *function, *definition;
};

/* trace_replays.c. Written when the module is loaded. */
struct vpy_trace_replays_state {
    PyTypeObject *moment;
};

/* view.c. Written when the module is loaded. */
struct vpy_view_state {
    PyTypeObject *type; /* View */
};

struct vpy_reading_state {
    struct vpy_arrow_tables_state arrow_tables;
    struct vpy_rows_state rows;
    struct vpy_trace_state trace;
    struct vpy_trace_names_state trace_names;
    struct vpy_trace_replays_state trace_replays;
    struct vpy_view_state view;
};

extern struct vpy_reading_state vpy_reading;

#pragma GCC visibility pop
#endif
