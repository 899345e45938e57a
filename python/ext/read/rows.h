/* vestige._core.Rows: the rows of a table as a Python object. A column is a
 * memoryview, or, if it holds texts, booleans or nulls, a sequence that makes
 * its values. A row has the columns as attributes. */
#ifndef VPY_ROWS_H
#define VPY_ROWS_H

#include "vpy.h"

#include "tables/batch.h"

#pragma GCC visibility push(hidden)

/* Makes a Rows object, takes over the rows of the batch, and leaves an empty
 * batch. name: the table's; must stay valid. texts: a tuple with a list of str
 * for each dictionary of names, or NULL without dictionaries. is_cut: more rows
 * exist, but the timeout was reached. Returns NULL with an exception set on
 * failure. */
PyObject *vpy_rows(const char *name, vst__batch *batch, PyObject *texts,
                   bool is_cut);

/* A type of named values that is not a table's row, such as a function of a
 * trace. */
typedef struct vpy_record {
    const char *name; /* of the type, for example vestige._core.Function */
    const char *const *fields; /* ends with NULL */
    PyTypeObject **type;       /* in vpy_reading; vpy_record_add sets it */
    int hidden; /* number of fields at the end that are attributes but not items
                 */
} vpy_record;

/* Makes the type and adds it to the module. Returns -1 with an exception set on
 * failure. */
int vpy_record_add(PyObject *module, const vpy_record *record);
/* Makes an object of the type and takes over a tuple with a value for each
 * field. If values is NULL, returns NULL with the exception that is set. */
PyObject *vpy_record_new(const vpy_record *record, PyObject *values);

/* Reads a sequence of numbers, such as threads, ids or lanes. Returns an array
 * of numbers below 2^32, to be freed with free(), or NULL with an exception
 * set. */
uint32_t *vpy_to_numbers(PyObject *object, size_t *count);

#pragma GCC visibility pop
#endif
