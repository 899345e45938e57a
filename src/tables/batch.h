/* Rows on their way into an Arrow array: columns are filled in place, and given
 * away whole. One thread at a time, until they are given away. */
#ifndef VST_TABLES_BATCH_H
#define VST_TABLES_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tables/buffers.h"
#include "tables/dictionary.h"
#include "tables/tables.h"

enum {
    VST_BATCH_ROWS = 1 << 16,     /* a batch has about so many … */
    VST_BATCH_TEXT = 32 << 20,    /* … or so many bytes of text */
    VST_BATCH_TEXT_MAX = 1 << 30, /* a longer one is left out */
    VST_BATCH_COLUMNS_MAX = 32
};

typedef enum vst__column_type {
    VST_COLUMN_I32,
    VST_COLUMN_I64,
    VST_COLUMN_F64,
    VST_COLUMN_BOOL,
    VST_COLUMN_TEXT,
    VST_COLUMN_PIECE, /* a text whose bytes lie anywhere; not for Arrow */
    VST_COLUMN_NAME   /* an index into a dictionary */
} vst__column_type;

/* The dictionaries of a stream. */
typedef enum vst__names {
    VST_NAMES_SHOWN, /* of functions, as they are shown */
    VST_NAMES_FILES,
    VST_NAMES_KINDS, /* of definitions */
    VST_NAMES_OWN,   /* of a table */
    VST_NAMES_COUNT
} vst__names;

typedef struct vst__column_spec {
    const char *name;
    vst__column_type type;
    bool nullable;
    vst__names names; /* of VST_COLUMN_NAME */
} vst__column_spec;

typedef struct vst__column {
    void *values;   /* of text: where each begins, and where the last ends */
    uint8_t *valid; /* a bit a row; NULL: none is null */
    size_t nulls;
    char *bytes; /* of text and pieces */
    size_t byte_count, byte_capacity;
} vst__column;

/* All zero but for specs, column_count and buffers before the first time. */
typedef struct vst__batch {
    const vst__column_spec *specs;
    size_t column_count;
    size_t rows, capacity;
    size_t usual; /* capacity of the one that was given away before */
    size_t text;  /* bytes of it */
    vst__buffers *buffers;
    vst__column columns[VST_BATCH_COLUMNS_MAX];
} vst__batch;

/* Room for one more row, all of whose nullable columns are null. */
vst_status vst__batch_make_room(vst__batch *batch);
static inline vst_status vst__batch_reserve(vst__batch *batch)
{
    return batch->rows < batch->capacity ? VST_OK : vst__batch_make_room(batch);
}

/* Values of the row that there is room for; it is there when all are put. */
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

/* Of nullable columns: whether the row has a value there, which is 0 or "" if
 * it has none. Every row says it. */
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

/* No text is as good as an empty one. */
static inline void vst__batch_no_text(vst__batch *batch, unsigned column)
{
    ((int32_t *)batch->columns[column].values)[batch->rows + 1] =
        (int32_t)batch->columns[column].byte_count;
}

/* A text, of which what is not UTF-8 is replaced; NULL is none. Of a nullable
 * column it says whether there is one. It fails without memory. */
vst_status vst__batch_text(vst__batch *batch, unsigned column,
                           const char *bytes, size_t count);
/* The same as a JSON object of members, or of a string where it is not JSON. */
vst_status vst__batch_members(vst__batch *batch, unsigned column,
                              const char *members, size_t count);

/* Where a piece lies among the column's bytes, and above that its length. */
enum { VST_PIECE_PLACE_BITS = 36, VST_PIECE_MAX = (1 << 27) - 1 };

/* Bytes as they are, whether UTF-8 or not; a longer piece is left out. It fails
 * without memory, and then puts an empty one. */
vst_status vst__batch_piece(vst__batch *batch, unsigned column,
                            const char *bytes, size_t count);

/* Sorts rows: order[i] is the number of the row that comes to be the i-th. Of
 * a batch without texts and truths. If it fails, rows are in no order. */
vst_status vst__batch_permute(vst__batch *batch, const uint32_t *order);

/* Gives the rows away: an array of structs, and an empty batch. If it fails,
 * the batch is as it was. */
vst_status vst__batch_take(vst__batch *batch,
                           vst__dictionary *const dictionaries[VST_NAMES_COUNT],
                           vst_arrow_array *array);
void vst__batch_free(vst__batch *batch);

#endif
