/* Makes a table of the rows of a flame graph, or of the largest rows: a page
 * shows some thousands, and a long range may have a million. */
#include "read/rows.h"
#include "read/view.h"

#include "view/view.h"

#include <stdlib.h>

enum { PARENT, ID, CALLS, SELF, TOTAL, SELF_BYTES, COLUMNS };

static const vst__column_spec columns[COLUMNS] = {
    [PARENT] = {"parent", VST_COLUMN_I64, false, 0},
    [ID] = {"id", VST_COLUMN_I64, false, 0},
    [CALLS] = {"calls", VST_COLUMN_I64, false, 0},
    [SELF] = {"self_ns", VST_COLUMN_I64, false, 0},
    [TOTAL] = {"total_ns", VST_COLUMN_I64, false, 0},
    [SELF_BYTES] = {"self_bytes", VST_COLUMN_I64, false, 0}};

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
    vst__batch batch = {.specs = columns, .column_count = COLUMNS};
    size_t kept = limit && limit < count ? limit : count;
    bool failed = kept < count && !keep_largest(rows, count, limit);
    PyObject *table = NULL;

    for (size_t i = 0; !failed && i < kept; i++) {
        failed = vst__batch_reserve(&batch) != VST_OK;
        if (failed)
            break;
        vst__batch_i64(&batch, PARENT, rows[i].parent);
        vst__batch_i64(&batch, ID, rows[i].id);
        vst__batch_i64(&batch, CALLS, (int64_t)rows[i].count);
        vst__batch_i64(&batch, SELF, rows[i].self_ns);
        vst__batch_i64(&batch, TOTAL, rows[i].total_ns);
        vst__batch_i64(&batch, SELF_BYTES, (int64_t)rows[i].self_bytes);
        vst__batch_add(&batch);
    }
    if (failed)
        PyErr_NoMemory();
    else
        table = vpy_rows("view_calls", &batch, NULL, false);
    vst__batch_free(&batch);
    return table != NULL
               ? Py_BuildValue("(Nn)", table, (Py_ssize_t)(count - kept))
               : NULL;
}
