/* The arguments of vestige._core.Session. With the GIL held. */
#include "session/session.h"

#include "calls/engine.h"

/* A tuple of str from what the caller gave for `name`; *out stays NULL for
 * None. */
static int take_names(PyObject *value, const char *name, PyObject **out)
{
    PyObject *tuple;

    if (value == NULL || value == Py_None)
        return 0;
    if (PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError,
                     "%s must be a list of strings, not a string", name);
        return -1;
    }
    tuple = PySequence_Tuple(value);
    if (tuple == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        if (!PyUnicode_Check(item)) {
            PyErr_Format(PyExc_TypeError,
                         "%s must be a list of strings, not of %.100s", name,
                         Py_TYPE(item)->tp_name);
            Py_DECREF(tuple);
            return -1;
        }
    }
    Py_XSETREF(*out, tuple);
    return 0;
}

static int take_engine(const char *wanted, const char **engine)
{
    *engine = wanted != NULL && strcmp(wanted, "auto") != 0
                  ? vpy_engine_name(wanted)
                  : "auto";
    if (*engine != NULL)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "engine '%s' is not available on Python %d.%d (see "
                 "vestige._core.engines)",
                 wanted, PY_MAJOR_VERSION, PY_MINOR_VERSION);
    return -1;
}

static char *names[] = {"path",
                        "overwrite",
                        "gc",
                        "engine",
                        "native",
                        "python",
                        "include",
                        "exclude",
                        "log_args",
                        "max_size",
                        "keep_ns",
                        "checkpoints",
                        "memory",
                        "memory_native_stacks",
                        "memory_native_allocators",
                        "memory_sample_bytes",
                        "min_duration_ns",
                        "qualified_names",
                        "switches",
                        "max_depth",
                        "only",
                        "exceptions",
                        "devices",
                        NULL};

int vpy_session_options_parse(PyObject *args, PyObject *kw,
                              vpy_session_wishes *wishes)
{
    PyObject *path = Py_None, *include = NULL, *exclude = NULL, *log = NULL;
    PyObject *only = NULL;
    int overwrite = 0, gc = 1, native = 1, python = 1, checkpoints = 0;
    int memory = 0, native_stacks = 0, native_allocators = 1, qualified = 1;
    int switches = 0, exceptions = 0, devices = 0;
    unsigned int max_depth = 0;
    unsigned long long max_size = 0, keep_ns = 0, sample = 0, min_duration = 0;
    const char *engine = NULL;

    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "|O$ppzppOOOKKppppKKppIOpp:Session", names, &path,
            &overwrite, &gc, &engine, &native, &python, &include, &exclude,
            &log, &max_size, &keep_ns, &checkpoints, &memory, &native_stacks,
            &native_allocators, &sample, &min_duration, &qualified, &switches,
            &max_depth, &only, &exceptions, &devices))
        return -1;
    if (take_engine(engine, &wishes->calls.engine) < 0 ||
        (path != Py_None && !PyUnicode_FSConverter(path, &wishes->path)) ||
        take_names(include, "include", &wishes->calls.include) < 0 ||
        take_names(exclude, "exclude", &wishes->calls.exclude) < 0 ||
        take_names(log, "log_args", &wishes->calls.log_args) < 0 ||
        take_names(only, "only", &wishes->calls.only) < 0)
        return -1;
    wishes->core = (vst_session_options){.overwrite = overwrite,
                                         .gc = gc,
                                         .memory = memory,
                                         .max_size = max_size,
                                         .keep_ns = keep_ns,
                                         .checkpoints = checkpoints,
                                         .min_duration_ns = min_duration,
                                         .switches = switches,
                                         .devices = devices,
                                         .max_depth = max_depth,
                                         .only = wishes->calls.only != NULL};
    wishes->calls.is_bounded = max_size != 0 || keep_ns != 0;
    wishes->calls.gil = switches;
    wishes->calls.native = native;
    wishes->calls.python = python;
    wishes->calls.short_names = !qualified;
    wishes->calls.exceptions = exceptions;
    wishes->memory.native_stacks = native_stacks;
    wishes->memory.native_allocators = native_allocators;
    wishes->memory.sample_bytes = sample;
    return 0;
}

void vpy_session_wishes_clear(vpy_session_wishes *wishes)
{
    Py_CLEAR(wishes->path);
    vpy_options_clear(&wishes->calls);
}
