/* Trace.tables(): fills any tables in one reading of the records
 * (src/tables/pass.h), which are read without the GIL. Also merge_histograms(),
 * for the histograms of the tables `duration` and `steps`. */
#include "read/trace.h"

#include "read/read.h"
#include "read/rows.h"

#include <stdlib.h>

#include "tables/histogram.h"
#include "tables/pass.h"

/* Reads None or a sequence of numbers. Returns false with an exception set on
 * failure. */
static bool take_threads(PyObject *numbers, vst__table_options *options)
{
    if (numbers == NULL || numbers == Py_None)
        return true;
    options->threads = vpy_to_numbers(numbers, &options->thread_count);
    return options->threads != NULL;
}

static bool take_marks(const vpy_trace *self, PyObject *marks,
                       vst__table_options *options)
{
    if (marks == NULL)
        return true;
    if ((size_t)PyBytes_GET_SIZE(marks) <=
        vst_trace_definition_max(self->handle)) {
        PyErr_SetString(
            PyExc_ValueError,
            "marks must have an item for each definition of the trace");
        return false;
    }
    options->marks = (const unsigned char *)PyBytes_AS_STRING(marks);
    return true;
}

/* Returns the tables with these names, or NULL with an exception set. */
static const vst__table **find_tables(PyObject *names)
{
    size_t count = (size_t)PySequence_Fast_GET_SIZE(names);
    const vst__table **found = calloc(count + 1, sizeof *found);

    if (found == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; found != NULL && i < count; i++) {
        const char *name =
            PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(names, (Py_ssize_t)i));

        found[i] = name != NULL ? vst__table_of_any_kind(name) : NULL;
        if (found[i] != NULL)
            continue;
        if (name != NULL)
            PyErr_Format(PyExc_ValueError, "there is no table %s", name);
        free(found);
        return NULL;
    }
    return found;
}

static PyObject *texts_of(const vst__dictionary *names)
{
    PyObject *list = PyList_New((Py_ssize_t)names->count);

    for (size_t i = 0; list != NULL && i < names->count; i++) {
        int32_t begin = i != 0 ? names->ends[i - 1] : 0;
        PyObject *text = vpy_trace_text(names->bytes + begin,
                                        (size_t)(names->ends[i] - begin));

        if (text == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

/* Makes lists of the pass's dictionaries, indexed by vst__names. Returns false
 * with an exception set on failure. */
static bool list_names(const vst__table_pass *pass,
                       PyObject *lists[VST_NAMES_OWN])
{
    bool done = true;

    for (size_t i = 0; i < VST_NAMES_OWN && done; i++) {
        lists[i] = texts_of(&pass->dictionaries[i]);
        done = lists[i] != NULL;
    }
    return done;
}

static PyObject *rows_of(vst__filling *filling, PyObject *lists[VST_NAMES_OWN],
                         bool is_cut)
{
    PyObject *own = texts_of(&filling->own_names), *texts, *made;

    if (own == NULL)
        return NULL;
    texts = PyTuple_Pack(VST_NAMES_COUNT, lists[VST_NAMES_SHOWN],
                         lists[VST_NAMES_FILES], lists[VST_NAMES_KINDS],
                         lists[VST_NAMES_FUNCTIONS], own);
    Py_DECREF(own);
    if (texts == NULL)
        return NULL;
    made = vpy_rows(filling->table->name, &filling->batch, texts, is_cut);
    Py_DECREF(texts);
    return made;
}

static PyObject *tables_make_dict(vst__table_pass *pass)
{
    PyObject *lists[VST_NAMES_OWN] = {NULL};
    PyObject *dict = list_names(pass, lists) ? PyDict_New() : NULL;

    for (size_t i = 0; dict != NULL && i < pass->count; i++) {
        PyObject *made = rows_of(&pass->fillings[i], lists, pass->is_cut);

        if (made == NULL ||
            PyDict_SetItemString(dict, pass->fillings[i].table->name, made) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(made);
    }
    for (size_t i = 0; i < VST_NAMES_OWN; i++)
        Py_XDECREF(lists[i]);
    return dict;
}

static PyObject *read_tables(vpy_trace *self, PyObject *names,
                             const vst__table_options *options,
                             PyObject *progress)
{
    const vst__table **tables = find_tables(names);
    vst_error error = {VST_OK, 0, 0};
    PyObject *result;
    vst__table_pass pass;
    vst_status status;

    if (tables == NULL)
        return NULL;
    status = vst__table_pass_create(
        &pass, tables, (size_t)PySequence_Fast_GET_SIZE(names), options);
    if (status == VST_OK) {
        vpy_trace_begin(self, progress);
        Py_BEGIN_ALLOW_THREADS
        status = vst__table_pass_read(&pass, self->handle, &error);
        Py_END_ALLOW_THREADS
        vpy_trace_end(self);
    }
    result = status == VST_OK ? tables_make_dict(&pass)
                              : vpy_memory_fail(status, &error, self->path);
    vst__table_pass_free(&pass);
    free(tables);
    return result;
}

/* Reads None, or seconds from now. */
static bool take_timeout(PyObject *seconds, vst__table_options *options)
{
    vst_clock_sample now;
    double value;

    if (seconds == NULL || seconds == Py_None)
        return true;
    value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred() != NULL)
        return false;
    vst_clock_sample_now(&now);
    if (value < 1e9)
        options->deadline_ns = now.monotonic_ns + (int64_t)(value * 1e9);
    return true;
}

/* Reads the arguments. Returns false with an exception set on failure. */
static bool tables_parse(PyObject *args, PyObject *kw, vpy_trace *self,
                         vst__table_options *options, PyObject **names,
                         PyObject **progress)
{
    static char *keywords[] = {
        "names",        "marks",     "threads",     "min_ns",    "spread",
        "fold_imports", "awaits",    "blocked_ns",  "progress",  "all_windows",
        "since",        "calls",     "shapes",      "overloads", "framework",
        "timeout",      "by_thread", "memory_rows", "temporary", NULL};
    PyObject *marks = NULL, *threads = NULL, *timeout = NULL;
    int spread = 0, fold_imports = 0, awaits = 0, all = 1, since = -1;
    int calls = 1, shapes = 0, overloads = 0, framework = 0, by_thread = 0;
    long long min_ns = 0, blocked_ns = 0;
    Py_ssize_t memory_rows = 0;
    int temporary = 1;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O|$SOLpppLOpippppOpni:tables", keywords, names, &marks,
            &threads, &min_ns, &spread, &fold_imports, &awaits, &blocked_ns,
            progress, &all, &since, &calls, &shapes, &overloads, &framework,
            &timeout, &by_thread, &memory_rows, &temporary) ||
        !vpy_memory_check_temporary(temporary))
        return false;
    *options = (vst__table_options){
        .window = vpy_trace_window(all, since),
        .min_ns = min_ns,
        .blocked_ns = blocked_ns,
        .spread = spread,
        .fold_imports = fold_imports,
        .awaits = awaits,
        .by_thread = by_thread,
        .no_calls = !calls,
        .shapes = shapes,
        .overloads = overloads,
        .framework = framework,
        .memory_rows = memory_rows < 0 ? SIZE_MAX : (size_t)memory_rows,
        .temporary = (uint32_t)temporary,
    };
    return vpy_trace_is_usable(self) && take_marks(self, marks, options) &&
           take_timeout(timeout, options) && take_threads(threads, options);
}

PyObject *vpy_trace_tables(PyObject *object, PyObject *args, PyObject *kw)
{
    vpy_trace *self = (vpy_trace *)object;
    PyObject *wanted = NULL, *progress = NULL, *list, *result = NULL;
    vst__table_options options = {.threads = NULL};

    if (tables_parse(args, kw, self, &options, &wanted, &progress)) {
        list =
            PySequence_Fast(wanted, "names must be a sequence of table names");
        if (list != NULL)
            result = read_tables(self, list, &options, progress);
        Py_XDECREF(list);
    }
    free((uint32_t *)(uintptr_t)options.threads);
    return result;
}

/* ---- histograms ---------------------------------------------------------- */

static bool histograms_read(PyObject *parts, vst__histogram *all)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts); i++) {
        const char *text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(parts, i));
        vst_status status;

        if (text == NULL)
            return false;
        status = vst__histogram_read(all, text);
        if (status == VST_E_NOMEM)
            PyErr_NoMemory();
        else if (status != VST_OK)
            PyErr_SetString(PyExc_ValueError, "this is not a histogram");
        if (status != VST_OK)
            return false;
    }
    return true;
}

static PyObject *histograms_quantiles(const vst__histogram *all,
                                      PyObject *shares)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(shares);
    PyObject *made = PyTuple_New(count);

    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        double share = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(shares, i));
        PyObject *value = NULL;

        if (PyErr_Occurred() == NULL && !(share >= 0 && share <= 1))
            PyErr_SetString(PyExc_ValueError, "a share must be from 0 to 1");
        if (PyErr_Occurred() == NULL)
            value = PyLong_FromLongLong(vst__histogram_quantile(all, share));
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

PyDoc_STRVAR(merge_doc,
             "merge_histograms(parts, shares)\n--\n\nMerge histograms. Return "
             "the histogram of all, and its quantiles at these shares.");

static PyObject *histograms_merge(PyObject *module, PyObject *args)
{
    PyObject *parts, *shares, *texts, *values = NULL, *made = NULL;
    char text[VST_HISTOGRAM_TEXT];
    vst__histogram all = {.count = 0};

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:merge_histograms", &parts, &shares))
        return NULL;
    texts = PySequence_Fast(parts, "histograms are a sequence");
    shares = texts != NULL
                 ? PySequence_Fast(shares, "shares are a sequence of numbers")
                 : NULL;
    if (shares != NULL && histograms_read(texts, &all))
        values = histograms_quantiles(&all, shares);
    if (values != NULL)
        made = Py_BuildValue(
            "s#N", text, (Py_ssize_t)vst__histogram_write(&all, text), values);
    vst__histogram_free(&all);
    Py_XDECREF(shares);
    Py_XDECREF(texts);
    return made;
}

static PyMethodDef functions[] = {
    {"merge_histograms", histograms_merge, METH_VARARGS, merge_doc},
    {NULL, NULL, 0, NULL},
};

int vpy_histograms_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
