/* Writes the metadata of a session into its trace. Called with the GIL held. */
#include "session/session.h"

#include "base/json.h"
#include "base/names.h"
#include "program/program.h"

#include <string.h>

static vst_status metadata_set(PyObject *session, const char *key,
                               const char *json)
{
    return vst_recording_set_metadata(
        vst_session_recording(vpy_session_handle(session)), key, json);
}

PyObject *vpy_session_set_metadata(PyObject *session, PyObject *args)
{
    PyObject *key, *json, *key_text, *json_text;
    const char *bytes;
    uint32_t length;
    vst_status status = VST_E_NOMEM;

    if (!PyArg_ParseTuple(args, "UU:set_metadata", &key, &json))
        return NULL;
    if (vpy_session_handle(session) == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "nothing was recorded yet");
        return NULL;
    }
    key_text = vpy_text(key, &bytes, &length);
    json_text = vpy_text(json, &bytes, &length);
    if (key_text != NULL && json_text != NULL)
        status = metadata_set(session, PyBytes_AS_STRING(key_text),
                              PyBytes_AS_STRING(json_text));
    Py_XDECREF(key_text);
    Py_XDECREF(json_text);
    if (status != VST_OK && !vst_session_was_cut(vpy_session_handle(session)))
        return vpy_raise(status, NULL, vpy_session_path(session));
    Py_RETURN_NONE;
}

PyObject *vpy_session_note_sources(PyObject *session, PyObject *unused)
{
    (void)unused;
    if (vpy_session_handle(session) != NULL)
        vpy_sources_note(vst_session_recording(vpy_session_handle(session)));
    Py_RETURN_NONE;
}

/* Returns multiprocessing.current_process().name: a new reference, or NULL. */
static PyObject *process_name(void)
{
    PyObject *module = vpy_loaded(VPY_NAME_PROCESSES);
    PyObject *process =
        module != NULL ? vpy_plain_attribute(module, "_current_process") : NULL;
    PyObject *name =
        process != NULL ? vpy_plain_attribute(process, "_name") : NULL;

    Py_XDECREF(process);
    Py_XDECREF(module);
    if (name != NULL && !PyUnicode_Check(name))
        Py_CLEAR(name);
    return name;
}

/* Takes pages of the stack that a short process does not need otherwise. */
static VST_NOINLINE void write_name(PyObject *session, const char *bytes,
                                    uint32_t length)
{
    vpy_json json;

    json.full = false;
    json.bytes[0] = '"';
    json.length = 1;
    vpy_json_text(&json, bytes, length);
    json.bytes[json.length++] = '"';
    json.bytes[json.length] = 0;
    if (!json.full)
        metadata_set(session, "vestige.process_name", json.bytes);
}

PyObject *vpy_session_name_process(PyObject *session, PyObject *unused)
{
    PyObject *name = process_name(), *text = NULL;
    const char *bytes = NULL;
    uint32_t length = 0;

    (void)unused;
    if (name != NULL && vpy_session_handle(session) != NULL)
        text = vpy_text(name, &bytes, &length);
    if (text != NULL && strcmp(bytes, "MainProcess") != 0)
        write_name(session, bytes, length);
    Py_XDECREF(text);
    Py_XDECREF(name);
    PyErr_Clear();
    Py_RETURN_NONE;
}
