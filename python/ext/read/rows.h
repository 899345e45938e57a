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

#pragma GCC visibility pop
#endif
