/* Parses the arguments of vestige._core.Session: a file, and keywords. A
 * keyword and the field that it sets have the name of an option
 * (python/vestige/recording/option_table.py), with the unit added. Called with
 * the GIL held. */
#include "session/session.h"

#include "calls/engine.h"

/* Sets *out to the value of `name`. Returns -1 with an exception set. */
typedef int take(PyObject *value, const char *name, void *out);

static int take_flag(PyObject *value, const char *name, void *out)
{
    int is_true = PyObject_IsTrue(value);

    (void)name;
    *(bool *)out = is_true > 0;
    return is_true < 0 ? -1 : 0;
}

static int take_u64(PyObject *value, const char *name, void *out)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(value);

    (void)name;
    if (number == (unsigned long long)-1 && PyErr_Occurred() != NULL)
        return -1;
    *(uint64_t *)out = number;
    return 0;
}

static int take_u32(PyObject *value, const char *name, void *out)
{
    uint64_t number;

    if (take_u64(value, name, &number) < 0)
        return -1;
    if (number > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s is too large", name);
        return -1;
    }
    *(uint32_t *)out = (uint32_t)number;
    return 0;
}

static int take_names(PyObject *value, const char *name, void *out)
{
    PyObject *tuple;

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
                         "%s must contain only strings, not %.100s", name,
                         Py_TYPE(item)->tp_name);
            Py_DECREF(tuple);
            return -1;
        }
    }
    *(PyObject **)out = tuple;
    return 0;
}

static int take_engine(PyObject *value, const char *name, void *out)
{
    const char *wanted = PyUnicode_AsUTF8(value), *engine;

    (void)name;
    if (wanted == NULL)
        return -1;
    if (strcmp(wanted, "auto") == 0)
        return 0;
    engine = vpy_engine_name(wanted);
    if (engine == NULL) {
        PyErr_Format(PyExc_ValueError,
                     "engine '%s' is not available on Python %d.%d (see "
                     "vestige._core.engines)",
                     wanted, PY_MAJOR_VERSION, PY_MINOR_VERSION);
        return -1;
    }
    *(const char **)out = engine;
    return 0;
}

static int take_storage(PyObject *value, const char *name, void *out)
{
    static const char *const modes[] = {
        [VST_STORAGE_MAPPED] = "mapped",
        [VST_STORAGE_AUTO] = "auto",
        [VST_STORAGE_COPIED] = "copied",
    };
    const char *wanted = PyUnicode_AsUTF8(value);

    if (wanted == NULL)
        return -1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i], wanted) == 0) {
            *(vst_storage_mode *)out = (vst_storage_mode)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "%s must be auto, mapped or copied, not %R",
                 name, value);
    return -1;
}

#define FIELD(part, name, take)                                                \
    {#name, take, offsetof(vpy_session_wishes, part.name)}
#define MEMORY_FIELD(name, take)                                               \
    {"memory_" #name, take, offsetof(vpy_session_wishes, memory.name)}

static const struct field {
    const char *name;
    take *take;
    size_t at;
} fields[] = {
    FIELD(core, overwrite, take_flag),
    FIELD(core, storage, take_storage),
    FIELD(core, gc, take_flag),
    FIELD(core, memory, take_flag),
    FIELD(core, max_size, take_u64),
    FIELD(core, last_ns, take_u64),
    FIELD(core, checkpoints, take_flag),
    FIELD(core, min_duration_ns, take_u64),
    FIELD(core, sched, take_flag),
    FIELD(core, devices, take_flag),
    FIELD(core, max_depth, take_u32),
    FIELD(calls, with_stack, take_flag),
    FIELD(calls, c_functions, take_flag),
    FIELD(calls, include, take_names),
    FIELD(calls, exclude, take_names),
    FIELD(calls, record_args, take_names),
    FIELD(calls, only, take_names),
    FIELD(calls, waits, take_names),
    FIELD(calls, spins, take_flag),
    FIELD(calls, engine, take_engine),
    FIELD(calls, exceptions, take_flag),
    FIELD(calls, lines, take_flag),
    FIELD(calls, qualified_names, take_flag),
    MEMORY_FIELD(native_stacks, take_flag),
    MEMORY_FIELD(native_allocators, take_flag),
    MEMORY_FIELD(sample_bytes, take_u64),
};

static int take_keyword(PyObject *key, PyObject *value,
                        vpy_session_wishes *wishes)
{
    const char *name = PyUnicode_AsUTF8(key);

    if (name == NULL)
        return -1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            return value == Py_None
                       ? 0
                       : fields[i].take(value, name,
                                        (char *)wishes + fields[i].at);
    PyErr_Format(PyExc_TypeError, "Session() has no option %s", name);
    return -1;
}

int vpy_session_options_parse(PyObject *args, PyObject *kw,
                              vpy_session_wishes *wishes)
{
    PyObject *path = Py_None, *key, *value;
    Py_ssize_t at = 0;

    if (!PyArg_ParseTuple(args, "|O:Session", &path))
        return -1;
    vpy_session_wishes_clear(wishes);
    *wishes = (vpy_session_wishes){.core = {.gc = true,
                                            .storage = VST_STORAGE_AUTO,
                                            .copier = vpy_copier()},
                                   .calls = {.with_stack = true,
                                             .c_functions = true,
                                             .lines = true,
                                             .qualified_names = true,
                                             .spins = true,
                                             .engine = "auto"},
                                   .memory = {.native_allocators = true}};
    if (path != Py_None && !PyUnicode_FSConverter(path, &wishes->path))
        return -1;
    while (kw != NULL && PyDict_Next(kw, &at, &key, &value))
        if (take_keyword(key, value, wishes) < 0)
            return -1;
    wishes->core.only = wishes->calls.only != NULL;
    wishes->calls.sched = wishes->core.sched;
    wishes->calls.is_bounded =
        wishes->core.max_size != 0 || wishes->core.last_ns != 0;
    return 0;
}

void vpy_session_wishes_clear(vpy_session_wishes *wishes)
{
    Py_CLEAR(wishes->path);
    vpy_options_clear(&wishes->calls);
}
