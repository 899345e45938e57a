/* Writes the call stack of an annotation as torch does: "file(line): function;"
 * for each frame, innermost first. The text of a stack is made once and kept
 * until recording stops. */
#include "annotate/annotate.h"

#include "base/json.h"
#include "base/own_code.h"
#include "traceback/traceback.h"

#include <stdio.h>
#include <string.h>

static struct vpy_call_stack_state *const state = &vpy_annotate.call_stack;

enum {
    TEXT_MAX = 6000, /* bytes, escaped: outer frames that do not fit are cut */
    KEPT_MAX = 4096, /* stacks */
};

static bool call_stack_put_frame(vpy_json *json, PyCodeObject *code, int line)
{
    size_t before = json->length;
    const char *file = "?", *name = "?";
    uint32_t file_length = 1, name_length = 1, prefix;
    PyObject *file_text = vpy_text(code->co_filename, &file, &file_length);
    PyObject *name_text = vpy_text(code->co_name, &name, &name_length);
    char number[32];

    prefix = vpy_search_path_prefix(file, file_length);
    snprintf(number, sizeof number, "(%d): ", line < 0 ? 0 : line);
    vpy_json_text(json, file + prefix, file_length - prefix);
    vpy_json_text(json, number, strlen(number));
    vpy_json_text(json, name, name_length);
    vpy_json_text(json, ";", 1);
    Py_XDECREF(file_text);
    Py_XDECREF(name_text);
    if (!json->full && json->length <= TEXT_MAX)
        return true;
    json->full = false;
    json->length = before;
    vpy_json_text(json, "...;", 4);
    return false;
}

/* Leaves out vestige's own frames: those that made the annotation, and those of
 * the command that runs the program. */
static PyObject *call_stack_make_text(const vst_traceback *traceback)
{
    vst_language_frames frames = vst_traceback_language(traceback);
    vpy_json json = {.length = 0};

    for (size_t i = 0; i < frames.count; i++) {
        uint32_t word = frames.instructions[i];
        PyCodeObject *code = frames.codes[i];
        int number = (int)(word & VPY_FRAME_INSTRUCTION) - 1;
        if (vpy_code_is_launcher((PyObject *)code))
            break;
        if ((word & VPY_FRAME_HIDDEN) || vpy_code_is_own((PyObject *)code))
            continue;
        if (!call_stack_put_frame(&json, code,
                                  vpy_code_location(code, number).line))
            break;
    }
    return PyBytes_FromStringAndSize(json.bytes, (Py_ssize_t)json.length);
}

/* Returns a stack's text: a new reference, or NULL without an exception. */
static PyObject *find_text(vst_traceback *handle)
{
    PyObject *traceback = vpy_traceback_object(handle);
    PyObject *text = NULL, *texts;

    vpy_state_take();
    if (state->kept == NULL)
        state->kept = PyDict_New();
    texts = Py_XNewRef(state->kept);
    vpy_state_give();
    if (traceback != NULL && texts != NULL)
        text = vpy_dict_get(texts, traceback);
    if (text == NULL && traceback != NULL && texts != NULL) {
        text = call_stack_make_text(((vpy_traceback *)traceback)->handle);
        if (PyDict_Size(texts) >= KEPT_MAX)
            PyDict_Clear(texts);
        if (text != NULL)
            PyDict_SetItem(texts, traceback, text);
    }
    PyErr_Clear();
    Py_XDECREF(texts);
    Py_XDECREF(traceback);
    return text;
}

void vpy_call_stack_put(vpy_json *json)
{
    vst_traceback *handle = vst_traceback_capture(VST_TRACEBACK_LANGUAGE, 0);
    PyObject *text = handle != NULL ? find_text(handle) : NULL;

    if (text != NULL) {
        vpy_json_key(json, "Call stack", 10);
        vpy_json_ready(json, PyBytes_AS_STRING(text),
                       (size_t)PyBytes_GET_SIZE(text));
        Py_DECREF(text);
    }
}

void vpy_call_stacks_forget(void)
{
    PyObject *forgotten;

    vpy_state_take();
    forgotten = state->kept;
    state->kept = NULL;
    vpy_state_give();
    Py_XDECREF(forgotten);
}
