/* vestige._core.Rows: the rows of a table as a Python object. A column is a
 * memoryview, or a sequence that makes its values where it holds texts, truths
 * or nulls; a row has the columns as attributes. */
#ifndef VPY_ROWS_H
#define VPY_ROWS_H

#include "vpy.h"

#include "tables/batch.h"

#pragma GCC visibility push(hidden)

/* Takes the rows over, and leaves an empty batch; name is the table's, and
 * stays. texts: a tuple with a list of str for each dictionary that names are
 * of, or NULL if there are none. is_cut: there are more, but the time was over.
 * NULL with an exception set. */
PyObject *vpy_rows(const char *name, vst__batch *batch, PyObject *texts,
                   bool is_cut);

/* Values under names which are no row of a table, such as a function of a
 * trace.
 */
typedef struct vpy_record {
    const char *name;          /* of the type: vestige._core.Function */
    const char *const *fields; /* NULL ends them */
    PyTypeObject *type;        /* made by vpy_record_add, then stays */
} vpy_record;

/* Makes the type and adds it to the module; -1 with an exception set. */
int vpy_record_add(PyObject *module, vpy_record *record);
/* Takes over a tuple of as many values; NULL, which is passed on, with an
 * exception set. */
PyObject *vpy_record_new(const vpy_record *record, PyObject *values);

#pragma GCC visibility pop
#endif
