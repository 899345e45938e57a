/* See exceptions.h. The interpreter reports an exception again in every
 * function that it reaches. The exception was raised in that function, unless
 * the traceback shows that it came from the function that an exception left
 * last, or that a frame that still runs had it before: a handler that raises it
 * again, or contextlib, which throws it into a generator. */
#include "program/exceptions.h"

#include "base/own_code.h"
#include "calls/engine.h"
#include "calls/ids.h"
#include "calls/turbo_frames.h"
#include "program/program.h"
#include "record/language.h"

#include <stdio.h>
#include <string.h>

static struct vpy_exceptions_state *const state = &vpy_program.exceptions;

/* Addresses, which are compared but not followed. The frame belongs to a
 * traceback as long as the exception lives, and a new frame is compared only
 * with frames of the same exception. */
static _Thread_local const void *left_last, *marked_last;
static _Thread_local const void *marked_entry, *marked_code;
static _Thread_local vst_record_place left_at;

void vpy_exceptions_begin(vpy_tracer *for_tracer)
{
    state->are_wanted = for_tracer->options.exceptions;
    state->are_known_late =
        !vpy_frames_see_raises && state->are_wanted &&
        vpy_engine_choose(&for_tracer->options) == &vpy_engine_turbo;
}

void vpy_exceptions_end(void)
{
    state->are_wanted = state->are_known_late = false;
}

/* ---- is the exception new? ----------------------------------------------- */

enum { LOOK_BACK = 32 }; /* frames; contextlib has two */

static bool is_running(const PyFrameObject *wanted)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    bool found = false;

    for (int i = 0; frame != NULL && !found && i < LOOK_BACK; i++) {
        PyFrameObject *back = PyFrame_GetBack(frame);

        found = frame == wanted;
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return found;
}

/* Returns whether the exception has left a recorded function, and so was seen
 * there. */
static bool has_left(const PyTracebackObject *entry)
{
    while (entry != NULL &&
           vpy_code_value(vpy_frame_code(entry->tb_frame)) == 0)
        entry = entry->tb_next;
    return entry != NULL;
}

/* Returns whether the exception is the one that was marked last: its traceback
 * has the entry that was marked. Another exception, or an entry of another
 * function, may have the address by now. */
static bool was_marked(const PyObject *error, const PyTracebackObject *entry)
{
    if (error != marked_last)
        return false;
    while (entry != NULL && entry != marked_entry)
        entry = entry->tb_next;
    return entry != NULL && vpy_frame_code(entry->tb_frame) == marked_code;
}

static bool is_new(const PyObject *error, const PyTracebackObject *traceback)
{
    const PyTracebackObject *next = traceback->tb_next;

    if (next == NULL)
        return true;
    if (state->are_known_late)
        return vst__record_leaves_out()
                   ? next->tb_frame != left_last && !was_marked(error, next)
                   : !has_left(next);
    /* The program may have kept the exception and raise it later: for example,
     * a task's exception is raised again where the task is awaited. */
    if (next->tb_frame == left_last)
        return vst__record_went_on(left_at);
    return error != marked_last || !is_running(next->tb_frame);
}

static bool ends_iteration(const PyTypeObject *type)
{
    return (const PyObject *)type == PyExc_StopIteration ||
           (const PyObject *)type == PyExc_StopAsyncIteration ||
           (const PyObject *)type == PyExc_GeneratorExit;
}

/* ---- recording a mark ---------------------------------------------------- */

/* Writes a class's name: "ValueError", "json.decoder.JSONDecodeError". Runs no
 * code of the program. */
static void exceptions_put_name(PyTypeObject *type, char *name, size_t size)
{
    PyObject *qualname, *dict = NULL, *module = NULL;
    const char *own = type->tp_name, *where = NULL;

    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        qualname = ((PyHeapTypeObject *)type)->ht_qualname;
        dict = vpy_type_dict(type);
        module = dict != NULL ? vpy_dict_get_named(dict, "__module__") : NULL;
        own = qualname != NULL ? PyUnicode_AsUTF8(qualname) : NULL;
        if (module != NULL && PyUnicode_Check(module))
            where = PyUnicode_AsUTF8(module);
        PyErr_Clear();
    }
    if (where != NULL &&
        (strcmp(where, "builtins") == 0 || strcmp(where, "__main__") == 0))
        where = NULL;
    snprintf(name, size, "%s%s%s", where != NULL ? where : "",
             where != NULL ? "." : "", own != NULL ? own : "?");
    Py_XDECREF(module);
    Py_XDECREF(dict);
}

static void exceptions_mark(PyTypeObject *type,
                            const PyTracebackObject *traceback)
{
    PyCodeObject *code = (PyCodeObject *)vpy_frame_code(traceback->tb_frame);
    char name[200];
    vst_definition definition = {
        .kind = VST_DEF_INSTANT,
        .line = PyCode_Addr2Line(code, traceback->tb_lasti),
        .name = name,
    };
    PyObject *file =
        vpy_text(code->co_filename, &definition.file, &definition.file_len);
    bool is_defined;
    vst_id id;

    exceptions_put_name(type, name, sizeof name);
    definition.name_len = (uint32_t)strlen(name);
    if (file != NULL) {
        definition.file_skip =
            vpy_search_path_prefix(definition.file, definition.file_len);
        vpy_state_take();
        is_defined = vpy_calls.tracer.active != NULL &&
                     vst_recording_define_id(vpy_calls.tracer.active->recording,
                                             &definition, &id) == VST_OK;
        vpy_state_give();
        if (is_defined)
            vst__record_exception(id);
    }
    Py_XDECREF(file);
    PyErr_Clear();
}

static bool is_traceback(PyObject *traceback)
{
    return traceback != NULL && PyTraceBack_Check(traceback);
}

static void exceptions_mark_if_new(PyTypeObject *type, const PyObject *error,
                                   PyObject *traceback)
{
    const PyTracebackObject *entry = (PyTracebackObject *)traceback;

    if (!state->are_wanted || ends_iteration(type) ||
        vpy_code_value(vpy_frame_code(entry->tb_frame)) == 0 ||
        vst__record_top_is_left_out() || !is_new(error, entry))
        return;
    marked_last = error;
    marked_entry = entry;
    marked_code = vpy_frame_code(entry->tb_frame);
    exceptions_mark(type, entry);
}

void vpy_exception_seen(PyObject *error, PyObject *traceback)
{
    if (is_traceback(traceback) && PyExceptionInstance_Check(error))
        exceptions_mark_if_new(Py_TYPE(error), error, traceback);
}

void vpy_exception_leaves(PyObject *traceback)
{
    vpy_exception_leaves_frame(is_traceback(traceback)
                                   ? ((PyTracebackObject *)traceback)->tb_frame
                                   : NULL);
}

/* A call that is left out counts as code that is not recorded: the exception is
 * marked in the first recorded call that it reaches. */
void vpy_exception_leaves_frame(const PyFrameObject *frame)
{
    left_last = vst__record_top_is_left_out() ? NULL : frame;
    left_at = vst__record_here();
}

void vpy_exception_set_leaves(void)
{
    PyObject *type, *error, *traceback;

    PyErr_Fetch(&type, &error, &traceback);
    if (is_traceback(traceback) && type != NULL && PyType_Check(type)) {
        exceptions_mark_if_new((PyTypeObject *)type, error, traceback);
        vpy_exception_leaves(traceback);
    }
    PyErr_Restore(type, error, traceback);
}
