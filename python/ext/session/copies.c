/* Recordings that are copied to slow disks (src/store/copying.h), as Python
 * sees them: where a session's records are, and local files that processes have
 * left behind. Called with the GIL held. */
#include "session/session.h"

#include "store/copying.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

static struct vpy_copies_state *const state = &vpy_sessions.copies;

/* The program lies next to the extension. */
const char *vpy_copier(void)
{
    Dl_info info;
    const char *slash;

    if (state->copier[0] != 0)
        return state->copier;
    if (dladdr((const void *)(uintptr_t)&vpy_copier, &info) == 0 ||
        info.dli_fname == NULL)
        return NULL;
    slash = strrchr(info.dli_fname, '/');
    if (slash == NULL || slash - info.dli_fname > PATH_MAX - 32)
        return NULL;
    snprintf(state->copier, sizeof state->copier, "%.*s/vestige-copier",
             (int)(slash - info.dli_fname), info.dli_fname);
    return state->copier;
}

static PyObject *decoded(const char *path)
{
    return path != NULL ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
}

PyObject *vpy_session_storage(PyObject *object, PyObject *unused)
{
    vst_session *handle = vpy_session_handle(object);
    vst_session_storage storage;

    (void)unused;
    if (handle == NULL)
        Py_RETURN_NONE;
    vst_session_get_storage(handle, &storage);
    if (!storage.is_copied)
        Py_RETURN_NONE;
    return Py_BuildValue(
        "{s:N,s:s,s:O,s:O,s:i,s:i}", "local", decoded(storage.local),
        "file_system", storage.file_system, "complete",
        storage.is_complete ? Py_True : Py_False, "freed",
        storage.is_freed ? Py_True : Py_False, "errno", storage.sys_errno,
        "copier_errno", storage.copier_errno);
}

PyObject *vpy_session_wait_storage(PyObject *object, PyObject *seconds)
{
    vst_session *handle = vpy_session_handle(object);
    double given = PyFloat_AsDouble(seconds);
    bool complete = true;

    if (PyErr_Occurred() != NULL)
        return NULL;
    if (handle != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        complete = vst_session_wait_storage(handle, (uint64_t)(given * 1e9));
        Py_END_ALLOW_THREADS;
    }
    return PyBool_FromLong(complete);
}

/* ---- local files --------------------------------------------------------- */

/* Adds the paths of a folder's files. Files that somebody else may have put
 * there are none of ours. */
static bool add_files(PyObject *list, const char *folder)
{
    DIR *files = vst__os_folder_check(folder) == 0 ? opendir(folder) : NULL;
    struct dirent *entry;
    char path[PATH_MAX];
    bool done = true;

    while (done && files != NULL && (entry = readdir(files)) != NULL) {
        int length =
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && length > 0 && length < PATH_MAX)
            done = vpy_append(list, decoded(path));
    }
    if (files != NULL)
        closedir(files);
    return done;
}

static PyObject *local_files(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    vst__os_mounts *mounts = vst__os_mounts_read(VST_OS_MOUNTS);
    char folder[PATH_MAX];

    (void)module, (void)unused;
    for (size_t i = 0; list != NULL && vst__local_folder(mounts, i, folder,
                                                         sizeof folder) != NULL;
         i++)
        if (folder[0] != 0 && !add_files(list, folder))
            Py_CLEAR(list);
    vst__os_mounts_free(mounts);
    return list;
}

static PyObject *local_copy(PyObject *module, PyObject *arg)
{
    PyObject *path;
    vst__local_look look;
    int failed;

    (void)module;
    if (!PyUnicode_FSConverter(arg, &path))
        return NULL;
    failed = vst__local_file_look(PyBytes_AS_STRING(path), &look);
    Py_DECREF(path);
    if (failed != 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(NiOOO)", decoded(look.target), look.sys_errno,
                         look.is_busy ? Py_True : Py_False,
                         look.is_finished ? Py_True : Py_False,
                         look.is_complete ? Py_True : Py_False);
}

static PyObject *copies_act(PyObject *arg, int (*act)(const char *path))
{
    PyObject *path;
    int failed;

    if (!PyUnicode_FSConverter(arg, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    failed = act(PyBytes_AS_STRING(path));
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (failed == 0)
        Py_RETURN_NONE;
    errno = failed;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *complete_copy(PyObject *module, PyObject *path)
{
    (void)module;
    return copies_act(path, vst__local_file_complete);
}

static int resume(const char *path)
{
    return vst__copying_resume(path, vpy_copier());
}

static PyObject *resume_copy(PyObject *module, PyObject *path)
{
    (void)module;
    return copies_act(path, resume);
}

PyMethodDef vpy_copies_functions[] = {
    {"local_files", local_files, METH_NOARGS,
     PyDoc_STR("local_files()\n--\n\nReturn the paths of this user's local "
               "files of recordings that are copied to slow disks. A path may "
               "occur twice.")},
    {"local_copy", local_copy, METH_O,
     PyDoc_STR("local_copy(path, /)\n--\n\nReturn (target, errno of the last "
               "failure or 0, is_busy, is_finished, is_complete) of a local "
               "file; None if the file is something else.")},
    {"complete_copy", complete_copy, METH_O,
     PyDoc_STR("complete_copy(path, /)\n--\n\nCopy what the target of a local "
               "file lacks, and remove the local file.")},
    {"resume_copy", resume_copy, METH_O,
     PyDoc_STR("resume_copy(path, /)\n--\n\nStart a process that completes the "
               "copy of a local file.")},
    {NULL, NULL, 0, NULL},
};
