/* The columns of a table: a list with a line for each column, from which both
 * the schema and the values of a row are made.
 *
 *     #define LOST_COLUMNS(COLUMN)                                            \
 *         COLUMN(I32, thread, loss->thread)                                   \
 *         COLUMN(I64_OR_NULL, end_ns, loss->is_known, loss->end_ns)
 *
 * A line has the column's type, its name, and the arguments of the type: for
 * most types the value, for those _OR_NULL whether there is a value, and then
 * the value. These are expressions over the variables of the function in which
 * VST_PUT_ROW stands. */
#ifndef VST_TABLES_COLUMNS_H
#define VST_TABLES_COLUMNS_H

#include "tables/batch.h"

/* The columns of a vst__table, from a list. */
#define VST_COLUMNS(LIST)                                                      \
    .columns = (const vst__column_spec[]){LIST(VST__SPEC)},                    \
    .column_count = 0 LIST(VST__ONE)

/* Puts a row; batch->status says whether that failed. */
#define VST_PUT_ROW(batch, LIST)                                               \
    do {                                                                       \
        vst__batch *row_ = (batch);                                            \
        unsigned column_ = 0;                                                  \
                                                                               \
        if (vst__batch_reserve(row_)) {                                        \
            LIST(VST__PUT)                                                     \
            vst__batch_add(row_);                                              \
        }                                                                      \
    } while (0)

/* `enum { LIST(VST_COLUMN_NUMBER) };` numbers the columns, for a table that
 * looks at its own rows. */
#define VST_COLUMN_NUMBER(type, name, ...) COLUMN_##name,

#define VST__ONE(type, name, ...) +1
#define VST__SPEC(type, name, ...) {#name, VST__SPEC_##type},
#define VST__PUT(type, name, ...) VST__PUT_##type(__VA_ARGS__);

/* ---- types --------------------------------------------------------------- */

#define VST__SPEC_I32 VST_COLUMN_I32, false, 0
#define VST__SPEC_I32_OR_NULL VST_COLUMN_I32, true, 0
#define VST__SPEC_I32_UNLESS_0 VST_COLUMN_I32, true, 0
#define VST__SPEC_I64 VST_COLUMN_I64, false, 0
#define VST__SPEC_I64_OR_NULL VST_COLUMN_I64, true, 0
#define VST__SPEC_I64_UNLESS_0 VST_COLUMN_I64, true, 0
#define VST__SPEC_F64 VST_COLUMN_F64, false, 0
#define VST__SPEC_F64_UNLESS_MINUS VST_COLUMN_F64, true, 0
#define VST__SPEC_BOOL VST_COLUMN_BOOL, false, 0
#define VST__SPEC_TEXT VST_COLUMN_TEXT, false, 0
#define VST__SPEC_TEXT_OR_NULL VST_COLUMN_TEXT, true, 0
#define VST__SPEC_STRING VST_COLUMN_TEXT, false, 0
#define VST__SPEC_STRING_OR_NULL VST_COLUMN_TEXT, true, 0
#define VST__SPEC_MEMBERS_OR_NULL VST_COLUMN_TEXT, true, 0
#define VST__SPEC_PIECE VST_COLUMN_PIECE, false, 0
#define VST__SPEC_SHOWN VST_COLUMN_NAME, false, VST_NAMES_SHOWN
#define VST__SPEC_SHOWN_OR_NULL VST_COLUMN_NAME, true, VST_NAMES_SHOWN
#define VST__SPEC_FUNCTION VST_COLUMN_NAME, false, VST_NAMES_FUNCTIONS
#define VST__SPEC_KIND VST_COLUMN_NAME, false, VST_NAMES_KINDS
#define VST__SPEC_FILE_OR_NULL VST_COLUMN_NAME, true, VST_NAMES_FILES
#define VST__SPEC_OWN VST_COLUMN_NAME, false, VST_NAMES_OWN
#define VST__SPEC_OWN_OR_NULL VST_COLUMN_NAME, true, VST_NAMES_OWN

#define VST__PUT_I32(value) vst__batch_i32(row_, column_++, (int32_t)(value))
#define VST__PUT_I32_OR_NULL(there, value)                                     \
    vst__batch_i32_or_null(row_, column_++, (there),                           \
                           (there) ? (int32_t)(value) : 0)
/* null if the value is 0 */
#define VST__PUT_I32_UNLESS_0(value) VST__PUT_I32_OR_NULL((value) != 0, value)
#define VST__PUT_I64(value) vst__batch_i64(row_, column_++, (int64_t)(value))
#define VST__PUT_I64_OR_NULL(there, value)                                     \
    vst__batch_i64_or_null(row_, column_++, (there),                           \
                           (there) ? (int64_t)(value) : 0)
#define VST__PUT_I64_UNLESS_0(value) VST__PUT_I64_OR_NULL((value) != 0, value)
#define VST__PUT_F64(value) vst__batch_f64(row_, column_++, (value))
/* null if the value is negative */
#define VST__PUT_F64_UNLESS_MINUS(value)                                       \
    vst__batch_f64_or_null(row_, column_++, (value) >= 0, (value))
#define VST__PUT_BOOL(value) vst__batch_bool(row_, column_++, (value))
/* bytes, or NULL, and their count */
#define VST__PUT_TEXT(bytes, count)                                            \
    vst__batch_text(row_, column_++, (bytes), (count))
#define VST__PUT_TEXT_OR_NULL VST__PUT_TEXT
/* a text that ends with a zero, or NULL */
#define VST__PUT_STRING(text) vst__batch_string(row_, column_++, (text))
#define VST__PUT_STRING_OR_NULL VST__PUT_STRING
/* members of a JSON object, and their count of bytes; 0: null */
#define VST__PUT_MEMBERS_OR_NULL(members, count)                               \
    vst__batch_members(row_, column_++, (members), (count))
#define VST__PUT_PIECE(bytes, count)                                           \
    vst__batch_piece(row_, column_++, (bytes), (count))
/* the number of a name in its dictionary: functions as they are shown,
 * functions by their names alone, kinds of definitions, files, names of the
 * table's own */
#define VST__PUT_SHOWN VST__PUT_I32
#define VST__PUT_SHOWN_OR_NULL VST__PUT_I32_OR_NULL
#define VST__PUT_FUNCTION VST__PUT_I32
#define VST__PUT_KIND VST__PUT_I32
#define VST__PUT_FILE_OR_NULL VST__PUT_I32_OR_NULL
#define VST__PUT_OWN VST__PUT_I32
#define VST__PUT_OWN_OR_NULL VST__PUT_I32_OR_NULL

#endif
