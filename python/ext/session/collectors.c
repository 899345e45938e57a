/* Registers collectors of device activities: the one for CUDA that is built in,
 * and those in libraries that the user names. Called with the GIL held; loading
 * a library runs its code. */
#include "session/session.h"

#include <dlfcn.h>

#include <vestige/api.h>

#include "cupti/cupti.h"

/* Returns the strings of a tuple of bytes, ending with NULL, which are valid as
 * long as the tuple. Free the array with PyMem_Free. Returns NULL with an
 * exception set on failure. */
static const char **texts_of(PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    const char **texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);

    if (texts == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts != NULL && i < count; i++) {
        texts[i] = PyBytes_AsString(PyTuple_GET_ITEM(tuple, i));
        if (texts[i] == NULL) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *collect_cuda(PyObject *module, PyObject *args)
{
    PyObject *paths;
    const char **texts, *named, *trouble;

    (void)module;
    if (!PyArg_ParseTuple(args, "zO!:collect_cuda", &named, &PyTuple_Type,
                          &paths))
        return NULL;
    texts = texts_of(paths);
    if (texts == NULL)
        return NULL;
    vpy_control_take();
    trouble = vst_cupti_register(named, texts);
    vpy_control_give();
    PyMem_Free(texts);
    return PyUnicode_FromString(trouble != NULL ? trouble : "");
}

/* Accepts only an absolute path, as the loader would search for a name
 * elsewhere. */
static PyObject *load_collector(PyObject *module, PyObject *path)
{
    PyObject *bytes;
    vst_collector_load_fn load = NULL;
    const char *error;
    void *library;
    vst_status status;

    (void)module;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    if (PyBytes_AS_STRING(bytes)[0] != '/') {
        Py_DECREF(bytes);
        PyErr_SetString(PyExc_ValueError, "the path must be absolute");
        return NULL;
    }
    library = dlopen(PyBytes_AS_STRING(bytes), RTLD_NOW | RTLD_LOCAL);
    Py_DECREF(bytes);
    if (library != NULL)
        *(void **)(void *)&load = dlsym(library, VST_COLLECTOR_LOAD);
    if (load == NULL) {
        error = dlerror();
        PyErr_SetString(PyExc_OSError, error != NULL
                                           ? error
                                           : "the library could not be loaded");
        return NULL;
    }
    status = load(vpy_sessions.collectors.table);
    if (status != VST_OK) {
        PyErr_Format(PyExc_OSError,
                     "the library's collector is not registered: %s",
                     vst_status_string(status));
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- the collectors of a session ----------------------------------------- */

/* Releases the GIL: a device's library may call back on a thread that waits for
 * the GIL. */
void vpy_collectors_stop(vst_session *session)
{
    if (session == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS;
    vst_session_stop_devices(session);
    Py_END_ALLOW_THREADS;
}

PyObject *vpy_collector_notes(vst_session *session)
{
    PyObject *lines = PyList_New(0);
    char line[320];

    while (lines != NULL && session != NULL &&
           vst_session_next_note(session, line, sizeof line)) {
        PyObject *text = PyUnicode_FromFormat("vestige: %s", line);

        if (text == NULL || PyList_Append(lines, text) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(text);
    }
    return lines;
}

/* ---- functions of the module --------------------------------------------- */

static PyMethodDef functions[] = {
    {"collect_cuda", collect_cuda, METH_VARARGS,
     PyDoc_STR("collect_cuda(named, paths)\n--\n\nRegister the collector of "
               "CUDA's devices. Returns why that is not possible, or \"\".")},
    {"load_collector", load_collector, METH_O,
     PyDoc_STR("load_collector(path)\n--\n\nLoad a library, which registers "
               "a collector of device activities.")},
    {NULL, NULL, 0, NULL},
};

int vpy_collectors_init(PyObject *module, const vst_api *api)
{
    vpy_sessions.collectors.table = api;
    return PyModule_AddFunctions(module, functions);
}
