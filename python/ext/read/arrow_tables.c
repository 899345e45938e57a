/* vestige._core.Table: a table of traces as a Python object, which gives out
 * streams of record batches through Arrow's PyCapsule interface. A stream reads
 * the files itself and holds no Python object, so any thread may read a stream,
 * with or without the GIL. vestige._core.TableReader reads several tables in
 * one pass; without the GIL its method runs in its critical section. */
#include "read/read.h"
#include "read/state.h"

#include "tables/tables.h"

#include <stdlib.h>
#include <string.h>

static struct vpy_arrow_tables_state *const state = &vpy_reading.arrow_tables;

typedef struct table {
    PyObject_HEAD
    const char *name; /* the core's string */
    PyObject *texts;  /* owns the strings to which sources point */
    vst_table_source *sources;
    Py_ssize_t count;
} table;

/* ---- sources ------------------------------------------------------------- */

/* Returns a path as bytes of the file system, kept in self->texts. */
static const char *keep_path(table *self, PyObject *path)
{
    PyObject *bytes = NULL;
    int failed;

    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    failed = PyList_Append(self->texts, bytes) < 0;
    Py_DECREF(bytes); /* the list keeps the bytes alive */
    return failed ? NULL : PyBytes_AS_STRING(bytes);
}

static bool take_source(table *self, PyObject *facts, vst_table_source *to)
{
    PyObject *path;
    long long offset, from, until, parent_pid;

    if (!PyTuple_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "a source must be a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(facts, "OiLLLLiizzzz:Table", &path, &to->process,
                          &offset, &from, &until, &parent_pid, &to->rank,
                          &to->world_size, &to->host, &to->name, &to->command,
                          &to->ended))
        return false;
    to->offset_ns = offset;
    to->from_ns = from;
    to->to_ns = until;
    to->parent_pid = parent_pid;
    to->path = keep_path(self, path);
    return to->path != NULL && PyList_Append(self->texts, facts) == 0;
}

static const char *find_name(const char *name)
{
    const char *known;

    for (size_t i = 0; (known = vst__table_name(i)) != NULL; i++)
        if (strcmp(known, name) == 0)
            return known;
    PyErr_Format(PyExc_ValueError, "there is no table %s", name);
    return NULL;
}

static int table_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "sources", NULL};
    table *self = (table *)object;
    const char *name;
    PyObject *list, *sources;

    if (self->texts != NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the table has been set up already");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kw, "sO:Table", names, &name, &list))
        return -1;
    self->name = find_name(name);
    sources = self->name != NULL ? PySequence_Tuple(list) : NULL;
    if (sources == NULL)
        return -1;
    self->texts = PyList_New(0);
    self->sources =
        calloc((size_t)PyTuple_GET_SIZE(sources) + 1, sizeof *self->sources);
    if (self->sources == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0;
         self->texts != NULL && self->sources != NULL &&
         i < PyTuple_GET_SIZE(sources) && PyErr_Occurred() == NULL;
         i++)
        if (take_source(self, PyTuple_GET_ITEM(sources, i), &self->sources[i]))
            self->count++;
    Py_DECREF(sources);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static void table_dealloc(PyObject *object)
{
    table *self = (table *)object;
    PyTypeObject *type = Py_TYPE(object);

    Py_CLEAR(self->texts);
    free(self->sources);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- streams ------------------------------------------------------------- */

static int get_schema(vst_arrow_stream *arrow, vst_arrow_schema *out)
{
    vst_arrow_stream *inner = arrow->private_data;

    return inner->get_schema(inner, out);
}

/* The caller may hold the GIL or not. */
static int get_next(vst_arrow_stream *arrow, vst_arrow_array *out)
{
    vst_arrow_stream *inner = arrow->private_data;
    PyThreadState *saved = vpy_holds_gil() ? PyEval_SaveThread() : NULL;
    int result = inner->get_next(inner, out);

    if (saved != NULL)
        PyEval_RestoreThread(saved);
    if (result == 0 && out->release != NULL)
        atomic_fetch_add_explicit(&state->rows_read,
                                  (unsigned long long)out->length,
                                  memory_order_relaxed);
    return result;
}

static const char *get_last_error(vst_arrow_stream *arrow)
{
    vst_arrow_stream *inner = arrow->private_data;

    return inner->get_last_error(inner);
}

static void arrow_release(vst_arrow_stream *arrow)
{
    vst_arrow_stream *inner = arrow->private_data;

    inner->release(inner);
    free(inner);
    arrow->release = NULL;
}

static void free_stream_capsule(PyObject *capsule)
{
    vst_arrow_stream *arrow =
        PyCapsule_GetPointer(capsule, "arrow_array_stream");

    if (arrow->release != NULL) /* nobody consumed the capsule */
        arrow->release(arrow);
    free(arrow);
}

static PyObject *table_stream(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"requested_schema", NULL};
    table *self = (table *)object;
    PyObject *requested = NULL; /* a schema, which Arrow allows us to ignore */
    vst_arrow_stream *inner, *arrow;
    vst_status status;
    PyObject *capsule;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|O:__arrow_c_stream__", names,
                                     &requested))
        return NULL;
    inner = calloc(1, sizeof *inner);
    arrow = calloc(1, sizeof *arrow);
    status = VST_E_NOMEM;
    if (inner != NULL && arrow != NULL)
        status = vst__table_stream(self->name, self->sources,
                                   (size_t)self->count, inner);
    if (status != VST_OK) {
        free(inner);
        free(arrow);
        return vpy_raise(status, NULL, NULL);
    }
    *arrow = (vst_arrow_stream){.get_schema = get_schema,
                                .get_next = get_next,
                                .get_last_error = get_last_error,
                                .release = arrow_release,
                                .private_data = inner};
    capsule = PyCapsule_New(arrow, "arrow_array_stream", free_stream_capsule);
    if (capsule == NULL) {
        arrow->release(arrow);
        free(arrow);
    }
    return capsule;
}

static void free_schema_capsule(PyObject *capsule)
{
    vst_arrow_schema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

    if (schema->release != NULL)
        schema->release(schema);
    free(schema);
}

static PyObject *table_schema(PyObject *object, PyObject *unused)
{
    table *self = (table *)object;
    vst_arrow_schema *schema = calloc(1, sizeof *schema);
    vst_status status =
        schema != NULL ? vst__table_schema(self->name, schema) : VST_E_NOMEM;
    PyObject *capsule;

    (void)unused;
    if (status != VST_OK) {
        free(schema);
        return vpy_raise(status, NULL, NULL);
    }
    capsule = PyCapsule_New(schema, "arrow_schema", free_schema_capsule);
    if (capsule == NULL) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

/* ---- facts --------------------------------------------------------------- */

static const char *type_of(const vst_arrow_schema *column)
{
    static const struct {
        const char *format, *type;
    } types[] = {
        {"i", "int32"}, {"l", "int64"}, {"g", "float64"},
        {"b", "bool"},  {"u", "text"},
    };

    if (column->dictionary != NULL)
        return "name";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].format, column->format) == 0)
            return types[i].type;
    return "?";
}

/* Returns [(name, type, may be null), ...]. */
static PyObject *table_columns(PyObject *object, void *unused)
{
    table *self = (table *)object;
    vst_arrow_schema schema;
    vst_status status = vst__table_schema(self->name, &schema);
    PyObject *list;

    (void)unused;
    if (status != VST_OK)
        return vpy_raise(status, NULL, NULL);
    list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < schema.n_children; i++) {
        const vst_arrow_schema *column = schema.children[i];
        PyObject *entry = Py_BuildValue(
            "(ssO)", column->name, type_of(column),
            column->flags & VST_ARROW_NULLABLE ? Py_True : Py_False);
        if (!vpy_append(list, entry))
            Py_CLEAR(list);
    }
    schema.release(&schema);
    return list;
}

static PyObject *table_name(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((table *)object)->name);
}

static PyObject *table_rows_read(PyObject *unused, PyObject *none)
{
    (void)unused, (void)none;
    return PyLong_FromUnsignedLongLong(
        atomic_load_explicit(&state->rows_read, memory_order_relaxed));
}

/* ---- the type ------------------------------------------------------------ */

static PyMethodDef methods[] = {
    {"rows_read", table_rows_read, METH_NOARGS | METH_STATIC,
     PyDoc_STR("How many rows all streams of this process have given so far.")},
    {"__arrow_c_stream__", (PyCFunction)(void (*)(void))table_stream,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("A new stream of all rows, for consumers of Arrow's "
               "PyCapsules.")},
    {"__arrow_c_schema__", table_schema, METH_NOARGS,
     PyDoc_STR("The columns as an Arrow schema.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"name", table_name, NULL, NULL, NULL},
    {"columns", table_columns, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(table_doc,
             "Table(name, sources)\n--\n\nA table of traces. A source is "
             "(path, process, offset_ns, from_ns, to_ns, parent_pid, rank, "
             "world_size, host, name, command, ended).");

static PyType_Slot slots[] = {
    {Py_tp_init, table_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, (void *)table_doc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "vestige._core.Table",
    .basicsize = sizeof(table),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* ---- several tables ------------------------------------------------------ */

typedef struct reader {
    PyObject_HEAD
    vst__table_reader *handle; /* atomic: set once, see vpy_handle_set */
    /* A thread is in next(), which runs without the GIL. Changed in the
     * critical section. */
    bool busy;
} reader;

static int reader_init(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"tables", NULL};
    const table *first = NULL;
    PyObject *list, *tables;
    const char **wanted;
    vst__table_reader *made = NULL;
    vst_status status = VST_E_NOMEM;
    size_t count;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O:TableReader", names, &list))
        return -1;
    tables = PySequence_Tuple(list);
    if (tables == NULL)
        return -1;
    count = (size_t)PyTuple_GET_SIZE(tables);
    wanted = calloc(count + 1, sizeof *wanted);
    for (size_t i = 0; wanted != NULL && i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(tables, (Py_ssize_t)i);

        if (!PyObject_TypeCheck(one, state->table_type)) {
            PyErr_SetString(PyExc_TypeError, "tables must be Table objects");
            break;
        }
        if (first == NULL)
            first = (table *)one;
        wanted[i] = ((table *)one)->name;
    }
    if (wanted != NULL && PyErr_Occurred() == NULL)
        status = first != NULL
                     ? vst__table_reader_create(wanted, count, first->sources,
                                                (size_t)first->count, &made)
                     : VST_E_ARGUMENT;
    free(wanted);
    Py_DECREF(tables);
    if (status == VST_OK && vpy_handle_set(&((reader *)object)->handle, made))
        return 0;
    if (PyErr_Occurred() == NULL)
        vpy_raise(status, NULL, NULL);
    else if (made != NULL)
        vst__table_reader_destroy(made);
    return -1;
}

static void reader_dealloc(PyObject *object)
{
    reader *self = (reader *)object;
    PyTypeObject *type = Py_TYPE(object);

    if (self->handle != NULL)
        vst__table_reader_destroy(self->handle);
    type->tp_free(object);
    Py_DECREF(type);
}

static void free_array_capsule(PyObject *capsule)
{
    vst_arrow_array *array = PyCapsule_GetPointer(capsule, "arrow_array");

    if (array->release != NULL) /* nobody consumed the capsule */
        array->release(array);
    free(array);
}

/* Puts a batch into a capsule. Takes over the batch, even on failure. */
static PyObject *reader_capsule(const vst_arrow_array *batch)
{
    vst_arrow_array *array = malloc(sizeof *array);
    PyObject *capsule = NULL;
    vst_arrow_array taken = *batch;

    if (array != NULL) {
        *array = taken;
        capsule = PyCapsule_New(array, "arrow_array", free_array_capsule);
    } else {
        PyErr_NoMemory();
    }
    if (capsule == NULL) {
        taken.release(&taken);
        free(array);
    }
    return capsule;
}

static PyObject *reader_next(PyObject *object, PyObject *unused)
{
    reader *self = (reader *)object;
    vst_arrow_array batch = {.release = NULL};
    vst_status status;
    size_t number = 0;
    PyObject *capsule;

    (void)unused;
    if (vpy_handle_of(&self->handle) == NULL || self->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        self->busy ? "another thread is reading these tables"
                                   : "the tables are not open");
        return NULL;
    }
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    status = vst__table_reader_next(self->handle, &number, &batch);
    Py_END_ALLOW_THREADS
    self->busy = false;
    if (status == VST_E_NOMEM)
        return PyErr_NoMemory();
    if (status != VST_OK) {
        PyErr_SetString(vpy_shared.trace_error,
                        vst__table_reader_error(self->handle));
        return NULL;
    }
    if (batch.release == NULL)
        Py_RETURN_NONE;
    capsule = reader_capsule(&batch);
    return capsule != NULL ? Py_BuildValue("(nN)", (Py_ssize_t)number, capsule)
                           : NULL;
}

VPY_DEFINE_LOCKED(reader_next)

static PyMethodDef reader_methods[] = {
    {"next", VPY_LOCKED(reader_next), METH_NOARGS,
     PyDoc_STR("next()\n--\n\nThe index of a table and its next batch as a "
               "capsule of an Arrow array; None at the end.")},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(reader_doc,
             "TableReader(tables)\n--\n\nReads several tables of the same "
             "traces in one pass.");

static const vpy_class described = {
    .name = "vestige._core.TableReader",
    .doc = reader_doc,
    .size = sizeof(reader),
    .init = reader_init,
    .dealloc = reader_dealloc,
    .methods = reader_methods,
};

/* ---- names --------------------------------------------------------------- */

static const char *kind_name(size_t number)
{
    return number < VST_DEF_KINDS
               ? vst_definition_kind_name((vst_definition_kind)number)
               : NULL;
}

/* Adds a tuple of the names that `name` returns for 0, 1, … until NULL. */
static int add_names(PyObject *module, const char *under,
                     const char *(*name)(size_t number))
{
    PyObject *list = PyList_New(0), *all = NULL;
    int failed = list == NULL;

    for (size_t i = 0; !failed && name(i) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(name(i));
        failed = text == NULL || PyList_Append(list, text) < 0;
        Py_XDECREF(text);
    }
    if (!failed)
        all = PyList_AsTuple(list);
    Py_XDECREF(list);
    failed = all == NULL || PyModule_AddObjectRef(module, under, all) < 0;
    Py_XDECREF(all);
    return failed ? -1 : 0;
}

int vpy_tables_init(PyObject *module)
{
    if (vpy_type_add(module, &spec) < 0 ||
        vpy_class_add(module, &described) < 0)
        return -1;
    state->table_type = (PyTypeObject *)PyObject_GetAttrString(module, "Table");
    return state->table_type == NULL ||
                   add_names(module, "table_names", vst__table_name) < 0
               ? -1
               : add_names(module, "kind_names", kind_name);
}
