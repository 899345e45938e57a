/* See numbers.h. Called with the GIL held. */
#include "read/numbers.h"

#include <stdlib.h>

uint32_t *vpy_to_numbers(PyObject *object, size_t *count)
{
    PyObject *items = PySequence_Fast(object, "must be a sequence of numbers");
    uint32_t *numbers;

    if (items == NULL)
        return NULL;
    *count = (size_t)PySequence_Fast_GET_SIZE(items);
    numbers = calloc(*count + 1, sizeof *numbers);
    if (numbers == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; numbers != NULL && i < *count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i);
        unsigned long number = PyLong_AsUnsignedLong(item);
        if (number > UINT32_MAX && PyErr_Occurred() == NULL)
            PyErr_SetString(PyExc_OverflowError, "the number is too large");
        if (PyErr_Occurred() != NULL) {
            free(numbers);
            numbers = NULL;
        } else {
            numbers[i] = (uint32_t)number;
        }
    }
    Py_DECREF(items);
    return numbers;
}
