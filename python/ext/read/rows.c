/* See rows.h. A Rows object does not change after it is made, so any thread may
 * read it. */
#include "read/rows.h"

#include "read/read.h"
#include "read/state.h"

#include <stdlib.h>
#include <string.h>

typedef struct rows {
    PyObject_HEAD
    vst__batch batch;
    PyObject *columns;  /* a tuple of names */
    PyObject *texts;    /* lists of the names in dictionaries, or NULL */
    PyTypeObject *type; /* of a row */
    bool is_cut;
} rows;

struct vpy_reading_state vpy_reading;

static struct vpy_rows_state *const state = &vpy_reading.rows;

/* ---- types of rows ------------------------------------------------------- */

/* The type of a table's rows, which is made when it is first needed. */
struct vpy_row_type {
    const vst__column_spec *of;
    size_t count; /* number of columns: some tables share their first columns */
    PyTypeObject *type;
    struct vpy_row_type *next;
};

static PyTypeObject *make_row_type(const char *table, const vst__batch *batch)
{
    PyStructSequence_Field fields[VST_BATCH_COLUMNS_MAX + 1] = {{NULL, NULL}};
    PyStructSequence_Desc described = {
        .fields = fields, .n_in_sequence = (int)batch->column_count};
    char name[64];

    snprintf(name, sizeof name, "vestige._core.%s", table);
    described.name = name;
    for (size_t i = 0; i < batch->column_count; i++)
        fields[i].name = batch->specs[i].name;
    return PyStructSequence_NewType(&described);
}

static PyTypeObject *find_row_type(const vst__batch *batch)
{
    for (struct vpy_row_type *at = state->row_types; at != NULL; at = at->next)
        if (at->of == batch->specs && at->count == batch->column_count)
            return at->type;
    return NULL;
}

/* Returns a table's row type (borrowed; types are never freed). */
static PyTypeObject *row_type_of(const char *table, const vst__batch *batch)
{
    struct vpy_row_type *made = NULL;
    PyTypeObject *type, *known;

    vpy_state_take();
    known = find_row_type(batch);
    vpy_state_give();
    if (known != NULL)
        return known;
    type = make_row_type(table, batch);
    made = type != NULL ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        Py_XDECREF(type);
        PyErr_NoMemory();
        return NULL;
    }
    vpy_state_take();
    known = find_row_type(batch); /* another thread was faster */
    *made = (struct vpy_row_type){batch->specs, batch->column_count, type,
                                  state->row_types};
    if (known == NULL)
        state->row_types = made;
    vpy_state_give();
    if (known == NULL)
        return type;
    free(made);
    Py_DECREF(type);
    return known;
}

/* ---- records ------------------------------------------------------------- */

int vpy_record_add(PyObject *module, const vpy_record *record)
{
    PyStructSequence_Field fields[VST_BATCH_COLUMNS_MAX + 1] = {{NULL, NULL}};
    PyStructSequence_Desc described = {.name = record->name, .fields = fields};

    for (; record->fields[described.n_in_sequence] != NULL;
         described.n_in_sequence++)
        fields[described.n_in_sequence].name =
            record->fields[described.n_in_sequence];
    described.n_in_sequence -= record->hidden;
    *record->type = PyStructSequence_NewType(&described);
    return *record->type != NULL ? PyModule_AddType(module, *record->type) : -1;
}

PyObject *vpy_record_new(const vpy_record *record, PyObject *values)
{
    PyObject *made =
        values != NULL ? PyStructSequence_New(*record->type) : NULL;

    for (Py_ssize_t i = 0; made != NULL && i < PyTuple_GET_SIZE(values); i++)
        PyStructSequence_SetItem(made, i,
                                 Py_NewRef(PyTuple_GET_ITEM(values, i)));
    Py_XDECREF(values);
    return made;
}

/* ---- values -------------------------------------------------------------- */

static bool has_bit(const uint8_t *bits, size_t row)
{
    return bits[row / 8] >> row % 8 & 1;
}

static PyObject *text_at(const vst__column *column, size_t row)
{
    const int32_t *ends = column->values;

    return PyUnicode_DecodeUTF8(
        column->bytes != NULL ? column->bytes + ends[row] : "",
        (Py_ssize_t)(ends[row + 1] - ends[row]), "replace");
}

static PyObject *piece_at(const vst__column *column, size_t row)
{
    uint64_t piece = ((const uint64_t *)column->values)[row];
    uint64_t place = piece & ((UINT64_C(1) << VST_PIECE_PLACE_BITS) - 1);

    return PyUnicode_DecodeUTF8(piece != 0 ? column->bytes + place : "",
                                (Py_ssize_t)(piece >> VST_PIECE_PLACE_BITS),
                                "replace");
}

static PyObject *value_at(const rows *self, size_t index, size_t row)
{
    const vst__column_spec *spec = &self->batch.specs[index];
    const vst__column *column = &self->batch.columns[index];

    if (spec->nullable && !has_bit(column->valid, row))
        Py_RETURN_NONE;
    switch (spec->type) {
    case VST_COLUMN_I32:
        return PyLong_FromLong(((const int32_t *)column->values)[row]);
    case VST_COLUMN_NAME:
        return Py_NewRef(
            PyList_GET_ITEM(PyTuple_GET_ITEM(self->texts, spec->names),
                            ((const int32_t *)column->values)[row]));
    case VST_COLUMN_I64:
        break;
    case VST_COLUMN_F64:
        return PyFloat_FromDouble(((const double *)column->values)[row]);
    case VST_COLUMN_BOOL:
        return PyBool_FromLong(has_bit(column->values, row));
    case VST_COLUMN_TEXT:
        return text_at(column, row);
    case VST_COLUMN_PIECE:
        return piece_at(column, row);
    }
    return PyLong_FromLongLong(
        (long long)((const int64_t *)column->values)[row]);
}

/* ---- columns ------------------------------------------------------------- */

/* A column: gives out its memory if it holds numbers, else makes its values one
 * by one. */
typedef struct column {
    PyObject_HEAD
    rows *of;
    size_t index;
    Py_ssize_t length;
} column;

static const char *format_of(vst__column_type type)
{
    return type == VST_COLUMN_F64 ? "d" : type == VST_COLUMN_I64 ? "q" : "i";
}

/* Returns whether the column's memory can be given out: it holds numbers, and
 * no nulls. */
static bool has_view(const vst__column_spec *spec)
{
    return !spec->nullable &&
           (spec->type == VST_COLUMN_I32 || spec->type == VST_COLUMN_I64 ||
            spec->type == VST_COLUMN_F64);
}

static int column_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    column *self = (column *)object;
    const vst__column_spec *spec = &self->of->batch.specs[self->index];
    Py_ssize_t size = spec->type == VST_COLUMN_I32 ? 4 : 8;
    void *values = self->of->batch.columns[self->index].values;

    if (!has_view(spec)) {
        PyErr_SetString(PyExc_BufferError,
                        "a column of texts, booleans or nulls has no buffer");
        return -1;
    }
    if (PyBuffer_FillInfo(view, object, values != NULL ? values : "",
                          self->length * size, 1, flags) < 0)
        return -1;
    view->itemsize = size;
    if (flags & PyBUF_FORMAT)
        view->format = (char *)(uintptr_t)format_of(spec->type);
    if (view->shape != NULL)
        view->shape = &self->length;
    return 0;
}

static void column_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    Py_DECREF(((column *)object)->of);
    type->tp_free(object);
    Py_DECREF(type);
}

static Py_ssize_t column_length(PyObject *object)
{
    return ((column *)object)->length;
}

static PyObject *column_item(PyObject *object, Py_ssize_t at)
{
    const column *self = (column *)object;

    if (at < 0 || at >= self->length) {
        PyErr_SetString(PyExc_IndexError, "row index out of range");
        return NULL;
    }
    return value_at(self->of, self->index, (size_t)at);
}

static PyObject *rows_make_column(rows *self, size_t index)
{
    column *made =
        (column *)state->column_type->tp_alloc(state->column_type, 0);
    PyObject *view;

    if (made == NULL)
        return NULL;
    made->of = (rows *)Py_NewRef(self);
    made->index = index;
    made->length = (Py_ssize_t)self->batch.rows;
    if (!has_view(&self->batch.specs[index]))
        return (PyObject *)made;
    view = PyMemoryView_FromObject((PyObject *)made);
    Py_DECREF(made);
    return view;
}

static PyObject *column_of(rows *self, PyObject *name)
{
    for (size_t i = 0; i < self->batch.column_count; i++)
        if (PyUnicode_CompareWithASCIIString(name, self->batch.specs[i].name) ==
            0)
            return rows_make_column(self, i);
    PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

/* ---- rows ---------------------------------------------------------------- */

static Py_ssize_t rows_length(PyObject *object)
{
    return (Py_ssize_t)((rows *)object)->batch.rows;
}

static PyObject *rows_item(PyObject *object, Py_ssize_t at)
{
    rows *self = (rows *)object;
    PyObject *row;

    if (at < 0 || at >= (Py_ssize_t)self->batch.rows) {
        PyErr_SetString(PyExc_IndexError, "row index out of range");
        return NULL;
    }
    row = PyStructSequence_New(self->type);
    for (size_t i = 0; row != NULL && i < self->batch.column_count; i++) {
        PyObject *value = value_at(self, i, (size_t)at);

        if (value == NULL)
            Py_CLEAR(row);
        else
            PyStructSequence_SetItem(row, (Py_ssize_t)i, value);
    }
    return row;
}

/* Returns the column with that name, or the row with that number. */
static PyObject *rows_subscript(PyObject *object, PyObject *key)
{
    Py_ssize_t at;

    if (PyUnicode_Check(key))
        return column_of((rows *)object, key);
    at = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (at == -1 && PyErr_Occurred() != NULL)
        return NULL;
    return rows_item(object, at < 0 ? at + rows_length(object) : at);
}

static PyObject *rows_get_columns(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((rows *)object)->columns);
}

static PyObject *rows_get_is_cut(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((rows *)object)->is_cut);
}

static void rows_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    vst__batch_free(&((rows *)object)->batch);
    Py_XDECREF(((rows *)object)->columns);
    Py_XDECREF(((rows *)object)->texts);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject *vpy_rows(const char *name, vst__batch *batch, PyObject *texts,
                   bool is_cut)
{
    PyTypeObject *type = row_type_of(name, batch);
    rows *self = type != NULL
                     ? (rows *)state->rows_type->tp_alloc(state->rows_type, 0)
                     : NULL;

    if (self == NULL)
        return NULL;
    self->type = type;
    self->is_cut = is_cut;
    self->texts = Py_XNewRef(texts);
    self->columns = PyTuple_New((Py_ssize_t)batch->column_count);
    for (size_t i = 0; self->columns != NULL && i < batch->column_count; i++) {
        PyObject *text = PyUnicode_InternFromString(batch->specs[i].name);

        if (text == NULL)
            Py_CLEAR(self->columns);
        else
            PyTuple_SET_ITEM(self->columns, (Py_ssize_t)i, text);
    }
    if (self->columns == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    self->batch = *batch;
    *batch = (vst__batch){.specs = NULL};
    return (PyObject *)self;
}

/* ---- types --------------------------------------------------------------- */

static PyGetSetDef rows_attributes[] = {
    {"columns", rows_get_columns, NULL, NULL, NULL},
    {"is_cut", rows_get_is_cut, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot rows_slots[] = {
    {Py_tp_dealloc, rows_dealloc},     {Py_tp_getset, rows_attributes},
    {Py_tp_iter, PySeqIter_New},       {Py_sq_length, rows_length},
    {Py_sq_item, rows_item},           {Py_mp_length, rows_length},
    {Py_mp_subscript, rows_subscript}, {0, NULL},
};

static PyType_Spec rows_spec = {
    .name = "vestige._core.Rows",
    .basicsize = sizeof(rows),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = rows_slots,
};

static PyType_Slot column_slots[] = {
    {Py_tp_dealloc, column_dealloc}, {Py_bf_getbuffer, column_get_buffer},
    {Py_tp_iter, PySeqIter_New},     {Py_sq_length, column_length},
    {Py_sq_item, column_item},       {0, NULL},
};

static PyType_Spec column_spec = {
    .name = "vestige._core.Column",
    .basicsize = sizeof(column),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = column_slots,
};

int vpy_rows_init(PyObject *module)
{
    state->column_type = (PyTypeObject *)PyType_FromSpec(&column_spec);
    if (state->column_type == NULL || vpy_type_add(module, &rows_spec) < 0)
        return -1;
    state->rows_type = (PyTypeObject *)PyObject_GetAttrString(module, "Rows");
    return state->rows_type != NULL ? 0 : -1;
}

/* ---- numbers from Python ------------------------------------------------- */

uint32_t *vpy_to_numbers(PyObject *object, size_t *count)
{
    PyObject *items = PySequence_Fast(object, "must be a sequence of numbers");
    uint32_t *numbers;

    if (items == NULL)
        return NULL;
    *count = (size_t)PySequence_Fast_GET_SIZE(items);
    numbers = calloc(*count + 1, sizeof *numbers);
    if (numbers == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; numbers != NULL && i < *count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i);
        unsigned long number = PyLong_AsUnsignedLong(item);
        if (number > UINT32_MAX && PyErr_Occurred() == NULL)
            PyErr_SetString(PyExc_OverflowError, "the number is too large");
        if (PyErr_Occurred() != NULL) {
            free(numbers);
            numbers = NULL;
        } else {
            numbers[i] = (uint32_t)number;
        }
    }
    Py_DECREF(items);
    return numbers;
}
