/* Triggers that make a session take a snapshot: a function or an annotation
 * that took too long, or an exception of some type. Whether a function is
 * watched is decided once, when its code gets its id. All other functions run
 * as if there were no triggers. The session's flight recorder writes the
 * snapshot. */
#include "program/triggers.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vpy_triggers_state *const state = &vpy_program.triggers;

enum { OPEN_MAX = 16 }; /* watched functions that are open in one thread */

/* Which trigger watches which function. */
typedef struct vpy_trigger_watch {
    vst_id id;
    size_t slow; /* index of triggers->slow */
} watched;

/* A thread's open calls of watched functions, only the outermost of each
 * function. */
static _Thread_local struct {
    uint32_t recording;
    uint32_t count;
    struct {
        vst_id id;
        uint32_t depth;
        vst_ticks since;
    } calls[OPEN_MAX];
} open_calls;

/* The exception that this thread reported last; only compared, never read. */
static _Thread_local PyObject *last_raised;

/* Sets state->wanted. Call with the state lock. */
static void triggers_want(void)
{
    const vpy_triggers *triggers = state->active;
    vpy_triggers_wish wanted = VPY_WANTS_NOTHING;

    if (triggers != NULL && triggers->raise_count)
        wanted |= VPY_WANTS_EXCEPTIONS;
    if (triggers != NULL && triggers->slow_count)
        wanted |= VPY_WANTS_TIMES;
    if (state->watch_count != 0)
        wanted |= VPY_WANTS_CALLS;
    for (size_t i = 0; triggers != NULL && i < triggers->slow_count; i++)
        if (!triggers->slow[i].is_annotation)
            wanted |= VPY_WANTS_CALLS;
    __atomic_store_n(&state->wanted, wanted, __ATOMIC_RELAXED);
}

static uint32_t recording_now(void)
{
    return __atomic_load_n(&state->recording, __ATOMIC_RELAXED);
}

void vpy_triggers_begin(vpy_triggers *triggers)
{
    vpy_state_take();
    for (size_t i = 0; i < triggers->slow_count; i++)
        triggers->slow[i].is_annotation =
            strpbrk(triggers->slow[i].name, " *") != NULL;
    state->active = triggers;
    state->watch_count = 0;
    triggers_want();
    __atomic_add_fetch(&state->recording, 1, __ATOMIC_RELAXED);
    vpy_state_give();
}

void vpy_triggers_end(void)
{
    vpy_state_take();
    state->active = NULL;
    free(state->watches);
    state->watches = NULL;
    state->watch_count = state->watch_capacity = 0;
    triggers_want();
    vpy_state_give();
}

/* ---- names --------------------------------------------------------------- */

/* Returns whether a text ends with a name: "m.C.f" ends with "C.f" and "f". A
 * slash in the text counts as a dot. */
static bool triggers_ends_with(const char *text, size_t length,
                               const char *name, size_t name_length)
{
    const char *end;

    if (name_length == 0 || name_length > length)
        return false;
    end = text + length - name_length;
    for (size_t i = 0; i < name_length; i++)
        if (end[i] != name[i] && !(end[i] == '/' && name[i] == '.'))
            return false;
    return end == text || end[-1] == '.' || end[-1] == '/';
}

/* Returns the length of a file's name without its suffix. */
static size_t module_length(const char *file, size_t length)
{
    static const char *const suffixes[] = {".py", "/__init__"};

    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(suffixes[i]);
        if (length > size &&
            memcmp(file + length - size, suffixes[i], size) == 0)
            length -= size;
    }
    return length;
}

/* Returns whether a name matches a function: "f" and "C.f" match the end of its
 * qualified name, "module.C.f" also the end of its module's name. */
static bool triggers_is_named(const char *name, const char *qualname,
                              const char *file, size_t file_length)
{
    size_t length = strlen(name), qualname_length = strlen(qualname);

    if (triggers_ends_with(qualname, qualname_length, name, length))
        return true;
    if (length < qualname_length + 2 ||
        !triggers_ends_with(name, length, qualname, qualname_length))
        return false;
    return triggers_ends_with(file, module_length(file, file_length), name,
                              length - qualname_length - 1);
}

/* ---- functions ----------------------------------------------------------- */

static bool triggers_watch(vst_id id, size_t slow)
{
    if (state->watch_count == state->watch_capacity) {
        size_t capacity =
            state->watch_capacity ? state->watch_capacity * 2 : 16;
        watched *grown = realloc(state->watches, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        state->watches = grown;
        state->watch_capacity = capacity;
    }
    state->watches[state->watch_count++] = (watched){id, slow};
    triggers_want();
    return true;
}

/* Call with the state lock. */
bool vpy_triggers_watch(PyObject *qualname, const char *file,
                        uint32_t file_length, vst_id id)
{
    const vpy_triggers *triggers = state->active;
    bool found = false;
    const char *full;

    if (triggers == NULL || triggers->slow_count == 0)
        return false;
    full = PyUnicode_AsUTF8(qualname);
    if (full == NULL) {
        PyErr_Clear();
        return false;
    }
    for (size_t i = 0; i < state->watch_count; i++)
        if (state->watches[i].id == id)
            return true; /* another code object of the same function */
    for (size_t i = 0; i < triggers->slow_count; i++)
        if (triggers_is_named(triggers->slow[i].name, full, file, file_length))
            found |= triggers_watch(id, i);
    return found;
}

void vpy_triggers_forget_thread(void)
{
    open_calls.count = 0;
}

void vpy_triggers_entered(vst_id id)
{
    if (open_calls.recording != recording_now()) {
        open_calls.recording = recording_now();
        open_calls.count = 0;
    }
    for (uint32_t i = 0; i < open_calls.count; i++)
        if (open_calls.calls[i].id == id) {
            open_calls.calls[i].depth++;
            return;
        }
    if (open_calls.count == OPEN_MAX)
        return;
    open_calls.calls[open_calls.count].id = id;
    open_calls.calls[open_calls.count].depth = 1;
    open_calls.calls[open_calls.count].since = vst_clock_ticks();
    open_calls.count++;
}

static void ask_for_snapshots(vst_id id, vst_ticks took)
{
    const vpy_triggers *triggers;

    vpy_state_take();
    triggers = state->active;
    for (size_t j = 0; triggers != NULL && j < state->watch_count; j++) {
        const vpy_slow *slow = &triggers->slow[state->watches[j].slow];
        if (state->watches[j].id == id && took > slow->limit)
            vst__flight_request(triggers->flight, slow->reason);
    }
    vpy_state_give();
}

/* A call that was open when recording began is not among open_calls. */
void vpy_triggers_left(vst_id id)
{
    uint32_t i = open_calls.count;
    vst_ticks took;

    if (open_calls.recording != recording_now())
        return;
    while (i > 0 && open_calls.calls[i - 1].id != id)
        i--;
    if (i == 0 || --open_calls.calls[i - 1].depth > 0)
        return;
    took = vst_clock_ticks() - open_calls.calls[i - 1].since;
    open_calls.calls[i - 1] = open_calls.calls[--open_calls.count];
    ask_for_snapshots(id, took);
}

/* ---- annotations --------------------------------------------------------- */

/* Returns whether a trigger's name matches an annotation. A star stands for any
 * text: `GET *`. */
static bool triggers_matches_annotation(const char *name, const char *text)
{
    return strcmp(name, text) == 0 ||
           (strchr(name, '*') != NULL && fnmatch(name, text, 0) == 0);
}

/* Call with the state lock. */
static void triggers_check_annotation(const vpy_triggers *triggers,
                                      vpy_slow *slow, PyObject *name,
                                      vst_ticks took)
{
    const char *text;

    if (slow->is_annotation && took <= slow->limit)
        return;
    text = PyUnicode_AsUTF8(name);
    if (text == NULL)
        PyErr_Clear();
    if (text == NULL || !triggers_matches_annotation(slow->name, text))
        return;
    if (!slow->is_annotation) {
        slow->is_annotation = true;
        triggers_want();
    }
    if (took > slow->limit)
        vst__flight_request(triggers->flight, slow->reason);
}

void vpy_triggers_annotation_ends(PyObject *name, vst_ticks since)
{
    const vpy_triggers *triggers;
    vst_ticks took = vst_clock_ticks() - since;

    vpy_state_take();
    triggers = state->active;
    for (size_t i = 0; triggers != NULL && i < triggers->slow_count; i++)
        triggers_check_annotation(triggers, &triggers->slow[i], name, took);
    vpy_state_give();
}

/* ---- exceptions ---------------------------------------------------------- */

enum { CLASS_NAME_MAX = 512 };

/* Copies a text from a class's own dict and returns the copy, or NULL. Runs no
 * code of the program. */
static const char *own_text(PyTypeObject *type, const char *attribute,
                            char *copy, size_t size)
{
    PyObject *dict = vpy_type_dict(type);
    PyObject *value = dict != NULL ? vpy_dict_get_named(dict, attribute) : NULL;
    const char *text = value != NULL && PyUnicode_Check(value)
                           ? PyUnicode_AsUTF8(value)
                           : NULL;

    if (text == NULL)
        PyErr_Clear();
    snprintf(copy, size, "%s", text != NULL ? text : "");
    Py_XDECREF(value);
    Py_XDECREF(dict);
    return text != NULL ? copy : NULL;
}

/* Returns whether a name matches a class: "Error" and "module.Error" match the
 * end of its full name. */
static bool is_class_named(PyTypeObject *type, const char *name)
{
    const char *qualname = type->tp_name;
    const char *module = NULL;
    size_t length = strlen(name);
    size_t qualname_length;
    char own[CLASS_NAME_MAX];

    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        PyObject *text = ((PyHeapTypeObject *)type)->ht_qualname;
        qualname = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
        module = own_text(type, "__module__", own, sizeof own);
    } else if (strchr(qualname, '.') == NULL) {
        module = "builtins";
    }
    if (qualname == NULL) {
        PyErr_Clear();
        return false;
    }
    qualname_length = strlen(qualname);
    if (triggers_ends_with(qualname, qualname_length, name, length))
        return true;
    return module != NULL && length > qualname_length + 1 &&
           triggers_ends_with(name, length, qualname, qualname_length) &&
           triggers_ends_with(module, strlen(module), name,
                              length - qualname_length - 1);
}

/* Exceptions that end loops, generators and tasks are not failures. A trigger
 * for a base class does not include them; a trigger for one of them by name
 * does. */
static bool is_control_flow(PyTypeObject *type)
{
    return (PyObject *)type == PyExc_StopIteration ||
           (PyObject *)type == PyExc_StopAsyncIteration ||
           (PyObject *)type == PyExc_GeneratorExit ||
           is_class_named(type, "asyncio.exceptions.CancelledError") ||
           is_class_named(type, "greenlet.GreenletExit");
}

static bool triggers_includes_class(PyTypeObject *type, const char *name)
{
    PyObject *mro = type->tp_mro;

    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!PyType_Check(base))
            continue;
        if (is_class_named(base, name))
            return true;
        if (is_control_flow(base))
            return false;
    }
    return false;
}

/* Returns whether an exception was reported before: the interpreter reports it
 * again in every frame that it passes. In that case this
 * thread reported it last, and its traceback has a frame inside this one. */
static bool triggers_was_reported(PyObject *error, PyObject *traceback)
{
    bool same = error == last_raised && traceback != NULL &&
                PyTraceBack_Check(traceback) &&
                ((PyTracebackObject *)traceback)->tb_next != NULL;

    last_raised = error;
    return same;
}

static void triggers_check_exception(const vpy_triggers *triggers,
                                     PyObject *error, PyObject *traceback)
{
    bool is_new = false;

    for (size_t i = 0; triggers != NULL && i < triggers->raise_count; i++) {
        const vpy_raise_trigger *raise = &triggers->raises[i];
        if (!triggers_includes_class(Py_TYPE(error), raise->name))
            continue;
        if (!is_new && triggers_was_reported(error, traceback))
            return;
        is_new = true;
        vst__flight_request(triggers->flight, raise->reason);
    }
}

void vpy_triggers_raised(PyObject *error, PyObject *traceback)
{
    if (!vpy_triggers_want_exceptions() || !PyExceptionInstance_Check(error))
        return;
    vpy_state_take();
    triggers_check_exception(state->active, error, traceback);
    vpy_state_give();
}
