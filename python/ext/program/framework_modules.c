/* Shows calls of a framework's modules under the names that torch gives them:
 * "nn.Module: Linear_0", with a number for each class in the order of first
 * calls. The framework calls all modules through one Python function; its first
 * argument is the module. Besides that:
 *
 *  - Annotations that the framework begins and ends in two functions of its
 *    own are shown as one span around the calls between the two, without the
 *    functions.
 *
 *  - Steps of its optimizers are noted by noted_tensors.c.
 *
 *  - C functions of its operators get their thunks when they are about to be
 *    called: objects hold these functions, where the turbo engine does not
 *    look.
 *
 *  - await_framework() waits for the end of the framework's import.
 *
 * A module is identified by its address and a weak reference, which shows
 * whether another module has the address now. No module is kept alive.
 *
 * The GIL guards everything here. On builds without the GIL
 * set_framework_code() refuses, so calls of modules are shown as calls of
 * ordinary functions. */
#include "program/program.h"

#include "base/inside.h"
#include "calls/ids.h"
#include "record/language.h"
#include "thunks/thunks.h"

#include <stdlib.h>
#include <string.h>

static struct vpy_framework_modules_state *const state = &vpy_program.modules;

typedef struct vpy_module_entry {
    PyObject *self;    /* borrowed; only compared */
    PyObject *weakref; /* NULL: the entry is free */
    vst_id id;
} module_entry;

static void forget_all(void)
{
    module_entry *old = state->entries;
    size_t size = state->capacity;

    state->entries = NULL;
    state->capacity = state->count = 0;
    for (size_t i = 0; i < size; i++)
        Py_XDECREF(old[i].weakref);
    free(old);
    Py_CLEAR(state->numbers);
}

static module_entry *modules_slot_of(PyObject *self)
{
    size_t i = (size_t)((uintptr_t)self >> 4) * 0x9e3779b1u;

    for (;; i++) {
        module_entry *entry = &state->entries[i & (state->capacity - 1)];
        if (entry->weakref == NULL || entry->self == self)
            return entry;
    }
}

static bool modules_make_room(void)
{
    size_t old_capacity = state->capacity;
    module_entry *old = state->entries;
    size_t size = state->capacity ? state->capacity * 2 : 64;
    module_entry *grown;

    if (state->count * 2 < state->capacity)
        return true;
    grown = calloc(size, sizeof *grown);
    if (grown == NULL)
        return false;
    state->entries = grown;
    state->capacity = size;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].weakref != NULL)
            *modules_slot_of(old[i].self) = old[i];
    free(old);
    return true;
}

/* Returns the next number of a class, or -1 if memory ran out. */
static long modules_next_number(PyObject *name)
{
    PyObject *known, *next;
    long number;
    bool kept;

    if (state->numbers == NULL)
        state->numbers = PyDict_New();
    known = state->numbers != NULL
                ? PyDict_GetItemWithError(state->numbers, name)
                : NULL;
    number = known != NULL ? PyLong_AsLong(known) : 0;
    next = PyLong_FromLong(number + 1);
    kept = state->numbers != NULL && next != NULL &&
           PyDict_SetItem(state->numbers, name, next) == 0;

    Py_XDECREF(next);
    return kept ? number : -1;
}

static vst_id modules_define(PyObject *self)
{
    PyObject *name =
        PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__name__");
    long number =
        name != NULL && PyUnicode_Check(name) ? modules_next_number(name) : -1;
    PyObject *label =
        number >= 0 ? PyUnicode_FromFormat("nn.Module: %U_%ld", name, number)
                    : NULL;
    vst_definition definition = {
        .kind = VST_DEF_MODULE, .line = (int32_t)number, .file = ""};
    vst_id id = 0;
    PyObject *text = vpy_text(label, &definition.name, &definition.name_len);

    if (text != NULL &&
        (vpy_calls.tracer.active == NULL ||
         vst_recording_define_id(vpy_calls.tracer.active->recording,
                                 &definition, &id) != VST_OK))
        id = 0;
    Py_XDECREF(text);
    Py_XDECREF(label);
    Py_XDECREF(name);
    return id;
}

static VST_COLD vst_id modules_add(PyObject *self)
{
    PyObject *type, *error, *traceback, *weakref;
    vst_id id = 0;
    uint32_t before;

    PyErr_Fetch(&type, &error, &traceback);
    weakref = vpy_weakref_new(self);
    before = vpy_generation_now();
    if (weakref != NULL)
        id = modules_define(
            self); /* may run any code: __name__ of a metaclass */
    if (vpy_generation_now() != before || vpy_calls.tracer.active == NULL)
        id = 0;
    if (id && modules_make_room()) {
        module_entry *entry = modules_slot_of(self);
        PyObject *old = entry->weakref;
        state->count += old == NULL;
        *entry = (module_entry){self, weakref, id};
        weakref = old;
        vpy_tensors_of_module(self);
        vpy_note_module(self, id);
    }
    Py_XDECREF(weakref);
    PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    return id;
}

static vst_id modules_known_id(PyObject *self)
{
    const module_entry *entry;

    if (state->generation != vpy_generation_now()) {
        state->generation = vpy_generation_now();
        forget_all();
    }
    if (!state->capacity)
        return 0;
    entry = modules_slot_of(self);
    return entry->weakref != NULL && vpy_weakref_is_to(entry->weakref, self)
               ? entry->id
               : 0;
}

/* Returns the module with which the function was called, or NULL if another
 * function runs. */
static PyObject *called_module(PyObject *code, const vpy_iframe *frame)
{
    if (!vpy_base.inside.works[VPY_PART_ARGUMENTS])
        return NULL;
    if (frame == NULL)
        frame = vpy_iframe_running(PyThreadState_Get());
    if (frame == NULL || (PyObject *)vpy_iframe_code(frame) != code)
        return NULL;
    return vpy_iframe_local(frame, 0);
}

bool vpy_is_framework_code(PyObject *code)
{
    return code == state->module_code || code == state->enter_code ||
           code == state->leave_code || code == state->step_code ||
           code == state->overload_code || code == state->packet_code;
}

static vst_id modules_entered(PyObject *code, const vpy_iframe *frame)
{
    PyObject *self = called_module(code, frame);
    vst_id id = self != NULL ? modules_known_id(self) : 0;

    return id || self == NULL ? id : modules_add(self);
}

/* Gives a thunk to the operator's C function, which is called next. */
static void modules_operator_entered(PyObject *code, const vpy_iframe *frame)
{
    PyObject *self = called_module(code, frame);
    PyObject *function = self != NULL ? vpy_own_member(self, "_op") : NULL;

    if (function != NULL)
        vpy_thunks_cover(function);
}

static vst_id modules_left(PyObject *code)
{
    PyObject *self = called_module(code, NULL);

    return self != NULL ? modules_known_id(self) : 0;
}

vst_id vpy_framework_entered(vst_id id, PyObject *code, const vpy_iframe *frame)
{
    vst_id module =
        code == state->module_code ? modules_entered(code, frame) : 0;
    PyObject *optimizer =
        code == state->step_code ? called_module(code, frame) : NULL;

    if (optimizer != NULL)
        vpy_note_step(optimizer);
    if (code == state->overload_code || code == state->packet_code)
        modules_operator_entered(code, frame);
    if (code == state->leave_code)
        vst__record_settle(true);
    vst_record(VST_ENTER, module ? module : id);
    return module ? module : id;
}

void vpy_framework_left(vst_kind kind, vst_id id, vst_id entered,
                        PyObject *code)
{
    if (!entered && code == state->module_code)
        entered = modules_left(code);
    vst_record(kind, entered ? entered : id);
    if (code == state->enter_code)
        vst__record_settle(false);
}

void vpy_modules_end(void)
{
    forget_all();
}

/* Stores a code object, or NULL for None, with a strong reference. */
static bool take_code(PyObject *code, PyObject **kept)
{
    PyObject *old = *kept;

    if (code != Py_None && !PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError,
                        "set_framework_code takes code objects or None");
        return false;
    }
    *kept = code == Py_None ? NULL : code;
    Py_XINCREF(*kept);
    /* The code may have an id already that does not mark it as special. */
    if (*kept != NULL && *kept != old)
        vpy_code_define(*kept);
    Py_XDECREF(old);
    return true;
}

/* ---- the framework's import ---------------------------------------------- */

bool vpy_imports_framework(const char *file, uint32_t length, PyObject *name)
{
    static const char package[] = "/torch/__init__.py";
    size_t size = sizeof package - 1;

    return length > size && memcmp(file + length - size, package, size) == 0 &&
           PyUnicode_CompareWithASCIIString(name, "<module>") == 0;
}

/* Calls the waiter, as a pending call: the interpreter runs it in the main
 * thread, as it runs signal handlers. */
static int modules_call_waiter(void *unused)
{
    PyObject *called =
        __atomic_exchange_n(&state->waiter, NULL, __ATOMIC_ACQ_REL);
    PyObject *result;

    (void)unused;
    if (called == NULL)
        return 0;
    result = PyObject_CallNoArgs(called);
    if (result == NULL)
        PyErr_Clear();
    Py_XDECREF(result);
    Py_DECREF(called);
    return 0;
}

void vpy_framework_imported(void)
{
    if (__atomic_load_n(&state->waiter, __ATOMIC_RELAXED) != NULL)
        Py_AddPendingCall(modules_call_waiter, NULL);
}

static PyObject *await_framework(PyObject *module, PyObject *callable)
{
    PyObject *next = callable != Py_None ? Py_NewRef(callable) : NULL;

    (void)module;
    Py_XDECREF(__atomic_exchange_n(&state->waiter, next, __ATOMIC_ACQ_REL));
    Py_RETURN_NONE;
}

static PyObject *set_framework_code(PyObject *module, PyObject *args)
{
    PyObject *call, *enter, *leave, *step = Py_None;
    PyObject *overload = Py_None, *packet = Py_None;

    (void)module;
    if (VPY_FREE_THREADED) { /* see the top of the file */
        PyErr_SetString(PyExc_RuntimeError, "this Python has no GIL");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOO|OOO:set_framework_code", &call, &enter,
                          &leave, &step, &overload, &packet) ||
        !take_code(call, &state->module_code) ||
        !take_code(enter, &state->enter_code) ||
        !take_code(leave, &state->leave_code) ||
        !take_code(step, &state->step_code) ||
        !take_code(overload, &state->overload_code) ||
        !take_code(packet, &state->packet_code))
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef vpy_modules_functions[] = {
    {"set_framework_code", set_framework_code, METH_VARARGS,
     PyDoc_STR("set_framework_code(call, enter, exit, step=None, "
               "overload=None, packet=None)\n--\n\nThe "
               "functions by which a framework calls modules, begins and ends "
               "annotations, makes a step of an optimizer, and calls "
               "operators; each may be None.")},
    {"await_framework", await_framework, METH_O,
     PyDoc_STR("await_framework(callable)\n--\n\nCall callable() once, soon "
               "after the framework was imported, if calls of Python functions "
               "are recorded then. None: wait no longer.")},
    {NULL, NULL, 0, NULL},
};
