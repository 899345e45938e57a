/* Trace.tables(): tables of sums, from one reading of the records
 * (src/tables/pass.h). The records are read without the GIL. */
#include "read/trace.h"

#include "read/rows.h"

#include <stdlib.h>

#include "tables/pass.h"
#include "tables/table.h"

/* None, or a sequence of numbers; false with an exception set. */
static bool take_threads(PyObject *numbers, vst__pass_options *options)
{
    PyObject *fast;
    uint32_t *taken;
    size_t count;

    if (numbers == NULL || numbers == Py_None)
        return true;
    fast = PySequence_Fast(numbers, "threads are a sequence of numbers");
    if (fast == NULL)
        return false;
    count = (size_t)PySequence_Fast_GET_SIZE(fast);
    taken = calloc(count + 1, sizeof *taken);
    for (size_t i = 0; taken != NULL && i < count; i++)
        taken[i] = (uint32_t)PyLong_AsUnsignedLong(
            PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)i));
    Py_DECREF(fast);
    if (taken == NULL)
        PyErr_NoMemory();
    options->threads = taken;
    options->thread_count = count;
    return PyErr_Occurred() == NULL;
}

static bool take_marks(const vpy_trace *self, PyObject *marks,
                       vst__pass_options *options)
{
    if (marks == NULL)
        return true;
    if ((size_t)PyBytes_GET_SIZE(marks) <=
        vst_trace_definition_max(self->handle)) {
        PyErr_SetString(PyExc_ValueError,
                        "marks has fewer items than there are definitions");
        return false;
    }
    options->marks = (const unsigned char *)PyBytes_AS_STRING(marks);
    return true;
}

/* The tables of these names; NULL with an exception set. */
static vst__rows *find_tables(PyObject *names, size_t *count)
{
    vst__rows *found;

    *count = (size_t)PySequence_Fast_GET_SIZE(names);
    found = calloc(*count + 1, sizeof *found);
    if (found == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; found != NULL && i < *count; i++) {
        const char *name =
            PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(names, (Py_ssize_t)i));

        found[i].table = name != NULL ? vst__sum_table_find(name) : NULL;
        if (name != NULL && found[i].table == NULL)
            PyErr_Format(PyExc_ValueError, "there is no table %s", name);
        if (found[i].table == NULL) {
            free(found);
            return NULL;
        }
    }
    return found;
}

static PyObject *give(vst__rows *found, size_t count)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict != NULL && i < count; i++) {
        const char *name = found[i].table->name;
        PyObject *made = vpy_rows(name, &found[i].batch);

        if (made == NULL || PyDict_SetItemString(dict, name, made) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(made);
    }
    return dict;
}

static PyObject *read_tables(vpy_trace *self, PyObject *names,
                             const vst__pass_options *options,
                             PyObject *progress)
{
    size_t count;
    vst__rows *found = find_tables(names, &count);
    vst_error error = {VST_OK, 0, 0};
    PyObject *result;
    vst_status status;

    if (found == NULL)
        return NULL;
    vpy_trace_begin(self, progress);
    Py_BEGIN_ALLOW_THREADS
    status = vst__pass_read(self->handle, self->tracer, options, found, count,
                            &error);
    Py_END_ALLOW_THREADS
    vpy_trace_end(self);
    result = status == VST_OK ? give(found, count)
                              : vpy_raise(status, &error, self->path);
    for (size_t i = 0; i < count; i++)
        vst__batch_free(&found[i].batch);
    free(found);
    return result;
}

PyObject *vpy_trace_tables(PyObject *object, PyObject *args, PyObject *kw)
{
    static char *names[] = {"names",  "marks",    "threads",
                            "min_ns", "spread",   "fold_imports",
                            "awaits", "progress", NULL};
    vpy_trace *self = (vpy_trace *)object;
    PyObject *wanted, *marks = NULL, *threads = NULL, *progress = NULL;
    PyObject *list, *result = NULL;
    vst__pass_options options = {.min_ns = 0};
    int spread = 0, fold_imports = 0, awaits = 0;
    long long min_ns = 0;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O|$SOLpppO:tables", names, &wanted, &marks, &threads,
            &min_ns, &spread, &fold_imports, &awaits, &progress) ||
        !vpy_trace_is_usable(self))
        return NULL;
    options.min_ns = min_ns;
    options.spread = spread;
    options.fold_imports = fold_imports;
    options.awaits = awaits;
    list = PySequence_Fast(wanted, "names of tables are a sequence");
    if (list != NULL && take_marks(self, marks, &options) &&
        take_threads(threads, &options))
        result = read_tables(self, list, &options, progress);
    Py_XDECREF(list);
    free((uint32_t *)(uintptr_t)options.threads);
    return result;
}
