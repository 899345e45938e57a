/* Ids of Python functions. A code object carries its id in its extra slot, so
 * the id goes when the code object is freed: a table by address would mistake a
 * new code object for an old one, and references would keep code alive. The
 * upper half of the slot says for which recording the id was given, so a new
 * recording starts without visiting any code object. */
#include "calls/ids.h"

#include "base/own_code.h"
#include "program/program.h"
#include "program/triggers.h"
#include "thunks/thunks.h"

#include <fnmatch.h>
#include <string.h>

Py_ssize_t vpy_code_extra_index = -1;
uint32_t vpy_generation;
PyObject *vpy_last_caller;

static vpy_tracer *tracer; /* the one that gives ids, NULL: none */

int vpy_code_ids_init(void)
{
    if (vpy_code_extra_index < 0)
        vpy_code_extra_index = vpy_code_request_extra(NULL);
    if (vpy_code_extra_index < 0) {
        PyErr_SetString(PyExc_ImportError,
                        "no free slot for code ids: too many tools use "
                        "code objects' extra data");
        return -1;
    }
    return 0;
}

bool vpy_code_ids_begin(vpy_tracer *for_tracer)
{
    tracer = for_tracer;
    vpy_last_caller = NULL;
    vpy_generation++;
    if (vpy_generation == 0)
        vpy_generation = 1;
    return vpy_own_code_begin();
}

void vpy_code_ids_end(void)
{
    tracer = NULL;
    vpy_last_caller = NULL;
}

/* ---- which functions are recorded -------------------------------------- */

/* A pattern matches a whole file name, or if it has no slash its last part. */
static bool matches_any(PyObject *patterns, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(patterns); i++) {
        const char *pattern = PyUnicode_AsUTF8(PyTuple_GET_ITEM(patterns, i));
        if (!pattern) {
            PyErr_Clear();
            continue;
        }
        if (fnmatch(pattern, file, 0) == 0 ||
            (!strchr(pattern, '/') && fnmatch(pattern, base, 0) == 0))
            return true;
    }
    return false;
}

static bool is_wanted(const char *file, uint32_t length)
{
    if (!tracer->options.python || vpy_file_is_own(file, length))
        return false;
    if (tracer->options.include && !matches_any(tracer->options.include, file))
        return false;
    return !tracer->options.exclude ||
           !matches_any(tracer->options.exclude, file);
}

/* "f" and "C.f" name the function by the end of its qualified name. */
static bool wants_args(PyObject *qualname)
{
    PyObject *names = tracer->options.log_args;
    const char *full = names ? PyUnicode_AsUTF8(qualname) : NULL;

    if (!full) {
        PyErr_Clear();
        return false;
    }
    size_t full_length = strlen(full);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        size_t length = name ? strlen(name) : 0;
        if (!name)
            PyErr_Clear();
        else if (length <= full_length &&
                 strcmp(full + full_length - length, name) == 0 &&
                 (length == full_length ||
                  full[full_length - length - 1] == '.'))
            return true;
    }
    return false;
}

/* The function of threading in which a thread gets its name. */
static bool starts_thread(const char *file, uint32_t length, PyObject *name)
{
    static const char module[] = "/threading.py";
    size_t size = sizeof module - 1;

    return length > size && memcmp(file + length - size, module, size) == 0 &&
           PyUnicode_CompareWithASCIIString(name, "_bootstrap_inner") == 0;
}

/* ---- giving an id ------------------------------------------------------ */

static uint32_t define(PyCodeObject *code)
{
    vst_definition definition = {
        .kind = VST_DEF_PYTHON,
        .line = code->co_firstlineno,
    };
    uint32_t value = 0;
    PyObject *name = vpy_text(vpy_code_qualname(code), &definition.name,
                              &definition.name_len);
    PyObject *file =
        vpy_text(code->co_filename, &definition.file, &definition.file_len);

    if (name && file && is_wanted(definition.file, definition.file_len) &&
        !vpy_code_is_runner((PyObject *)code)) {
        vst_id id;
        definition.file_skip =
            vpy_search_path_prefix(definition.file, definition.file_len);
        if (vst_recording_define_id(tracer->recording, &definition, &id) ==
            VST_OK)
            value = id;
        if (value &&
            (wants_args(vpy_code_qualname(code)) ||
             starts_thread(definition.file, definition.file_len,
                           code->co_name) ||
             vpy_imports_framework(definition.file, definition.file_len,
                                   code->co_name) ||
             vpy_is_framework_code((PyObject *)code)))
            value |= VPY_SPECIAL;
        if (value &&
            vpy_triggers_watch(vpy_code_qualname(code), definition.file,
                               definition.file_len, VPY_ID(value)))
            value |= VPY_TIMED;
    }
    Py_XDECREF(name);
    Py_XDECREF(file);
    return value;
}

uint32_t vpy_code_define(PyObject *code)
{
    PyObject *type, *value, *traceback;

    vpy_last_caller = NULL;
    if (!tracer)
        return 0;
    PyErr_Fetch(&type, &value, &traceback);
    uint32_t result = define((PyCodeObject *)code);
    uintptr_t extra = (uintptr_t)vpy_generation << 32 | result;
    if (vpy_code_set_extra(code, vpy_code_extra_index, (void *)extra) < 0)
        PyErr_Clear();
    vpy_greenlets_look();
    vpy_thunks_look();
    PyErr_Restore(type, value, traceback);
    return result;
}
