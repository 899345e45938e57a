/* arrays.c: shape, strides and element type of an object, in torch's terms. */
#ifndef VPY_ARRAYS_H
#define VPY_ARRAYS_H

#include "vpy.h"

enum { VPY_DIMS_MAX = 16 };

typedef struct vpy_array {
    int dims; /* -1: not an array */
    long long shape[VPY_DIMS_MAX];
    long long strides[VPY_DIMS_MAX]; /* in elements */
    const char *type;                /* "" if it has none */
    long item_bytes;                 /* of an element */
    uintptr_t data; /* address of the first element; 0: not known */
} vpy_array;

/* Fills in `a` and returns true if the object has a buffer, an
 * __array_interface__ or __dlpack__. Raises nothing; may run code of the
 * program. */
bool vpy_array_read(PyObject *object, vpy_array *a);

#endif
