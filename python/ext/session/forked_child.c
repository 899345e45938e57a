/* Lets a forked child go on with its parent's session, in a file of its own.
 * Most children are short, and each object and each page of code that a child
 * touches costs a page fault. So no Python code runs here: the parent has
 * prepared a plan of what the child writes. The child's Python code learns of
 * the recording later, when it is used (forks.c).
 *
 * Only the thread that forked runs, with the GIL. */
#include "session/session.h"

#include "base/names.h"
#include "base/short_text.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
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

/* Writes PARENT's text for this process. */
static void write_variable(void)
{
    vst__short_text text =
        vst__short_text_in(state->variable, sizeof state->variable);

    vst__put_word(&text, PARENT);
    vst__put_word(&text, "=");
    vst__put_number(&text, getpid());
    vst__put_word(&text, " ");
    vst__put_word(&text, state->trace);
}

/* Takes the key that os.environ's dictionary has for PARENT, which a child then
 * finds without comparing bytes, and puts our own text into the environment,
 * which setenv would copy. Returns false if PARENT is not set. */
static bool find_variable(void)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    Py_CLEAR(state->variable_name);
    while (state->variable_name == NULL &&
           PyDict_Next(state->environment, &at, &key, &value))
        if (PyBytes_CheckExact(key) &&
            strcmp(PyBytes_AS_STRING(key), PARENT) == 0)
            state->variable_name = Py_NewRef(key);
    write_variable();
    return state->variable_name != NULL && putenv(state->variable) == 0;
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
    if (!find_variable())
        Py_CLEAR(state->facts);
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
    return state->expect != Py_None ? state->expect : NULL;
}

/* ---- the beginning of the recording -------------------------------------- */

/* Returns the name of the file: bytes, or NULL. */
static PyObject *name_file(int number)
{
    char end[64];
    vst__short_text text = vst__short_text_in(end, sizeof end);
    size_t length = strlen(state->stem);
    PyObject *path;

    vst__put_word(&text, ".");
    vst__put_number(&text, getpid());
    if (number != 0) {
        vst__put_word(&text, ".");
        vst__put_number(&text, number);
    }
    vst__put_word(&text, ".vst");
    path = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(length + strlen(end)));
    if (path != NULL) {
        memcpy(PyBytes_AS_STRING(path), state->stem, length);
        memcpy(PyBytes_AS_STRING(path) + length, end, strlen(end));
    }
    return path;
}

/* Tries numbered names: this process may have made recordings before, or the
 * system may have used its number before. */
static PyObject *make_file(PyObject *session)
{
    for (int number = 0; number < NAMES_MAX; number++) {
        PyObject *path = name_file(number);
        vst_status status = VST_E_NOMEM;

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
    char json[160];
    vst__short_text text = vst__short_text_in(json, sizeof json);

    for (Py_ssize_t i = 0; i + 1 < PyList_GET_SIZE(state->facts); i += 2)
        vst_recording_set_metadata(
            recording, PyBytes_AS_STRING(PyList_GET_ITEM(state->facts, i)),
            PyBytes_AS_STRING(PyList_GET_ITEM(state->facts, i + 1)));
    vst__put_word(&text, "{\"pid\": ");
    vst__put_number(&text, origin->pid);
    vst__put_word(&text, ", \"tid\": ");
    if (origin->tid)
        vst__put_number(&text, origin->tid);
    else
        vst__put_word(&text, "null");
    vst__put_word(&text, ", \"time_ns\": ");
    vst__put_number(&text, origin->time_ns);
    vst__put_word(&text, ", \"how\": \"fork\"}");
    vst_recording_set_metadata(recording, "vestige.parent", json);
}

/* Changes the value in os.environ's dictionary. An object that only the
 * dictionary refers to is changed itself: a new object would copy pages. */
static void set_item(const char *text)
{
    PyObject *value =
        PyDict_GetItemWithError(state->environment, state->variable_name);
    size_t length = strlen(text);

    if (!VPY_FREE_THREADED && value != NULL && PyBytes_CheckExact(value) &&
        Py_REFCNT(value) == 1 && (size_t)PyBytes_GET_SIZE(value) == length) {
        vpy_bytes_change(value, text);
        return;
    }
    value = PyBytes_FromStringAndSize(text, (Py_ssize_t)length);
    if (value != NULL)
        PyDict_SetItem(state->environment, state->variable_name, value);
    Py_XDECREF(value);
}

/* Names this process as the parent in the environment, for Pythons that it
 * starts. The environment has the address of the text. */
static void name_parent(void)
{
    write_variable();
    set_item(state->variable + sizeof PARENT);
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
    vst__short_text text = vst__short_text_in(json, sizeof json);

    vst__put_word(&text, "{\"by\": \"os._exit\", \"code\": ");
    vst__put_number(&text, code & 0xFF);
    vst__put_word(&text, "}");
    vst_recording_set_metadata(recording, "vestige.exit", json);
    Py_XDECREF(vpy_session_name_process(session, NULL));
    vpy_sources_note(recording);
    Py_XDECREF(vpy_session_finish(session, NULL));
    PyErr_Clear();
}
