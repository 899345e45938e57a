/* Numbers in the rows of a table that a pass filled. */
#ifndef VST_TESTS_TABLE_CELLS_H
#define VST_TESTS_TABLE_CELLS_H

#include <string.h>

#include "tables/table.h"

enum { NONE = -1, MISSING = -2 };

/* Returns a number of a table. NONE: the value is null. MISSING: there is no
 * such row or column. */
static int64_t cell(const vst__filling *rows, size_t row, const char *name)
{
    for (size_t i = 0; i < rows->table->column_count; i++) {
        const vst__column_spec *spec = &rows->table->columns[i];
        const vst__column *column = &rows->batch.columns[i];

        if (strcmp(spec->name, name) != 0 || row >= rows->batch.rows)
            continue;
        if (spec->nullable && !(column->valid[row / 8] >> row % 8 & 1))
            return NONE;
        return spec->type == VST_COLUMN_I32 || spec->type == VST_COLUMN_NAME
                   ? ((const int32_t *)column->values)[row]
               : spec->type == VST_COLUMN_F64
                   ? (int64_t)((const double *)column->values)[row]
                   : ((const int64_t *)column->values)[row];
    }
    return MISSING;
}

#endif
