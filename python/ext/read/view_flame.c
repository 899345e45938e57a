/* The rows of a flame graph as Python objects, or the largest of them: a page
 * shows some thousands, and the calls of a long range may be a million. */
#include "read/view.h"

#include "view/view.h"

#include <stdlib.h>

static int compare_totals(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

/* Moves the `limit` rows with the largest totals to the front, in their order.
 * A parent comes before its children and its total is not less than theirs: it
 * stays with them. False: no memory. */
static bool keep_largest(vst_view_flame_row *rows, size_t count, size_t limit)
{
    int64_t *totals = malloc(count * sizeof *totals);
    int64_t *moved = malloc(count * sizeof *moved);
    size_t equal = limit, to = 0; /* how many of the least total stay */
    int64_t least;

    if (totals == NULL || moved == NULL) {
        free(totals);
        free(moved);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        totals[i] = rows[i].total_ns;
    qsort(totals, count, sizeof *totals, compare_totals);
    least = totals[limit - 1];
    for (size_t i = 0; i < limit && totals[i] > least; i++)
        equal--;
    for (size_t i = 0; i < count; i++) {
        vst_view_flame_row row = rows[i];
        if (row.total_ns < least || (row.total_ns == least && equal == 0))
            continue;
        equal -= row.total_ns == least;
        row.parent = row.parent < 0 ? -1 : moved[row.parent];
        moved[i] = (int64_t)to;
        rows[to++] = row;
    }
    free(totals);
    free(moved);
    return true;
}

PyObject *vpy_flame_rows(vst_view_flame_row *rows, size_t count, size_t limit)
{
    size_t kept = limit && limit < count ? limit : count;
    PyObject *list;

    if (kept < count && !keep_largest(rows, count, limit))
        return PyErr_NoMemory();
    list = PyList_New((Py_ssize_t)kept);
    for (size_t i = 0; list != NULL && i < kept; i++) {
        PyObject *row = Py_BuildValue(
            "(LIKLLK)", (long long)rows[i].parent, rows[i].id,
            (unsigned long long)rows[i].count, (long long)rows[i].self_ns,
            (long long)rows[i].total_ns,
            (unsigned long long)rows[i].self_bytes);
        if (row == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list != NULL
               ? Py_BuildValue("(Nn)", list, (Py_ssize_t)(count - kept))
               : NULL;
}
