/* Fills Python lists item by item. */
#include "vpy.h"

bool vpy_append(PyObject *list, PyObject *item)
{
    bool is_done = item != NULL && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return is_done;
}
