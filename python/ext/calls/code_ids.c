/* Ids of Python functions. A code object carries its id in its extra slot, so
 * the id disappears with the code object. A table by address would take a new
 * code object for a freed one, and references would keep code alive. The upper
 * half of the slot says for which round the value was given, so a new recording
 * starts without visiting any code object. */
#include "calls/ids.h"

#include "base/own_code.h"
#include "base/wait_reasons.h"
#include "calls/budget.h"
#include "calls/engine.h"
#include "calls/lines.h"
#include "compat_py311.h"
#include "program/exceptions.h"
#include "program/program.h"
#include "program/tasks.h"
#include "program/triggers.h"
#include "thunks/thunks.h"

#include <fnmatch.h>
#include <string.h>

static struct vpy_code_ids_state *const state = &vpy_calls.code_ids;

int vpy_code_ids_init(void)
{
    if (vpy_calls_hooks.code_extra_index < 0)
        vpy_calls_hooks.code_extra_index =
            vpy_code_request_extra(vpy_lines_code_freed);
    if (vpy_calls_hooks.code_extra_index < 0) {
        PyErr_SetString(PyExc_ImportError,
                        "no free slot for code ids: too many tools use "
                        "code objects' extra data");
        return -1;
    }
    return 0;
}

static uint32_t code_ids_after(uint32_t number)
{
    return number + 1 != 0 ? number + 1 : 1;
}

bool vpy_code_ids_begin(vpy_tracer *for_tracer)
{
    vpy_state_take();
    state->tracer = for_tracer;
    vpy_calls.last_caller = NULL;
    state->given_for = state->first_round =
        code_ids_after(vpy_calls_hooks.round);
    vpy_state_give();
    return vpy_own_code_begin();
}

void vpy_code_ids_go_live(void)
{
    __atomic_store_n(&vpy_calls_hooks.round, state->given_for,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&vpy_calls_hooks.generation,
                     code_ids_after(vpy_calls_hooks.generation),
                     __ATOMIC_RELAXED);
}

void vpy_code_ids_next_round(void)
{
    vpy_calls.last_caller = NULL;
    state->given_for = code_ids_after(state->given_for);
    __atomic_store_n(&vpy_calls_hooks.round, state->given_for,
                     __ATOMIC_RELAXED);
}

/* Sets the round to a number that no code object has, so a hook that is still
 * running finds no value. */
void vpy_code_ids_end(void)
{
    vpy_state_take();
    state->tracer = NULL;
    vpy_calls.last_caller = NULL;
    __atomic_store_n(&vpy_calls_hooks.round, code_ids_after(state->given_for),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&vpy_calls_hooks.generation,
                     code_ids_after(vpy_calls_hooks.generation),
                     __ATOMIC_RELAXED);
    vpy_state_give();
}

/* ---- which functions are recorded -------------------------------------- */

/* Returns whether a pattern matches the file's name, or, if the pattern has no
 * slash, the last part of the name. */
static bool matches_any(PyObject *patterns, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash != NULL ? slash + 1 : file;

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(patterns); i++) {
        const char *pattern = PyUnicode_AsUTF8(PyTuple_GET_ITEM(patterns, i));
        if (pattern == NULL) {
            PyErr_Clear();
            continue;
        }
        if (fnmatch(pattern, file, 0) == 0 ||
            (strchr(pattern, '/') == NULL && fnmatch(pattern, base, 0) == 0))
            return true;
    }
    return false;
}

static bool code_ids_is_wanted(const char *file, uint32_t length)
{
    if (!state->tracer->options.with_stack || vpy_file_is_own(file, length))
        return false;
    if (state->tracer->options.include != NULL &&
        !matches_any(state->tracer->options.include, file))
        return false;
    return state->tracer->options.exclude == NULL ||
           !matches_any(state->tracer->options.exclude, file);
}

/* Returns whether a name or pattern of an option names a function: "f" and
 * "C.f" match the end of its qualified name; a pattern ("load_*") must match
 * the whole qualified name or its last part. */
static bool code_ids_is_named(const char *full, const char *name)
{
    size_t length = strlen(name), full_length = strlen(full);
    const char *end = full + full_length - length, *last;

    if (length <= full_length && strcmp(end, name) == 0 &&
        (length == full_length || end[-1] == '.'))
        return true;
    if (strpbrk(name, "*?[") == NULL)
        return false;
    last = strrchr(full, '.');
    return fnmatch(name, full, 0) == 0 ||
           (last != NULL && fnmatch(name, last + 1, 0) == 0);
}

/* Returns whether a name in `names` (a tuple, or NULL) names the function. */
static bool is_listed(PyObject *names, PyObject *qualname)
{
    const char *full = names != NULL ? PyUnicode_AsUTF8(qualname) : NULL;

    if (full == NULL) {
        PyErr_Clear();
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (name == NULL)
            PyErr_Clear();
        else if (code_ids_is_named(full, name))
            return true;
    }
    return false;
}

static bool wants_args(PyObject *qualname)
{
    return is_listed(state->tracer->options.record_args, qualname);
}

/* Keeps the exception that is set, because hooks call this while an exception
 * may be on its way. */
bool vpy_code_wants_arguments(const PyCodeObject *code)
{
    PyObject *type, *value, *traceback;
    bool wants;

    PyErr_Fetch(&type, &value, &traceback);
    vpy_state_take();
    wants = state->tracer != NULL && wants_args(code->co_qualname);
    vpy_state_give();
    PyErr_Restore(type, value, traceback);
    return wants;
}

/* Returns whether the code is the function of threading that runs first in a
 * new thread, where the thread gets its name. */
static bool starts_thread(const char *file, uint32_t length, PyObject *name)
{
    static const char module[] = "/threading.py";
    size_t size = sizeof module - 1;

    return length > size && memcmp(file + length - size, module, size) == 0 &&
           PyUnicode_CompareWithASCIIString(name, "_bootstrap_inner") == 0;
}

/* Returns whether the code is one of the functions of concurrent.futures that
 * make a piece of work and run it. */
static bool is_of_work_item(const char *file, uint32_t length, PyObject *name)
{
    static const char module[] = "/concurrent/futures/thread.py";
    size_t size = sizeof module - 1;

    return length > size && memcmp(file + length - size, module, size) == 0 &&
           (PyUnicode_CompareWithASCIIString(name, "__init__") == 0 ||
            PyUnicode_CompareWithASCIIString(name, "run") == 0);
}

static bool is_spin_of(const vst_definition *definition, const char *entry)
{
    return vst__waiter_of(definition, entry, strlen(entry)).reason ==
           VST_WAIT_SPIN;
}

bool vpy_is_left_out_spin(const vst_definition *definition)
{
    const vpy_options *options = &state->tracer->options;
    bool spins = !options->spins && is_spin_of(definition, "");

    if (options->spins || options->waits == NULL)
        return spins;
    for (Py_ssize_t i = 0; !spins && i < PyTuple_GET_SIZE(options->waits);
         i++) {
        const char *entry =
            PyUnicode_AsUTF8(PyTuple_GET_ITEM(options->waits, i));
        if (entry == NULL)
            PyErr_Clear();
        else
            spins = is_spin_of(definition, entry);
    }
    return spins;
}

/* ---- giving an id ------------------------------------------------------ */

static uint32_t code_ids_define(PyCodeObject *code)
{
    vst_definition definition = {
        .kind = VST_DEF_PYTHON,
        .line = code->co_firstlineno,
    };
    uint32_t value = 0;
    PyObject *shown = state->tracer->options.qualified_names ? code->co_qualname
                                                             : code->co_name;
    PyObject *name = vpy_text(shown, &definition.name, &definition.name_len);
    PyObject *file =
        vpy_text(code->co_filename, &definition.file, &definition.file_len);

    if (name != NULL && file != NULL &&
        code_ids_is_wanted(definition.file, definition.file_len) &&
        !vpy_is_left_out_spin(&definition) &&
        !vpy_code_is_runner((PyObject *)code)) {
        vst_id id;
        definition.file_skip =
            vpy_search_path_prefix(definition.file, definition.file_len);
        if (vst_recording_define_id(state->tracer->recording, &definition,
                                    &id) == VST_OK &&
            id < VPY_LEFT_OUT)
            value = id;
        if (value &&
            (wants_args(code->co_qualname) || vpy_getitem_is_code(code) ||
             starts_thread(definition.file, definition.file_len,
                           code->co_name) ||
             is_of_work_item(definition.file, definition.file_len,
                             code->co_name) ||
             vpy_imports_module(definition.file, definition.file_len,
                                code->co_name) ||
             vpy_imports_framework(definition.file, definition.file_len,
                                   code->co_name) ||
             vpy_is_framework_code((PyObject *)code)))
            value |= VPY_SPECIAL;
        if (value && is_listed(state->tracer->options.only, code->co_qualname))
            vst_recording_record_inside(state->tracer->recording,
                                        VPY_ID(value));
        if (value && vpy_program.exceptions.are_known_late)
            value |= VPY_MARKED;
        if (value && vpy_is_coroutine_code(code))
            value |= VPY_COROUTINE;
        if (value && vpy_triggers_watch(code->co_qualname, definition.file,
                                        definition.file_len, VPY_ID(value)))
            value |= VPY_TIMED;
        if (vpy_can_be_left_out(value))
            vpy_budget_define(VPY_ID(value), false);
    }
    Py_XDECREF(name);
    Py_XDECREF(file);
    return value;
}

static bool is_of_recording(uintptr_t extra)
{
    return (uint32_t)(extra >> 32) - state->first_round <=
           state->given_for - state->first_round;
}

vst_id vpy_code_known_id(PyObject *code)
{
    uintptr_t extra =
        vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);

    return is_of_recording(extra) ? VPY_ID((uint32_t)extra) : 0;
}

void vpy_code_set_value(PyObject *code, uint32_t value)
{
    uintptr_t extra = (uintptr_t)state->given_for << 32 | value;

    if (vpy_code_set_extra(code, vpy_calls_hooks.code_extra_index,
                           (void *)extra) < 0)
        PyErr_Clear();
}

/* Call with the state lock, which keeps the tracer. Another thread may have
 * given the value already. */
static uint32_t give_value(PyObject *code)
{
    PyObject *type, *error, *traceback;
    uint32_t value;
    uintptr_t extra;
    bool is_new;

    if (vpy_code_find_ahead(code, &value))
        return value;
    PyErr_Fetch(&type, &error, &traceback);
    extra = vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);
    is_new = !is_of_recording(extra);
    value = is_new ? code_ids_define((PyCodeObject *)code) : (uint32_t)extra;
    value = vpy_budget_value(value & ~VPY_LEFT_OUT);
    vpy_code_set_value(code, value);
    if (value && is_new)
        vpy_monitoring_code_defined(code);
    if (is_new) {
        vpy_greenlets_look();
        vpy_thunks_look();
    }
    PyErr_Restore(type, error, traceback);
    return value;
}

/* Returns the function's value. From the end of this function to the record
 * that follows, nothing can stop the thread, so the id still belongs to the
 * recording. While the interpreter shuts down, no function gets an id: giving
 * an id looks up modules and types, which may be gone. */
uint32_t vpy_code_define(PyObject *code)
{
    uint32_t value = 0;

    if (!VPY_FREE_THREADED)
        vpy_calls.last_caller = NULL;
    vpy_state_take();
    if (state->tracer != NULL && state->given_for == vpy_round_now() &&
        !vpy_is_finalizing())
        value = give_value(code);
    vpy_state_give();
    return value;
}

void vpy_code_define_ahead(PyObject *code)
{
    vpy_state_take();
    if (state->tracer != NULL)
        give_value(code);
    vpy_state_give();
}

bool vpy_code_find_ahead(PyObject *code, uint32_t *value)
{
    uintptr_t extra =
        vpy_code_get_extra(code, vpy_calls_hooks.code_extra_index);

    *value = (uint32_t)extra;
    return extra >> 32 == state->given_for;
}
