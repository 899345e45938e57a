/* Writes shapes and element types of the arrays that are given to
 * record_function, as JSON. Nothing here raises; unknown facts stay empty. */
#include "annotate/annotate.h"

#include "annotate/arrays.h"

#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 32 };

/* Writes `[2, 3]`. Returns false if it does not fit. */
static bool shapes_put_numbers(char **at, const char *end,
                               const long long *numbers, int count)
{
    if (end - *at < (count > 0 ? count : 0) * 22 + 4)
        return false;
    *(*at)++ = '[';
    for (int i = 0; i < count; i++)
        *at += sprintf(*at, i ? ", %lld" : "%lld", numbers[i]);
    *(*at)++ = ']';
    return true;
}

size_t vpy_shapes_put(PyObject *values, char *text, size_t size)
{
    vpy_array arrays[ARGS_MAX];
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    char *at = text;
    const char *end = text + size - 64;
    bool fits = true;

    if (count > ARGS_MAX)
        count = ARGS_MAX;
    for (Py_ssize_t i = 0; i < count; i++)
        vpy_array_read(PyTuple_GET_ITEM(values, i), &arrays[i]);
    at += sprintf(at, "\"Input type\": [");
    for (Py_ssize_t i = 0; i < count && end - at > 64; i++)
        at += sprintf(at, i ? ", \"%s\"" : "\"%s\"", arrays[i].type);
    at += sprintf(at, "], \"Input Strides\": [");
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        at += i && end - at > 2 ? sprintf(at, ", ") : 0;
        fits = shapes_put_numbers(&at, end, arrays[i].strides, arrays[i].dims);
    }
    at += fits ? sprintf(at, "], \"Input Dims\": [") : 0;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        at += i && end - at > 2 ? sprintf(at, ", ") : 0;
        fits = shapes_put_numbers(&at, end, arrays[i].shape, arrays[i].dims);
    }
    at += fits ? sprintf(at, "]") : 0;
    return fits ? (size_t)(at - text) : 0;
}
