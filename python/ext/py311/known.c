/* Checks for base/inside.c and inside_frames.c what this folder knows of the
 * interpreter. Call with the GIL held. */
#include "base/inside.h"
#include "py311/made_frames.h"
#include "py311/py311.h"

static struct vpy_known_state *const state = &vpy_py311.known;

bool vpy_states_are_counted(PyInterpreterState *interpreter,
                            const PyInterpreterState *shifted)
{
    PyThreadState *made = PyThreadState_New(interpreter);
    bool are = made != NULL &&
               (uint64_t)vpy_threads_made(shifted) == PyThreadState_GetID(made);

    if (made != NULL) {
        PyThreadState_Clear(made);
        PyThreadState_Delete(made);
    }
    return are;
}

/* The frame was checked before; this checks its call. */
bool vpy_call_is_known(const PyThreadState *shifted, const vpy_iframe *frame,
                       PyObject *caller, PyObject *callee,
                       PyObject *const *args)
{
    bool is_known =
        vpy_iframe_is_as_pushed(shifted, frame, (PyFunctionObject *)caller) &&
        vpy_call_is_direct(frame, (PyFunctionObject *)callee, args, 1) &&
        vpy_stack_heights_init() && vpy_iframe_arguments(frame) == args;

    if (is_known && (state->swapped = PyList_New(0)) != NULL)
        ((PyObject **)(uintptr_t)args)[0] = Py_NewRef(state->swapped);
    return is_known && state->swapped != NULL;
}

bool vpy_swapped_is_released(PyObject *argument)
{
    PyObject *put = state->swapped;
    bool is_released;

    state->swapped = NULL;
    if (put == NULL)
        return true;
    is_released = Py_REFCNT(put) == 1;
    Py_DECREF(is_released ? argument : put);
    Py_DECREF(put);
    return is_released;
}
