/* Ids of Python functions. A code object carries its id in its extra slot,
 * where it dies with it: addresses are reused, and holding on to code would
 * leak. The slot's upper half names the tracer the id was given for, so a new
 * recording starts over without visiting any code object. */
#include "thunks/thunks.h"

#include <fnmatch.h>
#include <string.h>

Py_ssize_t vpy_code_extra_index = -1;
uint32_t vpy_generation;
PyObject *vpy_last_caller;

static vpy_tracer *tracer;    /* whose ids are being given */
static PyObject *search_path; /* list of bytes, each ending in "/" */
static PyObject *own_folder;  /* bytes: the vestige package */

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

PyObject *vpy_text(PyObject *str, const char **bytes, uint32_t *length)
{
    PyObject *encoded = NULL;

    if (str && PyUnicode_Check(str))
        encoded = PyUnicode_AsEncodedString(str, "utf-8", "surrogateescape");
    if (!encoded) {
        PyErr_Clear();
        /* Lone surrogates that stand for no byte. */
        if (str && PyUnicode_Check(str))
            encoded = PyUnicode_AsEncodedString(str, "utf-8", "replace");
        if (!encoded) {
            PyErr_Clear();
            return NULL;
        }
    }
    *bytes = PyBytes_AS_STRING(encoded);
    *length = (uint32_t)PyBytes_GET_SIZE(encoded);
    return encoded;
}

/* ---- the search path, as it is when recording begins ------------------- */

static void add_folder(PyObject *list, PyObject *folder)
{
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(folder, &bytes, &length);

    if (!text)
        return;
    if (length > 1) {
        PyObject *entry =
            PyBytes_FromFormat(bytes[length - 1] == '/' ? "%s" : "%s/", bytes);
        if (entry)
            PyList_Append(list, entry);
        Py_XDECREF(entry);
    }
    Py_DECREF(text);
}

bool vpy_code_ids_begin(vpy_tracer *for_tracer)
{
    PyObject *path = PySys_GetObject("path");

    tracer = for_tracer;
    vpy_last_caller = NULL;
    vpy_generation++;
    if (vpy_generation == 0)
        vpy_generation = 1;
    Py_XSETREF(search_path, PyList_New(0));
    if (!search_path)
        return false;
    if (path && PyList_Check(path))
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(path); i++)
            add_folder(search_path, PyList_GET_ITEM(path, i));
    if (!own_folder) {
        PyObject *package = PyImport_ImportModule("vestige");
        PyObject *file =
            package ? PyObject_GetAttrString(package, "__file__") : NULL;
        const char *bytes;
        uint32_t length;
        PyObject *text = vpy_text(file, &bytes, &length);
        if (text) {
            const char *slash = strrchr(bytes, '/');
            if (slash)
                own_folder =
                    PyBytes_FromStringAndSize(bytes, slash + 1 - bytes);
        }
        Py_XDECREF(text);
        Py_XDECREF(file);
        Py_XDECREF(package);
    }
    PyErr_Clear();
    return true;
}

void vpy_code_ids_end(void)
{
    tracer = NULL;
    vpy_last_caller = NULL;
}

uint32_t vpy_search_path_prefix(const char *file, uint32_t length)
{
    uint32_t best = 0;

    for (Py_ssize_t i = 0; search_path && i < PyList_GET_SIZE(search_path);
         i++) {
        PyObject *folder = PyList_GET_ITEM(search_path, i);
        uint32_t size = (uint32_t)PyBytes_GET_SIZE(folder);
        if (size > best && size < length &&
            memcmp(file, PyBytes_AS_STRING(folder), size) == 0)
            best = size;
    }
    return best;
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

/* The part of file within our package, NULL if it is not there. */
static const char *within_own_folder(const char *file, uint32_t length)
{
    size_t size = own_folder ? (size_t)PyBytes_GET_SIZE(own_folder) : 0;

    if (!own_folder || length <= size ||
        memcmp(file, PyBytes_AS_STRING(own_folder), size) != 0)
        return NULL;
    return file + size;
}

static bool begins_with(const char *part, size_t length, const char *beginning)
{
    size_t size = strlen(beginning);

    return length >= size && memcmp(part, beginning, size) == 0;
}

bool vpy_file_is_own(const char *file, uint32_t length)
{
    return within_own_folder(file, length) != NULL;
}

bool vpy_file_is_launcher(const char *file, uint32_t length)
{
    const char *part = within_own_folder(file, length);
    size_t left = part ? length - (size_t)(part - file) : 0;

    return part && (begins_with(part, left, "cli/") ||
                    begins_with(part, left, "startup/"));
}

static bool has_file(PyObject *code, bool (*is)(const char *, uint32_t))
{
    const char *file;
    uint32_t length;
    PyObject *text =
        vpy_text(((PyCodeObject *)code)->co_filename, &file, &length);
    bool result = text && is(file, length);

    Py_XDECREF(text);
    return result;
}

bool vpy_code_is_launcher(PyObject *code)
{
    return has_file(code, vpy_file_is_launcher);
}

bool vpy_code_is_own(PyObject *code)
{
    return vpy_code_is_runner(code) || has_file(code, vpy_file_is_own);
}

static bool is_wanted(const char *file, uint32_t length)
{
    if (!tracer->options.python || within_own_folder(file, length))
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

/* Where a thread learns what it is called. */
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
