/* Lets a forked child go on with its parent's session, in a file of its own.
 * Most children are short, and each object and each page of code that a child
 * touches costs a page fault. So no Python code runs here: the parent has
 * prepared a plan of what the child writes. The child's Python code learns of
 * the recording later, when it is used (forks.c).
 *
 * Only the thread that forked runs, with the GIL. */
#include "session/session.h"

#include "program/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct vpy_forked_child_state *const state = &vpy_sessions.child;

enum { NAMES_MAX = 10000 }; /* as in base/child_files.py */

static const char PARENT[] = "VESTIGE_PARENT";

static bool child_add(PyObject *list, PyObject *str)
{
    const char *bytes;
    uint32_t length;

    return vpy_append(list, vpy_text(str, &bytes, &length));
}

static PyObject *read_facts(PyObject *texts)
{
    PyObject *list = PyList_New(0), *key, *value;
    Py_ssize_t at = 0;

    while (list != NULL && PyDict_Next(texts, &at, &key, &value))
        if (!child_add(list, key) || !child_add(list, value))
            Py_CLEAR(list);
    return list;
}

int vpy_child_plan_set(PyObject *made)
{
    PyObject *texts;

    Py_CLEAR(state->plan);
    Py_CLEAR(state->facts);
    if (made == Py_None)
        return 0;
    if (!PyArg_ParseTuple(made, "yyO!O!O:plan", &state->stem, &state->trace,
                          &PyDict_Type, &state->environment, &PyDict_Type,
                          &texts, &state->expect))
        return -1;
    state->facts = read_facts(texts);
    if (state->facts != NULL)
        state->plan = Py_NewRef(made);
    PyErr_Clear();
    return 0;
}

/* A child that sets one of these variables does not follow the plan, since a
 * profile reads them in each process. */
bool vpy_child_has_plan(void)
{
    static const char *const ranks[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE"};

    for (size_t i = 0; state->plan != NULL && i < sizeof ranks / sizeof *ranks;
         i++)
        if (getenv(ranks[i]) != NULL)
            return false;
    return state->plan != NULL;
}

PyObject *vpy_child_expects(void)
{
    PyObject *module = vpy_loaded_module("multiprocessing.util");

    Py_XDECREF(module);
    return module != NULL && state->expect != Py_None ? state->expect : NULL;
}

/* ---- the beginning of the recording -------------------------------------- */

/* Tries numbered names: this process may have made recordings before, or the
 * system may have used its number before. */
static PyObject *make_file(PyObject *session)
{
    for (int number = 0; number < NAMES_MAX; number++) {
        char more[16] = "";
        PyObject *path;
        vst_status status = VST_E_NOMEM;

        if (number)
            snprintf(more, sizeof more, ".%d", number);
        path = PyBytes_FromFormat("%s.%ld%s.vst", state->stem, (long)getpid(),
                                  more);
        if (path != NULL)
            status = vpy_session_renew(session, path);
        if (status == VST_OK)
            return path;
        Py_XDECREF(path);
        if (status != VST_E_EXISTS)
            return NULL;
    }
    return NULL;
}

static void write_facts(vst_recording *recording, const vpy_origin *origin)
{
    char json[160], tid[24] = "null";

    for (Py_ssize_t i = 0; i + 1 < PyList_GET_SIZE(state->facts); i += 2)
        vst_recording_set_metadata(
            recording, PyBytes_AS_STRING(PyList_GET_ITEM(state->facts, i)),
            PyBytes_AS_STRING(PyList_GET_ITEM(state->facts, i + 1)));
    if (origin->tid)
        snprintf(tid, sizeof tid, "%ld", origin->tid);
    snprintf(json, sizeof json,
             "{\"pid\": %ld, \"tid\": %s, \"time_ns\": %lld, \"how\": "
             "\"fork\"}",
             origin->pid, tid, origin->time_ns);
    vst_recording_set_metadata(recording, "vestige.parent", json);
}

/* Names this process as the parent in the environment, for Pythons that it
 * starts. */
static void name_parent(void)
{
    char text[128];
    PyObject *key, *value;

    snprintf(text, sizeof text, "%ld %s", (long)getpid(), state->trace);
    setenv(PARENT, text, true);
    key = PyBytes_FromString(PARENT);
    value = PyBytes_FromString(text);
    if (key != NULL && value != NULL)
        PyDict_SetItem(state->environment, key, value);
    Py_XDECREF(key);
    Py_XDECREF(value);
}

PyObject *vpy_child_go_on(PyObject *session, const vpy_origin *origin)
{
    PyObject *path = make_file(session), *started = NULL;

    if (path != NULL) {
        name_parent();
        started = vpy_session_start(session, NULL);
    }
    if (started != NULL) {
        write_facts(vst_session_recording(vpy_session_handle(session)), origin);
        Py_DECREF(started);
    } else if (path != NULL) {
        unlink(PyBytes_AS_STRING(path));
        Py_CLEAR(path);
    }
    PyErr_Clear();
    return path;
}

/* ---- the end of the recording -------------------------------------------- */

void vpy_child_leave(PyObject *session, int code)
{
    vst_recording *recording =
        vst_session_recording(vpy_session_handle(session));
    char json[64];

    snprintf(json, sizeof json, "{\"by\": \"os._exit\", \"code\": %d}",
             code & 0xFF);
    vst_recording_set_metadata(recording, "vestige.exit", json);
    Py_XDECREF(vpy_session_name_process(session, NULL));
    vpy_sources_note(recording);
    Py_XDECREF(vpy_session_finish(session, NULL));
    PyErr_Clear();
}
