/* See batch.h: columns that grow, and the arrays that they become. Each
 * column's array owns its buffers, because the receiver of a batch may take
 * single columns out of it; arrays of names share the dictionary's snapshot. */
#include "tables/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/grow.h"
#include "export/output/json.h"

enum { ROWS_MIN = 1024 };

/* ---- room ---------------------------------------------------------------- */

static size_t batch_bits(size_t rows)
{
    return (rows + 7) / 8;
}

/* Returns the bytes of a column's values. */
static size_t batch_size_of(vst__column_type type, size_t rows)
{
    switch (type) {
    case VST_COLUMN_I32:
    case VST_COLUMN_NAME:
        return rows * sizeof(int32_t);
    case VST_COLUMN_TEXT:
        return (rows + 1) * sizeof(int32_t);
    case VST_COLUMN_I64:
    case VST_COLUMN_F64:
    case VST_COLUMN_PIECE:
        break;
    case VST_COLUMN_BOOL:
        return batch_bits(rows);
    }
    return rows * sizeof(int64_t);
}

static vst__buffer_kind kind_of(vst__column_type type)
{
    return type == VST_COLUMN_BOOL ? VST_BUFFER_BITS
           : type == VST_COLUMN_I64 || type == VST_COLUMN_F64 ||
                   type == VST_COLUMN_PIECE
               ? VST_BUFFER_WIDE
               : VST_BUFFER_NARROW;
}

static bool batch_resize(void **memory, size_t size)
{
    void *moved = realloc(*memory, size);

    if (moved != NULL)
        *memory = moved;
    return moved != NULL;
}

static bool widen_bits(uint8_t **of, size_t before, size_t after)
{
    void *memory = *of;

    if (!batch_resize(&memory, batch_bits(after)))
        return false;
    *of = memory;
    memset(*of + batch_bits(before), 0, batch_bits(after) - batch_bits(before));
    return true;
}

static bool batch_widen(vst__column *column, const vst__column_spec *spec,
                        size_t before, size_t after)
{
    uint8_t *flags = column->values;
    bool done;

    if (spec->type == VST_COLUMN_BOOL) {
        done = widen_bits(&flags, before, after);
        column->values = flags;
    } else {
        done = batch_resize(&column->values, batch_size_of(spec->type, after));
    }
    if (!done)
        return false;
    if (spec->type == VST_COLUMN_TEXT && before == 0)
        *(int32_t *)column->values = 0;
    return !spec->nullable || widen_bits(&column->valid, before, after);
}

/* Begins a column of the usual size, in buffers that may have been used before.
 */
static bool batch_begin(vst__batch *self, vst__column *column,
                        const vst__column_spec *spec)
{
    if (column->values == NULL)
        column->values = vst__buffers_take(self->buffers, kind_of(spec->type));
    if (spec->nullable && column->valid == NULL)
        column->valid = vst__buffers_take(self->buffers, VST_BUFFER_BITS);
    if (column->values == NULL || (spec->nullable && column->valid == NULL))
        return false;
    if (spec->type == VST_COLUMN_BOOL)
        memset(column->values, 0, batch_bits(VST_BATCH_ROWS));
    if (spec->type == VST_COLUMN_TEXT)
        *(int32_t *)column->values = 0;
    if (spec->nullable)
        memset(column->valid, 0, batch_bits(VST_BATCH_ROWS));
    return true;
}

static bool batch_fail(vst__batch *self)
{
    if (self->status == VST_OK)
        self->status = VST_E_NOMEM;
    return false;
}

bool vst__batch_make_room(vst__batch *self)
{
    size_t wanted = self->capacity != 0 ? 2 * self->capacity : self->usual;

    if (wanted < ROWS_MIN)
        wanted = ROWS_MIN;
    if (wanted > INT32_MAX / 8)
        return batch_fail(self);
    for (size_t i = 0; i < self->column_count; i++)
        if (!(self->capacity == 0 && wanted == VST_BATCH_ROWS
                  ? batch_begin(self, &self->columns[i], &self->specs[i])
                  : batch_widen(&self->columns[i], &self->specs[i],
                                self->capacity, wanted)))
            return batch_fail(self);
    self->capacity = wanted;
    return true;
}

/* ---- texts --------------------------------------------------------------- */

static bool batch_put(vst__batch *self, vst__column *column, const char *bytes,
                      size_t count)
{
    if (!VST_RESERVE(column->bytes, column->byte_count + count + 1,
                     column->byte_capacity))
        return false;
    memcpy(column->bytes + column->byte_count, bytes, count);
    column->byte_count += count;
    self->text += count;
    return true;
}

static bool put_utf8(vst__batch *self, vst__column *column, const char *bytes,
                     size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes, *from = at;
    const unsigned char *end = at + count;

    while (at != end) {
        size_t length = vst__json_utf8(at, end);

        if (length != 0) {
            at += length;
            continue;
        }
        if (!batch_put(self, column, (const char *)from, (size_t)(at - from)) ||
            !batch_put(self, column, "\xef\xbf\xbd", 3))
            return false;
        from = ++at;
    }
    return batch_put(self, column, (const char *)from, (size_t)(at - from));
}

static bool batch_has_room(const vst__column *column, size_t count)
{
    return count < VST_BATCH_TEXT_MAX / VST_JSON_ESCAPE_MAX &&
           column->byte_count < VST_BATCH_TEXT_MAX;
}

static void finish_text(vst__batch *self, unsigned column, bool there)
{
    vst__batch_no_text(self, column);
    if (self->specs[column].nullable)
        vst__batch_valid(self, column, there);
}

void vst__batch_text(vst__batch *self, unsigned column, const char *bytes,
                     size_t count)
{
    vst__column *c = &self->columns[column];
    bool there = bytes != NULL && batch_has_room(c, count);

    if (there && !put_utf8(self, c, bytes, count))
        there = batch_fail(self);
    finish_text(self, column, there);
}

/* Writes a JSON string, escaped as the Chrome export does. */
static bool batch_put_string(vst__batch *self, vst__column *c,
                             const char *bytes, size_t count)
{
    const char *end = bytes + count;
    char piece[512];

    if (!batch_put(self, c, "\"args\": \"", strlen("\"args\": \"")))
        return false;
    while (bytes != end) {
        char *to = vst__json_escape(piece, piece + sizeof piece, &bytes, end);
        if (!batch_put(self, c, piece, (size_t)(to - piece)))
            return false;
    }
    return batch_put(self, c, "\"", 1);
}

void vst__batch_put_members(vst__batch *self, unsigned column,
                            const char *members, size_t count)
{
    vst__column *c = &self->columns[column];
    bool there = batch_has_room(c, count);

    if (there) {
        bool is_json = vst__json_is_members(members, count);

        if (!batch_put(self, c, "{", 1) ||
            !(is_json ? batch_put(self, c, members, count)
                      : batch_put_string(self, c, members, count)) ||
            !batch_put(self, c, "}", 1))
            there = batch_fail(self);
    }
    finish_text(self, column, there);
}

void vst__batch_piece(vst__batch *self, unsigned column, const char *bytes,
                      size_t count)
{
    vst__column *c = &self->columns[column];
    size_t place = c->byte_count;

    vst__batch_i64(self, column, 0);
    if (count == 0 || count > VST_PIECE_MAX)
        return;
    if (place >> VST_PIECE_PLACE_BITS != 0 || !batch_put(self, c, bytes, count))
        batch_fail(self);
    else
        vst__batch_i64(
            self, column,
            (int64_t)((uint64_t)count << VST_PIECE_PLACE_BITS | place));
}

/* ---- order --------------------------------------------------------------- */

static void move_wide(int64_t *values, int64_t *spare, const uint32_t *order,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        spare[i] = values[order[i]];
    memcpy(values, spare, count * sizeof *values);
}

static void move_narrow(int32_t *values, int32_t *spare, const uint32_t *order,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        spare[i] = values[order[i]];
    memcpy(values, spare, count * sizeof *values);
}

static void move_bits(uint8_t *values, uint8_t *spare, const uint32_t *order,
                      size_t count)
{
    memset(spare, 0, batch_bits(count));
    for (size_t i = 0; i < count; i++)
        if (values[order[i] / 8] >> order[i] % 8 & 1)
            vst__batch_set_bit(spare, i);
    memcpy(values, spare, batch_bits(count));
}

vst_status vst__batch_permute(vst__batch *self, const uint32_t *order)
{
    void *spare = malloc((self->rows + 1) * sizeof(int64_t));

    if (spare == NULL)
        return VST_E_NOMEM;
    for (size_t i = 0; i < self->column_count; i++) {
        const vst__column *column = &self->columns[i];

        if (kind_of(self->specs[i].type) == VST_BUFFER_WIDE)
            move_wide(column->values, spare, order, self->rows);
        else
            move_narrow(column->values, spare, order, self->rows);
        if (column->nulls != 0 && column->nulls != self->rows)
            move_bits(column->valid, spare, order, self->rows);
    }
    free(spare);
    return VST_OK;
}

/* ---- arrays -------------------------------------------------------------- */

/* The memory that a column's array owns. */
typedef struct owned {
    const void *buffers[3];
    vst_arrow_array dictionary;
    /* where the first two buffers return for reuse; NULL if they are freed */
    vst__buffers *from;
    vst__buffer_kind kind;
} owned;

static void *batch_writable(const void *buffer)
{
    return (void *)(uintptr_t)buffer;
}

static void release_column(vst_arrow_array *array)
{
    owned *own = array->private_data;

    if (own->from != NULL) {
        vst__buffers_give(own->from, VST_BUFFER_BITS,
                          batch_writable(own->buffers[0]));
        vst__buffers_give(own->from, own->kind,
                          batch_writable(own->buffers[1]));
        vst__buffers_let_go(own->from);
    } else {
        free(batch_writable(own->buffers[0]));
        free(batch_writable(own->buffers[1]));
    }
    free(batch_writable(own->buffers[2]));
    if (own->dictionary.release != NULL)
        own->dictionary.release(&own->dictionary);
    free(own);
    array->release = NULL;
}

/* The array of structs: its columns, and pointers to them. */
typedef struct root {
    const void *buffers[1];
    vst_arrow_array *children[VST_BATCH_COLUMNS_MAX];
    vst_arrow_array columns[];
} root;

static void release_root(vst_arrow_array *array)
{
    root *all = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (all->columns[i].release != NULL)
            all->columns[i].release(&all->columns[i]);
    free(all);
    array->release = NULL;
}

/* Makes the array of a column, still without buffers: these are moved when
 * nothing can fail any more. */
static vst_status batch_make_column(const vst__column_spec *spec,
                                    vst__dictionary *const dictionaries[],
                                    vst_arrow_array *array)
{
    owned *own = calloc(1, sizeof *own);

    if (own == NULL)
        return VST_E_NOMEM;
    *array = (vst_arrow_array){
        .n_buffers = spec->type == VST_COLUMN_TEXT ? 3 : 2,
        .buffers = own->buffers,
        .release = release_column,
        .private_data = own,
    };
    if (spec->type != VST_COLUMN_NAME)
        return VST_OK;
    array->dictionary = &own->dictionary;
    return vst__dictionary_array(dictionaries[spec->names], &own->dictionary);
}

static void fill_column(vst__batch *self, size_t index, vst_arrow_array *array)
{
    const vst__column_spec *spec = &self->specs[index];
    vst__column *column = &self->columns[index];
    owned *own = array->private_data;

    array->length = (int64_t)self->rows;
    array->null_count = (int64_t)column->nulls;
    if (self->capacity == VST_BATCH_ROWS) {
        own->from = vst__buffers_hold(self->buffers);
        own->kind = kind_of(spec->type);
    }
    if (column->nulls == 0) {
        if (own->from != NULL)
            vst__buffers_give(own->from, VST_BUFFER_BITS, column->valid);
        else
            free(column->valid);
        column->valid = NULL;
    }
    own->buffers[0] = column->valid;
    own->buffers[1] = column->values;
    if (spec->type == VST_COLUMN_TEXT)
        own->buffers[2] = column->bytes;
    *column = (vst__column){0};
}

/* Arrow wants a buffer even if there is no text. */
static vst_status batch_complete(vst__batch *self)
{
    for (size_t i = 0; i < self->column_count; i++) {
        vst__column *c = &self->columns[i];

        if (self->specs[i].type == VST_COLUMN_TEXT && c->bytes == NULL &&
            !batch_put(self, c, "", 0))
            return VST_E_NOMEM;
    }
    return VST_OK;
}

vst_status vst__batch_take(vst__batch *self,
                           vst__dictionary *const dictionaries[VST_NAMES_COUNT],
                           vst_arrow_array *array)
{
    vst_status status = batch_complete(self);
    root *all =
        calloc(1, sizeof *all + self->column_count * sizeof *all->columns);

    *array = (vst_arrow_array){
        .length = (int64_t)self->rows,
        .n_buffers = 1,
        .n_children = (int64_t)self->column_count,
        .release = release_root,
        .private_data = all,
    };
    if (all == NULL) {
        array->release = NULL;
        return VST_E_NOMEM;
    }
    array->buffers = all->buffers;
    array->children = all->children;
    for (size_t i = 0; i < self->column_count && status == VST_OK; i++) {
        all->children[i] = &all->columns[i];
        status =
            batch_make_column(&self->specs[i], dictionaries, &all->columns[i]);
    }
    if (status != VST_OK) {
        release_root(array);
        return status;
    }
    for (size_t i = 0; i < self->column_count; i++)
        fill_column(self, i, &all->columns[i]);
    self->usual =
        self->capacity < VST_BATCH_ROWS ? self->capacity : VST_BATCH_ROWS;
    self->rows = self->capacity = self->text = 0;
    return VST_OK;
}

void vst__batch_free(vst__batch *self)
{
    for (size_t i = 0; i < self->column_count; i++) {
        free(self->columns[i].values);
        free(self->columns[i].valid);
        free(self->columns[i].bytes);
        self->columns[i] = (vst__column){0};
    }
    self->rows = self->capacity = self->text = 0;
}
