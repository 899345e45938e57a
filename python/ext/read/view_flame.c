/* Makes a table of the rows of a flame graph, or of the largest rows: a page
 * shows some thousands, and a long range may have a million. */
#include "read/rows.h"
#include "read/view.h"

#include "tables/pass.h"
#include "view/view.h"

#include <stdlib.h>

#define CALLS_COLUMNS(COLUMN)                                                  \
    COLUMN(I64, parent, rows[i].parent)                                        \
    COLUMN(I64, id, rows[i].id)                                                \
    COLUMN(I64, calls, rows[i].count)                                          \
    COLUMN(I64, self_ns, rows[i].self_ns)                                      \
    COLUMN(I64, total_ns, rows[i].total_ns)                                    \
    COLUMN(I64, self_bytes, rows[i].self_bytes)

static const vst__table view_calls = {.name = "view_calls",
                                      VST_COLUMNS(CALLS_COLUMNS)};

static int compare_totals(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

/* Moves the `limit` rows with the largest totals to the front, in their order.
 * A parent comes before its children and its total is not less than theirs, so
 * a parent is kept if a child is. Returns false if memory ran out. */
static bool keep_largest(vst_view_flame_row *rows, size_t count, size_t limit)
{
    int64_t *totals = malloc(count * sizeof *totals);
    int64_t *moved = malloc(count * sizeof *moved);
    size_t equal = limit,
           to = 0; /* how many rows with the least total are kept */
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
    vst__batch batch = {.specs = view_calls.columns,
                        .column_count = view_calls.column_count};
    size_t kept = limit && limit < count ? limit : count;
    bool failed = kept < count && !keep_largest(rows, count, limit);
    PyObject *table = NULL;

    for (size_t i = 0; !failed && i < kept; i++)
        VST_PUT_ROW(&batch, CALLS_COLUMNS);
    if (failed || batch.status != VST_OK)
        PyErr_NoMemory();
    else
        table = vpy_rows(view_calls.name, &batch, NULL, false);
    vst__batch_free(&batch);
    return table != NULL
               ? Py_BuildValue("(Nn)", table, (Py_ssize_t)(count - kept))
               : NULL;
}
