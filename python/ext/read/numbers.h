/* Reads lists of numbers from Python: threads, ids, lanes. */
#ifndef VPY_READ_NUMBERS_H
#define VPY_READ_NUMBERS_H

#include "vpy.h"

#pragma GCC visibility push(hidden)

/* Returns an array of numbers below 2^32, to be freed with free(), or NULL with
 * an exception set. */
uint32_t *vpy_to_numbers(PyObject *object, size_t *count);

#pragma GCC visibility pop
#endif
