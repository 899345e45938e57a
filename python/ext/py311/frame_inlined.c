/* Makes the hook see obj[i] on the first patch releases of 3.11, up to about
 * 3.11.3. There, once the interpreter has specialized the instruction, it
 * enters a __getitem__ written in Python without calling the evaluation hook.
 * The specialized instruction keeps 16 bits of the function's version, and
 * gives up if the function's version is different. So while we record, such
 * functions get versions that need more bits: the instruction falls back to an
 * ordinary call, and is not specialized again. The functions are found in all
 * types when the recording starts, and later when they are called: the
 * interpreter specializes an instruction only after several ordinary calls,
 * which the hook sees. turbo_test.c finds out whether this is needed. Call with
 * the GIL held. */
#include "py311/frame_hook.h"

#include "calls/ids.h"
#include "thunks/thunks.h"

#include <stdlib.h>

static struct vpy_getitems_state *const state = &vpy_py311.getitems;

enum { VERSIONS_MAX = UINT16_MAX };
/* the first of the versions that we give */
static const uint32_t first_version = (uint32_t)1 << 31;

static bool inlined_make_room(void)
{
    size_t capacity =
        state->hidden_capacity != 0 ? state->hidden_capacity * 2 : 64;
    PyObject **larger;

    if (state->hidden_count < state->hidden_capacity)
        return true;
    larger = realloc(state->hidden, capacity * sizeof(PyObject *));
    if (larger == NULL)
        return false;
    state->hidden = larger;
    state->hidden_capacity = capacity;
    return true;
}

static void inlined_hide(PyObject *object)
{
    PyFunctionObject *function = (PyFunctionObject *)object;
    PyObject *type, *value, *traceback, *weakref;

    if (function->func_version > VERSIONS_MAX || !inlined_make_room())
        return;
    PyErr_Fetch(&type, &value, &traceback);
    weakref = vpy_weakref_new(object);
    if (weakref != NULL) {
        state->hidden[state->hidden_count++] = weakref;
        function->func_version = first_version | state->next_version++;
    }
    PyErr_Restore(type, value, traceback);
}

static void hide_of(PyTypeObject *type)
{
    PyObject *dict = vpy_type_dict(type);
    PyObject *found = dict != NULL && PyDict_Check(dict)
                          ? PyDict_GetItemString(dict, "__getitem__")
                          : NULL;

    if (found != NULL && PyFunction_Check(found))
        inlined_hide(found);
    Py_XDECREF(dict);
}

void vpy_getitems_hide(void)
{
    if (!state->are_inlined || state->are_hidden)
        return;
    state->are_hidden = true;
    vpy_find_types(hide_of);
}

/* Removes our versions: the interpreter gives the function another version when
 * it specializes a call of it again. */
void vpy_getitems_show(void)
{
    /* not counting the weak references, which are freed below */
    int young = vpy_young_objects();

    state->are_hidden = false;
    for (size_t i = 0; i < state->hidden_count; i++) {
        PyObject *object = vpy_weakref_get(state->hidden[i]);
        PyFunctionObject *function = (PyFunctionObject *)object;
        if (object != NULL && function->func_version >= first_version)
            function->func_version = 0;
        Py_XDECREF(object);
        Py_DECREF(state->hidden[i]);
    }
    free(state->hidden);
    state->hidden = NULL;
    state->hidden_count = state->hidden_capacity = 0;
    vpy_young_objects_set(young);
}

/* Functions may share one code object of this name, if a function makes
 * classes: so every call of the code is looked at. */
bool vpy_getitem_is_code(const PyCodeObject *code)
{
    return state->are_hidden && code->co_argcount == 2 &&
           PyUnicode_CompareWithASCIIString(code->co_name, "__getitem__") == 0;
}

static void inlined_look_at(const vpy_iframe *frame)
{
    PyCodeObject *code = vpy_iframe_code(frame);
    PyObject *self = code->co_argcount == 2 ? vpy_iframe_local(frame, 0) : NULL;
    PyObject *function = vpy_iframe_function(frame);

    if (state->name == NULL)
        state->name = PyUnicode_InternFromString("__getitem__");
    if (state->name == NULL) {
        PyErr_Clear();
        return;
    }
    if (self != NULL && function != NULL && PyFunction_Check(function) &&
        _PyType_Lookup(Py_TYPE(self), state->name) == function)
        inlined_hide(function);
}

/* VPY_SPECIAL only makes the hook look at every call; other code does not see
 * the bit. */
uint32_t vpy_frame_value(const vpy_iframe *frame)
{
    PyCodeObject *code = vpy_iframe_code(frame);
    uint32_t value = vpy_code_value((PyObject *)code);

    if (!state->are_hidden)
        return value;
    inlined_look_at(frame);
    return vpy_getitem_is_code(code) && !vpy_code_wants_arguments(code)
               ? value & ~VPY_SPECIAL
               : value;
}
