/* See own_code.h.
 *
 * `python -m` runs a module through functions of runpy. The program may see
 * their frames, but did not call them: they are the runners. */
#include "base/own_code.h"

#include "base/state.h"

#include <stdlib.h>
#include <string.h>

static struct vpy_own_code_state *const state = &vpy_base.own_code;

_Thread_local bool vpy_thread_is_ours;

/* ---- the search path, as it is when recording begins --------------------- */

static void add_folder(PyObject *list, PyObject *folder)
{
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(folder, &bytes, &length);

    if (text == NULL)
        return;
    if (length > 1) {
        PyObject *entry =
            PyBytes_FromFormat(bytes[length - 1] == '/' ? "%s" : "%s/", bytes);
        if (entry != NULL)
            PyList_Append(list, entry);
        Py_XDECREF(entry);
    }
    Py_DECREF(text);
}

static PyObject *find_own_folder(void)
{
    PyObject *package = PyImport_ImportModule("vestige");
    PyObject *file =
        package != NULL ? PyObject_GetAttrString(package, "__file__") : NULL;
    PyObject *folder = NULL;
    const char *bytes;
    uint32_t length;
    PyObject *text = vpy_text(file, &bytes, &length);

    if (text != NULL) {
        const char *slash = strrchr(bytes, '/');
        if (slash != NULL)
            folder = PyBytes_FromStringAndSize(bytes, slash + 1 - bytes);
    }
    Py_XDECREF(text);
    Py_XDECREF(file);
    Py_XDECREF(package);
    return folder;
}

/* Returns whether sys.path has the items that were read last. Objects are
 * compared, because a forked child that makes objects copies pages. */
static bool path_is_known(PyObject *path)
{
    if (state->known == NULL || path == NULL || !PyList_Check(path) ||
        PyList_GET_SIZE(path) != state->known_count)
        return false;
    for (Py_ssize_t i = 0; i < state->known_count; i++)
        if (PyList_GET_ITEM(path, i) != state->known[i])
            return false;
    return true;
}

/* Keeps references to the items, unless an item may have code of the program
 * that runs when it is freed. */
static void know_path(PyObject *folders)
{
    Py_ssize_t count = folders != NULL ? PyTuple_GET_SIZE(folders) : 0;
    PyObject **known = malloc((size_t)(count + 1) * sizeof *known);

    while (state->known_count > 0)
        Py_DECREF(state->known[--state->known_count]);
    free(state->known);
    state->known = NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (known == NULL ||
            !PyUnicode_CheckExact(PyTuple_GET_ITEM(folders, i)))
            count = -1;
    for (Py_ssize_t i = 0; i < count; i++)
        known[i] = Py_NewRef(PyTuple_GET_ITEM(folders, i));
    if (count < 0) {
        free(known);
        return;
    }
    state->known = known;
    state->known_count = count;
}

bool vpy_own_code_begin(void)
{
    PyObject *path = vpy_system_object(VPY_NAME_PATH), *old;
    PyObject *folders, *made;

    if (path_is_known(path))
        return true;
    folders = path != NULL && PyList_Check(path) ? PyList_AsTuple(path) : NULL;
    made = PyList_New(0);
    if (made == NULL) {
        Py_XDECREF(folders);
        return false;
    }
    for (Py_ssize_t i = 0; folders != NULL && i < PyTuple_GET_SIZE(folders);
         i++)
        add_folder(made, PyTuple_GET_ITEM(folders, i));
    know_path(folders);
    Py_XDECREF(folders);
    if (state->own_folder == NULL)
        state->own_folder = find_own_folder();
    old = state->search_path;
    __atomic_store_n(&state->search_path, made, __ATOMIC_RELEASE);
    vpy_world_stop(); /* hooks no longer read the old list */
    vpy_world_start();
    Py_XDECREF(old);
    PyErr_Clear();
    return true;
}

uint32_t vpy_search_path_prefix(const char *file, uint32_t length)
{
    PyObject *folders = __atomic_load_n(&state->search_path, __ATOMIC_ACQUIRE);
    uint32_t best = 0;

    for (Py_ssize_t i = 0; folders != NULL && i < PyList_GET_SIZE(folders);
         i++) {
        PyObject *folder = PyList_GET_ITEM(folders, i);
        uint32_t size = (uint32_t)PyBytes_GET_SIZE(folder);
        if (size > best && size < length &&
            memcmp(file, PyBytes_AS_STRING(folder), size) == 0)
            best = size;
    }
    return best;
}

/* ---- files --------------------------------------------------------------- */

/* Returns the part of `file` below our package's folder, or NULL if the file is
 * not in that folder. */
static const char *within_own_folder(const char *file, uint32_t length)
{
    size_t size = state->own_folder != NULL
                      ? (size_t)PyBytes_GET_SIZE(state->own_folder)
                      : 0;

    if (state->own_folder == NULL || length <= size ||
        memcmp(file, PyBytes_AS_STRING(state->own_folder), size) != 0)
        return NULL;
    return file + size;
}

static bool own_code_begins_with(const char *part, size_t length,
                                 const char *beginning)
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
    size_t left = part != NULL ? length - (size_t)(part - file) : 0;

    return part != NULL && (own_code_begins_with(part, left, "cli/") ||
                            own_code_begins_with(part, left, "startup/"));
}

/* ---- code objects -------------------------------------------------------- */

bool vpy_code_is_runner(PyObject *code)
{
    size_t count = __atomic_load_n(&state->runners_count, __ATOMIC_ACQUIRE);

    for (size_t i = 0; i < count; i++)
        if (state->runners[i] == code)
            return true;
    return false;
}

static bool has_file(PyObject *code, bool (*is)(const char *, uint32_t))
{
    const char *file;
    uint32_t length;
    PyObject *text =
        vpy_text(((PyCodeObject *)code)->co_filename, &file, &length);
    bool result = text != NULL && is(file, length);

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

static PyObject *leave_out(PyObject *module, PyObject *code)
{
    (void)module;
    if (!PyCode_Check(code) || state->runners_count == VPY_RUNNERS_MAX) {
        PyErr_SetString(PyExc_ValueError, "leave_out: not a code object, or "
                                          "too many code objects");
        return NULL;
    }
    state->runners[state->runners_count] = Py_NewRef(code);
    __atomic_store_n(&state->runners_count, state->runners_count + 1,
                     __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

PyMethodDef vpy_own_code_functions[] = {
    {"leave_out", leave_out, METH_O,
     PyDoc_STR("leave_out(code)\n--\n\nDo not record calls of this code: it "
               "only runs the program.")},
    {NULL, NULL, 0, NULL},
};
