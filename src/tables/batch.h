/* Rows that become an Arrow array: columns are filled in place, and given away
 * as a whole. One thread at a time, until they are given away. */
#ifndef VST_TABLES_BATCH_H
#define VST_TABLES_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <vestige/record.h>

#include "tables/buffers.h"
#include "tables/dictionary.h"
#include "tables/tables.h"

enum {
    VST_BATCH_ROWS = 1 << 16,     /* a batch has about this many rows … */
    VST_BATCH_TEXT = 32 << 20,    /* … or this many bytes of text */
    VST_BATCH_TEXT_MAX = 1 << 30, /* longer texts are left out */
    VST_BATCH_COLUMNS_MAX = 32
};

typedef enum vst__column_type {
    VST_COLUMN_I32,
    VST_COLUMN_I64,
    VST_COLUMN_F64,
    VST_COLUMN_BOOL,
    VST_COLUMN_TEXT,
    /* a text whose bytes may lie in any order; not for Arrow */
    VST_COLUMN_PIECE,
    VST_COLUMN_NAME /* an index into a dictionary */
} vst__column_type;

/* Kinds of dictionaries of a stream. */
typedef enum vst__names {
    VST_NAMES_SHOWN, /* functions, as they are shown */
    VST_NAMES_FILES,
    VST_NAMES_KINDS,     /* kinds of definitions */
    VST_NAMES_FUNCTIONS, /* functions, by their names alone */
    VST_NAMES_OWN,       /* the table's own names */
    VST_NAMES_COUNT
} vst__names;

typedef struct vst__column_spec {
    const char *name;
    vst__column_type type;
    bool nullable;
    vst__names names; /* for VST_COLUMN_NAME */
} vst__column_spec;

typedef struct vst__column {
    void *values;   /* for texts: offsets, and the end of the last text */
    uint8_t *valid; /* a bit per row; NULL: no value is null */
    size_t nulls;
    char *bytes; /* bytes of texts and pieces */
    size_t byte_count, byte_capacity;
} vst__column;

/* Before the first use, everything is zero except specs, column_count and
 * buffers. */
typedef struct vst__batch {
    const vst__column_spec *specs;
    size_t column_count;
    size_t rows, capacity;
    size_t usual;      /* capacity of the previous batch */
    size_t text;       /* bytes of texts */
    vst_status status; /* the first failure */
    vst__buffers *buffers;
    vst__column columns[VST_BATCH_COLUMNS_MAX];
} vst__batch;

/* Makes room for one more row, with all nullable columns null. Returns whether
 * there is room; if not, batch->status says so. */
bool vst__batch_make_room(vst__batch *batch);
static inline bool vst__batch_reserve(vst__batch *batch)
{
    return batch->rows < batch->capacity || vst__batch_make_room(batch);
}

/* Completes the row: it counts once all of its values are put. */
static inline void vst__batch_add(vst__batch *batch)
{
    batch->rows++;
}

static inline void vst__batch_i32(vst__batch *batch, unsigned column,
                                  int32_t value)
{
    ((int32_t *)batch->columns[column].values)[batch->rows] = value;
}

static inline void vst__batch_i64(vst__batch *batch, unsigned column,
                                  int64_t value)
{
    ((int64_t *)batch->columns[column].values)[batch->rows] = value;
}

static inline void vst__batch_f64(vst__batch *batch, unsigned column,
                                  double value)
{
    ((double *)batch->columns[column].values)[batch->rows] = value;
}

static inline void vst__batch_set_bit(uint8_t *bits, size_t row)
{
    bits[row / 8] = (uint8_t)(bits[row / 8] | 1u << row % 8);
}

static inline void vst__batch_bool(vst__batch *batch, unsigned column,
                                   bool value)
{
    if (value)
        vst__batch_set_bit(batch->columns[column].values, batch->rows);
}

/* Says whether a nullable column has a value in this row; if not, the value
 * must be 0 or "". Call for every row. */
static inline void vst__batch_valid(vst__batch *batch, unsigned column,
                                    bool valid)
{
    vst__column *c = &batch->columns[column];

    c->nulls += !valid;
    if (valid)
        vst__batch_set_bit(c->valid, batch->rows);
}

static inline void vst__batch_i32_or_null(vst__batch *batch, unsigned column,
                                          bool valid, int32_t value)
{
    vst__batch_i32(batch, column, valid ? value : 0);
    vst__batch_valid(batch, column, valid);
}

static inline void vst__batch_i64_or_null(vst__batch *batch, unsigned column,
                                          bool valid, int64_t value)
{
    vst__batch_i64(batch, column, valid ? value : 0);
    vst__batch_valid(batch, column, valid);
}

static inline void vst__batch_f64_or_null(vst__batch *batch, unsigned column,
                                          bool valid, double value)
{
    vst__batch_f64(batch, column, valid ? value : 0);
    vst__batch_valid(batch, column, valid);
}

/* Puts no text, which is stored as an empty one. */
static inline void vst__batch_no_text(vst__batch *batch, unsigned column)
{
    ((int32_t *)batch->columns[column].values)[batch->rows + 1] =
        (int32_t)batch->columns[column].byte_count;
}

/* Puts a text and replaces invalid UTF-8 in it; NULL is no text. For a nullable
 * column this also says whether there is a text. Without memory, batch->status
 * says so, as for the functions below. */
void vst__batch_text(vst__batch *batch, unsigned column, const char *bytes,
                     size_t count);
static inline void vst__batch_string(vst__batch *batch, unsigned column,
                                     const char *text)
{
    vst__batch_text(batch, column, text, text != NULL ? strlen(text) : 0);
}
/* Puts JSON members as a JSON object, or as a JSON string if they are no valid
 * JSON; null if there are no bytes. */
void vst__batch_put_members(vst__batch *batch, unsigned column,
                            const char *members, size_t count);
static inline void vst__batch_members(vst__batch *batch, unsigned column,
                                      const char *members, size_t count)
{
    if (VST_LIKELY(count == 0)) {
        vst__batch_no_text(batch, column);
        vst__batch_valid(batch, column, false);
    } else {
        vst__batch_put_members(batch, column, members, count);
    }
}

/* A piece's place among the column's bytes (low bits), and its length (above).
 */
enum { VST_PIECE_PLACE_BITS = 36, VST_PIECE_MAX = (1 << 27) - 1 };

/* Puts bytes unchanged, UTF-8 or not; a longer piece is left out, and without
 * memory an empty piece is put. */
void vst__batch_piece(vst__batch *batch, unsigned column, const char *bytes,
                      size_t count);

/* Sorts rows: the new row i is the old row order[i]. The batch must not have
 * texts or truths. If it fails, the order of rows is undefined. */
vst_status vst__batch_permute(vst__batch *batch, const uint32_t *order);

/* Gives the rows away as an array of structs, and empties the batch. If it
 * fails, the batch is unchanged. */
vst_status vst__batch_take(vst__batch *batch,
                           vst__dictionary *const dictionaries[VST_NAMES_COUNT],
                           vst_arrow_array *array);
void vst__batch_free(vst__batch *batch);

#endif
