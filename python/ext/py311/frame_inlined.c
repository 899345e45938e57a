/* obj[i] on the first patch releases of 3.11, up to 3.11.3 or so: once the
 * interpreter has specialised the instruction, it enters a __getitem__ that is
 * written in Python without calling the evaluation hook. The specialised
 * instruction compares the function's version, of which it keeps 16 bits, and
 * gives up where the version is another one. So while we record, such functions
 * have versions that do not fit: the instruction falls back to an ordinary
 * call, and is not specialised again.
 *
 * Functions are found in all types when the recording starts, and later when
 * they are called: the interpreter specialises an instruction only after
 * several ordinary calls, which the hook sees. turbo_test.c finds out whether
 * this is needed. With the GIL held. */
#include "py311/frame_hook.h"

#include "calls/ids.h"
#include "thunks/thunks.h"

#include <stdlib.h>

bool vpy_getitems_are_inlined;
bool vpy_getitems_are_hidden;

enum { VERSIONS_MAX = UINT16_MAX };
static const uint32_t first_version = (uint32_t)1 << 31; /* of ours */

static PyObject **hidden; /* weak references to functions */
static size_t hidden_count, hidden_capacity;
static uint32_t next_version;

static bool make_room(void)
{
    size_t capacity = hidden_capacity != 0 ? hidden_capacity * 2 : 64;
    PyObject **larger;

    if (hidden_count < hidden_capacity)
        return true;
    larger = realloc(hidden, capacity * sizeof(PyObject *));
    if (larger == NULL)
        return false;
    hidden = larger;
    hidden_capacity = capacity;
    return true;
}

static void hide(PyObject *object)
{
    PyFunctionObject *function = (PyFunctionObject *)object;
    PyObject *type, *value, *traceback, *weakref;

    if (function->func_version > VERSIONS_MAX || !make_room())
        return;
    PyErr_Fetch(&type, &value, &traceback);
    weakref = vpy_weakref_new(object);
    if (weakref != NULL) {
        hidden[hidden_count++] = weakref;
        function->func_version = first_version | next_version++;
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
        hide(found);
    Py_XDECREF(dict);
}

void vpy_getitems_hide(void)
{
    if (!vpy_getitems_are_inlined || vpy_getitems_are_hidden)
        return;
    vpy_getitems_are_hidden = true;
    vpy_find_types(hide_of);
}

/* The version is taken away: the interpreter gives the function another one
 * when it specialises a call of it again. */
void vpy_getitems_show(void)
{
    int young = vpy_young_objects(); /* which the freed references are not */

    vpy_getitems_are_hidden = false;
    for (size_t i = 0; i < hidden_count; i++) {
        PyObject *object = vpy_weakref_get(hidden[i]);
        PyFunctionObject *function = (PyFunctionObject *)object;
        if (object != NULL && function->func_version >= first_version)
            function->func_version = 0;
        Py_XDECREF(object);
        Py_DECREF(hidden[i]);
    }
    free(hidden);
    hidden = NULL;
    hidden_count = hidden_capacity = 0;
    vpy_young_objects_set(young);
}

/* Many functions may share one code object of this name, if a function makes
 * classes: each call of them is looked at. */
bool vpy_getitem_is_code(const PyCodeObject *code)
{
    return vpy_getitems_are_hidden && code->co_argcount == 2 &&
           PyUnicode_CompareWithASCIIString(code->co_name, "__getitem__") == 0;
}

static void look_at(const vpy_iframe *frame)
{
    static PyObject *name;
    PyCodeObject *code = vpy_iframe_code(frame);
    PyObject *self = code->co_argcount == 2 ? vpy_iframe_local(frame, 0) : NULL;
    PyObject *function = vpy_iframe_function(frame);

    if (name == NULL)
        name = PyUnicode_InternFromString("__getitem__");
    if (name == NULL) {
        PyErr_Clear();
        return;
    }
    if (self != NULL && function != NULL && PyFunction_Check(function) &&
        _PyType_Lookup(Py_TYPE(self), name) == function)
        hide(function);
}

/* What made us look at every call is not for others to see. */
uint32_t vpy_frame_value(const vpy_iframe *frame)
{
    PyCodeObject *code = vpy_iframe_code(frame);
    uint32_t value = vpy_code_value((PyObject *)code);

    if (!vpy_getitems_are_hidden)
        return value;
    look_at(frame);
    return vpy_getitem_is_code(code) && !vpy_code_wants_arguments(code)
               ? value & ~VPY_SPECIAL
               : value;
}
